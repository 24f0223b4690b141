"""Executors, their workers, and the executor of this process.

An executor starts a worker with a *maker*, a function that another process can import, and the
maker's arguments. The worker makes one object with them and holds it. Each call names a method of
that object; a worker runs its calls in order and answers with futures. Answers do not depend on the
worker as long as the arguments don't.

The maker's first argument is a `Channel`. Through it the object reports its progress (`report`) and
learns that it should end early (`stopped`); searches notice that as they notice Ctrl-C
(`vulcan.runtime.limits`).

Errors are pickled on the way back. Some can't be pickled or rebuilt, and all lose their traceback.
So an error that does not survive a round trip is replaced by its text, and every error arrives with
its traceback as a note.
"""

from __future__ import annotations

import pickle
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar

from vulcan.errors import OptionError, VulcanError
from vulcan.runtime.limits import listen

Maker = Callable[..., Any]
"""Makes the object that a worker holds, given its channel and arguments."""


class WorkerLostError(VulcanError):
    """A worker is gone: its process or its machine died."""


class Channel:
    """Worker-side endpoint: holds the object, runs calls and reports to the coordinator.

    Calls are numbered from 1, and a stop request holds for all calls up to a number: it reaches
    calls that have not begun yet, and no later ones. `report` is called with a note on the progress
    of the `current` call; only the last one counts.
    """

    def __init__(self, report: Callable[[Any], None]) -> None:
        self.report = report
        self.current = 0
        self._stop_up_to = -1
        self._held: Any = None
        self._fault: BaseException | None = None

    @property
    def stopped(self) -> bool:
        """Whether the current call should end early."""
        return self.current <= self._stop_up_to

    def make(self, maker: Maker, *arguments: Any) -> None:
        """Make the held object; if that fails, every call fails with the error."""
        try:
            self._held = maker(self, *arguments)
        except BaseException as error:
            self._fault = error

    def run(self, number: int, name: str, arguments: tuple[Any, ...]) -> Any:
        """Run a call, which can be stopped."""
        if self._fault is not None:
            raise self._fault
        self.current = number
        with listen(lambda: self.stopped):
            return getattr(self._held, name)(*arguments)

    def stop(self, number: int) -> None:
        """Ask all calls up to a number to end early."""
        self._stop_up_to = max(self._stop_up_to, number)


class Worker(ABC):
    """One worker, as its coordinator sees it.

    `note` is its last report on the current call. A worker that shares the coordinator's thread
    calls `on_note` with each report at once.
    """

    note: Any = None
    on_note: Callable[[Any], None] | None = None

    @property
    def started(self) -> bool:
        """Whether it has the resources to work."""
        return True

    @abstractmethod
    def call(self, name: str, *arguments: Any) -> Future[Any]:
        """Call a method of the held object, after all earlier calls.

        The future has the error if arguments or answer can't be sent, the method raises, or the
        worker dies.
        """

    @abstractmethod
    def stop(self) -> None:
        """Ask all calls so far to end early."""

    @abstractmethod
    def close(self) -> None:
        """End the worker at once; unanswered calls fail."""


class Executor(ABC):
    """Where work is done.

    Attributes
    ----------
    workers
        The largest number of workers.
    in_process
        Whether workers share this process and its memory.
    """

    in_process: ClassVar[bool] = False
    workers: int

    def __post_init__(self) -> None:
        require_workers(self.workers)

    @abstractmethod
    def start_worker(self, maker: Maker, *arguments: Any) -> Worker:
        """Return a new worker."""

    def has_room(self) -> bool:
        """Return whether there are resources for another worker now."""
        return True


def require_workers(workers: Any) -> None:
    """Refuse an invalid number of workers."""
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
        raise OptionError(f"workers must be a whole number of at least 1, not {workers!r}")


@dataclass(frozen=True)
class Threads(Executor):
    """Threads of this process: for kernels, which run without the interpreter's lock.

    Parameters
    ----------
    workers
        Number of threads; a single one is the calling thread.
    """

    in_process: ClassVar[bool] = True
    workers: int = 2

    def start_worker(self, maker: Maker, *arguments: Any) -> Worker:
        return _LocalWorker(self.workers > 1, maker, arguments)


class _LocalWorker(Worker):
    """A worker in this process; without a thread of its own, calls are synchronous."""

    def __init__(self, threaded: bool, maker: Maker, arguments: tuple[Any, ...]) -> None:
        self._pool = ThreadPoolExecutor(1) if threaded else None
        self._channel = Channel(self._report)
        self._channel.make(maker, *arguments)
        self._calls = 0

    def call(self, name: str, *arguments: Any) -> Future[Any]:
        self._calls += 1
        if self._pool is not None:
            return self._pool.submit(self._run, self._calls, name, arguments)
        future: Future[Any] = Future()
        try:
            future.set_result(self._run(self._calls, name, arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def _report(self, note: Any) -> None:
        self.note = note
        if self._pool is None and self.on_note is not None:
            self.on_note(note)

    def _run(self, number: int, name: str, arguments: tuple[Any, ...]) -> Any:
        self.note = None
        return self._channel.run(number, name, arguments)

    def stop(self) -> None:
        self._channel.stop(self._calls)

    def close(self) -> None:
        self.stop()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


# Workers that are lost.

_losses: ContextVar[list[WorkerLostError] | None] = ContextVar("losses", default=None)


@contextmanager
def count_losses() -> Iterator[list[WorkerLostError]]:
    """Yield a list that gets the error of each worker lost within this context, however deep."""
    losses: list[WorkerLostError] = []
    token = _losses.set(losses)
    try:
        yield losses
    finally:
        _losses.reset(token)


def note_loss(error: WorkerLostError) -> None:
    """Add a lost worker to the list of the enclosing `count_losses`, if there is one."""
    losses = _losses.get()
    if losses is not None:
        losses.append(error)


# Messages between processes.


def pack_fault(error: BaseException, pickler: Any) -> tuple[BaseException, str]:
    """Return an error in a form that survives pickling by a module, and its traceback."""
    trace = "".join(traceback.format_exception(error))
    try:
        copy = pickler.loads(pickler.dumps(error))
        survives = type(copy) is type(error) and str(copy) == str(error)
    except Exception:
        survives = False
    return (error if survives else VulcanError(f"{type(error).__name__}: {error}")), trace


def unpack_fault(error: BaseException, trace: str) -> BaseException:
    """Return the error, with its traceback as a note."""
    error.add_note(f"In a worker:\n{trace}")
    return error


def dump(value: Any, pickler: Any = pickle) -> bytes:
    """Return the bytes in which arguments and answers are sent."""
    try:
        return bytes(pickler.dumps(value, pickle.HIGHEST_PROTOCOL))
    except Exception as error:
        raise _describe_unpicklable(error) from error


def load(message: bytes | memoryview, pickler: Any = pickle) -> Any:
    """Return arguments or answers that were sent as bytes."""
    try:
        return pickler.loads(message)
    except MemoryError:
        raise
    except Exception as error:
        raise _describe_unpicklable(error) from error


def _describe_unpicklable(error: Exception) -> OptionError:
    return OptionError(f"calls and answers must be picklable, and importable on workers: {error}")
