"""The same seeds give the same policies as ever: certified rewards, risks, counts and policies."""

from __future__ import annotations

import pytest

from tests.golden import read_golden
from tests.helpers.recorded import CASES, record

RECORDED = read_golden("recorded.json")


def test_every_case_is_recorded() -> None:
    assert set(RECORDED) == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_nothing_has_changed(name: str) -> None:
    assert record(CASES[name]) == RECORDED[name]
