"""Runs of kernels: they own the graph, the table of the risk bound, and the local constraint.

A kernel returns when it meets a state that was never evaluated, or a credit at which the table must
be finer. A `KernelRun` provides both, within a number of bytes.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import BoundError, ModelError
from vulcan.graph.compiled import CompiledGraph, find_compiled
from vulcan.graph.states import MOST_ROWS, Graph, StateGraph, open_graph
from vulcan.model.reader import ModelReader
from vulcan.problem import Problem
from vulcan.runtime.memory import find_default_memory
from vulcan.solvers.constraints import LocalConstraint


class KernelRun:
    """A search in progress.

    `known` is a graph of the model that was filled before, `memory` limits the bytes of tree and
    graph, and `compiled` says whether a compiled form of the model may be used.
    """

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        constraint: LocalConstraint,
        known: StateGraph | None = None,
        memory: int | None = None,
        compiled: bool = True,
    ) -> None:
        from vulcan.kernels.constraints import TEST
        from vulcan.kernels.expand import ProblemArrays

        self._problem_arrays = ProblemArrays
        self.problem, self.reader, self.constraint = problem, reader, constraint
        self.graph = _choose_graph(reader, constraint, known, compiled)
        self.limit = find_default_memory() if memory is None else memory
        self._largest_answer = 0
        self.test = np.zeros(1, TEST)
        self.test["form"], self.test["by_outcome"] = constraint.form, constraint.by_outcome
        self.forget_credits()
        self.table = problem.risk_bound.table()
        self._read_table()

    def arrays(self) -> Any:
        """Return the current arrays of the problem."""
        graph, reader = self.graph, self.reader
        rows = (graph.states.array, graph.actions.array, graph.outcomes.array)
        steps = (reader.discounts, reader.weights)
        return self._problem_arrays(*rows, self.table.pieces, *steps, graph.source, graph.answers)

    @property
    def memory(self) -> int:
        """Bytes of tree and graph."""
        return self.graph.capacity

    @property
    def state_graph(self) -> StateGraph:
        """The graph of a model in Python."""
        assert isinstance(self.graph, StateGraph)
        return self.graph

    @property
    def evaluations(self) -> int:
        """Evaluations of the model so far."""
        return self.graph.evaluations

    @property
    def known_graph(self) -> StateGraph | None:
        """The graph, for other searches; None if states are not objects."""
        return self.graph if isinstance(self.graph, StateGraph) else None

    # States.

    def evaluate_state(self, state: int) -> bool:
        """Evaluate a state of a model in Python; False without room for one more large answer."""
        if self.memory + self._largest_answer > self.limit:
            return False
        self._expand(state)
        return True

    def _expand(self, state: int) -> None:
        before = self.graph.memory
        self.state_graph.expand(state)
        self._largest_answer = max(self._largest_answer, self.graph.memory - before)

    def make_rows(self, most: float = math.inf) -> bool:
        """Make room for more rows of a compiled model; False if it would take too many bytes."""
        assert isinstance(self.graph, CompiledGraph)
        return self.graph.make_room(most)

    def raise_fault(self) -> NoReturn:
        """Raise the error of a compiled model."""
        assert isinstance(self.graph, CompiledGraph)
        raise ModelError(self.graph.describe_fault())

    def choose_length(self, wanted: int, filled: int, *empty: NDArray[Any]) -> int:
        """Return the length of arrays of a checkpoint: that wanted, if memory allows it.

        They hold the filled rows, and are no shorter than those that a search begins with, `empty`:
        shorter ones can't grow.
        """
        affordable = self.limit // sum(array[:1].nbytes for array in empty)
        return max(filled, len(empty[0]), min(wanted, affordable, MOST_ROWS))

    # The risk bound.

    def forget_credits(self) -> None:
        """Reset the smallest and largest credit tested."""
        self.test["least"], self.test["largest"] = math.inf, -math.inf

    def refine_bound(self) -> None:
        """Make the table of the bound exact where the kernel needs it."""
        self.table.cover(float(self.test["refine_at"][0]))
        self._read_table()

    def _read_table(self) -> None:
        for name in ("low", "high", "top", "beyond", "ceiling"):
            self.test[name] = getattr(self.table, name)

    def allow(self, reward: float) -> float:
        """Return the allowed risk of a reward; -inf where the bound has no value."""
        try:
            return float(self.problem.risk_bound(reward))
        except BoundError:
            return -math.inf

    def credits(self) -> list[float]:
        """Return where the bound was evaluated, between the smallest and largest credit tested."""
        low, high = float(self.test["least"][0]), float(self.test["largest"][0])
        return self.table.evaluated(low, high) if low <= high else []

    def explain_infeasible(self, constraint: LocalConstraint) -> str:
        """Return why an exhaustive search found no policy."""
        tested, range_tested = self.credits(), ""
        if tested:
            low, high = (
                f"{credit:.4g} (allowed risk {self.problem.risk_bound(credit):.4g})"
                for credit in (tested[0], tested[-1])
            )
            range_tested = f"Histories had credits from {low} to {high}. "
        return (
            f"no policy exists all of whose histories pass constraint {constraint.letter}, proved. "
            f"{range_tested}The constraint is stricter than the bound: "
            "a policy within the bound may exist"
        )


def _choose_graph(
    reader: ModelReader, constraint: LocalConstraint, known: StateGraph | None, compiled: bool
) -> Graph:
    """Return the graph of the compiled model, the known one, or a new one."""
    credit = constraint.own_credit
    form = find_compiled(reader) if compiled and credit is None else None
    if form is not None:
        return CompiledGraph(reader, form)
    # Rows contain the user's credits, and rows that don't merge are released on the way.
    fits = known is not None and credit is None and reader.merges
    return known if known and fits else open_graph(reader, credit)
