"""Vulcan where the whole tree is sampled: the best of all deterministic policies, and proved so."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import vulcan
from benchmarks.random_problems import make_problem
from tests.helpers.charts import CURVED, STEEP, draw_chart, solve
from tests.helpers.tables import REWARDS, SEEDS, Table, bounds, one_action, random_table, tables
from tests.oracles.best_policies import check_best
from tests.oracles.brute_force import Plan, enumerate_plans
from vulcan import Outcome, Start, Status
from vulcan.solvers.tree import plans
from vulcan.solvers.tree.allowance import Allowance

ENOUGH = 100_000


def find_best(problem: vulcan.Problem, seed: int = 0) -> vulcan.Result:
    return vulcan.solve(problem, vulcan.Vulcan(), samples=ENOUGH, seed=seed)


@settings(max_examples=60)
@given(table=tables(), bound=bounds(), merges=st.booleans(), seed=st.integers(0, 99))
def test_the_best_history_dependent_policy(
    table: Table, bound: vulcan.RiskBound, merges: bool, seed: int
) -> None:
    problem = vulcan.Problem(replace(table, merges=merges, calls={}), bound)
    check_best(find_best(problem, seed), enumerate_plans(table), bound)


@pytest.mark.parametrize("number", range(24))
def test_the_reward_of_all_fronts(number: int) -> None:
    problem = make_problem(number)
    exact, result = vulcan.solve(problem, vulcan.Pareto()), find_best(problem)
    assert result.status is exact.status
    assert result.upper_bound == pytest.approx(exact.upper_bound, abs=1e-9)
    if exact.certificate is not None:
        assert result.safe
        assert result.certificate.reward == pytest.approx(exact.certificate.reward, abs=1e-9)


# Bounds that allow nothing for small rewards, or have no value where no policy comes.


def refuse_below(least: float) -> vulcan.Concave:
    return vulcan.Concave(lambda x: 0.1 + 0.01 * x if x >= least else -math.inf)


def raise_outside(low: float, high: float) -> vulcan.Concave:
    def allow(x: float) -> float:
        if not low <= x <= high:
            raise ValueError("nobody asks that")
        return 0.05 * (x - low) / max(high - low, 1e-9)

    return vulcan.Concave(allow)


@settings(max_examples=60)
@given(table=tables(), share=st.floats(0, 1))
def test_bounds_that_refuse_small_rewards(table: Table, share: float) -> None:
    policies = enumerate_plans(table)
    low, high = min(p.reward for p in policies), max(p.reward for p in policies)
    least = low + share * (high - low)
    assume(all(abs(plan.reward - least) > 1e-9 for plan in policies))  # no matter of rounding
    bound = refuse_below(least)
    check_best(find_best(vulcan.Problem(table, bound)), policies, bound)


@settings(max_examples=60)
@given(table=tables())
def test_bounds_that_have_values_only_where_policies_are(table: Table) -> None:
    policies = enumerate_plans(table)
    room = 1e-9  # for roundings of sums
    rewards = [plan.reward for plan in policies]
    bound = raise_outside(min(rewards) - room, max(rewards) + room)
    check_best(find_best(vulcan.Problem(table, bound)), policies, bound)


# Several initial states.


@dataclass
class Drawn(Table):
    """A table whose start is drawn, or chosen."""

    drawn: Any = None

    def initial_state(self) -> Any:
        return self.drawn


def list_drawn_plans(table: Table, chances: list[float]) -> list[Plan]:
    """Return all policies of a table whose state k is drawn with chance k, without discount."""
    spread = [Outcome(chance, 0.0, state, f"start {state}") for state, chance in enumerate(chances)]
    first = Table({"start": {"start": spread}, **table.table}, table.horizon + 1, start="start")
    return enumerate_plans(first)


def draw_table(seed: int) -> Table:
    """Return a small model of two states and two steps, without discount."""
    random = Random(seed)
    while True:
        table = random_table(random, REWARDS, sure_failure=True)
        if table.horizon <= 2 and len(table.table) >= 2:
            return replace(table, discount=1.0)


@settings(max_examples=40)
@given(table=SEEDS.map(draw_table), bound=bounds(), chance=st.floats(0.1, 0.9))
def test_a_start_that_is_drawn(table: Table, bound: vulcan.RiskBound, chance: float) -> None:
    chances = [chance, 1 - chance]
    start = Start.draw([Outcome(p, 0.0, state) for state, p in enumerate(chances)])
    model = Drawn(table.table, table.horizon, drawn=start)
    check_best(find_best(vulcan.Problem(model, bound)), list_drawn_plans(table, chances), bound)


@settings(max_examples=40)
@given(table=SEEDS.map(draw_table), bound=bounds())
def test_a_start_that_is_chosen(table: Table, bound: vulcan.RiskBound) -> None:
    model = Drawn(table.table, table.horizon, drawn=Start.choose({"one": 0, "other": 1}))
    policies = [plan for k in (0, 1) for plan in enumerate_plans(replace(table, start=k))]
    check_best(find_best(vulcan.Problem(model, bound)), policies, bound)


# Little to decide.


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("merges", [True, False])
def test_a_mission_that_is_over_at_once(horizon: int, merges: bool) -> None:
    model = Table({0: {}}, horizon, merges=merges)
    result = find_best(vulcan.Problem(model, vulcan.Constant(0.0)))
    assert result.status is Status.SOLVED
    assert result.certificate.reward == 0
    refused = find_best(vulcan.Problem(model, vulcan.parse("-0.1")))
    assert refused.status is Status.INFEASIBLE
    assert refused.upper_bound == -math.inf


@pytest.mark.parametrize(("allowed", "status"), [(0.2, Status.SOLVED), (0.05, Status.INFEASIBLE)])
def test_one_step(allowed: float, status: Status) -> None:
    model = one_action(Outcome(0.9, 1.0, 1), Outcome.failure(0.1))
    result = find_best(vulcan.Problem(model, vulcan.Constant(allowed)))
    assert result.status is status
    assert result.stopped_by is None
    assert (result.policy is None) == (status is Status.INFEASIBLE)


# Compiled models.


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("bound", [CURVED, STEEP, vulcan.Constant(0.01)], ids=str)
def test_compiled_models(seed: int, bound: vulcan.RiskBound) -> None:
    chart = draw_chart(seed, 3)
    exact = solve(chart.plain(), vulcan.Pareto(), bound)
    for model in (chart, chart.plain()):
        result = solve(model, vulcan.Vulcan(), bound, samples=ENOUGH)
        assert result.status is exact.status
        if exact.certificate is not None:
            assert result.safe
            assert result.certificate.reward == pytest.approx(exact.certificate.reward, abs=1e-9)


# A proof that was not carried through proves nothing.


@pytest.mark.parametrize("number", [2, 5])
def test_a_proof_that_is_cut_short_claims_nothing(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make_problem(number)
    best = vulcan.solve(problem, vulcan.Pareto()).certificate.reward
    late = Allowance.late
    # The first plan of a proof is a poor one then.
    monkeypatch.setattr(plans, "COARSER", 1 << 14)
    monkeypatch.setattr(plans, "FEWEST_POINTS", 2)
    for allowed in range(20):
        asked = [0]

        def is_late(self: Allowance, asked: list[int] = asked, allowed: int = allowed) -> bool:
            asked[0] += 1
            return asked[0] > allowed

        monkeypatch.setattr(Allowance, "late", property(is_late))
        result = find_best(problem)
        monkeypatch.setattr(Allowance, "late", late)
        if result.status is Status.SOLVED:
            assert result.certificate.reward == pytest.approx(best, abs=1e-9)
        assert result.status is not Status.INFEASIBLE
        assert result.upper_bound is None or result.upper_bound >= best - 1e-9
