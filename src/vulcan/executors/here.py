"""Work in this process: by the thread that asks for it, or by several."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

from vulcan.errors import OptionError
from vulcan.executors.base import Executor, Line, Maker, Worker, require_workers
from vulcan.runtime.interruption import listen

__all__ = ["Here", "Threads"]


class _NearLine(Line):
    """A line to somebody in the same process."""

    def __init__(self, worker: _NearWorker) -> None:
        self._worker = worker

    def tell(self, note: Any) -> None:
        self._worker.note = note
        if self._worker.on_note is not None and self._worker.at_once:
            self._worker.on_note(note)


class _NearWorker(Worker):
    """A worker in this process; one that works at once, if there is no thread for it."""

    def __init__(self, threaded: bool, maker: Maker, arguments: tuple[Any, ...]) -> None:
        self._line = _NearLine(self)
        self._held = maker(self._line, *arguments)
        self._pool = ThreadPoolExecutor(1) if threaded else None
        self._calls = 0

    @property
    def at_once(self) -> bool:
        """Whether calls are answered before they return."""
        return self._pool is None

    def call(self, name: str, *arguments: Any) -> Future[Any]:
        self._calls += 1
        if self._pool is not None:
            return self._pool.submit(self._work, self._calls, name, arguments)
        future: Future[Any] = Future()
        try:
            future.set_result(self._work(self._calls, name, arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def _work(self, number: int, name: str, arguments: tuple[Any, ...]) -> Any:
        self.note = None
        self._line.begin(number)
        with listen(lambda: self._line.stopped):
            return getattr(self._held, name)(*arguments)

    def stop(self) -> None:
        self._line.stop(self._calls)

    def close(self) -> None:
        self.stop()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class Here(Executor):
    """The thread that asks does the work itself."""

    name: ClassVar[str] = "here"
    near: ClassVar[bool] = True
    workers: int = 1

    def __post_init__(self) -> None:
        if self.workers != 1:
            raise OptionError(f"one thread is one worker, not {self.workers!r}")

    def hire(self, maker: Maker, *arguments: Any) -> Worker:
        return _NearWorker(False, maker, arguments)


@dataclass(frozen=True)
class Threads(Executor):
    """Threads of this process: for kernels, which run without the interpreter's lock.

    Parameters
    ----------
    workers
        How many.
    """

    name: ClassVar[str] = "threads"
    near: ClassVar[bool] = True
    workers: int = 2

    def __post_init__(self) -> None:
        require_workers(self.workers)

    def hire(self, maker: Maker, *arguments: Any) -> Worker:
        return _NearWorker(True, maker, arguments)
