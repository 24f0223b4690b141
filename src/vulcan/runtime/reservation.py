"""Arrays that grow without being copied, and arrays that threads write to side by side.

Memory that was never touched takes none. So a large array gets address space for many times its
length, as a mapping of its own, and grows by having more of it in sight. Where the system does not
grant that, an array is copied to a longer one.
"""

from __future__ import annotations

import mmap
import sys
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["lengthen", "set_apart"]

LINE: Final = 128
"""Bytes that processors exchange at a time, with the neighbour that they fetch beside it."""

LARGE: Final = 1 << 18
"""Bytes from which on an array is worth a mapping."""

NO_RESERVE: Final = 0x4000
"""MAP_NORESERVE of Linux, which Python 3.11 has no name for."""

FORESIGHT: Final = 64
"""For how many times its length a large array gets address space, ..."""

LEAST_SPACE: Final = 1 << 32
"""... but no less than for so many bytes: to copy a few hundred megabytes, and have as many new
pages, takes a second, and the copy would be beside the array for a moment."""


def set_apart(length: int, dtype: Any) -> NDArray[Any]:
    """Return an array of zeros far enough from any other for two threads to write to both.

    Where two arrays share a line of the cache, each write to one of them delays the other.
    """
    dtype = np.dtype(dtype)
    margin = -(-LINE // dtype.itemsize)
    return np.zeros(margin + length + margin, dtype)[margin : margin + length]


def lengthen(array: NDArray[Any], filled: int, length: int) -> NDArray[Any]:
    """Return an array of another length with the rows that were filled; the rest is 0."""
    whole = array.base
    if isinstance(whole, np.ndarray) and isinstance(whole.base, mmap.mmap) and length <= len(whole):
        return whole[:length]
    grown = _make(array, length)
    # Bytes are copied at once, records field by field.
    grown[:filled].view(np.uint8)[:] = array[:filled].view(np.uint8)
    return grown


def _make(like: NDArray[Any], length: int) -> NDArray[Any]:
    """Return an array of zeros with rows like another's, with room to grow if it is large."""
    row = like[:1].nbytes if len(like) else like.dtype.itemsize
    if length * row >= LARGE and sys.platform == "linux":
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
        most = max(FORESIGHT * length, LEAST_SPACE // row)
        try:
            space = mmap.mmap(-1, most * row, flags=flags)
        except (OSError, OverflowError, ValueError):
            pass
        else:
            whole = np.ndarray((most, *like.shape[1:]), like.dtype, buffer=space)
            return whole[:length]
    return np.zeros((length, *like.shape[1:]), like.dtype)
