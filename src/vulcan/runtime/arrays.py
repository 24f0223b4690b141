"""Arrays: ranges of rows, growth without copies, and checkpoints.

Growth. Memory that was never touched takes none. So a large array gets address space for many times
its length, as a mapping of its own, and grows by exposing more of it. Where the system does not
grant that, an array is copied to a longer one.

Checkpoints. Every array from a file is validated before kernels follow it
(`vulcan.sampling.checkpoint`): `require` says what is wrong.
"""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import CheckpointError

LINE: Final = 128  # bytes that processors exchange at a time, with the neighbour fetched beside it
LARGE: Final = 1 << 18  # bytes from which on an array gets a mapping
NO_RESERVE: Final = 0x4000  # MAP_NORESERVE of Linux, which Python 3.11 has no name for
# A large array gets address space for this many times its length, and at least this many bytes:
# copying a few hundred megabytes takes a second, and the copy would be in memory beside the array.
FORESIGHT, LEAST_SPACE = 64, 1 << 32


def starts(counts: NDArray[Any]) -> NDArray[np.intp]:
    """Return where each of some consecutive ranges begins."""
    return np.asarray(counts.cumsum(dtype=np.intp) - counts, np.intp)


def ranges(firsts: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.intp]:
    """Return first, first + 1, ... of each range, one after the other."""
    ends = np.cumsum(counts, dtype=np.intp)
    steps = np.arange(ends[-1] if len(ends) else 0)
    return np.asarray(steps + np.repeat(firsts - (ends - counts), counts), np.intp)


def set_apart(length: int, dtype: Any) -> NDArray[Any]:
    """Return an array of zeros that shares no cache line with others.

    Otherwise a thread that writes to one of them would delay those that write to the others.
    """
    dtype = np.dtype(dtype)
    margin = -(-LINE // dtype.itemsize)
    return np.zeros(margin + length + margin, dtype)[margin : margin + length]


def lengthen(array: NDArray[Any], filled: int, length: int) -> NDArray[Any]:
    """Return an array of another length with the filled rows of this one, and zeros after them."""
    whole = array.base
    if isinstance(whole, np.ndarray) and isinstance(whole.base, mmap.mmap) and length <= len(whole):
        return whole[:length]
    grown = np.zeros((length, *array.shape[1:]), array.dtype)  # takes no memory yet
    row = array[:1].nbytes if len(array) else array.dtype.itemsize
    if length * row >= LARGE and sys.platform == "linux":
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
        most = max(FORESIGHT * length, LEAST_SPACE // row)
        with suppress(OSError, OverflowError, ValueError):
            space = mmap.mmap(-1, most * row, flags=flags)
            grown = np.ndarray((most, *array.shape[1:]), array.dtype, buffer=space)[:length]
    # As bytes, which are copied at once; records are copied field by field.
    grown[:filled].view(np.uint8)[:] = array[:filled].view(np.uint8)
    return grown


def keep_rows(array: NDArray[Any], kept: NDArray[np.intp]) -> None:
    """Move some rows to the front; the memory after them returns to the system, where mapped."""
    row = array[:1].nbytes
    rows = np.ndarray(len(array), f"V{row}", array.data)  # records are copied field by field
    rows[: len(kept)] = rows[kept]
    whole = array.base
    if isinstance(whole, np.ndarray) and isinstance(whole.base, mmap.mmap):
        begin = -(-len(kept) * row // mmap.PAGESIZE) * mmap.PAGESIZE
        if begin < array.nbytes:
            whole.base.madvise(mmap.MADV_DONTNEED, begin, array.nbytes - begin)


def require(condition: object, problem: str) -> None:
    """Raise a `CheckpointError` unless a condition holds."""
    if not condition:
        raise CheckpointError(f"the content is not a checkpoint: {problem}")


def require_names(packed: Mapping[str, Any], names: Iterable[str]) -> None:
    """Raise a `CheckpointError` unless exactly these names are packed."""
    expected = set(names)
    require(set(packed) == expected, f"it must have exactly {', '.join(sorted(expected))}")


def pack_array(array: NDArray[Any]) -> bytes:
    """Return the bytes of an array."""
    return np.ascontiguousarray(array).tobytes()


def unpack_array(
    packed: Mapping[str, bytes], name: str, like: NDArray[Any], length: int | None = None
) -> NDArray[Any]:
    """Return an array of a checkpoint, with rows like another's, and of a length if it is given."""
    row = like.dtype.itemsize * math.prod(like.shape[1:])
    count, rest = divmod(len(packed[name]), row)
    right = rest == 0 and length in (None, count)
    require(right, f"{name.strip('_')} has a wrong length: {len(packed[name])} bytes")
    values = np.frombuffer(packed[name], like.dtype)
    return values.reshape(count, *like.shape[1:]).copy()
