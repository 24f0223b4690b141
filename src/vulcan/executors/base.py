"""What an executor, a worker, and a worker's line to its employer are.

A worker is hired with a *maker*, a function that another process can import, and its arguments. It
makes one thing with them, and holds it. Then it is called, by the name of a method and arguments,
and does what it is called for in that order, one after the other. Answers are futures.

The maker gets a `Line` first. Through it what is held tells how far it is (`tell`), and learns that
it is to come to an end (`stopped`); searches under way notice that by themselves, as they notice
Ctrl-C (`vulcan.runtime.interruption`). Calls are numbered from 1, and a request to stop is one for
all calls up to a number: it reaches a call that has not begun yet, and no later one.

Answers don't depend on who gives them, as long as the arguments don't.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, ClassVar

from vulcan.errors import OptionError, VulcanError

__all__ = ["Executor", "LateError", "Line", "Maker", "Worker", "WorkerLostError", "require_workers"]

Maker = Callable[..., Any]
"""Makes what a worker holds, given its line and arguments."""


class WorkerLostError(VulcanError):
    """A worker is gone: its process was killed, or its machine."""


class LateError(VulcanError):
    """A worker did not answer in time, and was let go.

    Parameters
    ----------
    thing
        What it was asked about.
    """

    def __init__(self, thing: Any = None) -> None:
        super().__init__("a worker gave no answer in time")
        self.thing = thing


class Line:
    """A worker's line to the one who hired it."""

    _begun = 0
    _ending = -1

    @property
    def stopped(self) -> bool:
        """Whether the present work is to come to an end."""
        return self._begun <= self._ending

    def begin(self, number: int) -> None:
        """Begin a call; used by executors."""
        self._begun = number

    def stop(self, number: int) -> None:
        """Bring all calls up to a number to an end; used by executors."""
        self._ending = max(self._ending, number)

    def tell(self, note: Any) -> None:
        """Say how far the present work is; only the last note counts."""


class Worker(ABC):
    """One worker, and what it holds.

    Attributes
    ----------
    note
        What it told last about its present work; None if nothing.
    on_note
        Called with each note at once, by a worker who shares the thread of the one who asks.
    """

    note: Any = None
    on_note: Callable[[Any], None] | None = None

    @property
    def started(self) -> bool:
        """Whether it has found a place to work."""
        return True

    @abstractmethod
    def call(self, name: str, *arguments: Any) -> Future[Any]:
        """Let it call a method of what it holds, after all that it was called for before.

        What can't be sent, raises there, or dies, is the error of the future.
        """

    @abstractmethod
    def stop(self) -> None:
        """Ask it to bring all that it was called for so far to an end soon."""

    @abstractmethod
    def close(self) -> None:
        """Let it go, whatever it does; calls that it has not answered fail."""


class Executor(ABC):
    """A place where work is done.

    Attributes
    ----------
    name
        As users say it.
    workers
        How many workers there are at most.
    near
        Whether workers share this process, and everything in its memory.
    """

    name: ClassVar[str]
    near: ClassVar[bool] = False
    workers: int

    @abstractmethod
    def hire(self, maker: Maker, *arguments: Any) -> Worker:
        """Return a new worker."""

    def has_room(self) -> bool:
        """Return whether a worker who is hired now finds a place."""
        return True


def require_workers(workers: Any) -> None:
    """Refuse what is not a number of workers."""
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
        raise OptionError(f"workers must be a whole number of at least 1, not {workers!r}")
