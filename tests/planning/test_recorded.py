"""The same seeds give the same policies as ever: certified rewards, risks, counts and policies."""

from __future__ import annotations

import json

import pytest

from tests.golden import FOLDER
from tests.helpers.recorded import CASES, record

RECORDED = json.loads((FOLDER / "recorded.json").read_text(encoding="utf-8"))


def test_every_case_is_recorded() -> None:
    assert list(RECORDED) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_nothing_has_changed(name: str) -> None:
    assert record(CASES[name]) == RECORDED[name]
