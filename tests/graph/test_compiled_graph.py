"""Searches of compiled models: the same as those of the plain form."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

import vulcan
from tests.helpers.charts import (
    CONSTRAINTS,
    CURVED,
    HONEST,
    Chart,
    draw_chart,
    look_ahead,
    solve,
)
from tests.helpers.plain_models import CROOKED, PlainExploration, WithoutBound
from vulcan.domains.exploration.model import Exploration
from vulcan.planning import Status
from vulcan.solvers import SequenceConstraint, SurvivalConstraint


@pytest.mark.parametrize("horizon", [2, 3])
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
def test_forward_search_is_the_same(constraint: Any, horizon: int) -> None:
    solver = vulcan.ForwardSearch(constraint)
    options: dict[str, Any] = {**CROOKED, "degree": 3 if horizon == 2 else 2, "horizon": horizon}
    form, plain = (
        solve(kind(**options), solver, CURVED) for kind in (Exploration, PlainExploration)
    )
    assert (form.status, form.policy) == (Status.SOLVED, plain.policy)
    assert plain.status is Status.SOLVED
    assert form.certificate.reward == pytest.approx(plain.certificate.reward, rel=1e-12)
    assert form.statistics.histories == plain.statistics.histories
    # Solved to its end, LocalVulcan finds the same, with the bound or without it.
    for kind in (Exploration, WithoutBound):
        tree = solve(kind(**options), vulcan.LocalVulcan(local_test=constraint), CURVED)
        assert tree.status is Status.SOLVED
        assert tree.certificate.reward == pytest.approx(form.certificate.reward, rel=1e-9)


SAMPLERS = [
    *(vulcan.LocalVulcan(local_test=constraint) for constraint in CONSTRAINTS),
    vulcan.LocalVulcan(default_policy="random"),
    vulcan.baselines.UCT(),
]


# Charts


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("solver", [*map(vulcan.ForwardSearch, CONSTRAINTS), *SAMPLERS], ids=str)
def test_charts_are_solved_alike(solver: Any, seed: int) -> None:
    chart = draw_chart(seed, 4)
    options = {} if isinstance(solver, vulcan.ForwardSearch) else {"samples": 300, "seed": seed}
    form, plain = (solve(model, solver, **options) for model in (chart, chart.plain()))
    assert (form.status, form.policy) == (plain.status, plain.policy)
    assert form.statistics.histories == plain.statistics.histories
    assert form.statistics.samples == plain.statistics.samples


SOLVERS = [vulcan.LocalVulcan(), vulcan.ForwardSearch(), vulcan.baselines.UCT()]


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_initial_state_that_is_terminal(solver: Any) -> None:
    result = solve(Chart({(1, "left"): [(1.0, 1.0, 1)]}, 3), solver)
    assert result.status is Status.SOLVED
    assert result.safe
    assert result.certificate.reward == 0


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_terminal_state_in_the_middle(solver: Any) -> None:
    chart = Chart(
        {
            (0, "left"): [(0.5, 1.0, 1), (0.5, 0.0, 2)],
            (2, "right"): [(0.99, 3.0, 1), (0.01, 0.0, None)],
        },
        4,
    )
    result = solve(chart, solver, vulcan.Constant(0.1))
    assert result.status is Status.SOLVED
    assert result.safe
    assert result.certificate.reward == pytest.approx(0.5 + 0.5 * 0.99 * 3.0)


@pytest.mark.parametrize(
    ("constraint", "status"),
    [(SurvivalConstraint(), Status.SOLVED), (SequenceConstraint(), Status.INFEASIBLE)],
    ids=str,
)
def test_action_that_surely_fails(constraint: Any, status: Status) -> None:
    for solver in (vulcan.LocalVulcan(local_test=constraint), vulcan.ForwardSearch(constraint)):
        chart = Chart({(0, "left"): [(0.75, 2.0, None), (0.25, 0.0, None)]}, 2)
        result = solve(chart, solver, vulcan.Constant(1.0))
        assert result.status is status
        assert result.certificate is None or result.certificate.reward == pytest.approx(1.5)
        assert solve(chart, solver, vulcan.Constant(0.5)).status is Status.INFEASIBLE


# Searches


def test_bound_leads_to_the_same_reward_with_less_work() -> None:
    mission = {**CROOKED, "degree": 2, "horizon": 4}
    free = solve(WithoutBound(**mission), vulcan.LocalVulcan(), CURVED)
    bounded = solve(Exploration(**mission), vulcan.LocalVulcan(), CURVED)
    assert free.status is bounded.status is Status.SOLVED
    assert bounded.certificate.reward == pytest.approx(free.certificate.reward, rel=1e-9)
    assert bounded.statistics.histories < free.statistics.histories


def test_models_with_a_credit_in_python_are_evaluated_in_python() -> None:
    """A credit of the user's own gets the model's own states."""
    seen: set[Any] = set()

    def credit(state: Any, action: Any) -> float:
        seen.add(type(state))
        return 0.0

    for solver in (
        vulcan.LocalVulcan(local_test=SequenceConstraint(credit)),
        vulcan.ForwardSearch(SequenceConstraint(credit)),
    ):
        assert solve(Chart(HONEST, 3), solver, vulcan.Constant(1.0)).status is Status.SOLVED
    assert seen == {int}


# What was wrong once.


def test_infinite_bound_says_nothing() -> None:
    chart = draw_chart(3, 4)
    chart.table["bounds"] = math.inf
    free = solve(chart, vulcan.LocalVulcan())
    chart.compiled = dataclasses.replace(chart.compiled, bound=look_ahead)
    bounded = solve(chart, vulcan.LocalVulcan())
    assert bounded.status is free.status
    assert bounded.certificate.reward == pytest.approx(free.certificate.reward)
