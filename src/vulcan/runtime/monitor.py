"""What a search tells while it runs, and what makes it stop early."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from vulcan.runtime.interruption import Interruption
from vulcan.runtime.limits import Limits, StopReason
from vulcan.runtime.progress import OnProgress, Progress

REPORT_INTERVAL: Final = 0.1


class Monitor(Interruption):
    """Watches the clock, the limits and Ctrl-C for a search, and passes its progress on.

    Attributes
    ----------
    stopped_by
        Why the search had to stop; None as long as it had not.
    """

    def __init__(self, limits: Limits, on_progress: OnProgress | None = None) -> None:
        super().__init__()
        self.limits = limits
        self.stopped_by: StopReason | None = None
        self._on_progress = on_progress
        self._began = self._reported = time.perf_counter()

    def start_clock(self) -> None:
        """Count time from now on: a search calls this once it is ready to begin."""
        self._began = self._reported = time.perf_counter()

    @contextmanager
    def clock_stopped(self) -> Iterator[None]:
        """Let time inside not count: for kernels that are loaded or compiled in the middle."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._began += time.perf_counter() - began

    @property
    def seconds(self) -> float:
        """Time since the search began."""
        return time.perf_counter() - self._began

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
            self.stopped_by = StopReason.INTERRUPTED
        elif limits.time_limit is not None and self.seconds + reserve >= limits.time_limit:
            self.stopped_by = StopReason.TIME
        elif limits.histories is not None and histories >= limits.histories:
            self.stopped_by = StopReason.HISTORIES
        elif limits.samples is not None and samples >= limits.samples:
            self.stopped_by = StopReason.SAMPLES
        return self.stopped_by is not None

    def report(self, describe: Callable[[], Progress]) -> None:
        """Pass the progress on if it is time to."""
        now = time.perf_counter()
        if self._on_progress is not None and now - self._reported >= REPORT_INTERVAL:
            self._reported = now
            self._on_progress(describe())
