"""Arrays that grow: their rows stay, the rest is 0, and large ones are not copied."""

from __future__ import annotations

import mmap
import sys

import numpy as np
import pytest

from vulcan.runtime import reservation
from vulcan.runtime.reservation import LARGE, lengthen

PAIR = np.dtype([("number", "i4"), ("value", "f8")], align=True)
LENGTHS = [10, LARGE // 8]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("shape", [(), (8,)])
def test_rows_that_were_filled_stay(length: int, shape: tuple[int, ...]) -> None:
    array = np.arange(length * max(1, *shape, 1), dtype=np.float32).reshape(length, *shape)
    grown = lengthen(array, length - 3, 3 * length)
    assert grown.shape == (3 * length, *shape)
    assert grown.dtype == array.dtype
    assert (grown[: length - 3] == array[: length - 3]).all()
    assert not grown[length - 3 :].any()


def test_records_stay() -> None:
    array = np.array([(1, 2.5), (3, -4.5)], PAIR)
    assert lengthen(array, 2, 5)[:2].tolist() == array.tolist()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere arrays are copied")
def test_a_large_array_grows_where_it_is() -> None:
    array = lengthen(np.ones(1000), 1000, LARGE // 8)
    grown = lengthen(array, 1000, 4 * len(array))
    assert grown.ctypes.data == array.ctypes.data
    array[5] = 7.0
    assert grown[5] == 7.0
    assert not grown[1000:].any()
    # And beyond the space that was set aside for it, it is copied once more.
    further = lengthen(grown, 1000, reservation.LEAST_SPACE // 8 + 1)
    assert further.ctypes.data != grown.ctypes.data
    assert (further[:1000] == grown[:1000]).all()


def test_an_array_that_gets_no_space_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(mmap, "mmap", type("Refused", (), {"__new__": refuse}))
    array = np.ones(LARGE // 8)
    grown = lengthen(array, len(array), 2 * len(array))
    assert len(grown) == 2 * len(array)
    assert grown.sum() == len(array)
