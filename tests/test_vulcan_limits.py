"""Vulcan under limits, interruption and options: it always ends, and with what it has."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from typing import Any

import pytest

import vulcan
from tests.tables import Table
from vulcan import Outcome, Progress, Result, Status
from vulcan.domains import Bandit
from vulcan.progress import Limits, Monitor
from vulcan.reader import ModelReader
from vulcan.solvers.solver import Options

LINEAR = vulcan.Linear(0.002)
NINE = vulcan.Problem(Bandit(9), LINEAR)
LARGE = vulcan.Problem(Bandit(14), LINEAR)
SOLVERS = [vulcan.Vulcan(), vulcan.Vulcan.paper(), vulcan.UCT()]


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile or load all kernels, so that what is timed below is the search."""
    for complete in (True, False):
        vulcan.solve(vulcan.Problem(Bandit(2), LINEAR), vulcan.Vulcan(), complete=complete)


def require_stopped(result: Result, by: str) -> None:
    """Require that a search was stopped by something, and says so."""
    assert result.status is Status.STOPPED
    assert result.stopped_by == by
    assert f"stopped by {by} after {result.statistics.samples:,} samples" in result.explanation


# --- Limits ------------------------------------------------------------------------------------


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
    assert result.certificate.complete
    assert result.certificate.passes or isinstance(solver, vulcan.UCT)
    assert result.statistics.samples > 0
    assert 0.2 < result.statistics.search_seconds < 2.5
    assert seconds < 3


def test_run_limited_by_time_can_be_repeated_by_its_samples() -> None:
    timed = vulcan.solve(LARGE, vulcan.Vulcan(), time_limit=0.3, seed=3)
    again = vulcan.solve(LARGE, vulcan.Vulcan(), samples=timed.statistics.samples, seed=3)
    assert again.policy == timed.policy
    assert again.certificate == timed.certificate


@pytest.mark.parametrize("limit", [1, 10, 1000, 30_000])
def test_limit_of_histories(limit: int) -> None:
    result = vulcan.solve(NINE, vulcan.Vulcan(), histories=limit)
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
    result = vulcan.solve(problem, vulcan.Vulcan(), histories=2100)
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
    result = vulcan.solve(problem, vulcan.Vulcan(), memory=200_000, samples=1_000_000)
    require_stopped(result, "limit of memory")
    assert result.statistics.memory <= 200_000
    assert result.statistics.samples > 0
    assert result.certificate.passes


def test_memory_that_is_enough_changes_nothing() -> None:
    problem = vulcan.Problem(Bandit(5), LINEAR)
    free = vulcan.solve(problem, vulcan.Vulcan(), samples=100_000)
    capped = vulcan.solve(problem, vulcan.Vulcan(), samples=100_000, memory=100_000_000)
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
    result = vulcan.solve(problem, vulcan.Vulcan(), memory=1_000_000, samples=1000, complete=False)
    # The size of an answer is known only once it is there: it may go above the limit once.
    assert result.statistics.memory <= 1_000_000 + 1000 * 400


# --- Interruption ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_ctrl_c_returns_the_best_so_far(solver: Any) -> None:
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.4, press)
    timer.start()
    result = vulcan.solve(LARGE, solver)
    took = time.perf_counter() - pressed[0]
    timer.join()
    require_stopped(result, "Ctrl-C")
    assert result.certificate.complete
    assert result.certificate.passes or isinstance(solver, vulcan.UCT)
    assert took < 1.5
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_before_the_first_round() -> None:
    monitor = Monitor(Limits())
    monitor.requested = True
    finding = vulcan.Vulcan().search(NINE, ModelReader(NINE.model), monitor, Options())
    assert finding.status is Status.STOPPED
    assert finding.policy is None
    assert monitor.stopped_by == "Ctrl-C"


def test_solving_in_another_thread() -> None:
    results: list[Result] = []
    problem = vulcan.Problem(Bandit(4), LINEAR)
    thread = threading.Thread(
        target=lambda: results.append(vulcan.solve(problem, vulcan.Vulcan(), samples=10_000))
    )
    thread.start()
    thread.join()
    assert results[0].status is Status.SOLVED


class Failing(Bandit):
    """A bandit that raises at its third play of machine 1."""

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        if sum(state[:2]) == 2 and action == "play 1":
            raise RuntimeError("sensor lost")
        return super().outcomes(state, action)


def test_model_that_raises_leaves_the_best_so_far() -> None:
    problem = vulcan.Problem(Failing(9), LINEAR)
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=100_000)
    require_stopped(result, "error in the model")
    assert "sensor lost" in str(result.error)
    assert isinstance(result.error.__cause__, RuntimeError)
    assert result.certificate.passes


def test_model_that_raises_late_leaves_the_policy_of_the_last_round() -> None:
    class Late(Bandit):
        """Answers no new question after so many."""

        known: set[Any] = set()  # noqa: RUF012
        most = 10_000

        def outcomes(self, state: Any, action: str) -> list[Outcome]:
            if len(self.known) == self.most and (state, action) not in self.known:
                raise RuntimeError("sensor lost")
            self.known.add((state, action))
            return super().outcomes(state, action)

    problem = vulcan.Problem(Late(9), LINEAR)
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=300_000)
    require_stopped(result, "error in the model")
    assert isinstance(result.error.__cause__, RuntimeError)
    assert result.safe
    # The last round before was at 65,536 samples; the next would have been at 262,144.
    assert 65_536 < result.statistics.samples < 262_144
    Late.most = 1_000_000
    last = vulcan.solve(problem, vulcan.Vulcan(), samples=65_536)
    assert result.policy == last.policy
    assert result.certificate == last.certificate


# --- Options -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"seed": -1}, "seed"),
        ({"seed": 1 << 64}, "seed"),
        ({"seed": 0.5}, "seed"),
        ({"samples": -1}, "samples"),
        ({"samples": float("nan")}, "samples"),
        ({"histories": -1}, "histories"),
        ({"memory": -1}, "memory"),
        ({"time_limit": -1}, "time_limit"),
        ({"time_limit": float("nan")}, "time_limit"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], named: str) -> None:
    with pytest.raises(vulcan.OptionError, match=named):
        vulcan.solve(vulcan.Problem(Bandit(2), LINEAR), vulcan.Vulcan(), **options)


@pytest.mark.parametrize("exploration", [-1, -1e-9, float("nan")])
def test_exploration_that_makes_no_sense(exploration: float) -> None:
    with pytest.raises(vulcan.OptionError, match="exploration"):
        vulcan.Vulcan(exploration)
    with pytest.raises(vulcan.OptionError, match="exploration"):
        vulcan.Vulcan.paper(exploration)
    with pytest.raises(vulcan.OptionError, match="exploration"):
        vulcan.solve(vulcan.Problem(Bandit(2), LINEAR), vulcan.UCT(exploration), samples=1)


def test_default_policy_that_makes_no_sense() -> None:
    with pytest.raises(vulcan.OptionError, match=r"default_policy.*'random', 'greedy'.*'x'"):
        vulcan.Vulcan(default_policy="x")  # type: ignore[arg-type]

    def run_uct() -> None:
        solver = vulcan.UCT(default_policy="x")  # type: ignore[arg-type]
        vulcan.solve(vulcan.Problem(Bandit(2), LINEAR), solver, samples=1)

    with pytest.raises(vulcan.OptionError, match="default_policy"):
        run_uct()


@pytest.mark.parametrize("limit", ["samples", "memory"])
def test_forward_search_refuses_limits_of_others(limit: str) -> None:
    with pytest.raises(vulcan.OptionError, match=f"ForwardSearch has no limit '{limit}'"):
        vulcan.solve(vulcan.Problem(Bandit(2), LINEAR), vulcan.ForwardSearch(), **{limit: 10})


@pytest.mark.parametrize("solver", [vulcan.Vulcan, vulcan.UCT])
def test_default_policies(solver: Any) -> None:
    # One sample takes the action of the default policy: greedy always "high".
    table = Table(
        {
            0: {
                "low": [Outcome(1.0, 1.0, 1)],
                "high": [Outcome(1.0, 2.0, 1)],
                "middle": [Outcome(1.0, 1.5, 1)],
            },
            1: {"on": [Outcome(1.0, 0.0, 1)]},
        },
        horizon=2,
    )
    problem = vulcan.Problem(table, vulcan.Constant(0))

    def first_actions(default_policy: str) -> set[str]:
        chosen = solver(default_policy=default_policy)
        return {
            vulcan.solve(problem, chosen, samples=1, seed=seed).policy.start().action
            for seed in range(30)
        }

    assert first_actions("greedy") == {"high"}
    assert first_actions("random") == {"low", "high", "middle"}


# --- Progress ----------------------------------------------------------------------------------


def test_progress_is_told() -> None:
    told: list[Progress] = []
    result = vulcan.solve(LARGE, vulcan.Vulcan(), time_limit=1.5, on_progress=told.append)
    assert len(told) >= 3
    for before, after in itertools.pairwise(told):
        assert after.seconds > before.seconds
        assert after.samples >= before.samples
        assert after.histories >= before.histories
        assert after.memory >= before.memory
        assert 0 <= before.fraction <= after.fraction <= 1
        if before.judgement is not None:
            assert after.reward >= before.reward
    last = told[-1]
    assert 0 < last.samples <= result.statistics.samples
    assert last.evaluations > 0
    assert last.judgement is not None
    assert last.judgement.safe
    assert last.reward == last.judgement.reward <= result.certificate.reward + 1e-12


def test_fraction_of_a_limit_of_samples() -> None:
    told: list[Progress] = []
    # Enough of them to take several times the interval between two reports.
    vulcan.solve(LARGE, vulcan.Vulcan(), samples=40_000, on_progress=told.append)
    assert told
    assert all(p.fraction == pytest.approx(p.samples / 40_000) for p in told)
    unlimited: list[Progress] = []
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    vulcan.solve(LARGE, vulcan.Vulcan(), on_progress=unlimited.append)
    timer.join()
    assert unlimited
    assert all(p.fraction is None for p in unlimited)


def test_what_was_solved_was_not_stopped() -> None:
    problem = vulcan.Problem(Bandit(4), LINEAR)
    samples = vulcan.solve(problem, vulcan.Vulcan(), samples=100_000).statistics.samples
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=samples)
    assert result.status is Status.SOLVED
    assert result.stopped_by is None


def test_result_reads_well() -> None:
    text = str(vulcan.solve(NINE, vulcan.Vulcan(), samples=2000))
    for part in ("limit of samples", "2,000 samples", "acceptable", "yes, ", "histories", "MB"):
        assert part in text
    frontier = vulcan.solve(NINE, vulcan.Vulcan(), samples=20, complete=False)
    assert "is the probability of leaving the plan" in str(frontier)
    assert not frontier.safe


def test_model_that_raises_before_the_first_round_leaves_what_was_sampled() -> None:
    class Failing(Bandit):
        calls = 0

        def outcomes(self, state: Any, action: str) -> list[Outcome]:
            Failing.calls += 1
            if Failing.calls == 400:
                raise RuntimeError("sensor lost")
            return super().outcomes(state, action)

    result = vulcan.solve(vulcan.Problem(Failing(8), LINEAR), vulcan.Vulcan(), samples=10_000)
    assert result.stopped_by == "error in the model"
    assert isinstance(result.error.__cause__, RuntimeError)
    assert result.certificate.passes
    assert result.statistics.samples < 1024
