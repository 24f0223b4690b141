"""Answers of a model that don't come, and how long they are waited for.

A search looks at the clock between two answers, so that an answer which never comes would defeat
its time limit. Once that is over, an answer is given up when it has taken a second, a tenth of the
limit, and several times as long as the slowest answer before: what is only slow is waited for.

A worker that does not answer is killed. A model that is asked in this process can be interrupted
only if it is asked by the main thread, which alone hears signals, and only while it runs Python:
then an `Alarm` raises `LateAnswer` inside of it. Code in C that never returns can't be interrupted,
and neither can a model that is asked in another thread.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from time import perf_counter
from types import CodeType, FrameType, TracebackType
from typing import Any, Final, Self, TypeVar

__all__ = ["Alarm", "LateAnswer", "Patience", "question"]

LEAST_SECONDS: Final = 1.0
SHARE_OF_LIMIT: Final = 0.1
TIMES_THE_SLOWEST: Final = 3.0

BETWEEN_LOOKS: Final = 0.25
"""Seconds from one alarm to the next, since a model may keep the first one to itself."""

Function = TypeVar("Function", bound=Callable[..., Any])

_questions: Final[set[CodeType]] = set()


class LateAnswer(BaseException):
    """Raised inside a model that does not answer, where `except Exception` must not catch it."""


def question(function: Function) -> Function:
    """Mark a function that asks a model, and has in `began` when it did (`perf_counter`).

    An alarm may raise `LateAnswer` in what this function calls, and nowhere else.
    """
    _questions.add(function.__code__)
    return function


class Patience:
    """How long answers may take when the time is up.

    Attributes
    ----------
    slowest
        Seconds of the slowest answer so far.
    """

    def __init__(self) -> None:
        self.slowest = 0.0

    def grant(self, limit: float) -> float:
        """Return the seconds that an answer may take once this time limit is over."""
        return max(LEAST_SECONDS, SHARE_OF_LIMIT * limit, TIMES_THE_SLOWEST * self.slowest)

    def note(self, seconds: float) -> None:
        """Learn how long an answer took."""
        self.slowest = max(self.slowest, seconds)


class Alarm:
    """Interrupts a model that does not answer, where that is possible; elsewhere it does nothing.

    Parameters
    ----------
    is_late
        Asked, with when an answer began, whether it is to be given up.
    """

    def __init__(self, is_late: Callable[[float], bool]) -> None:
        self._is_late = is_late
        self._ours = False

    def __enter__(self) -> Self:
        # An alarm that somebody else has set, or handles, is theirs.
        self._ours = (
            hasattr(signal, "setitimer")
            and threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
            and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        )
        if self._ours:
            signal.signal(signal.SIGALRM, self._ring)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ours:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def set(self, seconds: float) -> None:
        """Begin to look after so many seconds."""
        if self._ours:
            signal.setitimer(signal.ITIMER_REAL, max(BETWEEN_LOOKS, seconds), BETWEEN_LOOKS)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        asking = None if frame is None else frame.f_back
        if frame is None or frame.f_code in _questions:
            return  # the answer has just come
        while asking is not None and asking.f_code not in _questions:
            asking = asking.f_back
        if asking is not None and self._is_late(asking.f_locals.get("began", perf_counter())):
            raise LateAnswer
