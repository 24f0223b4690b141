"""Times of methods over horizons, and how many times as long one takes as another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reproduction.paper import SPEEDUP_HORIZON

__all__ = ["Found", "Ratio"]


@dataclass(frozen=True)
class Ratio:
    """How many times as long one method takes as another, at some horizon."""

    horizon: int
    times: float
    at_least: bool

    def __str__(self) -> str:
        return f"{self.number} times at horizon {self.horizon}"

    @property
    def brief(self) -> str:
        """The number, with its horizon unless it is the paper's."""
        return self.number + f" at horizon {self.horizon}" * (self.horizon != SPEEDUP_HORIZON)

    @property
    def number(self) -> str:
        """The number alone."""
        number = f"{self.times:,.0f}" if self.times >= 10 else f"{self.times:.2g}"
        return f"{'at least ' * self.at_least}{number}"


@dataclass(frozen=True)
class Found:
    """All runs that there are, by method."""

    runs: Mapping[str, Sequence[Mapping[str, Any]]]

    def find(self, name: str, horizon: int) -> Mapping[str, Any] | None:
        """Return a run, or None if there is none."""
        return next((run for run in self.runs.get(name, ()) if run["horizon"] == horizon), None)

    def trace(self, name: str, what: str) -> list[tuple[float, float]]:
        """Return a number of the runs that came to an end over their horizons."""
        return [(run["horizon"], run[what]) for run in self.runs.get(name, ()) if run["ended"]]

    def find_stop(self, name: str) -> tuple[float, float] | None:
        """Return where a limit ended the runs: horizon and seconds."""
        ended = [run for run in self.runs.get(name, ()) if not run["ended"]]
        return (ended[0]["horizon"], ended[0]["seconds"]) if ended else None

    def compare(self, slow: str, fast: str, horizon: int) -> Ratio | None:
        """Return how many times as long one method takes as another."""
        one, other = self.find(slow, horizon), self.find(fast, horizon)
        if one is None or other is None or not other["ended"]:
            return None
        return Ratio(horizon, one["seconds"] / other["seconds"], not one["ended"])

    def compare_best(self, slow: str, fast: str) -> Ratio | None:
        """Return the same at the paper's horizon, or else at the longest one."""
        horizons = [run["horizon"] for run in self.runs.get(slow, ())]
        compared = (self.compare(slow, fast, h) for h in [SPEEDUP_HORIZON, *reversed(horizons)])
        return next((ratio for ratio in compared if ratio is not None), None)

    def compare_last(self, slow: str, fast: str) -> Ratio | None:
        """Return the same at the longest horizon that both have."""
        horizons = sorted((run["horizon"] for run in self.runs.get(slow, ())), reverse=True)
        compared = (self.compare(slow, fast, horizon) for horizon in horizons)
        return next((ratio for ratio in compared if ratio is not None), None)

    def compare_most(self, slow: str, fast: str) -> Ratio | None:
        """Return the same at the horizon at which it is the largest, of those that take time."""
        horizons = [run["horizon"] for run in self.runs.get(slow, ())]
        compared = (self.compare(slow, fast, h) for h in horizons if h >= SPEEDUP_HORIZON)
        known = [ratio for ratio in compared if ratio is not None]
        return max(known, key=lambda ratio: ratio.times, default=None)
