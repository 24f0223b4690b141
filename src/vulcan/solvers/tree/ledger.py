"""What one worker would have asked by now, and how many histories it would count.

Several workers who share the graph of a model whose states merge ask for more than one of them
would have asked until then, and in another order. A ledger is told which states a search came to,
in its own order. It lets the search see these states alone.

A history that ends at the horizon counts unless its state was known to be a terminal when the one
before it was asked (`open_count` in `vulcan.graphs.base`). With t(s) the time when s was entered, a
history that comes to s with one step left counts for itself and for

    ends(s) = number of safe outcomes s' of actions of s, except terminals with t(s') < t(s).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.view import GraphView
from vulcan.runtime.ranges import ranges
from vulcan.sentinels import UNASKED

__all__ = ["Ledger"]

NEVER: Final = np.iinfo(np.int64).max


class Ledger:
    """What a search has come to.

    Parameters
    ----------
    view
        What the search sees of the graph.

    Attributes
    ----------
    evaluations
        How many (state, action) it would have asked.
    ends
        ends(s) of each state that it sees.
    """

    def __init__(self, view: GraphView) -> None:
        self._view, self._shared = view, view.shared
        self.evaluations = view.evaluations
        rows = view.states.array[: view.states.count]
        self._ended_at = np.where(rows["action_count"] == 0, 0, NEVER)
        self._time = 0
        self._last = np.zeros(0, np.intp)
        self.ends = np.zeros(len(rows), np.int64)
        known = np.flatnonzero(rows["action_count"] > 0)
        counts = rows["action_count"][known]
        own = view.actions.array["open_count"][ranges(rows["first_action"][known], counts)]
        owner = np.repeat(np.arange(len(known)), counts)
        self.ends[known] = np.bincount(owner, own, minlength=len(known))

    def enter(self, states: NDArray[np.intp]) -> NDArray[np.intp]:
        """Note that the search came to states, in this order; return those that are new."""
        with self._shared.lock:
            self._view.look(np.zeros(0, np.intp))
            self._lengthen(self._view.states.count)
            fresh: NDArray[np.intp] = states[
                self._view.states.array["action_count"][states] == UNASKED
            ]
            self._view.look(fresh)
        rows = self._view.states.array[fresh]
        times = self._time + 1 + np.arange(len(fresh))
        over = rows["action_count"] == 0
        self._ended_at[fresh[over]] = times[over]
        actions = self._view.actions.array[ranges(rows["first_action"], rows["action_count"])]
        safe = actions["safe_count"]
        reached = self._view.outcomes.array["state"][ranges(actions["first_outcome"], safe)]
        owner = np.repeat(np.repeat(np.arange(len(fresh)), rows["action_count"]), safe)
        goes_on = self._ended_at[reached] > times[owner]
        self.ends[fresh] = np.bincount(owner[goes_on], minlength=len(fresh))
        self._time += len(fresh)
        self.evaluations += len(actions)
        self._last = fresh
        return fresh

    def undo(self) -> None:
        """Forget the states that were entered last."""
        rows, last = self._view.states.array, self._last
        self._time -= len(last)
        self.evaluations -= int(rows["action_count"][last].sum())
        self._ended_at[last] = NEVER
        rows[last] = (0, UNASKED)
        self._last = last[:0]

    def _lengthen(self, count: int) -> None:
        if count > len(self.ends):
            more = 2 * count - len(self.ends)
            self.ends = np.concatenate([self.ends, np.zeros(more, np.int64)])
            self._ended_at = np.concatenate([self._ended_at, np.full(more, NEVER)])
