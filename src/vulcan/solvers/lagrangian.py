"""Lagrangian dynamic programming: a price of failure instead of a bound.

For each price k the policy with the largest E g - k er is one dynamic program over the layered
graph. The search for the price at which the bound binds, for any concave Δ, and the bound on all
policies that comes with it, are in `vulcan.solvers.dual`. The best randomised policy mixes two
policies of that price; deterministic policies between them are made by deciding history by history
which of the two to follow (`vulcan.solvers.derandomise`).
"""

from __future__ import annotations

from dataclasses import dataclass

from vulcan.problem import Problem
from vulcan.progress import Monitor
from vulcan.reader import ModelReader
from vulcan.solvers.layered_run import LayeredRun, refuse_options
from vulcan.solvers.solver import Finding, Options

__all__ = ["Lagrangian"]


@dataclass(frozen=True)
class Lagrangian:
    """Find the price of failure at which the bound binds, and the best policies there.

    Its upper bound holds for every policy, randomised or not. The policy that it returns is the
    best deterministic one that was found on the way: rarely the very best, often close to it.
    """

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        """Search; used by `vulcan.solve`."""
        refuse_options("Lagrangian", monitor, options, ("time_limit", "memory"))
        run = LayeredRun(problem, reader, monitor, self, options.graph)
        monitor.start_clock()
        if run.unroll():
            run.find_dual()
        return run.find(
            "best deterministic policy that a price of failure leads to"
            if run.best is not None
            else "no price of failure leads to a deterministic policy within the bound; try Pareto"
        )
