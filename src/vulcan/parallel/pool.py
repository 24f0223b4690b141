"""A pool of workers that hold equal objects, and tasks for whichever worker is free.

Tasks are independent. They start in the order of submission and end in any order. A task that
raises ends with its error and stops no other task. A task whose worker is lost is repeated on
another worker; after `MOST_TRIES` losses it is assumed to kill its workers, and ends with that
error. A lost worker is replaced as soon as there is room for a new one. A worker gets tasks only
once it has started, so that no task waits for a worker that is still waiting for a core.

Completed futures go into a queue, so that the cost of a task to the coordinator does not grow with
the number of workers (`benchmarks/test_coordinator.py`).
"""

from __future__ import annotations

import queue
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Self

from vulcan.errors import OptionError, VulcanError
from vulcan.parallel.executors import (
    Executor,
    Maker,
    Threads,
    Worker,
    WorkerLostError,
    note_loss,
    require_workers,
)
from vulcan.parallel.processes import Processes

MOST_TRIES: Final = 3  # number of workers that a task may lose
LONGEST_WAIT: Final = 0.1  # seconds between two looks at reports, and until Ctrl-C is noticed
BETWEEN_START_CHECKS: Final = 0.01  # seconds between two looks at workers that are starting

OnNote = Callable[["Task", Any], None]


@dataclass(eq=False)
class Task:
    """A call that any worker of a pool can run: done or failed once it has ended."""

    name: str
    arguments: tuple[Any, ...]
    ended: bool = False
    answer: Any = None
    error: BaseException | None = None
    _tries: int = field(default=MOST_TRIES, repr=False)

    def result(self) -> Any:
        """Return the answer, or raise the error."""
        if not self.ended:
            raise VulcanError("this task was stopped before it began, or has not ended")
        if self.error is not None:
            raise self.error
        return self.answer


class WorkerPool:
    """Workers that hold equal objects, made by a maker with some arguments.

    Tasks fail if no worker can start within `start_timeout` seconds. `lost` counts lost workers.
    """

    def __init__(
        self, executor: Executor, maker: Maker, *arguments: Any, start_timeout: float = 60.0
    ) -> None:
        self._executor, self._made = executor, (maker, *arguments)
        self._start_timeout = start_timeout
        self._waiting: deque[Task] = deque()
        self.lost = 0
        self._reset()

    def _reset(self) -> None:
        """Begin without workers."""
        self._idle: list[Worker] = []  # some of which may still be starting
        self._busy: dict[Worker, Task] = {}
        self._completed: queue.SimpleQueue[tuple[Worker, Future[Any]]] = queue.SimpleQueue()
        self._notes_read = 0.0  # when notes were read
        self._full = 0.0  # when there was no room for another worker
        self._idle_since: float | None = None  # when the last worker was gone while tasks wait

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def submit(self, name: str, *arguments: Any) -> Task:
        """Add a task and return it."""
        task = Task(name, arguments)
        self._waiting.append(task)
        return task

    def wait(self, on_note: OnNote | None = None) -> list[Task]:
        """Return the tasks that ended within a short time, possibly none.

        `on_note` is called with tasks and the last reports of their workers.
        """
        now = time.monotonic()
        self._distribute(on_note, now)
        if not self._busy:
            return self._fail_waiting(now) if self._waiting else []
        self._idle_since = None
        ended = [self._finish(worker, future) for worker, future in self._collect()]
        now = time.monotonic()
        if now - self._notes_read >= LONGEST_WAIT and on_note is not None:
            self._notes_read = now
            for worker, task in list(self._busy.items()):
                if (note := worker.note) is not None:
                    on_note(task, note)
        return [task for task in ended if task is not None]

    @property
    def busy(self) -> bool:
        """Whether there are tasks that have not ended."""
        return bool(self._waiting or self._busy)

    def run(self, on_note: OnNote | None = None) -> Iterator[Task]:
        """Yield tasks as they end, until there are none; more may be added meanwhile."""
        while self.busy:
            yield from self.wait(on_note)

    def map(
        self, name: str, values: Sequence[Any], timed_out: Callable[[], bool] = lambda: False
    ) -> list[Any]:
        """Call a method once for each value, and return the answers in order.

        The error of the first failing value is raised, whichever failed first in time; values
        behind it may be skipped. Once `timed_out` returns True, all workers are ended, and tasks
        that have not ended fail with a `TimeoutError` of their arguments.
        """
        tasks = [self.submit(name, value) for value in values]
        while self.busy:
            for task in self.wait():
                if task.error is not None:
                    before = set(tasks[: tasks.index(task)])
                    self._waiting = deque(other for other in self._waiting if other in before)
            if self.busy and timed_out():
                self.close()
                for task in tasks:
                    if not task.ended:
                        task.ended, task.error = True, TimeoutError(*task.arguments)
        return [task.result() for task in tasks]

    def stop(self) -> None:
        """Ask running tasks to end early, and drop those that have not begun.

        Tasks that are added afterwards run as usual.
        """
        self._waiting.clear()
        for worker, task in self._busy.items():
            task._tries = 1
            worker.stop()

    def close(self) -> None:
        """End all workers at once; tasks that have not ended never will."""
        for worker in [*self._idle, *self._busy]:
            worker.close()
        self._waiting.clear()
        self._reset()

    def _distribute(self, on_note: OnNote | None, now: float) -> None:
        """Give tasks to idle workers."""
        while self._waiting and (worker := self._find_worker(now)) is not None:
            task = self._waiting.popleft()
            self._idle.remove(worker)
            worker.on_note = None if on_note is None else partial(on_note, task)
            self._busy[worker] = task
            try:
                future = worker.call(task.name, *task.arguments)
            except BaseException:  # such as Ctrl-C, where the call is run at once
                self._idle.append(worker)
                self._waiting.appendleft(self._busy.pop(worker))
                raise
            future.add_done_callback(partial(_put, self._completed, worker))
            if self._executor.in_process and self._executor.workers == 1:
                return  # the task is done already, and others may depend on it

    def _find_worker(self, now: float) -> Worker | None:
        """Start a worker for each waiting task, as far as there is room; return an idle one."""
        while (
            len(self._idle) < len(self._waiting)
            and len(self._idle) + len(self._busy) < self._executor.workers
            and now - self._full >= LONGEST_WAIT
        ):
            if self._executor.has_room():
                self._idle.append(self._executor.start_worker(*self._made))
            else:
                self._full = now
        return next((worker for worker in self._idle if worker.started), None)

    def _collect(self) -> list[tuple[Worker, Future[Any]]]:
        """Return completed futures with their workers, as soon as there is one."""
        try:
            longest = BETWEEN_START_CHECKS if self._idle and self._waiting else LONGEST_WAIT
            completed = [self._completed.get(timeout=longest)]
        except queue.Empty:
            return []
        while not self._completed.empty():  # this thread is its only reader
            completed.append(self._completed.get_nowait())
        return completed

    def _finish(self, worker: Worker, future: Future[Any]) -> Task | None:
        """Return the task of a completed future; None if it must be repeated."""
        task = self._busy.pop(worker)
        error = future.exception()
        if isinstance(error, WorkerLostError):
            worker.close()
            self.lost += 1
            note_loss(error)
            task._tries -= 1
            if task._tries > 0:
                self._waiting.appendleft(task)
                return None
        else:
            self._idle.append(worker)
        task.ended, task.error = True, error
        task.answer = None if error else future.result()
        return task

    def _fail_waiting(self, now: float) -> list[Task]:
        """Return all waiting tasks as failed, if no worker could start for a long time."""
        self._idle_since = now if self._idle_since is None else self._idle_since
        if now - self._idle_since < self._start_timeout:
            time.sleep(BETWEEN_START_CHECKS)
            return []
        tasks = list(self._waiting)
        self.close()
        message = f"no worker could start within {self._start_timeout:g} s: {self._executor!r}"
        for task in tasks:
            task.ended, task.error = True, WorkerLostError(message)
        return tasks


def _put(
    completed: queue.SimpleQueue[tuple[Worker, Future[Any]]], worker: Worker, future: Future[Any]
) -> None:
    """Queue a completed future; any thread may call this."""
    completed.put((worker, future))


PARALLEL: Final = re.compile(r"(here|threads|processes|ray)(?::([0-9]+))?(?:@(\S+))?")
"""As text: an executor, its number of workers, and the address of a cluster."""


def choose_executor(parallel: int | str | Executor | None, several: str = "processes") -> Executor:
    """Return the executor for a user's `parallel=`, as described in `vulcan.solve`.

    `several` is the name of the executor for more than one worker.
    """
    if isinstance(parallel, Executor):
        return parallel
    if parallel is None or isinstance(parallel, int):
        if parallel is not None:
            require_workers(parallel)
        name, workers, address = ("here" if parallel in (None, 1) else several), parallel, None
    else:
        found = PARALLEL.fullmatch(parallel) if isinstance(parallel, str) else None
        if found is None or (found[3] is not None and found[1] != "ray"):
            raise OptionError(
                "parallel must be a number of workers, an executor such as Processes(4), or text "
                f'such as "threads", "processes:4", "ray:8" or "ray@auto", not {parallel!r}'
            )
        name, address = found[1], found[3]
        workers = None if found[2] is None else int(found[2])
    given: dict[str, Any] = {} if workers is None else {"workers": workers}
    if name == "ray":
        from vulcan.parallel.ray_cluster import Ray

        return Ray(address, **given)
    if name == "here":
        if workers not in (None, 1):
            raise OptionError(f"'here' has one worker, not {workers!r}")
        return Threads(1)
    return Threads(**given) if name == "threads" else Processes(**given)
