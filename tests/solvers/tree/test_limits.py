"""Tree search under limits: it always ends, and with what it has."""

from __future__ import annotations

import time
from typing import Any

import pytest

import vulcan
from tests.helpers.stopping import LARGE, NINE, SOLVERS, require_stopped
from tests.helpers.tables import Table
from vulcan import Outcome, Status
from vulcan.domains import Bandit

LINEAR = vulcan.Linear(0.002)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("limits", "by"),
    [
        ({"time_limit": 0}, "time limit"),
        ({"samples": 0}, "limit of samples"),
        ({"histories": 0}, "limit of histories"),
    ],
)
def test_limits_of_zero(solver: Any, limits: dict[str, int], by: str) -> None:
    result = vulcan.solve(NINE, solver, **limits)
    require_stopped(result, by)
    assert result.policy is None
    assert result.certificate is None
    assert not result.safe
    assert "no policy yet" in result.explanation
    assert result.statistics.samples == 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_time_limit(solver: Any) -> None:
    began = time.perf_counter()
    result = vulcan.solve(LARGE, solver, time_limit=0.5)
    seconds = time.perf_counter() - began
    require_stopped(result, "time limit")
    assert result.certificate.complete or getattr(solver, "as_printed", False)
    assert result.certificate.passes or isinstance(solver, vulcan.UCT)
    assert result.statistics.samples > 0
    assert 0.2 < result.statistics.search_seconds < 2.5
    assert seconds < 3


def test_run_limited_by_time_can_be_repeated_by_its_samples() -> None:
    timed = vulcan.solve(LARGE, vulcan.LocalVulcan(), time_limit=0.3, seed=3)
    again = vulcan.solve(LARGE, vulcan.LocalVulcan(), samples=timed.statistics.samples, seed=3)
    assert again.policy == timed.policy
    assert again.certificate == timed.certificate


@pytest.mark.parametrize("limit", [1, 10, 1000, 30_000])
def test_limit_of_histories(limit: int) -> None:
    result = vulcan.solve(NINE, vulcan.LocalVulcan(), histories=limit)
    require_stopped(result, "limit of histories")
    if limit == 1:  # the root alone
        assert result.policy is None
        return
    assert result.safe
    # One sample adds at most a history a step; completion adds those of one policy.
    assert limit <= result.statistics.histories <= limit + 9 + 2**10


def test_limit_of_histories_is_kept_where_the_model_is_known() -> None:
    # All states are known after a few samples: nothing interrupts the kernel any more.
    table = Table(
        {s: {a: [Outcome(1.0, r, s)] for a, r in (("a", 1.0), ("b", 0.0))} for s in (0,)},
        horizon=30,
    )
    problem = vulcan.Problem(table, vulcan.Constant(0.5))
    result = vulcan.solve(problem, vulcan.LocalVulcan(), histories=2100)
    require_stopped(result, "limit of histories")
    assert result.statistics.histories <= 2100 + 2 * 30


@pytest.mark.parametrize("merges", [True, False])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("memory", [500_000, 2_000_000])
def test_memory_is_never_exceeded(memory: int, solver: Any, merges: bool) -> None:
    problem = vulcan.Problem(Bandit(9, merges=merges), LINEAR)
    result = vulcan.solve(problem, solver, memory=memory, samples=1_000_000)
    require_stopped(result, "limit of memory")
    assert result.statistics.memory <= memory
    assert result.statistics.samples > 0
    assert result.certificate.passes


def test_tiny_memory() -> None:
    # One state, so that the tree is all that takes memory; a whole policy has 2**15 histories.
    table = Table(
        {
            0: {
                a: [Outcome(0.5, 1.0, 0), Outcome(0.49, 0.5, 0), Outcome.failure(0.01)]
                for a in "ab"
            }
        },
        horizon=15,
    )
    problem = vulcan.Problem(table, vulcan.Constant(0.5))
    result = vulcan.solve(problem, vulcan.LocalVulcan(), memory=200_000, samples=1_000_000)
    require_stopped(result, "limit of memory")
    assert result.statistics.memory <= 200_000
    assert result.statistics.samples > 0
    assert result.certificate.passes


def test_memory_that_is_enough_changes_nothing() -> None:
    problem = vulcan.Problem(Bandit(5), LINEAR)
    free = vulcan.solve(problem, vulcan.LocalVulcan(), samples=100_000)
    capped = vulcan.solve(problem, vulcan.LocalVulcan(), samples=100_000, memory=100_000_000)
    assert capped.status is Status.SOLVED
    assert capped.stopped_by is None
    assert capped.policy == free.policy
    assert capped.statistics.memory == free.statistics.memory


def test_memory_counts_the_state_graph() -> None:
    # A wide model: ten thousand states after the first action.
    class Wide:
        horizon = 3

        def initial_state(self) -> int:
            return 0

        def actions(self, state: int) -> list[str]:
            return ["go"]

        def outcomes(self, state: int, action: str) -> list[Outcome]:
            return [Outcome(1e-3, 1.0, 1000 * state + k) for k in range(1000)]

    problem = vulcan.Problem(Wide(), vulcan.Constant(0.5))
    result = vulcan.solve(
        problem, vulcan.LocalVulcan(), memory=1_000_000, samples=1000, complete=False
    )
    # The size of an answer is known only once it is there: it may go above the limit once.
    assert result.statistics.memory <= 1_000_000 + 1000 * 400


def test_what_was_solved_was_not_stopped() -> None:
    problem = vulcan.Problem(Bandit(4), LINEAR)
    samples = vulcan.solve(problem, vulcan.LocalVulcan(), samples=100_000).statistics.samples
    result = vulcan.solve(problem, vulcan.LocalVulcan(), samples=samples)
    assert result.status is Status.SOLVED
    assert result.stopped_by is None


def test_result_reads_well() -> None:
    text = str(vulcan.solve(NINE, vulcan.LocalVulcan(), samples=2000))
    for part in ("limit of samples", "2,000 samples", "acceptable", "yes, ", "histories", "MB"):
        assert part in text
    frontier = vulcan.solve(NINE, vulcan.LocalVulcan(), samples=20, complete=False)
    assert "is the probability of leaving the plan" in str(frontier)
    assert not frontier.safe
