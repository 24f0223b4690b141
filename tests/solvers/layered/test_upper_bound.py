"""Upper bounds for everyone."""

from __future__ import annotations

import math

import pytest

import vulcan
from tests.helpers.heuristics import CHAIN, Unknowing
from tests.helpers.tables import Table, one_action
from tests.helpers.unrolled import allow_questions
from vulcan import Outcome
from vulcan.domains import Bandit

LINEAR = vulcan.Linear(0.002)


@pytest.mark.parametrize(
    "solver",
    [
        vulcan.ForwardSearch(),
        vulcan.ForwardSearch(vulcan.SequenceConstraint()),
        vulcan.LocalVulcan(),
        vulcan.Penalty(),
    ],
    ids=str,
)
def test_an_upper_bound_is_added_to_any_result(solver: object) -> None:
    limits = {"samples": 20_000} if isinstance(solver, vulcan.LocalVulcan) else {}
    problem = vulcan.Problem(Bandit(7), LINEAR)
    result = vulcan.solve(problem, solver, bound=True, **limits)
    assert result.upper_bound == pytest.approx(3.701087, abs=5e-7)
    assert result.gap == pytest.approx(1 - result.certificate.reward / result.upper_bound)
    assert "below the best possible" in str(result)
    assert vulcan.solve(problem, solver, **limits).upper_bound is None


def test_how_a_gap_reads() -> None:
    solver = vulcan.ForwardSearch(vulcan.SequenceConstraint())
    text = str(vulcan.solve(vulcan.Problem(Bandit(7), LINEAR), solver, bound=True))
    assert "reward        3.595905\nupper bound   3.701087  at most 2.8 % below the best" in text


def test_the_models_own_bound_serves_where_the_graph_is_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allow_questions(monkeypatch, 100)
    problem = vulcan.Problem(Bandit(6), LINEAR)
    result = vulcan.solve(problem, vulcan.LocalVulcan(), samples=2000, bound=True)
    assert result.upper_bound == Bandit(6).reward_to_go_bound((0,) * 6, 0)


def test_without_any_bound_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_questions(monkeypatch, -1)
    table = {k: {"a": [Outcome(1.0, 1.0, k + 1)]} for k in range(5)}
    problem = vulcan.Problem(Table(table, 5), vulcan.Constant(0.1))
    result = vulcan.solve(problem, vulcan.LocalVulcan(), samples=10, bound=True)
    assert result.upper_bound is None
    assert result.gap is None


def test_a_problem_that_nothing_satisfies_says_so() -> None:
    problem = vulcan.Problem(one_action(Outcome.failure(1.0)), vulcan.Constant(0.5))
    result = vulcan.solve(problem, vulcan.ForwardSearch(), bound=True)
    assert result.upper_bound == -math.inf
    assert "no policy is within the risk bound" in str(result)
    assert result.gap is None


def test_an_infinite_bound_of_the_model_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_questions(monkeypatch, -1)
    problem = vulcan.Problem(Unknowing(CHAIN, 2), vulcan.Constant(0.1))
    assert vulcan.solve(problem, vulcan.LocalVulcan(), samples=10, bound=True).upper_bound is None
