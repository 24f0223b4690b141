"""How many histories an exploration mission has, exactly.

A history is a sequence of actions with their outcomes, each of positive probability. How it can go
on depends on the cells that it visited: a new one has as many safe outcomes as the quadrature has
nodes, an old one has one, and each may have a collision as well. So paths are followed, 8^n of
them, each standing for all histories on it, and the last move is not made but counted: with d
nodes, a path that can go on to A cells, V of which it visited, goes on in d A - (d - 1) V ways.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.domains.exploration.maps import Map
from vulcan.domains.exploration.model import MOVES, Exploration
from vulcan.errors import OptionError

__all__ = ["HistoryCount", "count_histories"]

MOST_MOVES: Final = 11
MOST_PATHS: Final = 1 << 16
"""Paths followed at a time."""


class HistoryCount(NamedTuple):
    """How many histories there are.

    Attributes
    ----------
    unfinished
        Safe histories with moves left; the empty one is among them.
    finished
        Safe histories at the horizon.
    failed
        Histories that end in a collision.
    """

    unfinished: int
    finished: int
    failed: int

    @property
    def total(self) -> int:
        """All histories."""
        return self.unfinished + self.finished + self.failed


class _Grid(NamedTuple):
    """The C cells within reach, numbered, and one more that stands for none.

    Attributes
    ----------
    start
        Number of the start.
    next_to
        Shape [8, C + 1]: the cell that a move leads to, C if there is none.
    open
        Shape [n + 1, C + 1]: whether the t-th move, if it leads there, can end well.
    ways, failures
        Shape [n + 1, C + 1]: how many t-th moves from there can end well, and how many can fail.
    last
        Shape [C + 1, C + 1]: whether the last move can lead to one cell from another, and end well.
    """

    start: int
    next_to: NDArray[np.int16]
    open: NDArray[np.bool_]
    ways: NDArray[np.int64]
    failures: NDArray[np.int64]
    last: NDArray[np.bool_]


class _Paths(NamedTuple):
    """Some paths of the same length.

    Attributes
    ----------
    here
        Shape [P]: the last cell.
    visited
        Shape [t + 1, P]: the cells in order, or C where a cell was visited before.
    histories
        Shape [P]: how many safe histories took the path.
    """

    here: NDArray[np.int16]
    visited: NDArray[np.int16]
    histories: NDArray[np.int64]

    def take(self, chosen: slice) -> _Paths:
        """Return some of the paths."""
        return _Paths(self.here[chosen], self.visited[:, chosen], self.histories[chosen])


def count_histories(mission: Exploration) -> HistoryCount:
    """Count the histories of a mission.

    It takes some seconds for 9 moves, and up to eight times as long with each move more.

    Parameters
    ----------
    mission
        Any exploration mission of at most 11 moves.

    Raises
    ------
    OptionError
        If it has more.
    """
    if mission.horizon > MOST_MOVES:
        raise OptionError(
            f"histories can be counted for at most {MOST_MOVES} moves, not {mission.horizon}: "
            "every path is followed"
        )
    grid, nodes = _number_cells(mission), mission.degree
    first = np.array([grid.start], np.int16)
    waiting = [_Paths(first, first[None], np.ones(1, np.int64))]
    unfinished = finished = failed = 0
    while waiting:
        paths = waiting.pop()
        step = len(paths.visited)
        unfinished += int(paths.histories.sum())
        failed += int(paths.histories @ grid.failures[step][paths.here])
        if step < mission.horizon:
            waiting += _move(grid, nodes, paths)
            continue
        old = grid.last[paths.visited, paths.here].sum(axis=0)
        further = nodes * grid.ways[step][paths.here] - (nodes - 1) * old
        finished += int(paths.histories @ further)
    return HistoryCount(unfinished, finished, failed)


def _move(grid: _Grid, nodes: int, paths: _Paths) -> list[_Paths]:
    """Return the paths one move further that can end well, in portions that are not too large."""
    step, none = len(paths.visited), grid.next_to.shape[1] - 1
    here = grid.next_to[:, paths.here].ravel()
    passable = grid.open[step][here]
    here = here[passable]
    visited = np.tile(paths.visited, len(MOVES))[:, passable]
    old = (visited == here).any(axis=0)
    visited = np.concatenate((visited, np.where(old, none, here)[None]), dtype=np.int16)
    histories = np.tile(paths.histories, len(MOVES))[passable] * np.where(old, 1, nodes)
    further = _Paths(here, visited, histories)
    return [
        further.take(slice(first, first + MOST_PATHS)) for first in range(0, len(here), MOST_PATHS)
    ]


def _number_cells(mission: Exploration) -> _Grid:
    """Return what counting needs to know of the cells within reach."""
    area, moves = mission.map, mission.horizon
    assert isinstance(area, Map)
    x, y = area.start
    reach = range(-moves, moves + 1)
    cells = [(x + a, y + b) for a in reach for b in reach if area.contains((x + a, y + b))]
    numbers, none = {cell: number for number, cell in enumerate(cells)}, len(cells)
    risks = np.zeros((moves + 1, none + 1))
    next_to = np.full((len(MOVES), none + 1), none, np.int16)
    for number, (a, b) in enumerate(cells):
        risks[:, number] = [mission.risk((a, b), step) for step in range(moves + 1)]
        next_to[:, number] = [numbers.get((a + e, b + n), none) for e, n in MOVES.values()]
    exists = np.arange(none + 1) < none
    passable, risky = (risks < 1) & exists, risks > 0
    last = np.zeros((none + 1, none + 1), bool)
    last[next_to, np.arange(none + 1)] = True
    return _Grid(
        start=numbers[area.start],
        next_to=next_to,
        open=passable,
        ways=passable[:, next_to].sum(axis=1),
        failures=risky[:, next_to].sum(axis=1),
        last=last & passable[moves][:, None],
    )
