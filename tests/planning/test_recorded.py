"""The same seeds give the same policies as ever: certified rewards, risks, counts and policies."""

from __future__ import annotations

import pytest

from tests.golden import read_golden
from tests.helpers.recorded import CASES, record
from tests.helpers.small_cases import SMALL

ALL = {**CASES, **{f"small-{name}": case for name, case in SMALL.items()}}
RECORDED = read_golden("recorded.json") | {
    f"small-{name}": record for name, record in read_golden("small.json").items()
}


def test_every_case_is_recorded() -> None:
    assert set(RECORDED) == set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_nothing_has_changed(name: str) -> None:
    assert record(ALL[name]) == RECORDED[name]
