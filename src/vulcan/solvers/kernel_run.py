"""What every kernel asks for while it searches, and who answers.

A kernel returns when it meets a state whose actions were never asked, or a credit at which the
table of the risk bound must be finer. A `KernelRun` owns the graph, the table and the record of the
local constraint, and answers both.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from vulcan.compiled_graph import CompiledGraph, find_compiled
from vulcan.constraint import LocalConstraint
from vulcan.errors import ModelError, OptionError
from vulcan.graph import StateGraph
from vulcan.problem import Problem
from vulcan.reader import ModelReader

__all__ = ["KernelRun", "require_constraint"]


def require_constraint(constraint: object) -> None:
    """Refuse what is no local constraint."""
    if not isinstance(constraint, LocalConstraint):
        raise OptionError(
            "constraint must be SurvivalConstraint() or SequenceConstraint(...), "
            f"not {constraint!r}"
        )


class KernelRun:
    """A search in progress.

    Attributes
    ----------
    problem
        What is being solved.
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
    ) -> None:
        from vulcan.kernels import ask, local
        from vulcan.kernels.world import World

        self._world = World
        self._ask = ask
        self.problem = problem
        self.reader = reader
        # Rows have the user's credits in them, and those that don't merge are dropped on the way.
        fits = known is not None and constraint.own_credit is None and reader.merges
        form = find_compiled(reader) if compiled and constraint.own_credit is None else None
        self.graph = known if known and fits else StateGraph(reader, constraint.own_credit)
        if form is not None:
            self.graph = CompiledGraph(reader, form)
        self.table = problem.risk_bound.table()
        self.test = np.zeros(1, local.TEST)
        self.test["form"] = constraint.form
        self.forget_credits()
        self._read_table()

    def world(self) -> Any:
        """Return the arrays of the problem as they are now."""
        graph, reader = self.graph, self.reader
        rows = (graph.states.array, graph.actions.array, graph.outcomes.array)
        steps = (reader.discounts, reader.weights)
        return self._world(*rows, self.table.pieces, *steps, graph.source, graph.answers)

    @property
    def known_graph(self) -> StateGraph | None:
        """What is known of the model, for others; None if its states are no objects."""
        return None if isinstance(self.graph, CompiledGraph) else self.graph

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
        for name in ("low", "high", "top", "beyond"):
            self.test[name] = getattr(self.table, name)
