"""Worker pools: tasks for free workers, and lost workers, on every executor."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.helpers.workers import Held, OddError, Raising, Slow, Unreadable
from vulcan.errors import OptionError, VulcanError
from vulcan.parallel import pool as pool_module
from vulcan.parallel.executors import (
    Executor,
    Threads,
    WorkerLostError,
    count_losses,
)
from vulcan.parallel.pool import Task, WorkerPool
from vulcan.parallel.processes import Processes


@pytest.fixture(scope="module", params=["here", "threads", "processes", "ray"])
def executor(request: pytest.FixtureRequest) -> Executor:
    kinds = {"here": Threads(1), "threads": Threads(), "processes": Processes()}
    return kinds.get(request.param) or request.getfixturevalue("ray_executor")


@pytest.fixture(scope="module")
def pool(executor: Executor) -> Iterator[WorkerPool]:
    """Return a pool that all tests share: each also shows that it recovered from the others."""
    with WorkerPool(executor, Held, 10) as pool:
        yield pool


def do(pool: WorkerPool, name: str, *arguments: Any) -> Task:
    task = pool.submit(name, *arguments)
    assert list(pool.run()) == [task]
    return task


def test_answers_come_in_the_order_of_the_questions(pool: WorkerPool) -> None:
    assert pool.map("add", range(20)) == list(range(10, 30))
    assert pool.map("add", []) == []


def test_tasks_may_be_added_while_others_end(pool: WorkerPool) -> None:
    left, answers = [3, 2, 1], []
    pool.submit("add", 4)
    for task in pool.run():
        answers.append(task.answer)
        if left:
            pool.submit("add", left.pop(0))
    assert answers == [14, 13, 12, 11]


def test_an_error_ends_its_own_task_and_arrives_as_what_it_was(pool: WorkerPool) -> None:
    tasks = [pool.submit("say", "word"), pool.submit("add", 1), pool.submit("absent")]
    assert {id(task) for task in pool.run()} == {id(task) for task in tasks}
    assert isinstance(tasks[0].error, KeyError)
    assert tasks[0].error.args == ("word",)
    assert tasks[1].result() == 11
    assert isinstance(tasks[2].error, AttributeError)
    with pytest.raises(KeyError):
        pool.map("say", ["first", "second"])


def test_errors_that_cannot_be_pickled_keep_their_words(pool, executor):
    odd, locked = do(pool, "say", "odd").error, do(pool, "say", "lock").error
    assert "odd here 1" in str(odd)
    assert "with a lock" in str(locked)
    if executor.in_process:
        assert isinstance(odd, OddError)
    else:
        assert isinstance(odd, VulcanError)
        assert "OddError" in str(odd)
        assert any("in say" in note for note in odd.__notes__)  # where it was raised


def test_what_cannot_be_sent_is_an_error_of_its_task_alone(
    pool: WorkerPool, executor: Executor
) -> None:
    if executor.in_process:
        return  # nothing is sent
    for name, arguments in (
        ("add", (threading.Lock(),)),  # can't be pickled here
        ("add", (Unreadable(),)),  # can't be read there
        ("lock", ()),  # can't be pickled there
    ):
        error = do(pool, name, *arguments).error
        assert isinstance(error, OptionError)
        assert "must be picklable" in str(error)
    assert pool.map("add", [1, 2]) == [11, 12]


def test_a_call_of_exit_is_an_error(pool: WorkerPool, executor: Executor) -> None:
    if executor == Threads(1):
        with pytest.raises(SystemExit):
            do(pool, "say", "exit")
        pool.stop()
    else:
        assert isinstance(do(pool, "say", "exit").error, SystemExit)
    assert pool.map("add", [1]) == [11]


def test_stopped_tasks_end_and_a_pool_goes_on_afterwards(pool: WorkerPool) -> None:
    """A request to stop is for what was begun, not for what comes later."""
    for _ in range(2):
        tasks = [pool.submit("search", 30.0) for _ in range(5)]
        notes: list[float] = []

        def note(task: Task, told: float, notes: list[float] = notes) -> None:
            notes.append(told)
            pool.stop()

        ended = list(pool.run(note))
        assert notes
        assert ended
        assert all(task.result() is True for task in ended)
        for task in set(tasks) - set(ended):
            with pytest.raises(VulcanError, match="stopped before it began"):
                task.result()
    assert do(pool, "search", 0.05).answer is False


def test_who_cannot_be_made_says_why(executor: Executor) -> None:
    with WorkerPool(executor, Raising) as pool:
        assert isinstance(do(pool, "add", 1).error, ValueError)
        assert pool.lost == 0


def test_a_pool_can_be_closed_while_it_works_and_used_again(executor: Executor) -> None:
    pool = WorkerPool(executor, Slow, 1)
    if executor != Threads(1):
        tasks = [pool.submit("search", 30.0) for _ in range(3)]
        pool.wait()
        pool.close()
        assert not any(task.ended for task in tasks)
        assert list(pool.run()) == []
    assert pool.map("add", [1, 2, 3]) == [2, 3, 4]
    pool.close()


def test_a_lost_worker_is_replaced_and_its_task_repeated(pool, executor, tmp_path):
    if executor.in_process:
        return  # it would take this process with it
    before, file = pool.lost, str(tmp_path / "died")
    tasks = [pool.submit("die_once", file), *(pool.submit("add", k) for k in range(4))]
    assert len(list(pool.run())) == 5
    assert [task.result() for task in tasks] == ["alive", 10, 11, 12, 13]
    assert pool.lost == before + 1


def test_a_task_that_kills_its_workers_ends_with_that_error() -> None:
    with count_losses() as losses, WorkerPool(Processes(1), Held) as pool:
        task = do(pool, "die")
        assert isinstance(task.error, WorkerLostError)
        assert "exit code -9" in str(task.error)
        assert pool.lost == len(losses) == pool_module.MOST_TRIES


def test_the_first_error_is_that_of_the_first_thing() -> None:
    """Whichever worker is faster or is lost."""
    with WorkerPool(Threads(2), Held) as pool:
        for _ in range(5):
            with pytest.raises(TypeError, match="'int' and 'list'"):
                pool.map("add", [1, [], "text", 2])


def test_a_map_that_is_given_up_kills_its_workers() -> None:
    with WorkerPool(Processes(2), Held) as pool:
        assert pool.map("add", [1, 2]) == [1, 2]  # now they are there
        began = time.monotonic()
        with pytest.raises(TimeoutError) as caught:
            pool.map("nap", [0.0, 600.0], lambda: time.monotonic() - began > 1.0)
        assert caught.value.args == (600.0,)
        assert pool.map("add", [1, 2]) == [1, 2]
