"""Running what is missing: a task at a time in each worker, on all cores or machines.

After Ctrl-C the tasks under way are dropped: what they would find then is not what they are for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reproduction.making import describe_making
from reproduction.part import Part, Record, Task
from reproduction.store import Store
from vulcan.errors import OptionError
from vulcan.parallel.executors import Channel, Executor, WorkerLostError
from vulcan.parallel.pool import WorkerPool, choose_executor
from vulcan.runtime.limits import Interruption

__all__ = ["Advance", "Runner", "choose_runners", "run_missing"]

SHORT: Final = 2.0
"""Seconds of a task that is run before all others."""

KILLED: Final = (
    "its worker was killed each time, perhaps for want of memory: fewer workers take less; what "
    "was run is kept"
)


@dataclass(frozen=True)
class Advance:
    """How far a reproduction is.

    Attributes
    ----------
    part
        Name of the part whose task ended last; empty at first.
    done, total
        Tasks.
    seconds_left
        About how long the others will take.
    """

    part: str
    done: int
    total: int
    seconds_left: float


def run_missing(
    parts: Sequence[Part],
    store: Store,
    quick: bool,
    executor: Executor,
    tell: Callable[[Advance], None],
) -> list[str]:
    """Run every task that has no record yet, until Ctrl-C; what was run is kept.

    Parameters
    ----------
    parts
        What to run.
    store
        Where records are kept.
    quick
        Fewer and smaller runs.
    executor
        Who runs them.
    tell
        Called when a task ends.

    Returns
    -------
    list of str
        Which tasks failed, and why; the others were run all the same.
    """
    waiting = [(part, task) for part in parts for task in store.missing(part, part.tasks(quick))]
    # Short ones at once: others are compared with them. Then the longest, so that no core is idle
    # at the end.
    waiting.sort(key=lambda pair: (pair[0].estimate(pair[1]) > SHORT, -pair[0].estimate(pair[1])))
    outlook = _Outlook(waiting, executor.workers)
    tell(outlook.advance(""))
    failures: list[str] = []
    made = describe_making()
    with Interruption() as interruption, WorkerPool(executor, Runner) as pool:
        calls = {pool.submit("run", part, dict(task)): (part, task) for part, task in waiting}
        while pool.busy and not interruption.requested:
            for call in pool.wait():
                part, task = calls[call]
                if call.error is not None:
                    failures.append(f"{part.name}, {dict(task)}: {_explain(call.error)}")
                    continue
                found, seconds = call.answer
                record = Record(dict(task), found, seconds, made)
                store.add(part, record)
                outlook.add(part, task, record.seconds)
                tell(outlook.advance(part.name))
    return failures


def choose_runners(parallel: int | str | Executor | None) -> Executor:
    """Return the executor of tasks: by default processes, one per core."""
    if parallel is None or isinstance(parallel, int):
        parallel = f"processes:{parallel or os.cpu_count()}"
    chosen = choose_executor(parallel)
    if chosen.in_process and chosen.workers > 1:
        raise OptionError("threads can't time what they run; processes and Ray can")
    return chosen


class Runner:
    """What a worker holds: nothing but the way to run a task."""

    def __init__(self, channel: Channel) -> None:
        pass

    def run(self, part: Part, task: dict[str, Any]) -> tuple[dict[str, Any], float]:
        """Return what a task found, and how long it took."""
        began = time.perf_counter()
        found = part.run(task)
        return found, time.perf_counter() - began


class _Outlook:
    """How long the rest will take, from what the others took and should have taken."""

    def __init__(self, tasks: Sequence[tuple[Part, Task]], workers: int) -> None:
        self._total, self._workers, self._done = len(tasks), workers, 0
        self._left = sum(pair[0].estimate(pair[1]) for pair in tasks)
        self._spent = self._promised = 0.0

    def add(self, part: Part, task: Task, seconds: float) -> None:
        """Count a task as done."""
        estimate = part.estimate(task)
        self._done += 1
        self._spent, self._promised = self._spent + seconds, self._promised + estimate
        self._left -= estimate

    def advance(self, part: str) -> Advance:
        """Return how far it is; `part` is that of the last task."""
        speed = self._spent / self._promised if self._promised > 0 else 1.0
        return Advance(part, self._done, self._total, max(0.0, self._left * speed / self._workers))


def _explain(error: BaseException) -> str:
    """Return why a task failed."""
    return KILLED if isinstance(error, WorkerLostError) else str(error)
