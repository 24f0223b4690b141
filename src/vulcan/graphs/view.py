"""What one of several threads sees of a state graph that they share.

The model is asked once for all of them. Rows of actions and outcomes are written once and never
change, so that all threads read the same ones. Only rows of states change, when they are asked:
each thread has its own, and finds there no more than it has looked at. So a kernel never meets a
state whose actions lie beyond the arrays that it was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.base import Graph, Numbers
from vulcan.graphs.rows import ACTION, OUTCOME, STATE, Rows
from vulcan.graphs.state_graph import StateGraph
from vulcan.policies.policy import About, Policy
from vulcan.sentinels import UNASKED

__all__ = ["GraphView", "SharedGraph"]


class SharedGraph:
    """A graph of a model whose states merge, and the lock of those who share it.

    Parameters
    ----------
    whole
        The graph.
    """

    def __init__(self, whole: StateGraph) -> None:
        self.whole, self.lock = whole, RLock()

    def ask(self, states: Sequence[int]) -> None:
        """Have states asked that nobody asked yet."""
        with self.lock:
            counts = self.whole.states.array["action_count"]
            if new := [state for state in states if counts[state] == UNASKED]:
                self.whole.expand_all(new)


class GraphView(StateGraph):
    """The shared graph, as one thread sees it.

    Parameters
    ----------
    shared
        The graph.
    """

    def __init__(self, shared: SharedGraph) -> None:
        Graph.__init__(self, shared.whole.reader)
        self.shared = shared
        self.states, self.actions, self.outcomes = Rows(STATE), Rows(ACTION), Rows(OUTCOME)
        with shared.lock:
            whole = shared.whole
            self.states.array = whole.states.array[: whole.states.count].copy()
            self.states.count = whole.states.count
            self._seen = len(whole.expanded)
            self.look(np.zeros(0, np.intp))

    def expand_all(self, states: Sequence[int]) -> None:
        """Have states asked, and look at all that anybody asked."""
        with self.shared.lock:
            self.shared.ask(states)
            new = self.shared.whole.expanded[self._seen :]
            self._seen += len(new)
            self.look(np.array(new, np.intp))

    def look(self, states: NDArray[np.intp]) -> None:
        """Look at the rows of states that were asked."""
        with self.shared.lock:
            whole = self.shared.whole
            if new := whole.states.count - self.states.count:
                self.states.extend(new)[:] = (0, UNASKED)
            self.states.array[states] = whole.states.array[states]
            for mine, theirs in ((self.actions, whole.actions), (self.outcomes, whole.outcomes)):
                mine.array, mine.count = theirs.array, theirs.count

    def policy(self, action_rows: Numbers, children: Numbers, about: About) -> Policy:
        with self.shared.lock:
            return self.shared.whole.policy(action_rows, children, about)

    @property
    def evaluations(self) -> int:
        return self.shared.whole.evaluations

    @property
    def memory(self) -> int:
        return self.shared.whole.memory

    @property
    def labels(self) -> Sequence[str]:
        with self.shared.lock:
            return self.shared.whole.labels

    def number_of(self, label: str) -> int:
        with self.shared.lock:
            return self.shared.whole.number_of(label)

    def state_object(self, state: int) -> Any:
        """Return the model's own object of a state."""
        return self.shared.whole.state_object(state)
