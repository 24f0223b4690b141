"""Tasks that fail, and workers that are killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from reproduction import reproduce
from tests.helpers.failing_part import FailingPart
from vulcan.errors import VulcanError


def test_a_task_that_fails_is_named_and_the_others_are_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reproduction.reproduction.PARTS", [FailingPart("broken")])
    for _ in range(2):
        with pytest.raises(VulcanError, match=r"1 tasks failed(.|\n)*'broken'\}: out of tea"):
            reproduce(tmp_path, quick=True, workers=2)
        page = (tmp_path / "index.html").read_text()
        assert "4 records" in page
        assert "4 of 5 tasks were run" in page
    assert len((tmp_path / "data-quick" / "failing.jsonl").read_text().splitlines()) == 4


def test_a_killed_worker_is_told_and_what_was_run_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reproduction.reproduction.PARTS", [FailingPart("killed")])
    with pytest.raises(VulcanError, match=r"1 tasks failed(.|\n)*its worker was killed"):
        reproduce(tmp_path, quick=True, workers=1)
    assert "4 of 5 tasks were run" in (tmp_path / "index.html").read_text()  # short ones come first
