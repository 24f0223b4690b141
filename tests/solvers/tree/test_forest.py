"""A forest: the search of one tree, wherever its parts are, and whatever becomes of its workers."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import vulcan
from tests.helpers.workers import Aside
from vulcan.domains import Exploration
from vulcan.executors.here import Threads
from vulcan.runtime import monitor, patience
from vulcan.solvers.tree import groves, price_run
from vulcan.solvers.tree.forest import Forest
from vulcan.solvers.tree.groves import Groves

SAMPLES = 3000


def make_problem() -> vulcan.Problem:
    return vulcan.Problem(Exploration.narrow(horizon=5), vulcan.parse("0.01 + 0.001*x"))


def search(**options: Any) -> vulcan.Result:
    return vulcan.solve(make_problem(), vulcan.Vulcan(), samples=SAMPLES, seed=3, **options)


@pytest.fixture(autouse=True)
def divide_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price_run, "FEWEST_TO_DIVIDE", 256)


@pytest.fixture(scope="module")
def alone() -> vulcan.Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(price_run, "FEWEST_TO_DIVIDE", 256)
        return search()


def assert_same(found: vulcan.Result, alone: vulcan.Result) -> None:
    assert found.policy == alone.policy
    assert found.certificate == alone.certificate
    assert found.upper_bound == alone.upper_bound
    assert found.statistics.samples == alone.statistics.samples


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_a_forest_finds_what_one_tree_finds(workers: int, alone: vulcan.Result) -> None:
    assert_same(search(executor=Aside(workers)), alone)


def test_threads_find_it_too(alone: vulcan.Result) -> None:
    assert_same(search(executor=Threads(3)), alone)


def test_a_forest_is_searched_by_processes(alone: vulcan.Result) -> None:
    assert_same(search(executor="processes", workers=2), alone)


def test_a_forest_is_searched_on_ray(ray_executor: Any, alone: vulcan.Result) -> None:
    assert_same(search(executor=ray_executor), alone)


def test_parts_are_divided_and_sent_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    sent, tops = [], []
    send, close = Groves._send, Forest.close

    def send_and_note(self: Groves, number: int, worker: Any) -> None:
        sent.append(number)
        send(self, number, worker)

    def note_and_close(self: Forest) -> None:
        tops.append(len(self.tops))
        close(self)

    monkeypatch.setattr(Groves, "_send", send_and_note)
    monkeypatch.setattr(Forest, "close", note_and_close)
    search(executor=Aside(4))
    assert tops[0] > 3
    assert sent


@pytest.mark.parametrize("moment", [300, 1500, 2900])
def test_a_worker_that_is_killed_is_made_up_for(
    moment: int, monkeypatch: pytest.MonkeyPatch, alone: vulcan.Result
) -> None:
    killed = []
    sample = Forest._sample_parts

    def sample_and_kill(self: Forest, work: Any, most: float) -> None:
        if self.samples >= moment and not killed:
            killed.append(self._groves._workers[0]._process.pid)
            os.kill(killed[0], signal.SIGKILL)
        sample(self, work, most)

    monkeypatch.setattr(Forest, "_sample_parts", sample_and_kill)
    found = search(executor="processes", workers=2)
    assert killed
    assert found.statistics.lost_workers == 1
    assert_same(found, alone)


def test_a_worker_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = []
    sample = Forest._sample_parts

    def sample_and_stop(self: Forest, work: Any, most: float) -> None:
        if self.samples >= 1500 and not stopped:
            stopped.append(self._groves._workers[0]._process.pid)
            os.kill(stopped[0], signal.SIGSTOP)
            monitor._current.get()._began -= 1000  # and the time is up
        sample(self, work, most)

    monkeypatch.setattr(Forest, "_sample_parts", sample_and_stop)
    monkeypatch.setattr(patience, "LEAST_SECONDS", 0.2)
    monkeypatch.setattr(patience, "SHARE_OF_LIMIT", 0.0)
    monkeypatch.setattr(groves, "BETWEEN_LOOKS", 0.1)
    found = search(executor="processes", workers=2, time_limit=1000)
    assert found.stopped_by == "error in the model"
    assert "a worker gave no answer in" in str(found.error)
    assert found.safe
    with pytest.raises(ProcessLookupError):
        os.kill(stopped[0], 0)


@pytest.mark.parametrize("method", ["_sample_parts", "_move_values", "follow", "_open_tops"])
def test_those_who_are_left_take_over_where_there_is_no_place_for_another_one(
    method: str, monkeypatch: pytest.MonkeyPatch, alone: vulcan.Result
) -> None:
    from vulcan.executors.processes import Processes

    monkeypatch.setattr(Processes, "has_room", lambda self: False)
    left = []
    plain = getattr(Forest, method)

    def kill_and_go_on(self: Forest, *arguments: Any) -> Any:
        if self.samples >= 900 and not left:
            os.kill(self._groves._workers[1]._process.pid, signal.SIGKILL)
            left.append(self)
        return plain(self, *arguments)

    monkeypatch.setattr(Forest, method, kill_and_go_on)
    found = search(executor="processes", workers=2)
    assert left[0].size_of_crew == 1
    assert_same(found, alone)


def test_a_forest_resumes_where_it_was(tmp_path: Path, alone: vulcan.Result) -> None:
    path = tmp_path / "forest.ckpt"
    first = vulcan.solve(
        make_problem(), vulcan.Vulcan(), samples=1200, seed=3, executor=Aside(2), checkpoint=path
    )
    assert first.statistics.samples == 1200
    assert_same(search(executor=Aside(3), checkpoint=path, resume=True), alone)
    with pytest.raises(vulcan.CheckpointError, match="in a forest there, prices here"):
        search(checkpoint=path, resume=True)


def test_a_forest_keeps_within_its_memory(alone: vulcan.Result) -> None:
    found = vulcan.solve(
        make_problem(), vulcan.Vulcan(), memory=6_000_000, seed=3, executor=Aside(2), time_limit=60
    )
    assert found.stopped_by == "limit of memory"
    assert found.safe
