"""Who finds the pieces of a forward search that is split.

How pieces make up the search is at the head of `vulcan.solvers.tree.split_search`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

from vulcan.executors.crew import Piece as Call
from vulcan.kernels import codes
from vulcan.solvers.tree.forward_run import ForwardSearchRun
from vulcan.solvers.tree.pieces import Task

__all__ = ["FoundPiece", "Path", "Scout", "TopRun"]

# Estimates, as if the model branched everywhere as on its first history.

FEWEST_PIECES: Final = 40
"""How many pieces there are at least, if there are so many."""

MANY_PIECES: Final = 400
"""How many are enough, however large they are."""

LARGE_PIECE: Final = 1e8
"""How many histories are a large piece; about a second."""

Path = tuple[tuple[int, int], ...]
"""The place of each action among those of its state, and of its outcome among those of it."""


@dataclass(eq=False)
class FoundPiece:
    """A piece that the scout found, and who works on it."""

    path: Path
    task: Task
    call: Call | None = field(default=None, repr=False)
    ended: bool = False

    @property
    def action(self) -> tuple[Any, ...]:
        """The action that led to it."""
        return (*self.path[:-1], self.path[-1][0])


class TopRun(ForwardSearchRun):
    """A search that does not go on from histories of one level."""

    def cut(self, level: int) -> None:
        """Choose the level."""
        self._control["cut"] = level

    def find_path(self) -> Path:
        """Return how the search came to where it is."""
        states, actions = self.graph.states.array, self.graph.actions.array
        return tuple(
            (
                int(frame["action"] - states["first_action"][frame["state"]]),
                int(frame["outcome"] - actions["first_outcome"][frame["action"]]),
            )
            for frame in self._frames[: self._depth]
        )

    def take(self, value: float, admissible: bool, histories: int) -> None:
        """Go on as if the history had been searched."""
        frame = self._frames[self._depth]
        frame["value"], frame["admissible"] = value, admissible
        self._control["histories"] += histories
        self._control["phase"] = self._kernel.CLOSE


class Scout(TopRun):
    """Finds the pieces, one after the other."""

    def choose_level(self) -> int:
        """Return the level of the pieces: the first that has enough, and not too large ones."""
        width, level, levels = 1, 0, self.reader.levels
        while level + 1 < levels:
            large = level == 0 or math.log(width) * (levels - level) / level > math.log(LARGE_PIECE)
            if width >= (MANY_PIECES if large else FEWEST_PIECES):
                break
            self.cut(level + 1)
            while (wants := self.step()) != codes.NEEDS_PIECE:
                if wants == codes.DONE:
                    return level + 1
            first, count = self.graph.states.array[self._frames["state"][level]]
            width *= int(self.graph.actions.array["safe_count"][first : first + count].sum())
            level += 1
        return level

    def find_next(self, most: int | None) -> FoundPiece | None:
        """Return the next piece; None after the last."""
        while (wants := self.step()) != codes.NEEDS_PIECE:
            if wants == codes.DONE:
                return None
        frame = self._frames[self._depth]
        number = int(frame["state"])
        state = number if self.graph.merges else self.graph.pack_state(number)
        task = Task(state, self._depth, float(frame["survival"]), float(frame["credit"]), most)
        piece = FoundPiece(self.find_path(), task)
        self.take(0.0, True, 0)
        return piece
