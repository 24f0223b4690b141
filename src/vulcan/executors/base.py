"""What an executor, a worker, and a worker's line to its employer are.

A worker is hired with a *maker*, a function that another process can import, and its arguments. It
makes one thing with them, and holds it. Then it is called, by the name of a method and arguments,
and does what it is called for in that order, one after the other. Answers are futures.

The maker gets a `Line` first. Through it what is held tells how far it is (`tell`), and learns that
it is to come to an end (`stopped`); searches under way notice that by themselves, as they notice
Ctrl-C (`vulcan.runtime.interruption`).

Answers don't depend on who gives them, as long as the arguments don't.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, ClassVar

from vulcan.errors import OptionError, VulcanError

__all__ = ["Executor", "Line", "Maker", "Worker", "WorkerLostError", "require_workers"]

Maker = Callable[..., Any]
"""Makes what a worker holds, given its line and arguments."""


class WorkerLostError(VulcanError):
    """A worker is gone: its process was killed, or its machine."""


class Line:
    """A worker's line to the one who hired it."""

    def __init__(self) -> None:
        self.stopped = False

    def tell(self, note: Any) -> None:
        """Say how far the present work is; only the last note counts."""


class Worker(ABC):
    """One worker, and what it holds.

    Attributes
    ----------
    note
        What it told last about its present work; None if nothing.
    """

    note: Any = None

    @abstractmethod
    def call(self, name: str, *arguments: Any) -> Future[Any]:
        """Let it call a method of what it holds, after all that it was called for before."""

    @abstractmethod
    def stop(self) -> None:
        """Ask it to bring its present work to an end soon."""

    @abstractmethod
    def close(self) -> None:
        """Let it go, whatever it does."""


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

    def replace(self, maker: Maker, *arguments: Any) -> Worker | None:
        """Return a worker instead of one that was lost; None if there is no place for it."""
        return self.hire(maker, *arguments)


def require_workers(workers: Any) -> None:
    """Refuse what is not a number of workers."""
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
        raise OptionError(f"workers must be a whole number of at least 1, not {workers!r}")
