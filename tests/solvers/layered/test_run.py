"""What solvers on pairs of state and step share."""

from __future__ import annotations

import pytest

import vulcan
from tests.helpers.tables import Table
from vulcan import Outcome
from vulcan.domains import TreasureGrid
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.layered.derandomise import derandomise
from vulcan.solvers.layered.run import LayeredRun


def test_among_the_safest_policies_the_best_is_found() -> None:

    table = {0: {name: [Outcome(1.0, k, 1)] for k, name in enumerate("abc")}}
    table[0]["d"] = [Outcome(0.9, 9.0, 1), Outcome.failure(0.1)]
    problem = vulcan.Problem(Table(table, 1), vulcan.Constant(0))
    run = LayeredRun(problem, ModelReader(problem.model), Monitor(Limits()), None)
    assert run.unroll()
    safest = run.sweep(0.0, 1.0)
    assert (safest.reward, safest.risk) == (2.0, 0.0)


def test_without_time_for_a_single_decision_the_safe_policy_is_left() -> None:
    problem = vulcan.Problem(TreasureGrid(10), vulcan.Constant(0.15))
    run = LayeredRun(problem, ModelReader(problem.model), Monitor(Limits()), None)
    assert run.unroll()
    mix = run.find_relaxed().best
    ways = (mix.safe.plan.follow(), mix.daring.plan.follow())
    corner = derandomise(run.levels, run.referee, *ways, may_go_on=lambda: False)
    assert (corner.reward, corner.risk) == pytest.approx((mix.safe.reward, mix.safe.risk))
