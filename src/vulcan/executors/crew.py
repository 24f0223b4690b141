"""Several workers who hold the same, and pieces of work for whoever is free.

Pieces are independent of each other. They are handed out in the order in which they came, and end
in any order. A piece that raises ends with its error, and stops no others. A piece whose worker is
lost goes to another one; after `MOST_TRIES` losses it is taken to be what kills its workers, and
ends with that error. A lost worker is replaced if there is a place for a new one, and else the
others go on without it; what was lost is counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from vulcan.executors.base import Executor, Maker, Worker, WorkerLostError

__all__ = ["Crew", "Piece"]

MOST_TRIES: Final = 3
"""How many workers a piece may lose."""

LONGEST_WAIT: Final = 0.1
"""Seconds until notes are looked at, and Ctrl-C is noticed."""


@dataclass(eq=False)
class Piece:
    """A call that any worker can answer.

    Attributes
    ----------
    name, arguments
        What to call.
    answer, error
        What came of it; the error is None if all went well.
    """

    name: str
    arguments: tuple[Any, ...]
    answer: Any = None
    error: BaseException | None = None
    _losses: int = field(default=0, repr=False)

    def result(self) -> Any:
        """Return the answer, or raise the error."""
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

    Attributes
    ----------
    lost
        How many workers were lost so far.
    """

    def __init__(
        self, executor: Executor, maker: Maker, *arguments: Any, most: int | None = None
    ) -> None:
        self._executor, self._made = executor, (maker, *arguments)
        self._size = executor.workers if most is None else max(1, min(most, executor.workers))
        self._hired = 0
        self._free: list[Worker] = []
        self._busy: dict[Future[Any], tuple[Worker, Piece]] = {}
        self._waiting: deque[Piece] = deque()
        self._stopped = False
        self.lost = 0

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

    def wait(self, on_note: Callable[[Piece, Any], None] | None = None) -> list[Piece]:
        """Return the pieces that ended, after a while; none as long as none did.

        Parameters
        ----------
        on_note
            Called with what workers told about their pieces.
        """
        self._hand_out(on_note)
        if not self._busy:
            return []
        ended, _ = wait_for(self._busy, LONGEST_WAIT, FIRST_COMPLETED)
        if on_note is not None:
            for worker, piece in list(self._busy.values()):
                if (note := worker.note) is not None:
                    on_note(piece, note)
        settled = map(self._settle, ended)
        return [piece for piece in settled if piece is not None]

    @property
    def busy(self) -> bool:
        """Whether there are pieces that have not ended."""
        return bool(self._waiting or self._busy)

    def run(self, on_note: Callable[[Piece, Any], None] | None = None) -> Iterator[Piece]:
        """Yield pieces as they end, until there are none; more may be added meanwhile."""
        while self.busy:
            yield from self.wait(on_note)

    def map(self, name: str, things: Sequence[Any]) -> list[Any]:
        """Return the answers about several things in their order; the first error is raised."""
        pieces = [self.submit(name, thing) for thing in things]
        for _ in self.run():
            pass
        return [piece.result() for piece in pieces]

    def stop(self) -> None:
        """Ask for an early end: pieces under way come to one, others don't begin."""
        self._stopped = True
        self._waiting.clear()
        for worker, _ in self._busy.values():
            worker.stop()

    def close(self) -> None:
        """Let all workers go, whatever they do."""
        for worker in [*self._free, *(worker for worker, _ in self._busy.values())]:
            worker.close()
        self._free, self._busy, self._hired = [], {}, 0
        self._waiting.clear()

    def _hand_out(self, on_note: Callable[[Piece, Any], None] | None) -> None:
        """Give pieces to free workers."""
        while self._waiting and (self._free or self._hired < self._size):
            if not self._free:
                self._free.append(self._executor.hire(*self._made))
                self._hired += 1
            worker, piece = self._free.pop(), self._waiting.popleft()
            if on_note is not None and hasattr(worker, "on_note"):
                worker.on_note = lambda note, piece=piece: on_note(piece, note)
            self._busy[worker.call(piece.name, *piece.arguments)] = worker, piece
            if self._executor.workers == 1 and self._executor.near:
                return  # it is done already, and others may depend on it

    def _settle(self, future: Future[Any]) -> Piece | None:
        """Return a piece whose future is done; None if another worker has to do it."""
        worker, piece = self._busy.pop(future)
        piece.error = future.exception()
        if not isinstance(piece.error, WorkerLostError):
            self._free.append(worker)
            piece.answer = None if piece.error else future.result()
            return piece
        self._lose(worker)
        piece._losses += 1
        if piece._losses >= MOST_TRIES or self._hired == 0 or self._stopped:
            return piece
        self._waiting.appendleft(piece)
        return None

    def _lose(self, worker: Worker) -> None:
        """Replace a worker that is gone, if there is a place for another one."""
        self.lost += 1
        self._hired -= 1
        other = self._executor.replace(*self._made)
        if other is None:
            self._size = max(1, self._hired)
        else:
            self._free.append(other)
            self._hired += 1
