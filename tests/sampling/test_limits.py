"""Searches that must stop: they end with what they have, and it is certified."""

from __future__ import annotations

import itertools
import signal
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import vulcan
from tests.helpers.missions import BOUND
from tests.helpers.tables import Table
from vulcan import Outcome, Result
from vulcan.domains import Bandit, Exploration, TreasureGrid
from vulcan.model.reader import ModelReader
from vulcan.planning import Progress, Status
from vulcan.runtime.limits import Limits, Monitor, listen
from vulcan.solvers.base import Options

NINE = vulcan.Problem(Bandit(9), vulcan.Linear(0.002))
LARGE = vulcan.Problem(Bandit(14), vulcan.Linear(0.002))
MISSION = vulcan.Problem(Exploration(6), vulcan.parse(BOUND))
SOLVERS = [vulcan.LocalVulcan(), vulcan.LocalVulcan.paper(), vulcan.baselines.UCT()]


def require_stopped(result: Result, by: str) -> None:
    """Require that a search was stopped by something, and says so."""
    assert result.status is Status.STOPPED
    assert result.stopped_by == by
    assert f"stopped by {by} after {result.statistics.samples:,} samples" in result.explanation


LINEAR = vulcan.Linear(0.002)
NOTHING = [
    ({"time_limit": 0}, "time limit"),
    ({"samples": 0}, "limit of samples"),
    ({"histories": 0}, "limit of histories"),
]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("limits", "by"), NOTHING)
def test_limits_of_zero(solver: Any, limits: dict[str, int], by: str) -> None:
    result = vulcan.solve(NINE, solver, limits=vulcan.Limits(**limits))
    require_stopped(result, by)
    assert result.policy is None
    assert result.certificate is None
    assert not result.safe
    assert "no policy yet" in result.explanation
    assert result.statistics.samples == 0


@pytest.mark.parametrize(
    ("problem", "solver"),
    [*((LARGE, solver) for solver in [*SOLVERS, vulcan.Vulcan()]), (MISSION, vulcan.Vulcan())],
)
@pytest.mark.usefixtures("processor_clock")
def test_time_limit(problem: vulcan.Problem, solver: Any) -> None:
    result = vulcan.solve(problem, solver, time_limit=0.5)
    require_stopped(result, "time limit")
    assert result.certificate.complete or getattr(solver, "as_printed", False)
    assert result.certificate.passes or isinstance(solver, vulcan.baselines.UCT)
    assert result.statistics.samples > 0
    assert 0.2 < result.statistics.search_seconds < 10


@pytest.mark.parametrize("limit", [1, 10, 1000, 30_000])
def test_limit_of_histories(limit: int) -> None:
    result = vulcan.solve(NINE, vulcan.LocalVulcan(), limits=vulcan.Limits(histories=limit))
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
    result = vulcan.solve(problem, vulcan.LocalVulcan(), limits=vulcan.Limits(histories=2100))
    require_stopped(result, "limit of histories")
    assert result.statistics.histories <= 2100 + 2 * 30


@pytest.mark.parametrize("merges", [True, False])
@pytest.mark.parametrize(
    ("memory", "solver"),
    list(itertools.product([500_000, 2_000_000], SOLVERS)),
)
def test_memory_is_never_exceeded(memory: int, solver: Any, merges: bool) -> None:
    problem = vulcan.Problem(Bandit(9, merges=merges), LINEAR)
    result = vulcan.solve(problem, solver, limits=vulcan.Limits(memory=memory), samples=1_000_000)
    require_stopped(result, "limit of memory")
    assert result.statistics.memory <= memory
    assert result.statistics.samples > 0
    assert result.certificate.passes or isinstance(solver, vulcan.baselines.UCT)


@pytest.mark.parametrize("merges", [True, False])
@pytest.mark.parametrize("memory", [100_000, 2_000_000])
@pytest.mark.usefixtures("only_counted")
def test_a_search_that_recycles_keeps_within_its_memory(memory: int, merges: bool) -> None:
    problem = vulcan.Problem(Bandit(9, merges=merges), LINEAR)
    limits = vulcan.Limits(memory=memory, samples=12_000)
    result = vulcan.solve(problem, vulcan.Vulcan(), limits=limits)
    assert result.statistics.memory <= memory
    require_certified(result)


@pytest.fixture
def only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let searches know what they count alone, as where a system does not tell a process's size."""
    monkeypatch.setattr("vulcan.runtime.limits.read_resident_memory", lambda: 0)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.usefixtures("only_counted")
def test_a_search_goes_on_where_memory_is_full(workers: int) -> None:
    free, limited = (
        vulcan.solve(
            MISSION,
            vulcan.Vulcan(),
            limits=vulcan.Limits(memory=memory, samples=30_000),
            parallel=workers,
        )
        for memory in (None, 20_000_000)
    )
    require_stopped(limited, "limit of samples")
    require_certified(limited)
    assert limited.statistics.memory <= 20_000_000 < free.statistics.memory
    assert limited.certificate.reward > 0.998 * free.certificate.reward


@pytest.mark.usefixtures("only_counted")
def test_a_checkpoint_of_a_tree_that_was_recycled(tmp_path: Path) -> None:
    limits = [vulcan.Limits(memory=20_000_000, samples=samples) for samples in (9_000, 12_000)]
    saved = vulcan.Checkpoint(tmp_path / "search")
    vulcan.solve(MISSION, vulcan.Vulcan(), limits=limits[0], checkpoint=saved)
    resumed, whole = (
        vulcan.solve(MISSION, vulcan.Vulcan(), limits=limits[1], checkpoint=checkpoint)
        for checkpoint in (replace(saved, resume=True), None)
    )
    assert resumed.policy == whole.policy
    assert resumed.statistics.samples == whole.statistics.samples


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
        problem,
        vulcan.LocalVulcan(complete=False),
        limits=vulcan.Limits(memory=1_000_000),
        samples=1000,
    )
    # The size of an answer is known only once it is there: it may go above the limit once.
    assert result.statistics.memory <= 1_000_000 + 1000 * 400


def require_certified(result: vulcan.Result) -> None:
    assert result.safe
    assert vulcan.certify(result.problem, result.policy) == result.certificate


@pytest.mark.parametrize(
    "problem",
    [
        vulcan.Problem(TreasureGrid(20, map="B.TG .#.. GT.."), 0.15),
        vulcan.Problem(Bandit(9, merges=False), LINEAR),
    ],
    ids=["merged", "unmerged"],
)
@pytest.mark.parametrize(
    ("limits", "by"),
    [*NOTHING, ({"samples": 1}, "limit of samples"), ({"histories": 10}, "limit of histories")],
)
@pytest.mark.usefixtures("processor_clock")
def test_next_to_no_time(problem: vulcan.Problem, limits: dict[str, int], by: str) -> None:
    result = vulcan.solve(problem, vulcan.Vulcan(), limits=vulcan.Limits(**limits))
    require_stopped(result, by)
    require_certified(result)


@pytest.mark.parametrize("merges", [True, False])
def test_next_to_no_memory(merges: bool) -> None:
    problem = vulcan.Problem(Table({0: {"a": [Outcome(1.0, 1.0, 0)]}}, merges=merges), LINEAR)
    require_certified(vulcan.solve(problem, vulcan.Vulcan(), limits=vulcan.Limits(memory=1)))


def test_memory_of_compiled_models() -> None:
    vulcan.solve(MISSION, vulcan.Vulcan(), samples=2000)  # what is loaded once is not counted
    tracemalloc.start()
    result = vulcan.solve(
        MISSION, vulcan.Vulcan(), limits=vulcan.Limits(memory=20_000_000), samples=1_000_000
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    require_stopped(result, "limit of memory")
    require_certified(result)
    assert result.statistics.memory <= 20_000_000
    assert peak < 60_000_000  # with fronts and the certificate


@pytest.mark.usefixtures("processor_clock")
def test_progress_is_told() -> None:
    told: list[Progress] = []
    result = vulcan.solve(MISSION, vulcan.Vulcan(), time_limit=2, progress=told.append)
    assert len(told) >= 3
    for before, after in itertools.pairwise(told):
        assert after.seconds > before.seconds
        assert after.samples >= before.samples
        assert after.histories >= before.histories
        assert 0 <= before.fraction <= after.fraction <= 1
        if before.judgement is not None:
            assert after.reward >= before.reward
    last = told[-1]
    assert 0 < last.samples <= result.statistics.samples
    assert last.judgement is not None
    assert last.judgement.safe
    assert last.reward <= result.certificate.reward + 1e-12


# Models that fail.


class Failing(Bandit):
    """Answers no new question after a number of them."""

    known: set[Any] = set()  # noqa: RUF012
    most = 0

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        if len(self.known) >= self.most and (state, action) not in self.known:
            raise RuntimeError("sensor lost")
        self.known.add((state, action))
        return super().outcomes(state, action)


@pytest.mark.parametrize("solver", [vulcan.Vulcan(), vulcan.LocalVulcan()])
def test_a_model_that_raises_before_the_first_round_leaves_nothing(solver: Any) -> None:
    Failing.known, Failing.most = set(), 40
    result = vulcan.solve(vulcan.Problem(Failing(9), LINEAR), solver, samples=10_000)
    require_stopped(result, "error in the model")
    assert isinstance(result.error.__cause__, RuntimeError)
    assert result.policy is None


# Interruption.


@pytest.mark.parametrize("solver", [*SOLVERS, vulcan.Vulcan()])
def test_ctrl_c_returns_the_best_of_any_solver(solver: Any) -> None:
    pressed: list[int] = []

    def press(progress: Progress) -> None:
        if progress.samples and not pressed:
            pressed.append(progress.samples)
            signal.raise_signal(signal.SIGINT)

    result = vulcan.solve(LARGE, solver, progress=press)
    require_stopped(result, "Ctrl-C")
    assert result.certificate.complete or getattr(solver, "as_printed", False)
    assert result.certificate.passes or isinstance(solver, vulcan.baselines.UCT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_before_the_first_round() -> None:
    with listen(lambda: True):
        monitor = Monitor(Limits())
    finding = vulcan.LocalVulcan().search(NINE, ModelReader(NINE.model), monitor, Options())
    assert finding.status is Status.STOPPED
    assert finding.policy is None
    assert monitor.stopped_by == "Ctrl-C"


@pytest.mark.parametrize(
    ("solver", "merges", "most"),
    [(vulcan.LocalVulcan(), True, 9_000), (vulcan.Vulcan(), False, 40_000)],
    ids=["local", "vulcan"],
)
def test_a_model_that_raises_late_leaves_the_policy_of_the_last_round(solver, merges, most):
    Failing.known, Failing.most = set(), most
    problem = vulcan.Problem(Failing(9, merges=merges), LINEAR)
    result = vulcan.solve(problem, solver, samples=300_000)
    require_stopped(result, "error in the model")
    assert "sensor lost" in str(result.error)
    assert isinstance(result.error.__cause__, RuntimeError)
    assert result.safe
    rounds = [1024 * 4**k for k in range(6) if 1024 * 4**k < result.statistics.samples]
    assert rounds
    if isinstance(solver, vulcan.LocalVulcan):  # whose last round is like the others
        Failing.most = 1_000_000
        last = vulcan.solve(problem, solver, samples=rounds[-1])
        assert result.policy == last.policy
        assert result.certificate == last.certificate
