"""Ctrl-C as a request to finish, not as an exception in the middle of something.

A worker gets such requests from the one who hired it instead (`listen`).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Self

__all__ = ["Interruption", "listen"]

_asks: ContextVar[Callable[[], bool] | None] = ContextVar("asks", default=None)


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
    """While entered, the first Ctrl-C sets `requested`; a second one raises as usual.

    Only Python's main thread receives signals; elsewhere this does nothing.
    """

    def __init__(self) -> None:
        self._requested = False
        self._asks = _asks.get()
        self._before: signal.Handlers | object = None

    @property
    def requested(self) -> bool:
        """Whether it is time to finish."""
        return self._requested or (self._asks is not None and self._asks())

    def request(self) -> None:
        """Say that it is time to finish."""
        self._requested = True

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGINT)
            if self._before is signal.default_int_handler:
                signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.request()
        signal.signal(signal.SIGINT, signal.default_int_handler)
