"""Arrays: ranges of rows, growth without copies, checkpoints, and blocks for threads.

Growth. Memory that was never touched takes none. So a large array gets address space for many times
its length, as a mapping of its own, and grows by exposing more of it. Where the system does not
grant that, an array is copied to a longer one.

Checkpoints. A seal shows damage to a file, not who wrote it. Kernels follow the numbers in their
arrays without checks, so every array from a file is validated first: `require` says what is wrong.

Threads. A dynamic program processes levels of state–step pairs one after the other. The pairs of a
level are independent, so a large level is cut into blocks of consecutive pairs, one for each
thread. Kernels run without the interpreter's lock, all threads see the same arrays, and each writes
the entries of its own pairs. Every pair is computed by the same operations in the same order as by
one thread: results are the same, bit for bit. Handing out blocks and waiting for them takes some 50
µs, so small levels are not cut; consecutive small levels are one block.
"""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import CheckpointError

__all__ = [
    "Block",
    "ThreadPool",
    "claim",
    "cut_levels",
    "lengthen",
    "pack_array",
    "ranges",
    "require",
    "require_names",
    "set_apart",
    "starts",
    "unpack_array",
]

LINE: Final = 128
"""Bytes that processors exchange at a time, with the neighbour that they fetch beside it."""

LARGE: Final = 1 << 18
"""Bytes from which on an array gets a mapping."""

NO_RESERVE: Final = 0x4000
"""MAP_NORESERVE of Linux, which Python 3.11 has no name for."""

FORESIGHT: Final = 64
"""Address space of a large array, as a multiple of its length, ..."""

LEAST_SPACE: Final = 1 << 32
"""... and at least this many bytes: copying a few hundred megabytes takes a second, and the copy
would be in memory beside the array."""

Block = tuple[int, int]
"""Consecutive state–step pairs: the first, and the one after the last."""

Task = TypeVar("Task")
Result = TypeVar("Result")


def starts(counts: NDArray[Any]) -> NDArray[np.intp]:
    """Return where each of some consecutive ranges begins."""
    return np.asarray(np.cumsum(counts, dtype=np.intp) - counts, np.intp)


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
    grown = _make(array, length)
    # As bytes, which are copied at once; records are copied field by field.
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
            return np.ndarray((most, *like.shape[1:]), like.dtype, buffer=space)[:length]
    return np.zeros((length, *like.shape[1:]), like.dtype)


def require(condition: object, problem: str) -> None:
    """Raise a `CheckpointError` unless a condition holds."""
    if not condition:
        raise CheckpointError(f"the content is not a checkpoint: {problem}")


def require_names(packed: Mapping[str, Any], names: Iterable[str]) -> None:
    """Raise a `CheckpointError` unless exactly these names are packed."""
    expected = set(names)
    require(set(packed) == expected, f"it must have {', '.join(sorted(expected))}, and no more")


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


def claim(
    taken: NDArray[np.bool_], firsts: NDArray[Any], counts: NDArray[Any], what: str
) -> NDArray[np.intp]:
    """Return the rows of some ranges, and mark them as taken; errors name the rows by `what`.

    Raises
    ------
    CheckpointError
        If rows lie outside of the array, or belong to two ranges.
    """
    filled = counts > 0
    firsts, counts = firsts[filled].astype(np.int64), counts[filled].astype(np.int64)
    ends = firsts + counts
    inside = (firsts >= 0) & (ends <= len(taken))
    require(inside.all(), f"{what} lie outside of their array")
    order = np.argsort(firsts)
    apart = (ends[order[:-1]] <= firsts[order[1:]]).all()
    rows = ranges(firsts, counts) if apart else np.zeros(0, np.intp)
    require(apart and not taken[rows].any(), f"some {what} belong to two others")
    taken[rows] = True
    return rows


class ThreadPool:
    """Threads that work at once, the calling one among them."""

    def __init__(self, count: int = 1) -> None:
        self.count = count

    @cached_property
    def _others(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.count - 1)

    def share(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
        """Return the results of tasks, at most one per thread, all done at once."""
        others = [self._others.submit(work, task) for task in tasks[1:]]
        try:
            first = work(tasks[0])
        finally:
            wait(others)
        return [first, *(other.result() for other in others)]


def cut_levels(
    first: NDArray[np.int64],
    least: int,
    most: int,
    counted: NDArray[np.uint8] | NDArray[np.bool_] | None = None,
) -> Iterator[list[Block]]:
    """Yield lists of blocks that can be processed at once, from the last level to the first.

    Parameters
    ----------
    first
        The pairs of level t are first[t] to first[t + 1] - 1.
    least
        Smallest number of pairs in a block of a level that is cut.
    most
        Largest number of blocks at once.
    counted
        Which pairs count, where others cost nothing.
    """
    bottom = int(first[-1])  # pairs from here on are yielded already
    levels = pairwise(first[::-1].tolist()) if most > 1 else ()
    for end, begin in levels:
        if end - begin < 2 * least:
            continue
        blocks = _cut(begin, end, least, most, counted)
        if len(blocks) > 1:
            if end < bottom:
                yield [(end, bottom)]
            yield blocks
            bottom = begin
    if bottom > 0:
        yield [(0, bottom)]


def _cut(
    begin: int,
    end: int,
    least: int,
    most: int,
    counted: NDArray[np.uint8] | NDArray[np.bool_] | None,
) -> list[Block]:
    """Return blocks of a level with about as many counted pairs each."""
    if counted is None:
        number = min(most, (end - begin) // least)
        cuts = begin + (end - begin) * np.arange(1, number) // number
    else:
        counts = np.cumsum(counted[begin:end], dtype=np.int64)
        number = max(1, min(most, int(counts[-1]) // least))
        cuts = begin + 1 + np.searchsorted(counts, counts[-1] * np.arange(1, number) // number)
    return list(pairwise([begin, *cuts.tolist(), end]))
