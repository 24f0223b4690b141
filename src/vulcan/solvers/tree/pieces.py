"""A piece of a forward search, and the worker who searches it.

How pieces make up the search is at the head of `vulcan.solvers.tree.split_search`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.problem import Problem
from vulcan.executors.base import Line
from vulcan.graphs.base import Graph
from vulcan.graphs.view import GraphView, SharedGraph
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.tree.forward_run import ForwardSearchRun
from vulcan.solvers.tree.forward_search import ForwardSearch

__all__ = ["PieceWorker", "Report", "Task"]


@dataclass(frozen=True)
class Task:
    """What a worker is told of a piece.

    Attributes
    ----------
    state
        The last state of its history; packed, or a number if the graph is shared.
    level, survival, credit
        Of the history.
    most
        The number of histories from which on nobody will read the answer.
    """

    state: Any
    level: int
    survival: float
    credit: float
    most: int | None


@dataclass(frozen=True)
class Report:
    """What a worker found out about a piece.

    Attributes
    ----------
    finished
        Whether it came to the end.
    value, admissible
        Of the history.
    plan, labels
        The actions of its policy in preorder, as places in a list of labels.
    histories, evaluations
        How many it counts for; where states merge, `visits` says more.
    credits, places
        The smallest and largest credit tested, and where else the bound was evaluated.
    entered, visits
        The states that it came to, in that order, and how often with one step left.
    """

    finished: bool
    value: float
    admissible: bool
    plan: NDArray[np.int32]
    labels: tuple[str, ...]
    histories: int
    evaluations: int
    credits: tuple[float, float]
    places: list[float]
    entered: NDArray[np.intp]
    visits: NDArray[np.int64]


class PieceWorker(ForwardSearchRun):
    """What a worker holds: a search that begins where it is told.

    Parameters
    ----------
    line
        To the reader.
    problem, solver
        What is searched, and how.
    shared
        The graph that all share; None for one of its own.
    asking
        What threads hold while they ask a model in Python.
    """

    def __init__(
        self,
        line: Line,
        problem: Problem,
        solver: ForwardSearch,
        shared: SharedGraph | None = None,
        asking: AbstractContextManager[Any] | None = None,
    ) -> None:
        reader = ModelReader(problem.model) if shared is None else shared.whole.reader
        graph = None if shared is None else GraphView(shared)
        super().__init__(problem, reader, solver, graph=graph, asking=asking)
        self._control["noted"] = shared is not None

    def search(self, task: Task) -> Report:
        """Search a piece."""
        before = self._begin(task)
        finished = self.advance(Monitor(Limits(histories=task.most)))
        frame = self._frames[task.level]
        rows = self._plan[: self._control["length"][0]] if frame["admissible"] else self._plan[:0]
        numbers, plan = np.unique(self.graph.actions.array["number"][rows], return_inverse=True)
        labels = self.graph.labels
        entry = self._visits["entry"]
        entered = np.flatnonzero(entry)
        entered = entered[np.argsort(entry[entered])]
        return Report(
            finished,
            float(frame["value"]),
            bool(frame["admissible"]),
            plan.astype(np.int32),
            tuple(labels[number] for number in numbers.tolist()),
            self.histories,
            self.evaluations - before,
            (float(self.test["least"][0]), float(self.test["largest"][0])),
            self.credits()[1:-1],
            entered,
            self._visits["last"][entered],
        )

    def _begin(self, task: Task) -> int:
        """Get ready for a piece, and return how much was asked before."""
        self._visits.view(np.uint8).fill(0)  # records would be set field by field
        self.open_table()  # where it is fine depends on this piece alone, and not on others
        state = task.state
        if self.graph.merges:
            self.state_graph.expand_all(())  # others may have added the state
        else:
            self.graph.release(np.array([Graph.ROOT], np.intp), np.zeros(0, np.intp))
            state = self.graph.add_state(task.state)
        self.begin_at(task.level, state, task.survival, task.credit)
        return self.evaluations
