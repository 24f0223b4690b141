"""Running what is missing: one task a process, as many at a time as there are cores."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Final

from vulcan.errors import OptionError, VulcanError
from vulcan.interruption import Interruption
from vulcan.reproduce.part import Part, Record, Task
from vulcan.reproduce.store import Store

__all__ = ["Advance", "run_missing"]

LONGEST_WAIT: Final = 0.5
"""Seconds until Ctrl-C is noticed."""


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
) -> bool:
    """Run every task that has no record yet.

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
    bool
        False if Ctrl-C ended it before all was run; what was run is kept.
    """
    waiting = [(part, task) for part in parts for task in store.missing(part, part.tasks(quick))]
    workers = _count_workers(workers)
    estimates = {id(task): part.estimate(task) for part, task in waiting}
    left, spent, promised = sum(estimates.values()), 0.0, 0.0
    tell(Advance("", 0, len(waiting), left / workers))
    if not waiting:
        return True
    # The longest first, so that no core is idle at the end.
    waiting.sort(key=lambda pair: -estimates[id(pair[1])])
    context = multiprocessing.get_context("spawn")
    with Interruption() as interruption, ProcessPoolExecutor(workers, context, _begin) as pool:
        pending = {pool.submit(_run, part, dict(task)): (part, task) for part, task in waiting}
        done = 0
        try:
            while pending and not interruption.requested:
                ended, _ = wait(pending, LONGEST_WAIT, FIRST_COMPLETED)
                for future in ended:
                    part, task = pending.pop(future)
                    record = _collect(future, part, task)
                    store.add(part, record)
                    done += 1
                    spent, promised = spent + record.seconds, promised + estimates[id(task)]
                    left -= estimates[id(task)]
                    speed = spent / promised if promised > 0 else 1.0
                    tell(Advance(part.name, done, len(waiting), max(0.0, left * speed / workers)))
        finally:
            if pending:  # Ctrl-C, or a task that failed: nobody waits for the others
                pool.shutdown(wait=False, cancel_futures=True)
                for worker in multiprocessing.active_children():
                    worker.terminate()
    return not pending


def _count_workers(workers: int | None) -> int:
    if workers is None:
        return os.cpu_count() or 1
    if not isinstance(workers, int) or workers < 1:
        raise OptionError(f"workers must be a whole number of at least 1, not {workers!r}")
    return workers


def _begin() -> None:
    """Get ready in a worker: Ctrl-C is left to the one who waits for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"


def _run(part: Part, task: dict[str, Any]) -> tuple[dict[str, Any], float]:
    began = time.perf_counter()
    found = part.run(task)
    return found, time.perf_counter() - began


def _collect(future: Future[tuple[dict[str, Any], float]], part: Part, task: Task) -> Record:
    try:
        found, seconds = future.result()
    except Exception as error:
        raise VulcanError(f"{part.name}, {dict(task)}: {error}") from error
    return Record(dict(task), found, seconds)
