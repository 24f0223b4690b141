"""Penalties, and the example that none of them solves."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.tables import Table, bounds, one_action, tables
from tests.oracles.brute_force import enumerate_plans
from vulcan import Outcome
from vulcan.domains import Bandit, ThreeActions
from vulcan.planning import Status

LINEAR = vulcan.Linear(0.002)
THREE = vulcan.Problem(ThreeActions(), vulcan.Linear(0.004))


def test_no_penalty_finds_the_best_of_three_actions() -> None:
    penalties = [125 * k / 500 for k in range(1001) if k != 500]  # 0 to 250; a tie at 125
    result = vulcan.solve(THREE, vulcan.baselines.Penalty(penalties))
    assert len(result.trials) == 1000
    for trial in result.trials:
        too_low = trial.multiplier < 125
        assert trial.reward == pytest.approx(10 if too_low else 5)
        assert trial.passes is (not too_low)
    assert result.certificate.reward == pytest.approx(5)
    assert result.status is Status.DONE
    assert "of which 500 satisfy the bound" in result.explanation


def test_default_penalties_reach_from_none_to_prohibitive() -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(5), LINEAR), vulcan.baselines.Penalty())
    assert result.trials[0].multiplier == 0
    assert not result.trials[0].passes
    assert result.trials[-1].risk == 0
    assert result.safe
    risks = [trial.risk for trial in result.trials]
    assert risks == sorted(risks, reverse=True)


def test_no_penalty_helps_where_nothing_is_acceptable() -> None:
    problem = vulcan.Problem(one_action(Outcome.failure(1.0)), vulcan.Constant(0.5))
    result = vulcan.solve(problem, vulcan.baselines.Penalty([0, 1]))
    assert result.policy is None
    assert result.explanation == "none of 2 penalties leads to a policy within the bound"


@pytest.mark.parametrize("penalties", [[-1.0], [math.nan], ["1"], [math.inf]])
def test_penalties_that_are_none(penalties: list[float]) -> None:
    with pytest.raises(vulcan.errors.OptionError, match="at least 0"):
        vulcan.baselines.Penalty(penalties)


def test_a_policy_that_was_in_doubt_holds_the_bound_each_time() -> None:
    # The two add up to a little more than 1, which only the certificate can judge.
    risks = [Outcome.failure(0.28571428571428575), Outcome.failure(0.7142857142857143)]
    assert sum(Fraction(outcome.probability) for outcome in risks) > 1
    problem = vulcan.Problem(Table({0: {"a": risks}}), vulcan.Constant(1.0))
    result = vulcan.solve(problem, vulcan.baselines.Penalty((0.0, 0.3, 50.0)))
    assert [trial.passes for trial in result.trials] == [True, True, True]


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_the_best_policy_points_are_among_the_penalties(
    table: Table, bound: vulcan.RiskBound
) -> None:
    plans = enumerate_plans(table)
    prices = (0.0, 0.3, 2.0, 50.0)
    result = vulcan.solve(vulcan.Problem(table, bound), vulcan.baselines.Penalty(prices))
    assert [trial.multiplier for trial in result.trials] == list(prices)
    for trial in result.trials:
        best = max(plan.reward - trial.multiplier * plan.risk for plan in plans)
        assert trial.reward - trial.multiplier * trial.risk == pytest.approx(best, abs=1e-9)
        assert trial.allowed == bound(trial.reward)
        assert trial.passes == (trial.risk <= trial.allowed + 5e-13)
    passing = [trial.reward for trial in result.trials if trial.passes]
    assert (result.policy is None) == (not passing)
    if passing:
        assert result.certificate.reward == pytest.approx(max(passing), abs=1e-12)
