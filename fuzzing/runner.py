"""Running a campaign: workers on all cores, until time is up or it is interrupted.

Blocks of problems go to idle workers. What is done is in the log (`fuzzing.log`) before the next
block is handed out, so that a campaign that was killed loses seconds and goes on with
`--resume`. A worker that dies, or is silent for too long, is replaced; the problem that it was at
is a finding, and is not tried again.
"""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from fuzzing.log import Log
from fuzzing.worker import BLOCK, READY, REPRODUCERS, WARM_UPS, Order, work

__all__ = ["Progress", "run_campaign"]

SILENCE = 900.0
"""Seconds after which a worker that does not move is given up: a kernel that never ends."""

BLOCKS_PER_WORKER = 400
"""Blocks after which a worker is replaced, so that none grows."""


@dataclass(frozen=True)
class Progress:
    """How far a campaign is."""

    problems: int
    found: int
    seconds: float


@dataclass
class _Worker:
    """A process and what it is at."""

    process: Any
    connection: Any
    place: Any
    beats: Any
    block: int | None = None
    blocks: int = 0
    heard: float = field(default_factory=time.monotonic)
    beat: int = -1


class _Campaign:
    def __init__(self, log: Log, folder: Path, most_problems: int | None, warm_ups: int) -> None:
        self._log, self._folder, self._seed = log, folder, log.seed
        self._warm_ups = warm_ups
        self._context = multiprocessing.get_context("spawn")
        self._most_blocks = None if most_problems is None else -(-most_problems // BLOCK)
        self._written: Counter[str] = Counter()
        self._waiting: list[int] = []
        self._blocks = self._count_blocks()
        self.began: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds since the first worker was ready."""
        return 0.0 if self.began is None else time.monotonic() - self.began

    def _count_blocks(self) -> Iterator[int]:
        block = 0
        while self._most_blocks is None or block < self._most_blocks:
            if block not in self._log.done:
                yield block
            block += 1

    def is_over(self) -> bool:
        """Whether no block is left."""
        block = self.next_block()
        if block is not None:
            self._waiting.append(block)
        return block is None

    def next_block(self) -> int | None:
        """Return the next block not done yet; None if there is none left."""
        return self._waiting.pop() if self._waiting else next(self._blocks, None)

    def hire(self) -> _Worker:
        """Start a worker."""
        ours, theirs = self._context.Pipe()
        place, beats = self._context.RawValue("q", -1), self._context.RawValue("q", 0)
        process = self._context.Process(
            target=work,
            args=(theirs, place, beats, self._seed, self._folder, self._warm_ups),
            daemon=True,
        )
        process.start()
        theirs.close()
        return _Worker(process, ours, place, beats)

    def order(self, worker: _Worker) -> bool:
        """Hand a block to a worker; False if there is none left."""
        worker.block = self.next_block()
        if worker.block is None:
            return False
        first = worker.block * BLOCK
        lost = frozenset(n for n in self._log.lost if first <= n < first + BLOCK)
        known = frozenset(s for s, count in self._written.items() if count >= REPRODUCERS)
        worker.heard = time.monotonic()
        worker.connection.send(Order(worker.block, lost, known, self._log.check))
        return True

    def listen(self, worker: _Worker) -> bool:
        """Take what a worker says; False if it is dead."""
        try:
            answer = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            return False
        if answer == READY:
            self.began = self.began or time.monotonic()
            return True
        self._log.add_block(answer["block"], answer["record"])
        self._written.update(answer["written"])
        worker.block, worker.blocks = None, worker.blocks + 1
        return True

    def is_silent(self, worker: _Worker) -> bool:
        """Whether a worker has not moved for too long."""
        beat, now = worker.beats.value + worker.place.value, time.monotonic()
        if beat != worker.beat:
            worker.beat, worker.heard = beat, now
        return worker.block is not None and now - worker.heard > SILENCE

    def bury(self, worker: _Worker, why: str) -> None:
        """Say what became of a worker, and let others do the rest of its block."""
        worker.process.kill()
        worker.process.join()
        worker.connection.close()
        if worker.block is None:
            if self.began is None:
                raise RuntimeError("a worker died before it could begin; what it said is above")
            return
        self._waiting.append(worker.block)
        number = worker.place.value
        if worker.block * BLOCK <= number < (worker.block + 1) * BLOCK:
            self._log.add_lost(number, f"{why} / problem {number}")


def run_campaign(
    log: Log,
    folder: Path,
    *,
    workers: int,
    seconds: float,
    most_problems: int | None = None,
    warm_ups: int = WARM_UPS,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> bool:
    """Run problems until the time is over; False if Ctrl-C came first.

    Parameters
    ----------
    log
        What was done so far, and what is done from now on.
    folder
        Where reproducers are written.
    workers
        How many processes.
    seconds
        How long.
    most_problems
        How many problems the campaign has at the most, those of earlier runs included.
    warm_ups
        Problems that every worker solves before the clock runs.
    on_progress
        Called about once a second.
    """
    campaign = _Campaign(log, folder, most_problems, warm_ups)
    crew: list[_Worker] = []
    finished = True
    try:
        # One first, so that not every worker compiles the kernels.
        crew += [] if campaign.is_over() else [campaign.hire()]
        busy = list(crew)
        while busy:
            over = campaign.seconds >= seconds
            if campaign.began and not over and len(crew) < workers and not campaign.is_over():
                crew.append(campaign.hire())
                busy.append(crew[-1])
            ready = wait([worker.connection for worker in busy], timeout=1.0)
            for worker in list(busy):
                if worker.connection in ready and campaign.listen(worker):
                    if over:
                        busy.remove(worker)
                        continue
                elif worker.connection in ready or not worker.process.is_alive():
                    campaign.bury(worker, "died")
                elif campaign.is_silent(worker):
                    campaign.bury(worker, "no answer")
                else:
                    continue
                _go_on(campaign, worker, crew, busy)
            on_progress(Progress(log.statistics.problems, log.statistics.found, campaign.seconds))
    except KeyboardInterrupt:
        finished = False
    finally:
        for worker in crew:
            worker.process.kill()
            worker.process.join()
    return finished


def _go_on(campaign: _Campaign, worker: _Worker, crew: list[_Worker], busy: list[_Worker]) -> None:
    """Give a worker more to do, or a new one in its place."""
    dead = not worker.process.is_alive()
    if dead or worker.blocks >= BLOCKS_PER_WORKER:
        if not dead:
            worker.connection.send(None)
            worker.process.join()
        crew.remove(worker)
        busy.remove(worker)
        worker = campaign.hire()
        crew.append(worker)
        busy.append(worker)
    elif not campaign.order(worker):
        busy.remove(worker)
