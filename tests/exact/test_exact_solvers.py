"""Exact solvers against all policies of small random problems, and where numbers are extreme."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.tables import Table, bounds, one_action, tables
from tests.helpers.unrolled import allow_evaluations
from tests.oracles.best_policies import check_best
from tests.oracles.brute_force import enumerate_plans
from vulcan import Outcome
from vulcan.domains import Bandit
from vulcan.exact import bound_reward
from vulcan.planning import Status

EXACT = {
    "pareto": vulcan.Pareto(),
    "automatic": vulcan.Automatic(),
    "rao": vulcan.baselines.RAOStar(update="exact"),
}


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=60)
@given(table=tables(), bound=bounds(), merges=st.booleans())
def test_the_best_history_dependent_policy(name, table, bound, merges):
    plans = enumerate_plans(table)
    problem = vulcan.Problem(replace(table, merges=merges, calls={}), bound)
    # By default a small gap would do.
    proof = {"gap": 0.0} if name == "automatic" else {}
    check_best(vulcan.solve(problem, EXACT[name], **proof), plans, bound)


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_orders_between_solvers(table: Table, bound: vulcan.RiskBound) -> None:
    problem = vulcan.Problem(table, bound)

    def earn(solver: object) -> float:
        result = vulcan.solve(problem, solver)
        reward = -math.inf if result.certificate is None else float(result.certificate.reward)
        if result.policy is not None:
            assert result.safe
        upper = bound_reward(problem).upper if result.upper_bound is None else result.upper_bound
        assert upper >= reward - 1e-9
        uppers.append(upper)
        return reward

    uppers: list[float] = []
    exact = earn(vulcan.Pareto())
    survival = earn(vulcan.ForwardSearch())
    sequence = earn(vulcan.ForwardSearch(vulcan.solvers.SequenceConstraint()))
    lagrangian = earn(vulcan.Lagrangian())
    penalty = earn(vulcan.baselines.Penalty())
    assert exact >= survival - 1e-9
    assert survival >= sequence - 1e-9
    assert exact >= lagrangian - 1e-9
    assert exact >= penalty - 1e-9
    assert min(uppers) >= exact - 1e-9


# The bandit of the paper.

PAPER = {7: 3.7006, 8: 4.2526}


@pytest.mark.parametrize(
    ("horizon", "exact"),
    [
        (7, 3.7009878),
        pytest.param(8, 4.2527818, marks=pytest.mark.slow),
        pytest.param(9, 4.8066179, marks=pytest.mark.slow),
        pytest.param(10, 5.3618047, marks=pytest.mark.slow),
    ],
)
def test_longer_horizons_are_exact(horizon: int, exact: float) -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(horizon), vulcan.Linear(0.002)), vulcan.Pareto())
    assert result.status is Status.SOLVED
    assert result.gap <= 1e-9
    assert result.safe
    assert result.certificate.reward == pytest.approx(exact, abs=1e-7)
    assert result.certificate.reward >= PAPER.get(horizon, 0.0)


EXACT_SOLVERS = [
    vulcan.Pareto(),
    vulcan.baselines.RAOStar(update="exact"),
    vulcan.baselines.IntegerProgram(),
    None,
]


def lottery(reward: float, risk: float) -> list[Outcome]:
    """Return an action with one safe outcome, and the same reward on failure."""
    return [Outcome(1 - risk, reward, 1), Outcome.failure(risk, reward)]


@pytest.mark.parametrize("solver", EXACT_SOLVERS, ids=str)
@pytest.mark.parametrize("abort", [-1e3, -1e9, -1e15])
def test_a_very_bad_way_out_blurs_no_proof(solver: object, abort: float) -> None:
    actions = {
        "abort": [Outcome(1.0, abort, 1)],
        "a": lottery(1.0, 0.010),
        "b": lottery(1.004, 0.015),
        "c": lottery(1.009, 0.020),
    }
    problem = vulcan.Problem(Table({0: actions}, 1), vulcan.Constant(0.016))
    proof = {} if solver is not None else {"gap": 0.0}
    result = vulcan.solve(problem, solver, **proof)
    assert result.status is Status.SOLVED
    assert result.certificate.reward == pytest.approx(1.004)
    assert result.upper_bound == pytest.approx(1.004, rel=1e-9)


@pytest.mark.parametrize("solver", [vulcan.Lagrangian(), *EXACT_SOLVERS], ids=str)
def test_a_policy_between_others_is_evaluated_anew(solver: object) -> None:
    steps = {"slow": [Outcome(1.0, 0.2, 3)], "fast": [Outcome(0.98, 0.7, 3), Outcome.failure(0.02)]}
    table = {
        0: {
            "abort": [Outcome(1.0, -1e9, 3)],
            "go": [Outcome(0.59, 0.1, 1), Outcome(0.4, 0.1, 2), Outcome.failure(0.01)],
        },
        1: steps,
        2: steps,
    }
    result = vulcan.solve(vulcan.Problem(Table(table, 2), vulcan.Constant(0.02)), solver)
    assert result.safe
    assert result.certificate.reward == pytest.approx(0.4914, abs=1e-12)


@pytest.mark.parametrize(
    "solver", [*EXACT_SOLVERS, vulcan.Lagrangian(), vulcan.baselines.LinearProgram()], ids=str
)
@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
def test_what_the_certificate_lets_pass_is_found(solver: object, share: float) -> None:
    problem = vulcan.Problem(
        one_action(Outcome(0.99, 1.0, 1), Outcome.failure(0.01)),
        vulcan.Constant(0.01 - share * 1e-12),
    )
    result = vulcan.solve(problem, solver)
    assert result.safe
    assert result.status in (Status.SOLVED, Status.DONE)


def test_memory_is_looked_at_before_it_is_taken() -> None:
    # The number of actions makes histories exceed any memory.
    ways = {}
    for k in range(300):
        risk = 1e-3 * (k + 1) / 400
        safe = [Outcome(0.5, risk, 0, "x"), Outcome(0.5 - risk, 0.1, 1, "y")]
        ways[f"a{k}"] = [*safe, Outcome.failure(risk)]
    problem = vulcan.Problem(Table({0: ways, 1: ways}, 4), vulcan.Constant(0.002))
    tracemalloc.start()
    result = vulcan.solve(
        problem, vulcan.baselines.LinearProgram(on="tree"), limits=vulcan.Limits(memory=20_000_000)
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.stopped_by == "limit of memory"
    assert peak < 60_000_000


def test_infeasible_problems_with_a_bound_that_falls_off() -> None:
    problem = vulcan.Problem(
        one_action(Outcome.failure(1.0)), vulcan.parse("0.2 - 0.001 * exp(-x)")
    )
    for solver in (*EXACT_SOLVERS, vulcan.Lagrangian(), vulcan.baselines.LinearProgram()):
        result = vulcan.solve(problem, solver)
        assert result.status is Status.INFEASIBLE
        assert result.upper_bound == -math.inf
        assert result.price is None


@pytest.mark.parametrize(
    "solver", [vulcan.Lagrangian(), vulcan.Pareto(), vulcan.baselines.RAOStar(update="exact"), None]
)
def test_bounds_are_checked_between_the_rewards_that_matter(solver: object) -> None:
    falling = vulcan.Concave(lambda x: 0.05 - 0.01 * x)
    table = Table({0: {"a": [Outcome(1.0, 1.0, 1)], "b": lottery(3.0, 0.001)}}, 1)
    with pytest.raises(vulcan.errors.BoundError, match="decreas"):
        vulcan.solve(vulcan.Problem(table, falling), solver)


LINEAR = vulcan.Linear(0.002)


def test_a_large_problem_over_histories_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_evaluations(monkeypatch, 1000)
    monkeypatch.setattr("vulcan.runtime.limits.DEFAULT_SECONDS", 2.0)
    result = vulcan.solve(vulcan.Problem(Bandit(9, merges=False), LINEAR))
    assert result.safe
    assert "time_limit=60 goes on for longer" in result.explanation


def test_limits_of_a_tree_search_choose_it() -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(5), LINEAR), samples=500)
    assert result.statistics.samples == 500
