"""What a search tells while it runs, and what makes it stop early."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from vulcan.errors import OptionError
from vulcan.interruption import Interruption

__all__ = ["Limits", "Monitor", "OnProgress", "Progress"]

REPORT_INTERVAL: Final = 0.1


@dataclass(frozen=True)
class Progress:
    """How far a search is.

    Attributes
    ----------
    seconds
        Time since the search began.
    fraction
        Estimated share of the search that is done, from 0 to 1.
    histories, evaluations
        Histories visited and (state, action) asked so far.
    reward
        What the search credits to the best complete policy so far; None without one.
    """

    seconds: float
    fraction: float
    histories: int
    evaluations: int
    reward: float | None


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class Limits:
    """When to stop early; None for no limit."""

    time_limit: float | None = None
    histories: int | None = None

    def __post_init__(self) -> None:
        for name in ("time_limit", "histories"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise OptionError(f"{name} must be a number of at least 0, not {value!r}")


class Monitor(Interruption):
    """Watches the clock, the limits and Ctrl-C for a search, and passes its progress on.

    Attributes
    ----------
    stopped_by
        None, "time limit", "limit of histories" or "Ctrl-C".
    """

    def __init__(self, limits: Limits, on_progress: OnProgress | None = None) -> None:
        super().__init__()
        self.limits = limits
        self.stopped_by: str | None = None
        self._on_progress = on_progress
        self._began = self._reported = time.perf_counter()

    def start_clock(self) -> None:
        """Count time from now on: a search calls this once it is ready to begin."""
        self._began = self._reported = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time since the search began."""
        return time.perf_counter() - self._began

    def wants_stop(self, histories: int) -> bool:
        """Whether the search must stop now; `stopped_by` says why."""
        limits = self.limits
        if self.requested:
            self.stopped_by = "Ctrl-C"
        elif limits.time_limit is not None and self.seconds >= limits.time_limit:
            self.stopped_by = "time limit"
        elif limits.histories is not None and histories >= limits.histories:
            self.stopped_by = "limit of histories"
        return self.stopped_by is not None

    def report(self, describe: Callable[[], Progress]) -> None:
        """Pass the progress on if it is time to."""
        now = time.perf_counter()
        if self._on_progress is not None and now - self._reported >= REPORT_INTERVAL:
            self._reported = now
            self._on_progress(describe())
