"""Forward search by several workers: what one worker finds and counts, and nothing else."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.constraints import KINDS, constraint
from tests.helpers.plain_models import PlainBandit
from tests.helpers.tables import SEEDS, Table, bounds, tables
from vulcan import Outcome, Status
from vulcan.domains import Bandit
from vulcan.executors.base import Executor
from vulcan.executors.here import Here, Threads
from vulcan.executors.processes import Processes
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import Options
from vulcan.solvers.finding import Finding
from vulcan.solvers.tree import split_search

LINEAR = vulcan.Linear(0.002)
CURVED = vulcan.parse("(1 - exp(-0.4*x)) * (0.015 + 0.001*x)")


def search(
    problem: vulcan.Problem, solver: Any, executor: Executor, **limits: Any
) -> Finding | Exception:
    """Return what a search finds, or what it raises."""
    reader, monitor = ModelReader(problem.model), Monitor(Limits(**limits))
    try:
        return solver.search(problem, reader, monitor, Options(executor=executor))
    except vulcan.VulcanError as error:
        return error


def require_same(alone: Finding | Exception, split: Finding | Exception) -> None:
    """Require that two searches found and counted the same, bit for bit, or failed alike."""
    if isinstance(alone, Exception) or isinstance(split, Exception):
        assert type(split) is type(alone)
        assert str(split) == str(alone)
        return
    assert (split.status, split.explanation) == (alone.status, alone.explanation)
    assert (split.reward, split.risk) == (alone.reward, alone.risk)
    assert split.policy == alone.policy
    assert split.statistics.histories == alone.statistics.histories
    assert split.statistics.evaluations == alone.statistics.evaluations
    assert (split.credits[:1], split.credits[-1:]) == (alone.credits[:1], alone.credits[-1:])


@dataclass
class Random:
    """A model whose states are spread over steps at random, some of them terminals."""

    seed: int
    horizon: int
    merges: bool = True
    discount: float = 1.0

    def initial_state(self) -> Any:
        return 0 if self.merges else (0,)

    def actions(self, state: Any) -> list[str]:
        last = state if self.merges else state[-1]
        return ["a", "b", "c"][: (last * 7 + self.seed) % 4] if last else ["a", "b"]

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        last = state if self.merges else state[-1]
        random = np.random.default_rng([self.seed, last, ord(action)])
        count = int(random.integers(1, 4))
        risk = float(random.choice([0.0, 0.001, 0.01]))
        chances = (1 - risk) * random.dirichlet(np.ones(count))
        rewards = random.choice([-1.0, 0.0, 0.5, 2.0], count)
        targets = random.choice(8, count, replace=False)
        found = [
            Outcome(float(p), float(r), int(s) if self.merges else (*state, action, int(s)), str(s))
            for p, r, s in zip(chances, rewards, targets, strict=True)
        ]
        return found if risk == 0 else [*found, Outcome.failure(risk, 0.0)]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(
    table=tables(),
    bound=bounds(),
    cut_short=st.booleans(),
    merges=st.booleans(),
    workers=st.sampled_from([1, 2, 3]),
)
def test_finds_and_counts_what_one_worker_does(
    kind: str, table: Table, bound: vulcan.RiskBound, cut_short: bool, merges: bool, workers: int
) -> None:
    model = replace(table, merges=merges, calls={})
    problem = vulcan.Problem(model, bound)
    solver = vulcan.ForwardSearch(constraint(kind, model), cut_short)
    alone = search(problem, solver, Here())
    require_same(alone, search(problem, solver, Threads(workers)))


@settings(max_examples=60, deadline=None)
@example(0, 2, False, False, vulcan.Constant(0.5), 2, 1)  # the last history is before a piece
@given(
    seed=SEEDS,
    horizon=st.integers(2, 6),
    merges=st.booleans(),
    cut_short=st.booleans(),
    bound=bounds(),
    workers=st.sampled_from([2, 3]),
    histories=st.one_of(st.none(), st.integers(0, 3000)),
)
def test_counts_and_stops_where_one_worker_does(
    seed: int,
    horizon: int,
    merges: bool,
    cut_short: bool,
    bound: vulcan.RiskBound,
    workers: int,
    histories: int | None,
) -> None:
    problem = vulcan.Problem(Random(seed, horizon if merges else min(horizon, 5), merges), bound)
    solver = vulcan.ForwardSearch(cut_short=cut_short)
    alone = search(problem, solver, Here(), histories=histories)
    require_same(alone, search(problem, solver, Threads(workers), histories=histories))


@pytest.mark.parametrize("merges", [True, False])
@pytest.mark.parametrize("bound", [LINEAR, CURVED])
@pytest.mark.parametrize("under", [vulcan.SurvivalConstraint(), vulcan.SequenceConstraint()])
def test_bandit_compiled_or_not(merges: bool, bound: vulcan.RiskBound, under: Any) -> None:
    problem = vulcan.Problem(Bandit(6, merges=merges), bound)
    solver = vulcan.ForwardSearch(under)
    alone = search(problem, solver, Here())
    splits = [search(problem, solver, Threads(workers)) for workers in (2, 3)]
    for split in splits:
        require_same(alone, split)
    assert splits[0].credits == splits[1].credits


@pytest.mark.parametrize("merges", [True, False])
@pytest.mark.parametrize("histories", [0, 1, 30, 300, 1000, 5000, 20_000])
def test_a_limit_of_histories_stops_inside_a_piece(merges: bool, histories: int) -> None:
    problem = vulcan.Problem(Bandit(6, merges=merges), LINEAR)
    alone = search(problem, vulcan.ForwardSearch(), Here(), histories=histories)
    assert alone.status is Status.STOPPED
    require_same(alone, search(problem, vulcan.ForwardSearch(), Threads(2), histories=histories))


@pytest.mark.parametrize("model", [PlainBandit(4, merges=False), Bandit(6, merges=False)])
def test_processes_find_the_same(model: Any) -> None:
    problem, solver = vulcan.Problem(model, LINEAR), vulcan.ForwardSearch()
    require_same(search(problem, solver, Here()), search(problem, solver, Processes(2)))


@dataclass(frozen=True)
class Deadly(PlainBandit):
    """Kills the process that asks it first."""

    trace: str = ""
    employer: int = 0

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        if len(state) == 3 and os.getpid() != self.employer and not Path(self.trace).exists():
            Path(self.trace).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().outcomes(state, action)


def test_a_lost_worker_changes_nothing(tmp_path: Path) -> None:
    model = Deadly(4, merges=False, trace=str(tmp_path / "died"), employer=os.getpid())
    problem, solver = vulcan.Problem(model, LINEAR), vulcan.ForwardSearch()
    alone = search(problem, solver, Here())
    split = search(problem, solver, Processes(2))
    assert Path(model.trace).exists()
    require_same(alone, split)


@dataclass(frozen=True)
class Breaking(PlainBandit):
    """Raises in one state."""

    place: Any = None

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        if state == self.place:
            raise RuntimeError("sensor lost")
        return super().outcomes(state, action)


@pytest.mark.parametrize("place", [(0, 0, 0, 0), (2, 4, 2), (5, 5), ()])
@pytest.mark.parametrize("cut_short", [True, False])
@pytest.mark.parametrize("histories", [None, 5, 60, 500])
def test_a_model_that_raises_raises_where_one_worker_would(
    place: Any, cut_short: bool, histories: int | None
) -> None:
    problem = vulcan.Problem(Breaking(5, merges=False, place=place), LINEAR)
    solver = vulcan.ForwardSearch(cut_short=cut_short)
    alone = search(problem, solver, Here(), histories=histories)
    split = search(problem, solver, Threads(2), histories=histories)
    require_same(alone, split)
    if isinstance(alone, Exception):
        assert isinstance(split.__cause__, RuntimeError)


def test_answers_that_nobody_reads_may_be_wrong() -> None:
    # The second outcome is never looked at by one worker, since the first can't be made safe.
    def table(second: Any) -> Table:
        return Table(
            {
                0: {
                    "risky": [Outcome(0.5, 1.0, 1), Outcome(0.5, 1.0, 2)],
                    "safe": [Outcome(1.0, 0.0, 3)],
                },
                1: {"fall": [Outcome(0.5, 0.0, 3), Outcome.failure(0.5)]},
                2: {"go": second},
                3: {"go": [Outcome(1.0, 0.0, 3)]},
            },
            horizon=4,
        )

    problem = vulcan.Problem(table([Outcome(0.3, 0.0, 3)]), vulcan.Constant(0.1))
    alone = search(problem, vulcan.ForwardSearch(), Here())
    assert alone.status is Status.SOLVED
    require_same(alone, search(problem, vulcan.ForwardSearch(), Threads(2)))
    whole = search(problem, vulcan.ForwardSearch(cut_short=False), Threads(2))
    assert isinstance(whole, vulcan.ModelError)


def test_what_is_known_already_is_not_asked_again() -> None:
    problem, solver = vulcan.Problem(Bandit(5), LINEAR), vulcan.ForwardSearch(cut_short=False)
    alone = search(problem, solver, Here())
    asked: list[Any] = []

    class Watched(Bandit):
        def outcomes(self, state: Any, action: str) -> list[Outcome]:
            asked.append((state, action))
            return super().outcomes(state, action)

    watched = vulcan.Problem(Watched(5), LINEAR)
    first = search(watched, solver, Threads(2))
    assert len(asked) == len(set(asked)) == first.statistics.evaluations
    asked.clear()
    options = Options(executor=Threads(2), graph=first.graph)
    again = solver.search(watched, first.graph.reader, Monitor(Limits()), options)
    assert not asked
    again = replace(again, policy=alone.policy)  # they name their models
    require_same(alone, again)


@pytest.mark.parametrize("start", [0, 1, [0.5, 0.5, 0.0]])
def test_arrays_are_searched_by_threads(start: Any) -> None:
    rows = [  # state, action, target, probability, reward
        (0, 0, 1, 0.6, 1.0),
        (0, 0, 2, 0.4, 0.0),
        (0, 1, 0, 0.99, 2.0),
        (0, 1, -1, 0.01, 0.0),
        (1, 0, 0, 0.5, 1.0),
        (1, 0, 2, 0.5, 3.0),
    ]
    model = vulcan.ArrayModel(*map(list, zip(*rows, strict=True)), horizon=6, start=start)
    problem, solver = vulcan.Problem(model, vulcan.Linear(0.01)), vulcan.ForwardSearch()
    require_same(search(problem, solver, Here()), search(problem, solver, Threads(2)))


# Stopping early.


def test_time_limit_returns_the_best_so_far() -> None:
    problem = vulcan.Problem(Bandit(14), LINEAR)
    began = time.perf_counter()
    result = vulcan.solve(problem, vulcan.ForwardSearch(), time_limit=0.5, executor=Threads(2))
    assert time.perf_counter() - began < 5
    assert (result.status, result.stopped_by) == (Status.STOPPED, "time limit")
    assert result.safe
    assert "best policy so far" in result.explanation


def test_ctrl_c_returns_the_best_so_far() -> None:
    problem = vulcan.Problem(Bandit(14), LINEAR)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    result = vulcan.solve(problem, vulcan.ForwardSearch(), workers=2)
    timer.join()
    assert result.stopped_by == "Ctrl-C"
    assert result.safe


def test_threads_end_with_the_search() -> None:
    before = threading.active_count()
    vulcan.solve(
        vulcan.Problem(Bandit(12), LINEAR),
        vulcan.ForwardSearch(),
        histories=100_000,
        executor=Threads(3),
    )
    until = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_several_workers_are_threads_where_answers_are_quick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    near: list[bool] = []
    made = split_search.SplitRun.__init__

    def watch(self: Any, *arguments: Any) -> None:
        near.append(arguments[-1].near)
        made(self, *arguments)

    monkeypatch.setattr(split_search.SplitRun, "__init__", watch)
    vulcan.solve(vulcan.Problem(Bandit(4), LINEAR), vulcan.ForwardSearch(), workers=2)
    assert near == [True]


@dataclass(frozen=True)
class Slow(Bandit):
    """Takes its time."""

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        time.sleep(0.001)
        return super().outcomes(state, action)


def test_slow_models_whose_states_merge_are_asked_by_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(split_search.SplitRun, "__init__", None)  # is not made
    problem = vulcan.Problem(Slow(3), LINEAR)
    alone = vulcan.solve(problem, vulcan.ForwardSearch())
    shared = vulcan.solve(problem, vulcan.ForwardSearch(), workers=2)
    assert shared.policy == alone.policy
    assert shared.statistics.evaluations == alone.statistics.evaluations
