"""Ctrl-C as a request to finish, not as an exception in the middle of something."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Self

__all__ = ["Interruption"]


class Interruption:
    """While entered, the first Ctrl-C sets `requested`; a second one raises as usual.

    Only Python's main thread receives signals; elsewhere this does nothing.
    """

    def __init__(self) -> None:
        self.requested = False
        self._before: signal.Handlers | object = None

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
        self.requested = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
