"""Rounds of a tree search: what is proved in them, and what is not."""

from __future__ import annotations

import time
from typing import Any

import pytest

import vulcan
from tests.helpers.tables import Table
from vulcan import Outcome, Status
from vulcan.domains import Bandit
from vulcan.solvers.tree import rounds as planner
from vulcan.solvers.tree.local_planner import LocalPlanner

LINEAR = vulcan.Linear(0.002)


def test_cleanup_that_finds_nothing_proves_nothing() -> None:
    # One sample; the outcome that it missed would be refused if its history ended there.
    table = Table(
        {
            0: {"go": [Outcome(0.45, 0, 1), Outcome(0.45, 0, 2), Outcome.failure(0.1)]},
            1: {"earn": [Outcome(1.0, 10.0, 3)]},
            2: {"earn": [Outcome(1.0, 10.0, 3)]},
        },
        horizon=2,
    )
    problem = vulcan.Problem(table, vulcan.Linear(0.1))
    assert vulcan.solve(problem).status is Status.SOLVED
    result = vulcan.solve(problem, vulcan.LocalVulcan(), samples=1, complete=False)
    assert result.status is Status.STOPPED
    assert "proved" not in result.explanation


def test_rounds_of_cleanup_do_not_harm_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    # The same, where something safe and poor is left: a later "solved" must still be the best.
    table = Table(
        {
            0: {
                "rich": [Outcome(0.45, 0, 1), Outcome(0.45, 0, 2), Outcome.failure(0.1)],
                "poor": [Outcome(1.0, 0.0, 4)],
            },
            1: {"earn": [Outcome(1.0, 10.0, 3)]},
            2: {"earn": [Outcome(1.0, 10.0, 3)]},
            4: {"earn": [Outcome(1.0, 0.5, 3)]},
        },
        horizon=2,
    )
    monkeypatch.setattr(planner, "FIRST_ROUND", 1)
    problem = vulcan.Problem(table, vulcan.Linear(0.1))
    for seed in range(10):
        result = vulcan.solve(
            problem, vulcan.LocalVulcan(), samples=1000, seed=seed, complete=False
        )
        assert result.status is Status.SOLVED
        assert result.certificate.reward == pytest.approx(9.0)


def test_solved_by_its_own_completion_is_settled_once_more() -> None:
    # Completion deletes b1, which solves the tree with a2, after a1 had been chosen.
    table = Table(
        {
            0: {"a1": [Outcome(1.0, 0.0, 1)], "a2": [Outcome(1.0, 4.0, 9)]},
            1: {
                "b1": [Outcome(0.9, 0.0, 2), Outcome(0.1, 0.0, 3)],
                "b2": [Outcome(1.0, 3.0, 9)],
            },
            2: {"c": [Outcome(1.0, 6.0, 9)]},
            3: {"c": [Outcome(0.9, 0.0, 9), Outcome.failure(0.1)]},
        },
        horizon=3,
    )
    problem = vulcan.Problem(table, vulcan.Constant(0.05))
    for seed in range(6):
        result = vulcan.solve(problem, vulcan.LocalVulcan(), samples=3, seed=seed)
        if result.status is Status.SOLVED:
            assert result.certificate.reward == 4
            assert result.stopped_by is None


@pytest.mark.parametrize("after", range(60, 130, 3))
def test_nothing_is_proved_that_was_not_certified(after: int) -> None:
    class Failing(Bandit):
        calls = 0

        def outcomes(self, state: Any, action: str) -> list[Outcome]:
            Failing.calls += 1
            if Failing.calls > after:
                raise RuntimeError("sensor lost")
            return super().outcomes(state, action)

    result = vulcan.solve(
        vulcan.Problem(Failing(3), LINEAR), vulcan.LocalVulcan(), samples=9999, seed=1
    )
    if result.status is Status.SOLVED:
        assert round(result.certificate.reward, 4) == 1.4892
        assert result.error is None
    else:
        assert "sensor lost" in str(result.error)


def test_the_last_round_may_take_all_that_a_certificate_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allowed: list[tuple[bool, float]] = []
    make = LocalPlanner._make_policies

    def watch(search: LocalPlanner, until: float, final: bool) -> Any:
        allowed.append((final, until - time.perf_counter()))
        return make(search, until, final)

    monkeypatch.setattr(LocalPlanner, "_make_policies", watch)
    problem = vulcan.Problem(Bandit(9), LINEAR)
    vulcan.solve(problem, vulcan.LocalVulcan(), samples=2000, time_limit=1000)
    (first, half), (last, rest) = allowed
    assert not first
    assert 450 < half <= 500
    assert last
    assert 900 < rest < 1000
