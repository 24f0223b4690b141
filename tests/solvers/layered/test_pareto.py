"""Fronts, also where they are thinned."""

from __future__ import annotations

from typing import Any

import pytest

import vulcan
from vulcan.domains import Bandit
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.layered.improvement import find_dual
from vulcan.solvers.layered.pareto import FrontRun, load_kernels
from vulcan.solvers.layered.run import LayeredRun


class Backwards(Bandit):
    """The bandit with its actions in another order: the one without any loss comes last."""

    def actions(self, state: Any) -> list[str]:
        return super().actions(state)[::-1]


@pytest.mark.parametrize("kind", [Bandit, Backwards])
@pytest.mark.parametrize("points", [2, 5, 20])
@pytest.mark.parametrize("level", [0.001, 0.0021, 0.0042])
def test_thinned_fronts_claim_no_less_than_the_best(
    level: float, points: int, kind: type[Bandit]
) -> None:

    load_kernels()
    problem = vulcan.Problem(kind(6), vulcan.Constant(level))
    exact = float(vulcan.solve(problem, vulcan.Pareto()).certificate.reward)
    run = LayeredRun(problem, ModelReader(problem.model), Monitor(Limits()), None)
    assert run.unroll()
    dual = find_dual(run)
    run.best = None
    fronts = FrontRun(run, dual, None)
    for slack in (0.001, 0.03, 1.0):
        assert fronts.compute(slack, points)
        assert max(fronts.upper_of_kept, fronts.upper_of_dropped) >= exact
        fronts.offer_best()
        assert run.best is None or run.best.reward <= exact + 1e-12
    assert fronts.thinned
    # With everything kept, only thinning stands between the bound and the best.
    assert fronts.upper_of_kept >= exact
