"""Exact solvers where numbers are large, tiny, steep or too many."""

from __future__ import annotations

import math
import tracemalloc

import pytest

import vulcan
from tests.helpers.tables import Table, one_action
from vulcan import Outcome, Status

EXACT = [vulcan.Pareto(), vulcan.RAOStar(), vulcan.IntegerProgram(), None]


def lottery(reward: float, risk: float) -> list[Outcome]:
    """Return an action with one safe outcome, and the same reward on failure."""
    return [Outcome(1 - risk, reward, 1), Outcome.failure(risk, reward)]


@pytest.mark.parametrize("solver", EXACT, ids=str)
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


@pytest.mark.parametrize("solver", [vulcan.Lagrangian(), *EXACT], ids=str)
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


def test_hard_numbers_for_an_integer_program() -> None:
    """HiGHS returns a refused policy again and again unless it is cut off by itself."""
    table = {
        0: {
            "c": [
                Outcome(0.38615148130562466, 0, 4, "0"),
                Outcome(0.3138485186943753, 0, 4, "1"),
                Outcome.failure(0.30000000000000004),
            ]
        },
        2: {
            "b": [Outcome(0.45, -0.4, 0, "0"), Outcome(0.55, 0, 2, "1")],
            "c": [
                Outcome(0.6391136834651696, 2.6, 2, "0"),
                Outcome(0.06088631653483029, 0, 4, "1"),
                Outcome.failure(0.30000000000000004),
            ],
        },
        4: {
            "a": [Outcome(0.9999999, 0, 0), Outcome.failure(9.999999994736442e-08)],
            "b": [Outcome(0.999999999, -0.4, 2), Outcome.failure(9.999999717180685e-10)],
        },
    }
    problem = vulcan.Problem(Table(table, 4), vulcan.Constant(0.6442138744819661))
    found, exact = (vulcan.solve(problem, s) for s in (vulcan.IntegerProgram(), vulcan.Pareto()))
    assert exact.certificate.reward == pytest.approx(1.6095474, abs=1e-7)
    assert found.certificate.reward == pytest.approx(exact.certificate.reward, abs=1e-9)
    assert "proved by HiGHS" in found.explanation


def test_nothing_is_called_proved_that_the_certificate_refuses() -> None:
    seen = 0
    for k in range(1, 12):
        outcomes = [
            Outcome(0.3, 0.1 * k, 0, "0"),
            Outcome(0.3, 0.7, 0, "1"),
            Outcome(0.39, 1.3, 0, "2"),
            Outcome.failure(0.01),
        ]
        model = Table({0: {"go": outcomes}}, 5)
        free = vulcan.solve(vulcan.Problem(model, vulcan.Constant(1)), vulcan.Lagrangian())
        reward, risk = free.trials[-1].reward, float(free.certificate.risk)
        bound = vulcan.PiecewiseLinear([(reward - 1, risk - 1e6), (reward, risk)])
        result = vulcan.solve(vulcan.Problem(model, bound))
        assert result.safe or result.status is not Status.SOLVED
        seen += not result.safe
    assert seen  # else this tests nothing


@pytest.mark.parametrize("solver", [*EXACT, vulcan.Lagrangian(), vulcan.LinearProgram()], ids=str)
@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
def test_what_the_certificate_lets_pass_is_found(solver: object, share: float) -> None:
    problem = vulcan.Problem(
        one_action(Outcome(0.99, 1.0, 1), Outcome.failure(0.01)),
        vulcan.Constant(0.01 - share * 1e-12),
    )
    result = vulcan.solve(problem, solver)
    assert result.safe
    assert result.status in (Status.SOLVED, Status.DONE)


class Crowd:
    """A model with so many actions that its histories fit into no memory."""

    horizon = 4

    def initial_state(self) -> int:
        return 0

    def actions(self, state: int) -> list[str]:
        return [f"a{k}" for k in range(300)]

    def outcomes(self, state: int, action: str) -> list[Outcome]:
        risk = 1e-3 * (int(action[1:]) + 1) / 400
        return [
            Outcome(0.5, risk, 0, "x"),
            Outcome(0.5 - risk, 0.1, 1, "y"),
            Outcome.failure(risk),
        ]


def test_memory_is_looked_at_before_it_is_taken() -> None:
    tracemalloc.start()
    problem = vulcan.Problem(Crowd(), vulcan.Constant(0.002))
    result = vulcan.solve(problem, vulcan.LinearProgram(on="tree"), memory=20_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.stopped_by == "limit of memory"
    assert peak < 60_000_000


def test_infeasible_problems_with_a_bound_that_falls_off() -> None:
    problem = vulcan.Problem(
        one_action(Outcome.failure(1.0)), vulcan.parse("0.2 - 0.001 * exp(-x)")
    )
    for solver in (*EXACT, vulcan.Lagrangian(), vulcan.LinearProgram()):
        result = vulcan.solve(problem, solver)
        assert result.status is Status.INFEASIBLE
        assert result.upper_bound == -math.inf
        assert result.price is None


@pytest.mark.parametrize("solver", [vulcan.Lagrangian(), vulcan.Pareto(), vulcan.RAOStar(), None])
def test_bounds_are_checked_between_the_rewards_that_matter(solver: object) -> None:
    falling = vulcan.Concave(lambda x: 0.05 - 0.01 * x)
    table = Table({0: {"a": [Outcome(1.0, 1.0, 1)], "b": lottery(3.0, 0.001)}}, 1)
    with pytest.raises(vulcan.BoundError, match="decreas"):
        vulcan.solve(vulcan.Problem(table, falling), solver)
