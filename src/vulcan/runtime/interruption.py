"""Ctrl-C and SIGTERM as requests to finish, not as ends in the middle of something.

A worker gets such requests from the one who hired it instead (`listen`).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any, Final, Self

from vulcan.runtime.limits import StopReason

__all__ = ["Interruption", "listen"]

_asks: ContextVar[Callable[[], bool] | None] = ContextVar("asks", default=None)

USUAL: Final[dict[int, Any]] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}
"""What happens at a signal if nobody has changed that."""

REASONS: Final = {
    signal.SIGINT: StopReason.INTERRUPTED,
    signal.SIGTERM: StopReason.TERMINATED,
}


@contextmanager
def listen(asks: Callable[[], bool]) -> Iterator[None]:
    """Let a function say whether what begins inside, in this thread, is requested to finish.

    Inside of another such request, both count.
    """
    outer = _asks.get()
    token = _asks.set(asks if outer is None else lambda: asks() or outer())
    try:
        yield
    finally:
        _asks.reset(token)


class Interruption:
    """While entered, the first Ctrl-C or SIGTERM is a request; a second one ends as usual.

    Only Python's main thread receives signals; elsewhere this does nothing. Where somebody else
    handles a signal, that is left to them.
    """

    def __init__(self) -> None:
        self._reason: StopReason | None = None
        self._asks = _asks.get()
        self._taken: list[int] = []

    @property
    def requested(self) -> bool:
        """Whether it is time to finish."""
        return self._reason is not None or (self._asks is not None and self._asks())

    @property
    def reason(self) -> StopReason:
        """Who requested it: Ctrl-C, as long as nobody else did."""
        return self._reason or StopReason.INTERRUPTED

    def request(self) -> None:
        """Say that it is time to finish."""
        self._reason = self._reason or StopReason.INTERRUPTED

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._taken = [n for n, usual in USUAL.items() if signal.getsignal(n) is usual]
        for number in self._taken:
            signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number in self._taken:
            signal.signal(number, USUAL[number])

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._reason = REASONS[signal.Signals(number)]
        signal.signal(number, USUAL[number])
