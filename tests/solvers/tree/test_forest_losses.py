"""Workers of a forest that are lost, whatever they were asked to do; and what is left of one."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import vulcan
from tests.helpers.charts import draw_chart
from tests.helpers.workers import Aside
from tests.solvers.tree.test_forest import assert_same
from vulcan.domains import Exploration
from vulcan.executors.base import Maker, Worker, WorkerLostError
from vulcan.solvers.tree import price_run

Call = tuple[str, int]
"""What workers are asked, and how often that was."""


class Mortal(Worker):
    """A worker that dies of some calls."""

    def __init__(self, executor: Deadly, worker: Worker) -> None:
        self._executor, self._worker, self._dead = executor, worker, False

    def call(self, name: str, *arguments: Any) -> Future[Any]:
        count = self._executor.calls
        count[name] += 1
        deaths = self._executor.deaths
        self._dead |= (name, count[name]) in deaths or (name, 0) in deaths
        if not self._dead:
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
    """Some calls kill the workers that get them; call 0 of a name is each of them."""

    deaths: tuple[Call, ...] = ()
    room: bool = True
    calls: Counter[str] = field(default_factory=Counter)

    def hire(self, maker: Maker, *arguments: Any) -> Worker:
        return Mortal(self, super().hire(maker, *arguments))

    def has_room(self) -> bool:
        return self.room


def search(**options: Any) -> vulcan.Result:
    problem = vulcan.Problem(Exploration.narrow(horizon=5), vulcan.parse("0.01 + 0.001*x"))
    return vulcan.solve(problem, vulcan.Vulcan(), samples=1100, seed=3, **options)


@pytest.fixture(autouse=True)
def divide_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price_run, "FEWEST_TO_DIVIDE", 64)


@pytest.fixture(scope="module")
def alone() -> vulcan.Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(price_run, "FEWEST_TO_DIVIDE", 64)
        return search()


@pytest.mark.parametrize("room", [True, False], ids=["replaced", "others take over"])
@pytest.mark.parametrize(
    "deaths",
    [
        [("prepare", 2)],
        [("plant", 5)],
        [("divide", 2)],
        [("move", 2)],
        [("follow", 4)],
        [("evaluate", 2)],
        [("write", 2)],
        [("give", 1), ("adopt", 1)],
        [("sample", 301), ("adopt", 1)],
        [("move", 2), ("adopt", 1)],
    ],
    ids=str,
)
def test_what_workers_are_asked_when_they_are_lost_makes_no_difference(
    deaths: list[Call], room: bool, alone: vulcan.Result
) -> None:
    found = search(executor=Deadly(6, tuple(deaths), room))
    assert found.statistics.lost_workers == len(deaths)
    assert_same(found, alone)


def test_a_search_ends_whose_workers_are_lost_again_and_again() -> None:
    with pytest.raises(WorkerLostError, match="again and again"):
        search(executor=Deadly(2, (("sample", 0),)))


def test_nobody_is_hired_for_a_search_that_is_refused(tmp_path: Path) -> None:
    executor = Deadly(2)
    path = tmp_path / "taken.ckpt"
    path.write_bytes(b"")
    with pytest.raises(vulcan.CheckpointError):
        search(executor=executor, checkpoint=path)
    assert not executor.calls


def test_a_forest_keeps_nothing_for_a_search_that_goes_on() -> None:
    found = search(executor=Aside(2), keep=True)
    assert found.knowledge is None
    assert found.policy is not None
    assert found.policy.knowledge is None


def test_bounds_of_solved_trees_are_equal_to_the_last_bit() -> None:
    problem = vulcan.Problem(draw_chart(10, 4), vulcan.parse("min(0.01*x, 0.05)"))
    one, other = (
        vulcan.solve(problem, vulcan.Vulcan(), samples=300, seed=2, executor=executor)
        for executor in (None, Aside(2))
    )
    assert one.status is vulcan.Status.SOLVED
    assert_same(other, one)
