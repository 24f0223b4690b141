"""Small answers, bit for bit, and what kernels left behind: so a slip in a kernel shows at once."""

from __future__ import annotations

import pytest

from tests.golden import read_golden
from tests.helpers.diaries import keep_diary
from tests.helpers.recorded import record
from tests.helpers.small_cases import SMALL


@pytest.mark.parametrize("name", SMALL)
def test_nothing_has_changed(name: str) -> None:
    with keep_diary() as diary:
        answer = record(SMALL[name])
    assert answer == read_golden("small.json")[name]
    assert diary.close() == read_golden("diaries.json")[name]


def test_every_case_is_recorded() -> None:
    assert list(read_golden("small.json")) == list(SMALL)
