"""The dual bound, and what a search offers."""

from __future__ import annotations

import math

from hypothesis import given, settings

import vulcan
from tests.helpers.tables import Table, bounds, tables
from tests.oracles.best_policies import acceptable, best_mixture
from tests.oracles.brute_force import enumerate_plans
from vulcan import Status
from vulcan.domains import Bandit
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.layered.improvement import find_dual
from vulcan.solvers.layered.referee import Referee
from vulcan.solvers.layered.run import LayeredRun


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_the_dual_bound_is_the_best_randomised_policy(
    table: Table, bound: vulcan.RiskBound
) -> None:
    plans = enumerate_plans(table)
    best = best_mixture(plans, bound)
    result = vulcan.solve(vulcan.Problem(table, bound), vulcan.Lagrangian())
    upper = result.upper_bound
    assert upper is not None
    assert upper >= best - 1e-9  # the scan uses up the tolerance of risk, and a bound rounds it off
    # A mixture that only just passes may be missed by the scan.
    if best > -math.inf:
        assert upper <= best_mixture(plans, _Raised(bound, 1e-9)) + 1e-6
    elif best_mixture(plans, _Raised(bound, 1e-9)) == -math.inf:
        assert upper == -math.inf
        assert result.status is Status.INFEASIBLE
    if result.policy is not None:
        assert result.safe
        rewards = [plan.reward for plan in acceptable(plans, bound, 1e-11)]
        assert result.certificate.reward <= max(rewards) + 1e-9


class _Raised:
    """A bound that allows a little more, for the scan only."""

    def __init__(self, bound: vulcan.RiskBound, more: float) -> None:
        self._bound, self._more = bound, more

    def __call__(self, reward: float) -> float:
        return self._bound(reward) + self._more


def test_a_search_offers_what_a_bound_accepts_only() -> None:

    bound = vulcan.Linear(0.002)
    problem = vulcan.Problem(Bandit(6), bound)
    run = LayeredRun(problem, ModelReader(problem.model), Monitor(Limits()), None)
    assert run.unroll()
    dual = find_dual(run)
    assert dual.best.reward <= dual.upper_bound
    assert Referee(bound).accepts(dual.best)
    assert Referee(bound).accepts(run.best)
    for corner in dual.corners:
        value = corner.reward - dual.multiplier * corner.risk
        assert value <= dual.value + 1e-9
