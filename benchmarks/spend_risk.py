"""Exploration missions on which the allowed risk is worth spending, and one search of each.

The paper's bound is Δ(x) = (1 - exp(-0.4x)) (0.015 + 0.001x); missions are planned under Δ/2, Δ and
2Δ, on the map "narrow" and on "wide" with half gaps of 0.14, 0.16 and 0.18.

What is given to a search here are seconds of *search*, as the yardstick counts them: samples and
plans, without the certificate in plain Python. A time limit covers that certificate, too, and the
search ends early enough for it. So the limit is the seconds and a reserve, which is what the
search left of its last limit; the first guess is put right by one search that does not count.

On a machine with other work to do seconds mean little; a number of samples instead, for both, gives
rewards that depend on nothing else.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

import vulcan
from benchmarks.exploration_table import BOUNDS, Setting
from vulcan.runtime.limits import StopReason

__all__ = ["SETTINGS", "TARGETS", "Clock", "Search", "Target", "describe", "find_problem"]


@dataclass(frozen=True)
class Target:
    """What ten seeds must earn: the mean and the worst of them."""

    mean: float
    worst: float = float("-inf")


SETTINGS: Final = [
    *(Setting("narrow", None, 9, bound) for bound in BOUNDS),
    *(Setting("wide", gap, 9, bound) for gap in (0.14, 0.16, 0.18) for bound in BOUNDS),
]

TARGETS: Final = {
    (Setting("narrow", None, 9, "Δ"), 10): Target(19.755, 19.70),
    (Setting("narrow", None, 9, "Δ"), 60): Target(19.765),
    (Setting("narrow", None, 9, "Δ/2"), 10): Target(19.30),
    (Setting("narrow", None, 9, "Δ/2"), 60): Target(19.317),
    (Setting("narrow", None, 9, "2Δ"), 10): Target(20.265),
    (Setting("wide", 0.14, 9, "Δ"), 10): Target(15.515),
    (Setting("wide", 0.14, 9, "Δ/2"), 10): Target(15.415),
    (Setting("wide", 0.16, 9, "Δ"), 10): Target(15.753),
    (Setting("wide", 0.18, 9, "Δ"), 10): Target(15.885),
}
"""Rewards by setting and seconds of search."""

CLOSE: Final = 0.05
"""Seconds of search may be off by this share."""


@dataclass(frozen=True)
class Search:
    """What one search found, and what it took.

    Attributes
    ----------
    core
        Processor time over clock time, certificate included: well below 1 if other programs
        took the core, and then rewards are those of fewer seconds.
    """

    reward: float
    risk: float
    allowed: float
    safe: bool
    gap: float | None
    seconds: float
    samples: int
    core: float

    @property
    def rate(self) -> float:
        """Samples per second of search."""
        return self.samples / self.seconds


@dataclass
class Clock:
    """Searches of a number of seconds each, or else of a number of samples."""

    seconds: float
    samples: int | None = None
    reserve: float = field(init=False)
    tuned: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.reserve = self.seconds / 2

    def search(
        self,
        problem: vulcan.Problem,
        solver: vulcan.solvers.Solver,
        seed: int,
        workers: int | None = None,
    ) -> Search:
        """Return what a search of these seconds finds."""
        found = self._try(problem, solver, seed, workers)
        away = abs(found.seconds / self.seconds - 1) > CLOSE
        if away and not self.tuned and self.samples is None:
            found = self._try(problem, solver, seed, workers)
        self.tuned = True
        return found

    def __str__(self) -> str:
        return f"{self.seconds:g} s" if self.samples is None else f"{self.samples:,} samples"

    def _try(
        self, problem: vulcan.Problem, solver: vulcan.solvers.Solver, seed: int, workers: int | None
    ) -> Search:
        limit = None if self.samples else self.seconds + self.reserve
        began = time.perf_counter(), time.process_time()
        result = vulcan.solve(
            problem, solver, time_limit=limit, samples=self.samples, seed=seed, parallel=workers
        )
        core = (time.process_time() - began[1]) / (time.perf_counter() - began[0])
        taken = result.statistics.search_seconds
        if limit is not None and result.stopped_by is StopReason.TIME:
            self.reserve = max(0.0, limit - taken)
        found = result.certificate
        assert found is not None
        return Search(
            float(found.reward),
            float(found.risk),
            float(found.allowed),
            found.safe,
            result.gap,
            taken,
            result.statistics.samples,
            core,
        )


def find_problem(setting: Setting) -> vulcan.Problem:
    """Return the problem of a setting."""
    return vulcan.Problem(setting.mission(), vulcan.parse(BOUNDS[setting.bound]))


def describe(searches: list[Search]) -> str:
    """Return a row: rewards, risk over allowed, certified, samples per second, seconds, core."""
    rewards = [search.reward for search in searches]
    spent = fmean(search.risk / search.allowed for search in searches)
    return (
        f"{fmean(rewards):.4f} {min(rewards):.4f} {max(rewards):.4f}  {spent:6.1%}  "
        f"{sum(s.safe for s in searches)} of {len(searches)}  "
        f"{fmean(s.rate for s in searches):9,.0f}/s  "
        f"{fmean(s.seconds for s in searches):.1f} s  {fmean(s.core for s in searches):.0%}"
    )
