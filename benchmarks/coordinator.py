"""A coordinator and workers that only wait: how many can it keep busy?

Workers are not processes but entries of a heap. One thread completes their futures when their time
has come, and everything else is the real thing: `WorkerPool` hands a task to a worker, learns that
it ended, and hands out the next one. A worker is idle from the time its task was due until
it has the next one, so that all the work of the coordinator counts, and so does whatever else keeps
its processor busy, the thread of the heap included.
"""

from __future__ import annotations

import heapq
import itertools
import sys
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from vulcan.parallel.executors import Channel, Executor, Maker, Worker
from vulcan.parallel.pool import WorkerPool
from vulcan.parallel.processes import Processes

TASK_SECONDS = 0.1
"""Duration of a task."""

TICK = 0.001
"""Seconds between two looks at the heap."""


class Clock(threading.Thread):
    """Completes futures when their time has come."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._heap: list[tuple[float, int, Future[Any]]] = []
        self._order = itertools.count()
        self._ended = False

    def add(self, due: float, future: Future[Any]) -> None:
        heapq.heappush(self._heap, (due, next(self._order), future))

    def run(self) -> None:
        while not self._ended:
            now = time.perf_counter()
            while self._heap and self._heap[0][0] <= now:
                heapq.heappop(self._heap)[2].set_result(None)
            time.sleep(TICK)

    def end(self) -> None:
        self._ended = True
        self.join()


class WaitingWorker(Worker):
    """Waits, and notes how long it was idle before."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._due = clock, 0.0
        self.tasks, self.idle = 0, 0.0

    def call(self, name: str, *arguments: Any) -> Future[Any]:
        now, future = time.perf_counter(), Future[Any]()
        if self._due:
            self.tasks += 1
            self.idle += now - self._due
        self._due = now + TASK_SECONDS
        self._clock.add(self._due, future)
        return future

    def stop(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


@dataclass
class Waiting(Executor):
    """As many workers as one likes, none of whom takes a processor."""

    workers: int
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.started: list[WaitingWorker] = []
        self.clock.start()

    def start_worker(self, maker: Maker, *arguments: Any) -> Worker:
        self.started.append(WaitingWorker(self.clock))
        return self.started[-1]


def measure_busy(workers: int, rounds: int = 20) -> tuple[float, float]:
    """Return the share of the time that workers are busy, and microseconds per task.

    The microseconds are the processor's, for all of this process.
    """
    executor = Waiting(workers)
    with WorkerPool(executor, object) as pool:
        began = time.process_time()
        for _ in range(rounds * workers):
            pool.submit("wait")
        for _ in pool.run():
            pass
        spent = time.process_time() - began
    executor.clock.end()
    tasks = sum(worker.tasks for worker in executor.started)
    idle = sum(worker.idle for worker in executor.started)
    return tasks * TASK_SECONDS / (tasks * TASK_SECONDS + idle), 1e6 * spent / (rounds * workers)


class Nothing:
    """What a worker holds that does nothing."""

    def __init__(self, channel: Channel) -> None:
        """Hold nothing."""

    def do(self, number: int) -> int:
        return number


def measure_cost(executor: Executor, tasks: int = 3000) -> float:
    """Return the microseconds of this process's processor time that a task costs."""
    with WorkerPool(executor, Nothing) as pool:
        pool.map("do", range(100))
        began = time.process_time()
        pool.map("do", range(tasks))
        return 1e6 * (time.process_time() - began) / tasks


def main() -> None:
    """Print how many workers a coordinator keeps busy, and what a task costs it, three times."""
    for workers in (10, 100, 300, 1000, 1500, 2000, 3000):
        runs = [measure_busy(workers, 10 if workers > 1000 else 20) for _ in range(3)]
        shown = ", ".join(f"{100 * share:.1f} % busy at {cost:.0f} µs" for share, cost in runs)
        print(f"{workers:>6,} workers of 100 ms: {shown}", flush=True)
    executors: list[Executor] = [Processes(1)]
    if "--ray" in sys.argv:
        from vulcan.parallel.ray_cluster import Ray

        executors.append(Ray(workers=1))
    for executor in executors:
        costs = ", ".join(f"{measure_cost(executor):.0f} µs" for _ in range(3))
        print(f"{type(executor).__name__}: a task costs {costs}")


if __name__ == "__main__":
    main()
