"""A solver for many problems of one model."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vulcan.graph import StateGraph
from vulcan.problem import Problem
from vulcan.progress import Monitor
from vulcan.reader import ModelReader
from vulcan.solvers.solver import Finding, Options, Solver

__all__ = ["Knowing"]


@dataclass(frozen=True, repr=False)
class Knowing:
    """A solver that is given what earlier searches learned of the model.

    Parameters
    ----------
    solver
        The solver itself.
    graph
        The state graph that all its searches share.
    """

    solver: Solver
    graph: StateGraph

    def __repr__(self) -> str:
        return repr(self.solver)

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        """Search; used by `vulcan.solve`."""
        known = replace(options, graph=self.graph)
        return self.solver.search(problem, self.graph.reader, monitor, known)
