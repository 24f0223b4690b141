"""What a search tells while it runs, and what makes it stop early."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, Final

from vulcan.certificate import Judgement
from vulcan.errors import OptionError
from vulcan.interruption import Interruption

__all__ = ["DEFAULT_MEMORY", "Limits", "Monitor", "OnProgress", "Progress", "watch_progress"]

REPORT_INTERVAL: Final = 0.1

FEWEST_BYTES: Final = 4 << 30


def _find_default_memory() -> int:
    try:
        return max(FEWEST_BYTES, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)
    except (AttributeError, OSError, ValueError):  # not every system tells
        return FEWEST_BYTES


DEFAULT_MEMORY: Final = _find_default_memory()
"""Bytes that a search may take if nobody says otherwise: half of what the machine has."""


@dataclass(frozen=True)
class Progress:
    """How far a search is.

    Attributes
    ----------
    seconds
        Time since the search began.
    fraction
        Estimated share of the search that is done, from 0 to 1; None where nobody can know.
    histories, evaluations
        Histories visited and (state, action) asked so far.
    reward
        Expected reward of the best policy so far; None without one.
    samples
        Samples taken so far; 0 for a search that takes none.
    memory
        Bytes of the search tree and the state graph.
    judgement
        What the search says of its best policy so far; the result has a certificate of it.
    """

    seconds: float
    fraction: float | None
    histories: int
    evaluations: int
    reward: float | None
    samples: int = 0
    memory: int = 0
    judgement: Judgement | None = None


OnProgress = Callable[[Progress], None]


@contextmanager
def watch_progress(on_progress: OnProgress | None, shown: bool) -> Iterator[OnProgress | None]:
    """Yield what to tell progress to: the user's function, the terminal if wanted, or both."""
    if not shown:
        yield on_progress
        return
    from vulcan.display import show_progress

    with show_progress() as show:

        def tell(progress: Progress) -> None:
            show(progress)
            if on_progress is not None:
                on_progress(progress)

        yield tell


@dataclass(frozen=True)
class Limits:
    """When to stop early; None for no limit.

    Attributes
    ----------
    time_limit
        Seconds.
    samples, histories
        Samples taken, and histories visited or kept in a tree.
    memory
        Bytes of the search tree and the state graph.
    gap
        Relative distance between the best policy and an upper bound.
    """

    time_limit: float | None = None
    samples: int | None = None
    histories: int | None = None
    memory: int | None = None
    gap: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value: Any = getattr(self, field.name)
            kind: type = Real if field.name in ("time_limit", "gap") else Integral
            proper = isinstance(value, kind)
            if value is not None and not (proper and value >= 0):
                name = "number" if kind is Real else "whole number"
                raise OptionError(f"{field.name} must be a {name} of at least 0, not {value!r}")

    def require_only(self, solver: str, allowed: tuple[str, ...]) -> None:
        """Refuse the limits that a solver does not know."""
        for field in fields(self):
            if getattr(self, field.name) is not None and field.name not in allowed:
                raise OptionError(
                    f"{solver} has no limit {field.name!r}; it takes {', '.join(allowed)}"
                )


class Monitor(Interruption):
    """Watches the clock, the limits and Ctrl-C for a search, and passes its progress on.

    Attributes
    ----------
    stopped_by
        None, "Ctrl-C", or the limit that was reached.
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
            self.stopped_by = "Ctrl-C"
        elif limits.time_limit is not None and self.seconds + reserve >= limits.time_limit:
            self.stopped_by = "time limit"
        elif limits.histories is not None and histories >= limits.histories:
            self.stopped_by = "limit of histories"
        elif limits.samples is not None and samples >= limits.samples:
            self.stopped_by = "limit of samples"
        return self.stopped_by is not None

    def report(self, describe: Callable[[], Progress]) -> None:
        """Pass the progress on if it is time to."""
        now = time.perf_counter()
        if self._on_progress is not None and now - self._reported >= REPORT_INTERVAL:
            self._reported = now
            self._on_progress(describe())
