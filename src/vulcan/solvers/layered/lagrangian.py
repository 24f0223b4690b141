"""Lagrangian dynamic programming: a price of failure instead of a bound.

For each price k the policy with the largest E g - k er is one dynamic program over the layered
graph. The search for the price at which the bound binds, for any concave Δ, and the bound on all
policies that comes with it, are in `vulcan.solvers.layered.dual`. The best randomised policy mixes
two policies of that price; deterministic policies that come close to it let the outcomes of the
world decide instead of a draw (`vulcan.solvers.layered.coins`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from vulcan.certificates.problem import Problem
from vulcan.model.reader import ModelReader
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import EXACT, RANDOMISED, Coverage, Option, Options, Solver
from vulcan.solvers.finding import Finding
from vulcan.solvers.layered.improvement import improve
from vulcan.solvers.layered.run import LayeredRun

__all__ = ["Lagrangian"]


@dataclass(frozen=True)
class Lagrangian(Solver):
    """Find the price of failure at which the bound binds, and the best policies there.

    Its upper bound holds for every policy, randomised or not. The policy that it returns is the
    best deterministic one that was found on the way: rarely the very best, often close to it.

    Parameters
    ----------
    randomised
        Return the best randomised policy instead, which attains the bound.
    """

    finds: ClassVar[str] = "an upper bound on all policies, and a deterministic policy close to it"
    method: ClassVar[str] = "dynamic programs for a price of failure, and fronts of a few points"
    limits: ClassVar[Sequence[str]] = EXACT
    covers: ClassVar[Coverage] = Coverage.EVERY
    options: ClassVar[Sequence[Option]] = (RANDOMISED,)

    randomised: bool = False

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        run = LayeredRun(problem, reader, monitor, self, options.graph, options.threads)
        monitor.start_clock()
        if run.unroll():
            dual = run.find_relaxed()
            if self.randomised:
                run.offer_mix(dual.best)
                return run.find("best randomised policy found")
            improve(run, dual)
        return run.find(
            "best deterministic policy that a price of failure leads to"
            if run.best is not None
            else "no price of failure leads to a deterministic policy within the bound; try Pareto"
        )
