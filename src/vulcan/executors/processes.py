"""Work in other processes of this machine.

Processes are started afresh. What they are to make, what they are called for, and what they answer
is pickled, and goes through a pipe; nothing of it is ever read from a file. They load the Python
files that were loaded here (`vulcan.runtime.modules`), and print where this one prints. Ctrl-C and
SIGTERM, which a terminal or a service manager sends to all of them, are left to the one who hired
them. None imports anything from the current directory before it knows where this one imports from.

A process that dies closes its pipe. All that it was called for and has not answered then fails with
a `WorkerLostError`. A process whose employer dies ends by itself.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import signal
import sys
import threading
from collections import deque
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
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
from vulcan.executors.faults import pack_fault, refuse_cargo, unpack_fault
from vulcan.runtime.interruption import listen
from vulcan.runtime.modules import list_loaded, load_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Processes"]

# What goes through a pipe: a letter, and what was pickled.
CALL: Final = b"c"
STOP: Final = b"s"
READY: Final = b"r"
NOTE: Final = b"n"
ANSWER: Final = b"a"
FAULT: Final = b"f"

SAFE_PATH: Final = "PYTHONSAFEPATH"
SETTINGS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", SAFE_PATH)
"""What is 1 for a process that is started: threads for algebra; nothing imported from here."""

LEFT_TO_EMPLOYER: Final = (signal.SIGINT, signal.SIGTERM)

UNGUARDED: Final = 79
"""Exit code of a process that ran the script of its employer, which hires workers at once."""

GUARD: Final = (
    "workers run the script again to know its classes, and this script hires workers when it is "
    'run: put what it does below `if __name__ == "__main__":`'
)


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
        this = multiprocessing.current_process()
        if getattr(this, "_inheriting", False):
            raise SystemExit(UNGUARDED)
        if this.daemon:
            raise OptionError("a worker can't hire processes of its own: let one level have them")
        told = _pickle((maker, arguments))
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        quiet = sys.stdout is sys.stderr
        told_all = (other, told, list_loaded(), quiet, SAFE_PATH in os.environ)
        self._process = context.Process(target=_serve, args=told_all, daemon=True)
        with other, _starting():
            self._process.start()
        self._pending: deque[Future[Any]] = deque()
        self._lock = threading.Lock()
        self._calls = 0
        self._ready = False
        self._loss: Exception | None = None  # why it is gone
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def call(self, name: str, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            self._calls += 1
            try:
                message = CALL + _pickle((self._calls, name, arguments))
            except OptionError as error:
                future.set_exception(error)
                return future
            if self._loss is not None:
                future.set_exception(self._loss)
                return future
            self._pending.append(future)
            with suppress(OSError):  # who listens will notice
                self._pipe.send_bytes(message)
        return future

    def stop(self) -> None:
        with self._lock, suppress(OSError):
            self._pipe.send_bytes(STOP + _pickle(self._calls))

    def close(self) -> None:
        with self._lock:
            if self._loss is None:
                self._process.kill()
        self._listener.join()

    def _listen(self) -> None:
        """Hear what the process says until it is gone, and clear away what is left."""
        reason = ""
        try:
            while True:
                message = self._pipe.recv_bytes()
                self._hear(*_open(message[:1], memoryview(message)[1:]))
        except (EOFError, OSError):
            pass
        except Exception as error:  # such as too little memory for an answer
            reason = f"its answer could not be read: {error!r}"
        with self._lock:
            left = list(self._pending)
            self._pending.clear()
            self._pipe.close()
            self._process.join(timeout=1.0)  # it may be on its way out
            self._process.kill()
            self._process.join()
            loss = self._loss = self._explain(self._process.exitcode, reason)
            self._process.close()
        for future in left:
            future.set_exception(loss)

    def _hear(self, kind: bytes, content: Any) -> None:
        """Take what the process said."""
        if kind == READY:
            self._ready = True
        elif kind == NOTE:
            self.note = content
        else:
            self.note = None
            future = self._pending.popleft()
            if kind == ANSWER:
                future.set_result(content)
            else:
                future.set_exception(content)

    def _explain(self, code: int | None, reason: str) -> Exception:
        """Return why it is gone."""
        if code == UNGUARDED and not self._ready:
            return OptionError(GUARD)
        begun = "" if self._ready else " before it began"
        return WorkerLostError(reason or f"its process ended{begun} (exit code {code})")


_start: Final = threading.Lock()


@contextmanager
def _starting() -> Iterator[None]:
    """Let a process that is started inside have its settings, and leave signals to this one."""
    with _start:  # the environment and the mask belong to everybody
        before = {name: os.environ.get(name) for name in SETTINGS}
        os.environ.update(dict.fromkeys(SETTINGS, "1"))
        masks = hasattr(signal, "pthread_sigmask")
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, LEFT_TO_EMPLOYER) if masks else None
        try:
            yield
        finally:
            if mask is not None:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _pickle(thing: Any) -> bytes:
    try:
        return pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise refuse_cargo(error) from error


def _unpickle(message: bytes | memoryview) -> Any:
    try:
        return pickle.loads(message)  # noqa: S301 it comes from the process at the other end
    except MemoryError:
        raise
    except Exception as error:
        raise refuse_cargo(error) from error


def _open(kind: bytes, content: memoryview) -> tuple[bytes, Any]:
    """Return what a process sent, or what kept it from being read."""
    try:
        thing = _unpickle(content)
    except OptionError as error:
        return FAULT, error
    return kind, unpack_fault(thing) if kind == FAULT else thing


class _PipeLine(Line):
    """The line of a process."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._lock = pipe, threading.Lock()

    def tell(self, note: Any) -> None:
        self.send(NOTE, note)

    def send(self, kind: bytes, content: Any) -> None:
        message = kind + _pickle(content)
        with self._lock:
            self._pipe.send_bytes(message)


def _serve(
    pipe: Connection, told: bytes, files: Sequence[Path], quiet: bool, safe_path: bool
) -> None:
    """Be a worker: the main function of its process."""
    if not safe_path:  # which processes that a model starts would inherit
        os.environ.pop(SAFE_PATH, None)
    for number in LEFT_TO_EMPLOYER:
        signal.signal(number, signal.SIG_IGN)
    if quiet:
        sys.stdout = sys.stderr
    line, calls = _PipeLine(pipe), queue.SimpleQueue[bytes]()

    def hear() -> None:
        try:
            while True:
                message = pipe.recv_bytes()
                if message[:1] == STOP:
                    line.stop(_unpickle(message[1:]))
                else:
                    calls.put(message[1:])
        finally:
            os._exit(0)  # nobody is there any more

    line.send(READY, None)
    threading.Thread(target=hear, daemon=True).start()
    try:
        for path in files:
            load_file(path)
        maker, arguments = _unpickle(told)
        held, fault = maker(line, *arguments), None
    except BaseException as error:  # told with the first answer
        held, fault = None, error
    while True:
        try:
            answer = _work(held, fault, line, calls.get())
            line.send(ANSWER, answer)
        except BaseException as error:
            with suppress(OSError):  # who hears has noticed
                line.send(FAULT, pack_fault(error, pickle))


def _work(held: Any, fault: BaseException | None, line: Line, call: bytes) -> Any:
    """Return the answer to a call."""
    number, name, arguments = _unpickle(call)
    if fault is not None:
        raise fault
    line.begin(number)
    with listen(lambda: line.stopped):
        return getattr(held, name)(*arguments)
