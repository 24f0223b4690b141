"""Upper bounds for every solver, and how far off a bound is that no policy satisfies."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings

import vulcan
from tests.helpers.heuristics import CHAIN, Liar
from tests.helpers.tables import Table, bounds, one_action, tables
from tests.helpers.unrolled import allow_evaluations
from tests.oracles.best_policies import best_mixture
from tests.oracles.brute_force import enumerate_plans
from vulcan import Outcome
from vulcan.domains import Bandit
from vulcan.exact import bound_reward
from vulcan.planning import Status
from vulcan.solvers.finding import Worth

LINEAR = vulcan.Linear(0.002)


def test_an_upper_bound_of_any_problem() -> None:
    found = bound_reward(vulcan.Problem(Bandit(7), LINEAR))
    assert found.upper == pytest.approx(3.701087, abs=5e-7)
    assert found.price > 0
    late = bound_reward(vulcan.Problem(Bandit(7), LINEAR), vulcan.Limits(time_limit=0.0))
    assert late.upper is None or late.upper >= found.upper


def test_the_models_own_bound_serves_where_the_graph_is_too_large(monkeypatch):
    allow_evaluations(monkeypatch, -1)
    problem = vulcan.Problem(Bandit(6), LINEAR)
    assert bound_reward(problem).upper == Bandit(6).reward_to_go_bound((0,) * 6, 0)
    table = {k: {"a": [Outcome(1.0, 1.0, k + 1)]} for k in range(5)}
    for model in (
        Table(table, 5),
        Liar(CHAIN, 2, reward=math.inf),
    ):  # without a bound, or an infinite one
        assert bound_reward(vulcan.Problem(model, 0.1)).upper is None


def test_a_problem_that_nothing_satisfies_says_so() -> None:
    problem = vulcan.Problem(one_action(Outcome.failure(1.0)), vulcan.Constant(0.5))
    assert bound_reward(problem).upper == -math.inf


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_what_comes_closest_to_the_bound(table: Table, bound: vulcan.RiskBound) -> None:
    result = vulcan.solve(vulcan.Problem(table, bound), vulcan.Lagrangian())
    assume(result.status is Status.INFEASIBLE)
    plans = enumerate_plans(table)
    least = min(plan.risk for plan in plans)
    assert result.safest is not None
    assert result.safest.risk == pytest.approx(least, abs=1e-12)
    # Where several policies have the least risk up to a rounding, any of them will do.
    earned = [plan.reward for plan in plans if plan.risk <= least + 1e-12]
    assert any(result.safest.reward == pytest.approx(reward, abs=1e-9) for reward in earned)
    accepted = [plan for plan in plans if bound(plan.reward) > 0]
    if not accepted:
        assert result.sufficient is None
        return
    found = result.sufficient
    assert found is not None
    multiples = [plan.risk / bound(plan.reward) for plan in accepted]
    assume(min(multiples) < 1e12)  # else rewards are rounding errors
    assert found.multiple == pytest.approx(found.risk / bound(found.reward))
    assert found.multiple >= min(multiples) - 1e-9
    assert found.multiple > 1
    if found.least:
        assert found.multiple <= min(multiples) + 1e-9
        assert best_mixture(plans, bound.scale(0.999 * found.multiple)) == -math.inf


def test_of_a_straight_bound_the_least_multiple_is_known() -> None:
    cheap = [Outcome(0.99, 1.0, 1), Outcome.failure(0.01)]
    dear = [Outcome(0.95, 9.0, 1), Outcome.failure(0.05)]
    table = Table({0: {"cheap": cheap, "dear": dear}}, horizon=1)
    result = vulcan.solve(vulcan.Problem(table, "0.001*x"))
    assert result.status is Status.INFEASIBLE
    assert result.safest == Worth(0.99, pytest.approx(0.01))
    assert result.sufficient is not None
    assert result.sufficient.least
    assert result.sufficient.multiple == pytest.approx(0.05 / (0.001 * 8.55))
    shown = dict(result.rows())
    # Five digits, rounded upwards: what is shown does.
    multiple = float(shown["sufficient"].partition(" ")[0])
    assert vulcan.solve(vulcan.Problem(table, vulcan.Linear(0.001 * multiple))).safe
    assert shown["sufficient"].endswith("no smaller multiple accepts any policy")


def test_a_negative_bound_is_pointed_out() -> None:
    table = one_action(Outcome(1.0, -53.0, 1))
    result = vulcan.solve(vulcan.Problem(table, "0.02*x"))
    shown = dict(result.rows())
    assert shown["allowed there"].startswith(
        "-1.060000  Δ(-53.000000): the bound is negative there"
    )
    assert shown["sufficient"].startswith("no scaling of this bound helps")
    assert "raised by 1.06 everywhere" in shown["sufficient"]
    assert vulcan.solve(vulcan.Problem(table, "0.02*x + 1.06")).safe


def test_other_answers_say_nothing_of_it() -> None:
    for solver in (vulcan.Automatic(), vulcan.ForwardSearch()):
        result = vulcan.solve(vulcan.Problem(one_action(Outcome(1.0, 1.0, 1)), 0.1), solver)
        assert (result.safest, result.sufficient) == (None, None)
