"""Work in other processes of this machine.

Processes are started afresh. What they are to make, what they are called for, and what they answer
is pickled, and goes through a pipe; nothing of it is ever read from a file. They load the Python
files that were loaded here (`vulcan.runtime.modules`), and print where this one prints. Ctrl-C is
left to the one who hired them.

A process that dies closes its pipe. All that it was called for and has not answered then fails with
a `WorkerLostError`.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import sys
import threading
from collections import deque
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from vulcan.errors import OptionError
from vulcan.executors.base import (
    Executor,
    Line,
    Maker,
    Worker,
    WorkerLostError,
    require_workers,
)
from vulcan.runtime.interruption import listen
from vulcan.runtime.modules import list_loaded, load_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Processes", "limit_threads"]

# What goes through a pipe, as the first of a pair.
CALL: Final = "call"
STOP: Final = "stop"
NOTE: Final = "note"
ANSWER: Final = "answer"
FAULT: Final = "fault"

THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@contextmanager
def limit_threads() -> Iterator[None]:
    """Let processes that are started meanwhile use one thread for linear algebra."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@dataclass(frozen=True)
class Processes(Executor):
    """Processes of this machine.

    Parameters
    ----------
    workers
        How many.
    """

    name: ClassVar[str] = "processes"
    workers: int = 2

    def __post_init__(self) -> None:
        require_workers(self.workers)

    def hire(self, maker: Maker, *arguments: Any) -> Worker:
        return _Process(maker, arguments)


class _Process(Worker):
    """A process, seen from the one who started it."""

    def __init__(self, maker: Maker, arguments: tuple[Any, ...]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        told = _pickle((maker, arguments))
        quiet = sys.stdout is sys.stderr
        self._process = context.Process(
            target=_serve, args=(other, told, list_loaded(), quiet), daemon=True
        )
        with limit_threads():
            self._process.start()
        other.close()
        self._pending: deque[Future[Any]] = deque()
        self._lock = threading.Lock()
        self._gone = False
        threading.Thread(target=self._listen, daemon=True).start()

    def call(self, name: str, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            message = _pickle((CALL, (name, arguments)))
        except OptionError as error:
            future.set_exception(error)
            return future
        with self._lock:
            if self._gone:
                future.set_exception(WorkerLostError("its process is gone"))
                return future
            self._pending.append(future)
            with suppress(OSError):  # who listens will notice
                self._pipe.send_bytes(message)
        return future

    def stop(self) -> None:
        with self._lock, suppress(OSError):
            self._pipe.send_bytes(_pickle((STOP, None)))

    def close(self) -> None:
        self._process.kill()
        self._process.join()

    def _listen(self) -> None:
        """Hear what the process says until it is gone."""
        with suppress(EOFError, OSError):
            while True:
                kind, content = _unpickle(self._pipe.recv_bytes())
                if kind == NOTE:
                    self.note = content
                    continue
                self.note = None
                future = self._pending.popleft()
                if kind == ANSWER:
                    future.set_result(content)
                else:
                    future.set_exception(content)
        with self._lock:
            self._gone = True
            left = list(self._pending)
            self._pending.clear()
        self._process.join(timeout=1.0)
        for future in left:
            code = self._process.exitcode
            future.set_exception(WorkerLostError(f"its process ended (exit code {code})"))


def _pickle(thing: Any) -> bytes:
    try:
        return bytes(ForkingPickler.dumps(thing))
    except Exception as error:
        raise OptionError(f"workers need what can be pickled: {error}") from error


def _unpickle(message: bytes) -> tuple[str, Any]:
    """Return what was sent, or what kept it from being read."""
    try:
        kind, content = ForkingPickler.loads(message)
    except Exception as error:
        return FAULT, OptionError(f"what a worker sent can't be read: {error!r}")
    return kind, content


class _PipeLine(Line):
    """The line of a process."""

    def __init__(self, pipe: Connection) -> None:
        super().__init__()
        self._pipe, self._lock = pipe, threading.Lock()

    def tell(self, note: Any) -> None:
        with suppress(OSError):  # nobody listens any more, and the process is about to end
            self.send(NOTE, note)

    def send(self, kind: str, content: Any) -> None:
        """Send something, or what kept it from being sent."""
        try:
            message = _pickle((kind, content))
        except OptionError as error:
            message = _pickle((FAULT, error))
        with self._lock:
            self._pipe.send_bytes(message)


def _serve(pipe: Connection, told: bytes, files: Sequence[Path], quiet: bool) -> None:
    """Be a worker: the main function of its process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if quiet:
        sys.stdout = sys.stderr
    line, calls = _PipeLine(pipe), queue.SimpleQueue[Any]()

    def hear() -> None:
        with suppress(EOFError, OSError):
            while True:
                message = pipe.recv_bytes()
                kind, content = ForkingPickler.loads(message)
                if kind == STOP:
                    line.stopped = True
                else:
                    calls.put(content)
        os._exit(0)  # nobody is there any more

    try:
        for path in files:
            load_file(path)
        maker, arguments = ForkingPickler.loads(told)
        held, fault = maker(line, *arguments), None
    except Exception as error:  # told with the first answer
        held, fault = None, error
    threading.Thread(target=hear, daemon=True).start()
    while True:
        name, arguments = calls.get()
        try:
            if fault is not None:
                raise fault
            with listen(lambda: line.stopped):
                answer = getattr(held, name)(*arguments)
        except Exception as error:
            line.send(FAULT, error)
        else:
            line.send(ANSWER, answer)
