"""Risk as a penalty: solve without a bound, for many penalties of failure, and keep the best.

For a penalty M the reward of every action is lowered by M times its immediate risk, and the best
policy without a constraint maximises E g - M er. Planners without risk bounds are used this way:
penalties are tried until the risk is acceptable. Each trial is one dynamic program here, and its
policy is judged by its exact reward and risk. No penalty need lead to the best policy: only points
on the convex hull of (risk, reward) are ever found (see `vulcan.domains.ThreeActions`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, Final

import numpy as np

from vulcan.errors import OptionError
from vulcan.exact.search import ExactSearch
from vulcan.model.reader import ModelReader
from vulcan.problem import Problem
from vulcan.runtime.limits import Monitor
from vulcan.solvers.base import EXACT, Options, Solver
from vulcan.solvers.finding import Finding

SHARES: Final = np.geomspace(1e-2, 1e6, 81)  # default penalties, as multiples of the best reward


@dataclass(frozen=True)
class Penalty(Solver):
    """Sweep over penalties of failure, and return the best policy within the bound.

    `Result.trials` has the reward and risk of each penalty's policy, and whether it is acceptable.

    Parameters
    ----------
    penalties
        The penalties to try; by default 0, and 81 from a hundredth to a million times the best
        reward without a bound.
    """

    finds: ClassVar[str] = "the best policy of a sweep over penalties of failure"
    method: ClassVar[str] = "one dynamic program for each penalty"
    limits: ClassVar[Sequence[str]] = EXACT

    penalties: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.penalties is None:
            return
        object.__setattr__(self, "penalties", tuple(self.penalties))
        for penalty in self.penalties:
            if not isinstance(penalty, Real) or not 0 <= penalty < math.inf:
                raise OptionError(f"penalties must be numbers of at least 0, not {penalty!r}")

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        run = ExactSearch(problem, reader, monitor, self, options.graph, options.threads)
        monitor.start_clock()
        if run.unroll():
            for penalty in self._choose(run):
                if not run.may_go_on():
                    break
                run.sweep(1.0, float(penalty))
        held = sum(trial.passes for trial in run.trials)
        run.rewards += [trial.reward for trial in run.trials]
        return run.find(
            f"best of {len(run.trials)} penalties, of which {held} satisfy the bound"
            if held
            else f"none of {len(run.trials)} penalties leads to a policy within the bound"
        )

    def _choose(self, run: ExactSearch) -> Sequence[float]:
        if self.penalties is not None:
            return self.penalties
        unbounded = abs(run.sweeps.find_best(1.0, 0.0).reward)
        return [0.0, *(SHARES * (unbounded or 1.0)).tolist()]
