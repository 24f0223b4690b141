"""Proved upper bounds on what any policy can earn: sound at any time, exact in the end."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.charts import (
    CURVED,
    LONGEST,
    PLACES,
    Chart,
    draw_chart,
    look_ahead,
    plan_to_the_end,
)
from tests.helpers.heuristics import Valued
from tests.helpers.tables import Table, bounds, tables
from tests.oracles.best_policies import best_mixture
from tests.oracles.brute_force import enumerate_plans
from vulcan import Outcome
from vulcan.domains import Bandit, Exploration
from vulcan.errors import BoundError
from vulcan.model.compiled import CompiledModel
from vulcan.model.reader import ModelReader
from vulcan.sampling.proof import SETTLED, Proof

PRICES = [0.0, 0.3, 2.0, 40.0]


class Bounded(Valued):
    """A table that knows that no step pays more than 3."""

    def reward_to_go_bound(self, state: Any, step: int) -> float:
        return 3.0 * (self.horizon - step)


class Priced(Bounded):
    """A table that also knows the exact value of what is to come."""

    def value_to_go_bound(self, state: Any, step: int, price: float) -> float:
        return self.find_value(self._last(state), step, price)


def prove(model: Any, bound: vulcan.RiskBound = CURVED, memory: int | None = None) -> Proof:
    return Proof(vulcan.Problem(model, bound), ModelReader(model), memory)


@settings(max_examples=60)
@given(
    table=tables(),
    bound=bounds(),
    prices=st.lists(st.sampled_from(PRICES), min_size=1, max_size=3),
    histories=st.integers(0, 12),
    merges=st.booleans(),
    kind=st.sampled_from([Table, Bounded, Priced]),
)
def test_no_policy_is_above_the_bounds(table, bound, prices, histories, merges, kind):
    proof = prove(kind(table.table, table.horizon, table.discount, merges=merges), bound)
    plans = enumerate_plans(table)
    best = best_mixture(plans, bound)
    for price in prices:
        value = max(plan.reward - price * plan.risk for plan in plans)
        before = proof.bound_value(price)
        for _ in range(3):
            upper = proof.advance(price, histories)
            assert value <= upper <= before + 1e-11
            before = upper
            assert not proof.is_final(price) or upper == pytest.approx(value, abs=1e-9)
        with suppress(BoundError):  # it may have no value at rewards beyond all policies
            assert proof.bound_reward() >= best - 1e-9
        assert proof.advance(price) == pytest.approx(value, abs=1e-9)
        assert proof.is_final(price)
        with suppress(BoundError):  # it may have no value at rewards beyond all policies
            assert proof.bound_reward() >= best - 1e-9


def find_values(chart: Chart, price: float) -> list[list[float]]:
    """Return V by level and place, from its definition."""
    values = [[0.0] * PLACES]
    for _ in range(chart.horizon):
        after = values[0]
        level = []
        for place in range(PLACES):
            worths = [
                math.fsum(
                    p * (r + (-price if then is None else after[then])) for p, r, then in rows
                )
                for (where, _), rows in chart.answers.items()
                if where == place
            ]
            level.append(max(worths, default=0.0))
        values.insert(0, level)
    return values


def add_bound(chart: Chart, looseness: Sequence[float]) -> None:
    """Let a chart know what can be earned at most, with this much to spare by step."""
    for step, values in enumerate(find_values(chart, 0.0)):
        chart.table["bounds"][0, :, step] = np.array(values) + looseness[step]
    parts = chart.compiled
    chart.compiled = CompiledModel(
        parts.initial, chart.table, parts.actions, parts.most_outcomes, parts.outcomes, look_ahead
    )


def add_last_value(chart: Chart, steps: int) -> None:
    """Let a chart know the exact value of this many last steps."""
    chart.table["bounds"][0, 0, 0] = chart.horizon
    parts = {"parameters": chart.table, "last_value": plan_to_the_end, "last_steps": steps}
    chart.compiled = dataclasses.replace(chart.compiled, **parts)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 1 << 30),
    horizon=st.integers(1, 5),
    price=st.sampled_from(PRICES),
    histories=st.integers(0, 20),
    looseness=st.none() | st.lists(st.sampled_from([0.0, 0.1, 1.0]), min_size=9, max_size=9),
    last_steps=st.integers(0, 6),
)
def test_compiled_models_have_sound_bounds(seed, horizon, price, histories, looseness, last_steps):
    chart = draw_chart(seed, horizon)
    if looseness is not None:
        add_bound(chart, looseness[: LONGEST + 1])
    if last_steps:
        add_last_value(chart, last_steps)
    value = find_values(chart, price)[0][0]
    proof = prove(chart)
    before = proof.bound_value(price)
    for _ in range(3):
        upper = proof.advance(price, histories)
        assert value <= upper <= before + 1e-12 * abs(value)  # the margin for rounding may grow
        before = upper
    assert proof.advance(price) == pytest.approx(value, abs=1e-9)
    assert proof.is_final(price)


def test_both_forms_of_a_mission_give_the_same_bound() -> None:
    class Plain(Exploration):
        """Without a compiled form."""

    values = [prove(kind(map="wide", horizon=3)).advance(25.0) for kind in (Exploration, Plain)]
    assert values[0] == pytest.approx(values[1], abs=1e-12)


@pytest.mark.parametrize("name", ["narrow", "wide"])
def test_more_work_never_loosens_a_bound(name: str) -> None:
    proof = prove(Exploration(map=name, horizon=6))
    uppers = [proof.advance(25.0, 10) for _ in range(100)]
    assert all(later <= earlier for earlier, later in itertools.pairwise(uppers))
    assert proof.is_final(25.0)
    assert uppers[-1] < uppers[0] - 0.1


@settings(max_examples=60)
@given(
    table=tables(),
    bound=bounds(),
    price=st.sampled_from(PRICES),
    histories=st.integers(1, 12),
    merges=st.booleans(),
    kind=st.sampled_from([Table, Bounded, Priced]),
)
def test_no_deterministic_policy_is_above_the_upper_bound(
    table, bound, price, histories, merges, kind
):
    proof = prove(kind(table.table, table.horizon, table.discount, merges=merges), bound)
    plans = enumerate_plans(table)
    with suppress(BoundError):  # it may have no value at rewards beyond all policies
        best = max((p.reward for p in plans if p.risk <= bound(p.reward)), default=-math.inf)
        before = math.inf
        for _ in range(40):
            proof.improve(price, histories)
            assert best - 1e-9 <= proof.upper <= before
            before = proof.upper


@settings(max_examples=30)
@given(
    seed=st.integers(0, 1 << 30),
    horizon=st.integers(2, 4),
    last_steps=st.integers(0, 3),
    bound=bounds(),
)
def test_cases_of_compiled_models_are_sound(seed, horizon, last_steps, bound):
    chart = draw_chart(seed, horizon)
    if last_steps:
        add_last_value(chart, last_steps)
    proof, exact = prove(chart, bound), vulcan.Problem(chart.plain(), bound)
    best = vulcan.solve(exact, vulcan.Pareto()).certificate
    for _ in range(30):
        proof.improve(2.0, 50)
        assert best is None or proof.upper >= float(best.reward) - 1e-9


@pytest.mark.parametrize("kind", [Table, Priced])
def test_a_policy_that_draws_no_lots_takes_one_first_action(kind: Any) -> None:
    table = {
        0: {
            "calm": [Outcome(1.0, 1.0, 1)],
            "daring": [Outcome(0.8, 2.5, 1), Outcome.failure(0.2, 0.0)],
        },
        1: {"go": [Outcome(1.0, 0.0, 1)]},
    }
    proof = prove(kind(table, 2), vulcan.Constant(0.1))
    proof.advance(5.0)
    assert proof.bound_reward() == pytest.approx(1.5)  # drawn with equal chances
    for _ in range(20):
        proof.improve(3.0, 10)
    assert proof.upper == pytest.approx(1.0, rel=SETTLED)


@pytest.mark.parametrize("merges", [True, False])
def test_the_best_price_gives_the_dual_bound(merges: bool) -> None:
    bound = vulcan.Linear(0.002)
    problem = vulcan.Problem(Bandit(5), bound)
    dual = vulcan.solve(problem, vulcan.Lagrangian()).upper_bound
    proof = prove(Bandit(5, merges=merges), bound)
    for price in np.linspace(0.0, 800.0, 41).tolist():
        proof.advance(price)
    assert dual is not None
    assert dual <= proof.bound_reward() + 1e-12 <= dual + 0.01


def test_memory_is_capped_and_the_bound_stays_sound() -> None:
    model = Exploration(map="narrow", horizon=7)
    proof = prove(model, memory=200_000)
    upper = proof.advance(25.0)
    assert proof.full
    assert proof.memory <= 200_000
    assert 14.52663 <= upper < 19.7
    plain = prove(Bandit(9, merges=False), memory=2_000_000)
    assert 4.7 < plain.advance(10.0) < math.inf
    assert plain.full
    assert plain.memory <= 2_000_000


@pytest.mark.parametrize("rest", [0.5, 0.5000000000001])
def test_a_safe_outcome_beside_failures_that_sum_to_one(rest: float) -> None:
    failures = [(0.5, 9.0, None), (rest, 9.0, None)]
    chart = Chart({(0, "left"): [(1e-300, 5.0, 0), *failures], (0, "right"): [(1.0, 0.1, 1)]}, 12)
    looks = iter(range(1000))  # a proof that does not end runs out of them
    problem, reader = vulcan.Problem(chart, CURVED), ModelReader(chart)
    proof = Proof(problem, reader, hurried=lambda: next(looks) < 0)
    assert proof.advance(1.0) == pytest.approx(8.0)
    assert proof.is_final(1.0)


def test_a_start_is_bounded_like_any_decision() -> None:
    start = vulcan.Start({"here": [Outcome(1.0, 0.5, 0)], "there": [Outcome(1.0, 0.0, 1)]})
    table = {
        0: {"go": [Outcome(0.9, 1.0, 0), Outcome.failure(0.1, 0.0)]},
        1: {"go": [Outcome(1.0, 1.2, 1)]},
    }
    proof = prove(Bounded(table, 2, 0.5, start))
    assert proof.advance(0.0) == pytest.approx(0.5 + 0.9 * (1 + 0.5 * 0.9))
    assert proof.advance(5.0) == pytest.approx(1.2 * 1.5)


def test_a_compiled_model_that_lies_is_named() -> None:
    chart = draw_chart(3, 3)
    chart.table["probability"] *= 1.1
    with pytest.raises(vulcan.errors.ModelError, match="compiled outcomes break a rule"):
        prove(chart).advance(1.0)


def test_where_nothing_is_acceptable_the_bound_says_so() -> None:
    model = Bounded({0: {"go": [Outcome(0.5, 1.0, 0), Outcome.failure(0.5, 0.0)]}}, 2)
    proof = prove(model, vulcan.Constant(0.1))
    for price in (0.0, 10.0):
        proof.advance(price)
    assert proof.bound_reward() < -1.0  # 1.25 - 10 · 0.75 + 10 · 0.1, and no policy earns that


def test_the_price_is_put_in_the_units_of_the_step() -> None:
    table = {
        0: {"calm": [Outcome(1.0, 1.0, 1)], "daring": [Outcome(1.0, 0.95, 2)]},
        1: {"go": [Outcome(1.0, 1.0, 1)]},
        2: {"go": [Outcome(0.7, 2.0, 2), Outcome.failure(0.3, 2.0)]},
    }
    proof = prove(Priced(table, 2, 0.5))
    assert proof.advance(2.0) == pytest.approx(1.5)
    # With the price as it is, the other action would seem to be worth 1.65, and be looked into.
    assert proof.opened == 2
