"""The choice of a solver by the size of the problem."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import vulcan
from tests.helpers.tables import Table
from tests.helpers.unrolled import allow_questions
from vulcan import Outcome, Status
from vulcan.domains import Bandit
from vulcan.graphs.state_graph import StateGraph
from vulcan.solvers import automatic

LINEAR = vulcan.Linear(0.002)


def test_a_small_problem_is_solved_exactly_without_being_told_how() -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(7), LINEAR), gap=0)
    assert result.status is Status.SOLVED
    assert result.certificate.reward == pytest.approx(3.7009878, abs=1e-7)
    assert result.gap == 0
    assert result.statistics.samples == 0


def test_a_large_problem_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_questions(monkeypatch, 1000)
    monkeypatch.setattr(automatic, "MOST_SAMPLES", 2000)
    model = Bandit(9, merges=False)  # nothing is proved before the samples are taken
    first, second = (vulcan.solve(vulcan.Problem(model, LINEAR)) for _ in range(2))
    assert first.statistics.samples == 2000
    assert first.safe
    assert first.policy == second.policy


def test_limits_of_a_tree_search_choose_it() -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(5), LINEAR), samples=500)
    assert result.statistics.samples == 500


def test_what_was_asked_before_the_problem_proved_too_large_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allow_questions(monkeypatch, 30)
    monkeypatch.setattr(automatic, "MOST_SAMPLES", 500)
    asked: list[object] = []
    expand = StateGraph.expand_all

    def note(graph: StateGraph, states: Sequence[int]) -> None:
        asked.extend(map(graph.state_object, states))
        expand(graph, states)

    monkeypatch.setattr(StateGraph, "expand_all", note)
    table = {k: {"a": [Outcome(1.0, 1.0, k + 1)], "b": [Outcome(1.0, 0.0, k)]} for k in range(40)}
    result = vulcan.solve(vulcan.Problem(Table(table, horizon=40), vulcan.Constant(0)))
    assert result.statistics.samples > 0
    assert len(asked) == len(set(asked)) > 16
