"""Work in other processes of this machine.

Processes are spawned. Makers, calls and answers are pickled and go through a pipe, never through a
file. A worker loads the Python files that were loaded here (`vulcan.runtime.files`) and prints
where this process prints. It ignores Ctrl-C and SIGTERM, which a terminal or a service manager
sends to all processes: the parent handles them. It imports nothing from the current directory
before it knows the import path of its parent.

A process that dies closes its pipe, and its unanswered calls fail with a `WorkerLostError`. A
process whose parent dies ends by itself.
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
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vulcan.errors import OptionError
from vulcan.parallel.executors import (
    Channel,
    Executor,
    Maker,
    Worker,
    WorkerLostError,
    dump,
    load,
    pack_fault,
    unpack_fault,
)
from vulcan.runtime.files import list_loaded, load_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# A message begins with one of these letters; the rest is pickled.
CALL: Final = b"c"
STOP: Final = b"s"
READY: Final = b"r"
NOTE: Final = b"n"
ANSWER: Final = b"a"
FAULT: Final = b"f"

SAFE_PATH: Final = "PYTHONSAFEPATH"
SETTINGS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", SAFE_PATH)
"""Variables that are 1 for a new process: one thread for algebra, no imports from its directory."""

LEFT_TO_PARENT: Final = (signal.SIGINT, signal.SIGTERM)

UNGUARDED: Final = 79  # exit code of a process whose parent's script starts workers when imported

GUARD: Final = (
    "workers import this script, which starts workers at import: guard it with "
    '`if __name__ == "__main__":`'
)


@dataclass(frozen=True)
class Processes(Executor):
    """Processes of this machine.

    Parameters
    ----------
    workers
        Number of processes.
    """

    workers: int = 2

    def start_worker(self, maker: Maker, *arguments: Any) -> Worker:
        return _Process(maker, arguments)


class _Process(Worker):
    """A process, as its parent sees it."""

    def __init__(self, maker: Maker, arguments: tuple[Any, ...]) -> None:
        this = multiprocessing.current_process()
        if getattr(this, "_inheriting", False):
            raise SystemExit(UNGUARDED)
        if this.daemon:
            raise OptionError(
                "a worker can't start processes of its own: give `workers` at one level only"
            )
        made = dump((maker, arguments))
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        quiet = sys.stdout is sys.stderr
        given = (other, made, list(list_loaded()), quiet, SAFE_PATH in os.environ)
        self._process = context.Process(target=_serve, args=given, daemon=True)
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
                message = CALL + dump((self._calls, name, arguments))
            except OptionError as error:
                future.set_exception(error)
                return future
            if self._loss is not None:
                future.set_exception(self._loss)
                return future
            self._pending.append(future)
            with suppress(OSError):  # the listener notices
                self._pipe.send_bytes(message)
        return future

    def stop(self) -> None:
        with self._lock, suppress(OSError):
            self._pipe.send_bytes(STOP + dump(self._calls))

    def close(self) -> None:
        with self._lock:
            if self._loss is None:
                self._process.kill()
        self._listener.join()

    def _listen(self) -> None:
        """Receive messages until the process is gone, then fail its unanswered calls."""
        reason = ""
        try:
            while True:
                message = self._pipe.recv_bytes()
                self._receive(message[:1], memoryview(message)[1:])
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

    def _receive(self, kind: bytes, message: memoryview) -> None:
        """Handle a message; one that can't be unpickled is the error of its call."""
        try:
            content = load(message)
        except OptionError as unreadable:
            kind, content = FAULT, pack_fault(unreadable, pickle)
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
                future.set_exception(unpack_fault(*content))

    def _explain(self, code: int | None, reason: str) -> Exception:
        """Return the error of a process that is gone."""
        if code == UNGUARDED and not self._ready:
            return OptionError(GUARD)
        begun = "" if self._ready else " before it began"
        return WorkerLostError(reason or f"its process ended{begun} (exit code {code})")


_start: Final = threading.Lock()


@contextmanager
def _starting() -> Iterator[None]:
    """Give processes started inside their settings, and leave signals to this process."""
    with _start:  # the environment and the signal mask are shared by all threads
        before = {name: os.environ.get(name) for name in SETTINGS}
        os.environ.update(dict.fromkeys(SETTINGS, "1"))
        masks = hasattr(signal, "pthread_sigmask")
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, LEFT_TO_PARENT) if masks else None
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


def _make(channel: Channel, made: bytes, files: Sequence[Path]) -> Any:
    """Return the object that a worker holds."""
    for path in files:
        load_file(path)
    maker, arguments = load(made)
    return maker(channel, *arguments)


def _serve(
    pipe: Connection, made: bytes, files: Sequence[Path], quiet: bool, safe_path: bool
) -> None:
    """Run the main loop of a worker."""
    if not safe_path:  # which processes that a model starts would inherit
        os.environ.pop(SAFE_PATH, None)
    for number in LEFT_TO_PARENT:
        signal.signal(number, signal.SIG_IGN)
    if quiet:
        sys.stdout = sys.stderr
    calls, lock = queue.SimpleQueue[bytes](), threading.Lock()

    def send(kind: bytes, content: Any) -> None:
        message = kind + dump(content)
        with lock:
            pipe.send_bytes(message)

    channel = Channel(partial(send, NOTE))

    def receive() -> None:
        try:
            while True:
                message = pipe.recv_bytes()
                if message[:1] == STOP:
                    channel.stop(load(message[1:]))
                else:
                    calls.put(message[1:])
        finally:
            os._exit(0)  # the parent is gone

    send(READY, None)
    threading.Thread(target=receive, daemon=True).start()
    channel.make(_make, made, files)
    while True:
        try:
            send(ANSWER, channel.run(*load(calls.get())))
        except BaseException as error:
            with suppress(OSError):  # the receiving thread notices
                send(FAULT, pack_fault(error, pickle))
