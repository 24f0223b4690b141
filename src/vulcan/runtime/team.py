"""A team of threads that share the nodes of a level.

A dynamic program goes over levels of nodes, one after the other. The nodes of a level don't depend
on each other, so that a large one is cut into blocks of consecutive nodes, one for each thread.
Kernels run without the interpreter's lock, all threads see the same arrays, and each writes what
belongs to its own nodes. Every node is computed by the same operations in the same order as by one
thread: results are the same, bit for bit.

Handing out blocks and waiting for them takes some 50 µs, so that small levels are not cut. Those
that follow one another are one block, and cost no more than they do alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Block", "Team", "cut_levels"]

Part = TypeVar("Part")
Answer = TypeVar("Answer")

Block = tuple[int, int]
"""Consecutive nodes: the first, and the one after the last."""


class Team:
    """Some threads that work at once; the one that calls is among them.

    Parameters
    ----------
    count
        How many.
    """

    def __init__(self, count: int = 1) -> None:
        self.count = count

    @cached_property
    def _others(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.count - 1)

    def share(self, work: Callable[[Part], Answer], parts: Sequence[Part]) -> list[Answer]:
        """Do something for each of some parts, at most one per thread, all at once."""
        others = [self._others.submit(work, part) for part in parts[1:]]
        try:
            first = work(parts[0])
        finally:
            wait(others)
        return [first, *(other.result() for other in others)]


def cut_levels(
    first: NDArray[np.int64],
    least: int,
    most: int,
    counted: NDArray[np.uint8] | NDArray[np.bool_] | None = None,
) -> Iterator[list[Block]]:
    """Yield blocks to be done at once, from the last level to the first.

    Parameters
    ----------
    first
        The nodes of level t are first[t] to first[t + 1] - 1.
    least
        How many nodes a block has at least where a level is cut.
    most
        How many blocks there are at most.
    counted
        Which nodes count, where others cost nothing.
    """
    bottom = int(first[-1])  # what comes before it is not yielded yet
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
    """Return blocks of a level in which about as many nodes count."""
    if counted is None:
        number = min(most, (end - begin) // least)
        cuts = begin + (end - begin) * np.arange(1, number) // number
    else:
        counts = np.cumsum(counted[begin:end], dtype=np.int64)
        number = max(1, min(most, int(counts[-1]) // least))
        cuts = begin + 1 + np.searchsorted(counts, counts[-1] * np.arange(1, number) // number)
    return list(pairwise([begin, *cuts.tolist(), end]))
