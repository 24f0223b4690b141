"""The linear program: the best randomised policy."""

from __future__ import annotations

import math
import signal
from dataclasses import replace

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.programs import Choose, is_open, make_edged
from tests.helpers.tables import SEEDS, Table, bounds, one_action, tables
from tests.oracles.brute_force import enumerate_plans
from tests.oracles.hulls import find_best_mixture
from vulcan import Outcome
from vulcan.baselines.programs import LinearProgram, cut_at
from vulcan.domains import Bandit
from vulcan.exact.pipeline import Lagrangian
from vulcan.planning import Status
from vulcan.policy.policy import RandomisedPolicy

LINEAR = vulcan.Linear(0.002)


def solve(model: object, bound: vulcan.RiskBound, on: str = "graph", **options) -> vulcan.Result:
    return vulcan.solve(vulcan.Problem(model, bound), LinearProgram(on=on), **options)


@pytest.mark.parametrize(
    ("horizon", "bound", "reward"),
    [(8, LINEAR, 4.2529), (10, LINEAR, 5.3618), (10, vulcan.Constant(0.0125), 5.43485)],
)
def test_the_bandit_of_the_paper(horizon: int, bound: vulcan.RiskBound, reward: float) -> None:
    result = solve(Bandit(horizon), bound)
    assert result.status is Status.SOLVED
    assert result.explanation == "best randomised policy within the risk bound, proved"
    assert result.safe
    assert result.certificate.reward == pytest.approx(reward, abs=5e-5)
    assert result.upper_bound >= result.certificate.reward - 1e-12
    assert result.gap <= 1e-9
    members = len(result.policy.members)
    assert members == (1 if isinstance(bound, vulcan.Constant) else 2)
    assert isinstance(result.policy, RandomisedPolicy) == (members == 2)


def check(result: vulcan.Result, table: Table, bound: vulcan.RiskBound) -> None:
    points = [(plan.reward, plan.risk) for plan in enumerate_plans(table)]
    best = find_best_mixture(points, bound)
    if best == -math.inf:
        assert result.policy is None
        assert result.status is Status.INFEASIBLE
        assert result.upper_bound == -math.inf
        return
    assert result.status is Status.SOLVED
    assert result.safe
    assert result.certificate.reward == pytest.approx(best, abs=1e-8)
    assert result.upper_bound >= max(best, result.certificate.reward) - 1e-8
    acceptable = [g for g, x in points if x <= bound(g)]
    assert result.upper_bound >= max(acceptable, default=-math.inf) - 1e-9


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_it_finds_the_best_mixture_of_all_policies(table: Table, bound: vulcan.RiskBound) -> None:
    for on in ("graph", "tree"):
        check(solve(replace(table, calls={}), bound, on), table, bound)


@settings(max_examples=50)
@given(table=tables(), seed=SEEDS)
def test_bounds_that_begin_somewhere(table: Table, seed: int) -> None:
    bound = make_edged(seed)
    result = solve(table, bound)
    if not is_open(result, [(p.reward, p.risk) for p in enumerate_plans(table)], bound):
        check(result, table, bound)


def test_cuts_where_the_bound_begins() -> None:
    bound = vulcan.Concave(lambda x: 0.02 * math.sqrt(x - 1) if x >= 1 else -math.inf)
    floor, line = cut_at(bound, 0.25, 3.0)
    assert floor.risk == 0
    assert -floor.limit / floor.reward == pytest.approx(1.0, abs=1e-15)
    for reward in (1.0, 1.01, 1.5, 3.0):
        assert line.risk * bound(reward) - line.reward * reward <= line.limit
    (line,) = cut_at(bound, 2.0, 3.0)
    assert line.reward == pytest.approx(0.01, rel=1e-3)


def test_a_second_tangent_leads_to_another_mixture() -> None:
    # The first tangent leads to a mixture of "walk" and "run", the answer mixes "wait" and "walk".
    actions = {
        "wait": [Outcome(1, 0, 1)],
        "walk": [Outcome(0.9, 1, 1), Outcome.failure(0.1, 1)],
        "run": [Outcome(0.5, 2, 1), Outcome.failure(0.5, 2)],
    }
    bound = vulcan.PiecewiseLinear([(0, 0.02), (1, 0.09), (2, 0.12)])
    problem = vulcan.Problem(Table({0: actions}, 1), bound)
    result = vulcan.solve(problem, LinearProgram())
    assert result.status is Status.SOLVED
    assert result.certificate.reward == pytest.approx(2 / 3, abs=1e-9)
    assert result.upper_bound == pytest.approx(2 / 3, abs=1e-9)


@pytest.mark.parametrize("on", ["graph", "tree"])
def test_small_models(on: str) -> None:
    nothing = Table({0: {}}, horizon=3)
    result = solve(nothing, vulcan.Constant(0.1), on)
    assert (result.status, result.certificate.reward, len(result.policy)) == (Status.SOLVED, 0, 0)
    result = solve(nothing, vulcan.Constant(-0.1), on)
    assert result.status is Status.INFEASIBLE
    assert result.upper_bound == -math.inf
    # One action, whose risk is exactly what is allowed; and one that surely fails.
    result = solve(one_action(Outcome(0.9, 1, 0), Outcome.failure(0.1)), vulcan.Constant(0.1), on)
    assert result.status is Status.SOLVED
    sure = one_action(Outcome.failure(1.0, 5))
    assert solve(sure, vulcan.Constant(1.0), on).certificate.reward == 5
    assert solve(sure, vulcan.Constant(0.999), on).status is Status.INFEASIBLE
    # Half of it, if there is another way.
    both = Table({0: {"go": [Outcome.failure(1.0, 5)], "stay": [Outcome(1, -1, 0)]}}, 1)
    result = solve(both, vulcan.Constant(0.5), on)
    assert result.certificate.reward == pytest.approx(2, abs=1e-9)
    assert result.policy.weights == pytest.approx((0.5, 0.5))


def test_rewards_of_any_size() -> None:
    for size in (1e-9, 1e-3, 1e6, 1e12):
        table = Table(
            {
                0: {
                    "go": [Outcome(0.99, size, 1), Outcome.failure(0.01)],
                    "stay": [Outcome(1.0, size / 2, 1)],
                },
                1: {"on": [Outcome(0.5, -size, 0), Outcome(0.5, size, 0)]},
            },
            horizon=3,
        )
        result = solve(table, vulcan.Constant(0.005))
        assert result.status is Status.SOLVED
        exact = vulcan.certify(result.problem, result.policy, exact=True)
        assert float(exact.risk) == pytest.approx(0.005, abs=2e-12)


def test_starts_and_discounts() -> None:
    table = {
        0: {"go": [Outcome(0.9, 1, 1), Outcome.failure(0.1)], "stay": [Outcome(1, 0.2, 0)]},
        1: {"go": [Outcome(0.8, 2, 0), Outcome.failure(0.2)], "stay": [Outcome(1, 0.1, 1)]},
    }
    problem = vulcan.Problem(Choose(table, 3, 0.9), vulcan.Linear(0.05, 0.02))
    results = [vulcan.solve(problem, LinearProgram(on)) for on in ("graph", "tree")]
    dual = vulcan.solve(problem, Lagrangian())
    for result in results:
        assert result.status is Status.SOLVED
        assert result.certificate.reward == pytest.approx(dual.upper_bound, abs=1e-9)


def test_what_is_left_open_near_0_is_stated() -> None:
    # To fail for certain is known up to 1e-12, so that a mixture stays that far away from it.
    ways = {"fail": [Outcome.failure(1.0)], "pay": [Outcome(1.0, -1e-9, 1)]}
    result = solve(Table({0: ways}), vulcan.Constant(1.0))
    assert result.status is Status.SOLVED
    assert -1e-20 < result.certificate.reward < 0.0
    assert result.certificate.reward + result.rounding >= 0.0
    assert result.rounding < 1e-20


def test_what_the_tolerance_of_the_bound_is_worth_is_stated() -> None:
    table = {0: {"stay": [Outcome(1.0, -3e8, 0)], "fail": [Outcome.failure(1.0)]}}
    problem = vulcan.Problem(Table(table), vulcan.parse("1.3 - 0.3 * exp(-0 * x)"))
    result = vulcan.solve(problem, vulcan.baselines.LinearProgram())
    assert result.status is vulcan.planning.Status.SOLVED
    assert result.certificate.reward + result.rounding >= 0.0  # failing for sure earns 0


def test_the_same_is_stated_where_nothing_is_mixed() -> None:
    faint = [Outcome(0.999999992, 0.0, 1), Outcome.failure(8e-9)]
    costly = [Outcome(0.2, -1e-9, 1, "a"), Outcome(0.2, -1e-9, 1, "b"), Outcome(0.6, 0.0, 2)]
    result = solve(Table({0: {"faint": faint, "costly": costly}}), vulcan.Linear(0.002))
    assert result.safe
    assert result.certificate.reward + result.rounding >= -4e-10


def test_limits_and_interruption() -> None:
    assert solve(Bandit(9), LINEAR, time_limit=0).policy is None
    few = solve(Bandit(9), LINEAR, limits=vulcan.Limits(memory=1000))
    assert few.status is Status.STOPPED
    assert few.stopped_by == "limit of memory"
    result = solve(Bandit(7), LINEAR, "tree", time_limit=0.8)
    assert result.status is Status.STOPPED
    assert result.stopped_by == "time limit"
    assert result.statistics.search_seconds < 5
    pressed = []

    def press(progress: vulcan.planning.Progress) -> None:
        if progress.reward is not None and not pressed:
            pressed.append(progress.seconds)
            signal.raise_signal(signal.SIGINT)

    result = solve(Bandit(7), LINEAR, "tree", progress=press)
    assert pressed
    assert result.status is Status.STOPPED
    assert result.stopped_by == "Ctrl-C"
    assert result.safe  # a mixture of the most daring policy and the safest
    assert result.upper_bound >= 3.7
    assert result.statistics.search_seconds - pressed[0] < 3


def test_options_are_checked() -> None:
    with pytest.raises(vulcan.errors.OptionError):
        LinearProgram(on="forest")
    with pytest.raises(vulcan.errors.OptionError, match="no limit 'samples'"):
        solve(Bandit(2), LINEAR, samples=5)
