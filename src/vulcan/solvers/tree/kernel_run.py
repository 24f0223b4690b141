"""What every kernel asks for while it searches, and who answers.

A kernel returns when it meets a state whose actions were never asked, or a credit at which the
table of the risk bound must be finer. A `KernelRun` owns the graph, the table and the record of the
local constraint, and answers both. A `CappedRun` answers within a number of bytes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.problem import Problem
from vulcan.errors import BoundError, ModelError
from vulcan.graphs.array_graph import open_graph
from vulcan.graphs.base import Graph
from vulcan.graphs.compiled_graph import CompiledGraph, find_compiled
from vulcan.graphs.rows import MOST_ROWS
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.reader import ModelReader
from vulcan.runtime.memory import find_default_memory
from vulcan.solvers.constraints import LocalConstraint

__all__ = ["CappedRun", "KernelRun", "choose_graph"]


class KernelRun:
    """A search in progress.

    Attributes
    ----------
    problem, reader, constraint
        What is being solved, and under which constraint.
    graph
        What is known of the model.
    table
        The risk bound as kernels see it.
    """

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        constraint: LocalConstraint,
        known: StateGraph | None = None,
        compiled: bool = True,
        graph: Graph | None = None,
    ) -> None:
        from vulcan.kernels.constraints import TEST
        from vulcan.kernels.problem_arrays import ProblemArrays

        self._problem_arrays = ProblemArrays
        self.problem, self.reader, self.constraint = problem, reader, constraint
        self.graph = choose_graph(reader, constraint, known, compiled) if graph is None else graph
        self.test = np.zeros(1, TEST)
        for name in ("form", "by_outcome", "ends_suffice"):
            self.test[name] = getattr(constraint, name)
        self.forget_credits()
        self.open_table()

    def open_table(self) -> None:
        """Begin with a table of the risk bound in which nothing was looked up yet."""
        self.table = self.problem.risk_bound.table()
        self._read_table()

    def arrays(self) -> Any:
        """Return the arrays of the problem as they are now."""
        graph, reader = self.graph, self.reader
        rows = (graph.states.array, graph.actions.array, graph.outcomes.array)
        steps = (reader.discounts, reader.weights)
        return self._problem_arrays(*rows, self.table.pieces, *steps, graph.source, graph.answers)

    @property
    def state_graph(self) -> StateGraph:
        """The graph, of a model that Python asks."""
        assert isinstance(self.graph, StateGraph)
        return self.graph

    @property
    def evaluations(self) -> int:
        """How often the model was asked."""
        return self.graph.evaluations

    @property
    def known_graph(self) -> StateGraph | None:
        """What is known of the model, for others; None if its states are no objects."""
        return self.graph if isinstance(self.graph, StateGraph) else None

    def make_rows(self, most: float = math.inf) -> bool:
        """Give a compiled model room for more rows; False if it would take too many bytes."""
        assert isinstance(self.graph, CompiledGraph)
        return self.graph.make_room(most)

    def raise_fault(self) -> NoReturn:
        """Say what is wrong with a compiled model."""
        assert isinstance(self.graph, CompiledGraph)
        raise ModelError(self.graph.describe_fault())

    def forget_credits(self) -> None:
        """Begin to note the smallest and largest credit anew."""
        self.test["least"], self.test["largest"] = math.inf, -math.inf

    def refine_bound(self) -> None:
        """Make the table of the bound exact where the kernel asked for it."""
        self.table.cover(float(self.test["asked"][0]))
        self._read_table()

    def allow(self, reward: float) -> float:
        """Return the risk that is allowed for a reward; -inf where the bound has no value."""
        try:
            return float(self.problem.risk_bound(reward))
        except BoundError:
            return -math.inf

    def credits(self) -> list[float]:
        """Return where the bound was evaluated, between the smallest and largest credit tested."""
        low, high = float(self.test["least"][0]), float(self.test["largest"][0])
        return self.table.evaluated(low, high) if low <= high else []

    def explain_infeasible(self, constraint: LocalConstraint) -> str:
        """Return why a search that looked at everything found no policy."""
        return (
            f"no policy exists all of whose histories pass constraint {constraint.letter}, proved. "
            f"{self._explain_credits()}"
            "The constraint is stricter than the bound: a policy within the bound may exist"
        )

    def _explain_credits(self) -> str:
        tested = self.credits()
        if not tested:
            return ""
        low, high = (
            f"{credit:.4g} (allowed risk {self.problem.risk_bound(credit):.4g})"
            for credit in (tested[0], tested[-1])
        )
        return f"Histories had credits from {low} to {high}. "

    def _read_table(self) -> None:
        for name in ("low", "high", "top", "beyond", "ceiling"):
            self.test[name] = getattr(self.table, name)


def choose_graph(
    reader: ModelReader,
    constraint: LocalConstraint,
    known: StateGraph | None = None,
    compiled: bool = True,
) -> Graph:
    """Return the graph that a search asks: that of the compiled model, the known one, or a new one.

    Parameters
    ----------
    reader, constraint
        As in `KernelRun`.
    known
        What is known of the model already.
    compiled
        Whether a compiled form may be asked.
    """
    credit = constraint.own_credit
    form = find_compiled(reader) if compiled and credit is None else None
    if form is not None:
        return CompiledGraph(reader, form)
    # Rows have the user's credits in them, and those that don't merge are dropped on the way.
    fits = known is not None and credit is None and reader.merges
    return known if known and fits else open_graph(reader, credit)


class CappedRun(KernelRun, ABC):
    """A search whose tree and graph may take so many bytes, and no more.

    Parameters
    ----------
    problem, reader, constraint, known, compiled
        As in `KernelRun`.
    memory
        How many.
    """

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        constraint: LocalConstraint,
        memory: int | None,
        known: StateGraph | None = None,
        compiled: bool = True,
    ) -> None:
        super().__init__(problem, reader, constraint, known, compiled)
        self._memory = find_default_memory() if memory is None else memory
        self._largest_answer = 0

    @property
    @abstractmethod
    def memory(self) -> int:
        """Bytes of tree and graph."""

    def choose_length(self, wanted: int, filled: int, *empty: NDArray[Any]) -> int:
        """Return how long arrays of a checkpoint may be: as long as they were, if memory allows it.

        Parameters
        ----------
        wanted
            How long they were.
        filled
            How many of their rows are filled.
        empty
            What a search begins with, arrays of one length: nothing shorter grows.
        """
        affordable = self._memory // sum(array[:1].nbytes for array in empty)
        return max(filled, len(empty[0]), min(wanted, affordable, MOST_ROWS))

    def has_room(self, extra: int = 0) -> bool:
        """Whether the largest answer so far would fit once more, beside this many bytes."""
        return self.memory + self._largest_answer + extra <= self._memory

    def ask(self, state: int) -> bool:
        """Ask a model in Python about a state; False if there is no room for an answer."""
        if not self.has_room():
            return False
        self._expand(state)
        return True

    def _expand(self, state: int) -> None:
        before = self.graph.memory
        self.state_graph.expand(state)
        self._largest_answer = max(self._largest_answer, self.graph.memory - before)

    def count_actions(self, states: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return how many actions some states have; UNASKED where nobody knows."""
        return np.asarray(self.graph.states.array["action_count"][states])
