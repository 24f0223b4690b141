"""Running what is missing: a task at a time in each worker process, on all cores."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from reproduction.making import describe_making
from reproduction.part import Part, Record
from reproduction.store import Store
from vulcan.errors import OptionError
from vulcan.runtime.interruption import Interruption

__all__ = ["Advance", "run_missing"]

LONGEST_WAIT: Final = 0.5
"""Seconds until Ctrl-C is noticed."""

SHORT: Final = 2.0
"""Seconds of a task that is run before all others."""

THREADS: Final = "OMP_NUM_THREADS"

KILLED: Final = (
    "a worker process was killed, perhaps for want of memory: fewer workers take less; what was "
    "run is kept"
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
    workers: int | None,
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
    workers
        How many processes; as many as there are cores by default.
    tell
        Called when a task ends.

    Returns
    -------
    list of str
        Which tasks failed, and why; the others were run all the same.
    """
    waiting = [(part, task) for part in parts for task in store.missing(part, part.tasks(quick))]
    workers = _count_workers(workers)
    estimates = {id(task): part.estimate(task) for part, task in waiting}
    left, spent, promised = sum(estimates.values()), 0.0, 0.0
    tell(Advance("", 0, len(waiting), left / workers))
    failures: list[str] = []
    made = describe_making()
    if not waiting:
        return failures
    # Short ones at once: others are compared with them. Then the longest, so that no core is idle
    # at the end.
    waiting.sort(key=lambda pair: (estimates[id(pair[1])] > SHORT, -estimates[id(pair[1])]))
    with Interruption() as interruption, _start_workers(workers) as pool:
        pending = {pool.submit(_run, part, dict(task)): (part, task) for part, task in waiting}
        done = 0
        while pending and not interruption.requested:
            ended, _ = wait(pending, LONGEST_WAIT, FIRST_COMPLETED)
            for future in ended:
                part, task = pending.pop(future)
                try:
                    record = Record(dict(task), *future.result(), made)
                except BrokenProcessPool:  # so are all that were not done yet
                    failures = list(dict.fromkeys((*failures, KILLED)))
                    continue
                except Exception as error:
                    failures.append(f"{part.name}, {dict(task)}: {error}")
                    continue
                store.add(part, record)
                done += 1
                spent, promised = spent + record.seconds, promised + estimates[id(task)]
                left -= estimates[id(task)]
                speed = spent / promised if promised > 0 else 1.0
                tell(Advance(part.name, done, len(waiting), max(0.0, left * speed / workers)))
    return failures


@contextmanager
def _start_workers(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Start worker processes, and end them at once when they are needed no longer."""
    others = set(multiprocessing.active_children())
    threads = os.environ.get(THREADS)
    os.environ[THREADS] = "1"  # now: a worker loads what reads it before it can be told anything
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _leave_ctrl_c)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        if threads is None:
            del os.environ[THREADS]
        else:
            os.environ[THREADS] = threads


def _count_workers(workers: int | None) -> int:
    if workers is None:
        return os.cpu_count() or 1
    if not isinstance(workers, int) or workers < 1:
        raise OptionError(f"workers must be a whole number of at least 1, not {workers!r}")
    return workers


def _leave_ctrl_c() -> None:
    """Leave Ctrl-C to the one who waits for the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(part: Part, task: dict[str, Any]) -> tuple[dict[str, Any], float]:
    began = time.perf_counter()
    found = part.run(task)
    return found, time.perf_counter() - began
