"""What kernels leave behind in their arrays, call by call, is what it was when it was recorded."""

from __future__ import annotations

import numpy as np
import pytest

from tests.golden import read_golden
from tests.helpers.diaries import Diary, keep_diary, round_off
from tests.helpers.diary_cases import STEPS
from tests.helpers.small_cases import SMALL


@pytest.mark.parametrize("name", STEPS)
def test_kernels_leave_what_they_left(name: str) -> None:
    with keep_diary() as diary:
        STEPS[name]()
    assert diary.close() == read_golden("diaries.json")[name]


def test_every_diary_is_recorded() -> None:
    assert list(read_golden("diaries.json")) == [*SMALL, *STEPS]


def test_diaries_differ_in_a_single_number() -> None:
    kind = np.dtype([("count", "i4"), ("value", "f8"), ("address", "u8")], align=True)
    found = set()
    for field, change in (("count", 0), ("count", 1), ("value", 1e-9), ("address", 1)):
        array = np.ones(3, kind)
        array[field][2] += change
        diary = Diary()
        diary.note("kernel", 31, (array, 2.0))
        found.add(str(diary.close()))
    assert len(found) == 3  # an address does not count


def test_numbers_are_rounded_relative_to_their_size() -> None:
    numbers = np.array([0.0, -0.0, 1.0, 3e-300, -7e200, np.inf, -np.inf, np.nan])
    same = round_off(numbers * (1 + 1e-14))
    assert same.tobytes() == round_off(numbers).tobytes()
    assert np.allclose(round_off(numbers), numbers, rtol=1e-10, equal_nan=True)
    assert (round_off(numbers * (1 + 1e-9)) != round_off(numbers)).sum() == 4  # and nan
