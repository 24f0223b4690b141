"""Several workers who hold the same, and pieces of work for whoever is free.

Pieces are independent of each other. They are handed out in the order in which they came, and end
in any order. A piece that raises ends with its error, and stops no others. A piece whose worker is
lost goes to another one; after `MOST_TRIES` losses it is taken to be what kills its workers, and
ends with that error. A lost worker is replaced as soon as there is room for a new one, and the
others go on meanwhile; what was lost is counted. Who was hired gets pieces once he has found a
place to work, so that none waits with him.

Whoever ends a piece puts it into a queue, so that the work of the coordinator, for one piece, does
not grow with the number of workers (`benchmarks/test_coordinator.py`).
"""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from vulcan.errors import VulcanError
from vulcan.executors.base import Executor, LateError, Maker, Worker, WorkerLostError
from vulcan.executors.losses import current_losses

__all__ = ["Crew", "Piece"]

MOST_TRIES: Final = 3
"""How many workers a piece may lose."""

LONGEST_WAIT: Final = 0.1
"""Seconds until notes are looked at, and Ctrl-C is noticed."""

LONGEST_VACANCY: Final = 60.0
"""Seconds that pieces wait where nobody finds a place to work."""

BETWEEN_WELCOMES: Final = 0.01
"""Seconds until it is looked again who has found one."""

OnNote = Callable[["Piece", Any], None]


@dataclass(eq=False)
class Piece:
    """A call that any worker can answer.

    Attributes
    ----------
    name, arguments
        What to call.
    ended
        Whether it was done, or can't be.
    answer, error
        What came of it; the error is None if all went well.
    """

    name: str
    arguments: tuple[Any, ...]
    ended: bool = False
    answer: Any = None
    error: BaseException | None = None
    _tries: int = field(default=MOST_TRIES, repr=False)

    def result(self) -> Any:
        """Return the answer, or raise the error."""
        if not self.ended:
            raise VulcanError("this piece of work was stopped before it began, or has not ended")
        if self.error is not None:
            raise self.error
        return self.answer


class Crew:
    """Workers who hold the same.

    Parameters
    ----------
    executor
        Where they work.
    maker, arguments
        What each of them makes and holds.
    most
        How many there are needed; all that the executor has by default.
    early
        Whether all of them are hired with the first piece, since more will come: those who have to
        start first are there by then. By default one is hired for each piece that waits.

    Attributes
    ----------
    lost
        How many workers were lost so far.
    """

    def __init__(
        self,
        executor: Executor,
        maker: Maker,
        *arguments: Any,
        most: int | None = None,
        early: bool = False,
    ) -> None:
        self._executor, self._made, self._early = executor, (maker, *arguments), early
        self._size = executor.workers if most is None else max(1, min(most, executor.workers))
        self._waiting: deque[Piece] = deque()
        self._losses = current_losses()
        self.lost = 0
        self._forget()

    def _forget(self) -> None:
        """Begin without workers."""
        self._free: list[Worker] = []
        self._busy: dict[Worker, Piece] = {}
        self._starting: list[Worker] = []
        self._ended: queue.SimpleQueue[tuple[Worker, Future[Any]]] = queue.SimpleQueue()
        self._looked = self._welcomed = 0.0  # when notes were, and who is starting
        self._full = 0.0  # when there was no room for another worker
        self._vacant: float | None = None  # since when nobody works although pieces wait

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def submit(self, name: str, *arguments: Any) -> Piece:
        """Add a piece of work, and return it."""
        piece = Piece(name, arguments)
        self._waiting.append(piece)
        return piece

    def wait(self, on_note: OnNote | None = None) -> list[Piece]:
        """Return the pieces that ended, after a while; none as long as none did.

        Parameters
        ----------
        on_note
            Called with what workers told about their pieces.
        """
        now = time.monotonic()
        self._welcome(now)
        self._hand_out(on_note, now)
        if not self._busy:
            return self._give_up(now) if self._waiting else []
        self._vacant = None
        settled = [self._settle(worker, future) for worker, future in self._collect()]
        now = time.monotonic()
        if now - self._looked >= LONGEST_WAIT:
            self._looked = now
            self._look(on_note)
        return [piece for piece in settled if piece is not None]

    @property
    def busy(self) -> bool:
        """Whether there are pieces that have not ended."""
        return bool(self._waiting or self._busy)

    def run(self, on_note: OnNote | None = None) -> Iterator[Piece]:
        """Yield pieces as they end, until there are none; more may be added meanwhile."""
        while self.busy:
            yield from self.wait(on_note)

    def map(
        self, name: str, things: Sequence[Any], gives_up: Callable[[], bool] = lambda: False
    ) -> list[Any]:
        """Return the answers about several things in their order, or raise the first error.

        It is the first in that order, whoever was faster; things behind it may be left out.

        Parameters
        ----------
        name, things
            What to call, once with each thing.
        gives_up
            Asked now and then whether it takes too long. Then all workers are let go, whatever they
            do, and what has not ended has a `LateError`.
        """
        pieces = [self.submit(name, thing) for thing in things]
        while self.busy:
            for piece in self.wait():
                if piece.error is not None:
                    before = set(pieces[: pieces.index(piece)])
                    self._waiting = deque(other for other in self._waiting if other in before)
            if self.busy and gives_up():
                self.close()
                for piece in pieces:
                    if not piece.ended:
                        piece.ended, piece.error = True, LateError(*piece.arguments)
        return [piece.result() for piece in pieces]

    def stop(self) -> None:
        """Ask for an early end: pieces under way come to one, others don't begin.

        Pieces that are added afterwards are done as ever.
        """
        self._waiting.clear()
        for worker, piece in self._busy.items():
            piece._tries = 1
            worker.stop()

    def close(self) -> None:
        """Let all workers go, whatever they do; pieces that have not ended never will."""
        for worker in [*self._free, *self._busy, *self._starting]:
            worker.close()
        self._waiting.clear()
        self._forget()

    def _welcome(self, now: float) -> None:
        """Let those work who have found a place."""
        if self._starting and now - self._welcomed >= BETWEEN_WELCOMES:
            self._welcomed = now
            started = [worker for worker in self._starting if worker.started]
            if started:
                self._free += started
                self._starting = [w for w in self._starting if w not in set(started)]

    def _hand_out(self, on_note: OnNote | None, now: float) -> None:
        """Give pieces to free workers."""
        while self._waiting and (self._free or self._hire(now)):
            worker, piece = self._free.pop(), self._waiting.popleft()
            worker.on_note = None if on_note is None else partial(on_note, piece)
            self._busy[worker] = piece
            try:
                future = worker.call(piece.name, *piece.arguments)
            except BaseException:  # such as Ctrl-C, where the work is done at once
                self._free.append(worker)
                self._waiting.appendleft(self._busy.pop(worker))
                raise
            future.add_done_callback(partial(_note_end, self._ended, worker))
            if self._executor.near and self._executor.workers == 1:
                return  # it is done already, and others may depend on it

    def _hire(self, now: float) -> bool:
        """Return whether a new worker is free; one for each piece that waits may be starting."""
        while (
            (self._early or len(self._free) + len(self._starting) < len(self._waiting))
            and len(self._busy) + len(self._free) + len(self._starting) < self._size
            and now - self._full >= LONGEST_WAIT
        ):
            if not self._executor.has_room():
                self._full = now
                break
            worker = self._executor.hire(*self._made)
            (self._free if worker.started else self._starting).append(worker)
        return bool(self._free)

    def _collect(self) -> list[tuple[Worker, Future[Any]]]:
        """Return who ended something, as soon as anybody did."""
        try:
            longest = BETWEEN_WELCOMES if self._starting and self._waiting else LONGEST_WAIT
            ended = [self._ended.get(timeout=longest)]
        except queue.Empty:
            return []
        while not self._ended.empty():  # nobody else takes from it
            ended.append(self._ended.get_nowait())
        return ended

    def _look(self, on_note: OnNote | None) -> None:
        """Pass on what workers tell."""
        if on_note is not None:
            for worker, piece in list(self._busy.items()):
                if (note := worker.note) is not None:
                    on_note(piece, note)

    def _settle(self, worker: Worker, future: Future[Any]) -> Piece | None:
        """Return a piece whose future is done; None if another worker has to do it."""
        piece = self._busy.pop(worker)
        error = future.exception()
        if isinstance(error, WorkerLostError):
            worker.close()
            self.lost += 1
            self._losses.count += 1
            piece._tries -= 1
            if piece._tries > 0:
                self._waiting.appendleft(piece)
                return None
        else:
            self._free.append(worker)
        piece.ended, piece.error = True, error
        piece.answer = None if error else future.result()
        return piece

    def _give_up(self, now: float) -> list[Piece]:
        """Return the pieces that nobody can do, if nobody could for long."""
        self._vacant = now if self._vacant is None else self._vacant
        if now - self._vacant < LONGEST_VACANCY:
            time.sleep(BETWEEN_WELCOMES)
            return []
        pieces = list(self._waiting)
        self.close()
        message = f"nobody found a place to work in {LONGEST_VACANCY:g} s: {self._executor!r}"
        for piece in pieces:
            piece.ended, piece.error = True, WorkerLostError(message)
        return pieces


def _note_end(
    ended: queue.SimpleQueue[tuple[Worker, Future[Any]]], worker: Worker, future: Future[Any]
) -> None:
    """Say who ended something; called by whoever completes the future."""
    ended.put((worker, future))
