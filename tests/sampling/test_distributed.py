"""One tree that several workers search: the same result, unless workers are lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import vulcan
from tests.helpers.charts import draw_chart
from tests.helpers.plain_models import PlainBandit
from tests.helpers.workers import Aside
from vulcan import Outcome
from vulcan.domains import Exploration
from vulcan.parallel.executors import Maker, Threads, Worker, WorkerLostError
from vulcan.sampling import price_search as price_run

PROBLEM = vulcan.Problem(Exploration(horizon=5), vulcan.parse("0.01 + 0.001*x"))


def search(problem: vulcan.Problem = PROBLEM, **options: Any) -> vulcan.Result:
    return vulcan.solve(problem, vulcan.Vulcan(), **{"samples": 1100, "seed": 3, **options})


@pytest.fixture(autouse=True)
def split_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price_run, "FEWEST_TO_SPLIT", 64)


@pytest.fixture(scope="module")
def alone() -> vulcan.Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(price_run, "FEWEST_TO_SPLIT", 64)
        return search()


def assert_same(found: vulcan.Result, alone: vulcan.Result) -> None:
    assert found.policy == alone.policy
    assert found.certificate == alone.certificate
    assert found.upper_bound == alone.upper_bound
    assert found.statistics.samples == alone.statistics.samples


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_any_number_of_workers_finds_the_same(workers: int, alone: vulcan.Result) -> None:
    assert_same(search(parallel=Aside(workers)), alone)


def test_threads_and_processes_find_the_same(alone: vulcan.Result) -> None:
    assert_same(search(parallel=Threads(3)), alone)
    assert_same(search(parallel="processes:2"), alone)


def test_a_cluster_finds_the_same(ray_executor: Any, alone: vulcan.Result) -> None:
    assert_same(search(parallel=ray_executor), alone)


class Mortal(Worker):
    """A worker that is lost at some calls of its executor."""

    def __init__(self, executor: Deadly, worker: Worker) -> None:
        self._executor, self._worker, self._lost = executor, worker, False

    def call(self, name: str, *arguments: Any) -> Future[Any]:
        self._lost |= next(self._executor.calls) in self._executor.deaths
        if not self._lost:
            return self._worker.call(name, *arguments)
        future: Future[Any] = Future()
        future.set_exception(WorkerLostError("it is gone"))
        return future

    def stop(self) -> None:
        self._worker.stop()

    def close(self) -> None:
        self._worker.close()


@dataclass(frozen=True)
class Deadly(Aside):
    """Loses a worker at calls with some numbers."""

    deaths: range = range(0)
    room: bool = True
    calls: Iterator[int] = field(default_factory=count)

    def start_worker(self, maker: Maker, *arguments: Any) -> Worker:
        return Mortal(self, super().start_worker(maker, *arguments))

    def has_room(self) -> bool:
        return self.room


@pytest.mark.parametrize("room", [True, False], ids=["replaced", "others take over"])
@pytest.mark.parametrize("moment", [2, 7, 15, 40, 77, 131, 250, 333])
def test_what_lost_workers_had_is_searched_anew(moment, room, alone):
    found = search(parallel=Deadly(6, range(moment, moment + 2), room))
    assert 1 <= found.statistics.lost_workers <= 2
    assert found.statistics.samples == alone.statistics.samples
    assert found.safe
    assert found.certificate.reward >= 0.8 * alone.certificate.reward


def test_a_search_ends_whose_workers_are_lost_again_and_again() -> None:
    with pytest.raises(WorkerLostError, match="again and again"):
        search(parallel=Deadly(2, range(20, 1 << 40)))


@dataclass(frozen=True)
class Killing(PlainBandit):
    """Kills one process that asks it, unless it is the first."""

    trace: str = ""
    first: int = 0

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        if len(state) == 3 and os.getpid() != self.first:
            with suppress(FileExistsError):  # two processes may get here at once
                Path(self.trace).touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        return super().outcomes(state, action)


def test_a_killed_process_is_replaced(tmp_path: Path) -> None:
    model = Killing(6, merges=False, trace=str(tmp_path / "died"), first=os.getpid())
    problem = vulcan.Problem(model, vulcan.Linear(0.002))
    found = search(problem, parallel="processes:2")
    assert Path(model.trace).exists()
    assert found.statistics.lost_workers == 1
    assert found.safe


def test_no_worker_starts_for_a_search_that_is_refused(tmp_path: Path) -> None:
    executor, path = Deadly(2), tmp_path / "taken.ckpt"
    path.write_bytes(b"")
    with pytest.raises(vulcan.errors.CheckpointError):
        search(parallel=executor, checkpoint=path)
    assert next(executor.calls) == 0


def test_bounds_of_solved_trees_are_equal_to_the_last_bit() -> None:
    problem = vulcan.Problem(draw_chart(10, 4), vulcan.parse("min(0.01*x, 0.05)"))
    one, other = (search(problem, samples=300, seed=2, parallel=e) for e in (None, Aside(2)))
    assert one.status is vulcan.planning.Status.SOLVED
    assert_same(other, one)


def test_a_search_with_a_checkpoint_stays_in_one_process(tmp_path, alone, caplog):
    executor = Deadly(2)
    assert_same(search(parallel=executor, checkpoint=tmp_path / "search"), alone)
    assert next(executor.calls) == 0
    assert "no checkpoints" in caplog.text


def test_memory_is_kept() -> None:
    limits = {"samples": None, "limits": vulcan.Limits(memory=6_000_000), "time_limit": 60}
    found = search(parallel=Aside(2), **limits)
    assert found.stopped_by == "limit of memory"
    assert found.safe
