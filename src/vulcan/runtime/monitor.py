"""What a search tells while it runs, and what makes it stop early."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Final, Self

from vulcan.runtime.interruption import Interruption
from vulcan.runtime.limits import Limits, StopReason
from vulcan.runtime.memory import MemoryGrowth
from vulcan.runtime.patience import Alarm, Patience
from vulcan.runtime.progress import OnProgress, Progress

__all__ = ["Monitor", "is_late", "note_answer"]

REPORT_INTERVAL: Final = 0.1

_current: ContextVar[Monitor | None] = ContextVar("monitor", default=None)


def note_answer(seconds: float) -> None:
    """Tell the search that this thread is in, if there is one, how long an answer took."""
    monitor = _current.get()
    if monitor is not None:
        monitor.patience.note(seconds)


def is_late(began: float) -> bool:
    """Whether that search gives up an answer that began at this time (`perf_counter`)."""
    monitor = _current.get()
    return monitor is not None and monitor.is_late(began)


class Monitor(Interruption):
    """Watches the clock, the limits and signals for a search, and passes its progress on.

    Attributes
    ----------
    stopped_by
        Why the search had to stop; None as long as it had not.
    patience
        How long answers of the model are waited for.
    """

    def __init__(self, limits: Limits, on_progress: OnProgress | None = None) -> None:
        super().__init__()
        self.limits = limits
        self.stopped_by: StopReason | None = None
        self.patience = Patience()
        self._on_progress = on_progress
        self._began = self._reported = time.perf_counter()
        self._started = False
        self._growth = MemoryGrowth()
        self._alarm = Alarm(self.is_late)
        self._token: Token[Monitor | None] | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        self._token = _current.set(self)
        self._growth.__enter__()
        self._alarm.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._alarm.__exit__(kind, error, trace)
        self._growth.__exit__(kind, error, trace)
        assert self._token is not None
        _current.reset(self._token)
        super().__exit__(kind, error, trace)

    def start_clock(self) -> None:
        """Count time and memory from now on: a search calls this once it is ready to begin."""
        self._began = self._reported = time.perf_counter()
        self._growth.start()
        self._started = True
        self._set_alarm()

    @contextmanager
    def clock_stopped(self) -> Iterator[None]:
        """Let time and memory inside not count: for kernels that are loaded in the middle."""
        began = time.perf_counter()
        try:
            with self._growth.stopped():
                yield
        finally:
            self._began += time.perf_counter() - began
            self._set_alarm()

    @property
    def seconds(self) -> float:
        """Time since the search began."""
        return time.perf_counter() - self._began

    @property
    def grown(self) -> int:
        """Bytes that this process has taken since the search began; 0 where nobody says."""
        return self._growth.taken

    def wants_stop(self, histories: int, samples: int = 0, reserve: float = 0.0) -> bool:
        """Whether the search must stop now; `stopped_by` says why.

        Parameters
        ----------
        histories, samples
            How many there are.
        reserve
            Seconds that the search still needs for its answer.
        """
        limits = self.limits
        if self.requested:
            self.stopped_by = self.reason
        elif limits.time_limit is not None and self.seconds + reserve >= limits.time_limit:
            self.stopped_by = StopReason.TIME
        elif limits.histories is not None and histories >= limits.histories:
            self.stopped_by = StopReason.HISTORIES
        elif limits.samples is not None and samples >= limits.samples:
            self.stopped_by = StopReason.SAMPLES
        elif self._growth.exceeds(limits.memory):
            self.stopped_by = StopReason.MEMORY
        return self.stopped_by is not None

    def is_late(self, began: float) -> bool:
        """Whether an answer that began at this time (`perf_counter`) is to be given up.

        None is while a search gets ready, and kernels may be compiled somewhere.
        """
        limit = self.limits.time_limit
        if limit is None or not self._started:
            return False
        granted = self.patience.grant(limit)
        return self.seconds > limit + granted and time.perf_counter() - began > granted

    def report(self, describe: Callable[[], Progress]) -> None:
        """Pass the progress on if it is time to."""
        now = time.perf_counter()
        if self._on_progress is not None and now - self._reported >= REPORT_INTERVAL:
            self._reported = now
            self._on_progress(describe())

    def _set_alarm(self) -> None:
        if self.limits.time_limit is not None and self._started:
            self._alarm.set(self.limits.time_limit - self.seconds)
