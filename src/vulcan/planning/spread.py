"""What several seeds found: the best is the result, and this is how far apart they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean, pstdev

from vulcan.runtime.formatting import (
    MISSING,
    TextTable,
    show_count,
    show_probability,
    show_reward,
    show_seconds,
)
from vulcan.runtime.limits import StopReason

__all__ = ["SeedRun", "Spread"]


@dataclass(frozen=True)
class SeedRun:
    """One seed, and what it found.

    Attributes
    ----------
    seed
        The seed.
    reward, risk
        Those of its policy, certified; None without one.
    safe
        Whether the policy is complete and its certificate passes.
    explanation
        How the search ended, or the error.
    stopped_by
        What ended it early; None if nothing did.
    samples, seconds
        How many samples it took, and how long; None if it raised an error.
    error
        What it raised; None if nothing.
    """

    seed: int
    reward: float | None = None
    risk: float | None = None
    safe: bool = False
    explanation: str = ""
    stopped_by: StopReason | None = None
    samples: int | None = None
    seconds: float | None = None
    error: str | None = None


@dataclass(frozen=True)
class Spread:
    """Several seeds side by side.

    Attributes
    ----------
    runs
        One for each seed, in the order in which they were given.
    left_out
        The seeds that Ctrl-C left no time for.
    lost_workers
        How many workers were lost; their searches were run again by others.
    """

    runs: tuple[SeedRun, ...]
    left_out: tuple[int, ...] = ()
    lost_workers: int = 0

    def __len__(self) -> int:
        """Return the number of seeds that were run."""
        return len(self.runs)

    def __iter__(self) -> Iterator[SeedRun]:
        """Return the runs, one after the other."""
        return iter(self.runs)

    @property
    def rewards(self) -> tuple[float, ...]:
        """What the safe policies earn."""
        return tuple(_earn(run) for run in self._safe)

    @property
    def best(self) -> SeedRun | None:
        """The safe run that earns most, and of those the first; None if no policy is safe."""
        return max(self._safe, key=_earn, default=None)

    @property
    def worst(self) -> SeedRun | None:
        """The safe run that earns least; None if no policy is safe."""
        return min(self._safe, key=_earn, default=None)

    @property
    def mean(self) -> float | None:
        """Mean reward of the safe policies; None without one."""
        return fmean(self.rewards) if self.rewards else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the rewards of the safe policies; None without one."""
        return pstdev(self.rewards) if self.rewards else None

    @property
    def unsafe(self) -> tuple[SeedRun, ...]:
        """The runs that ended without a safe policy, and without an error."""
        return tuple(run for run in self.runs if not run.safe and run.error is None)

    @property
    def failed(self) -> tuple[SeedRun, ...]:
        """The runs that raised an error."""
        return tuple(run for run in self.runs if run.error is not None)

    @property
    def _safe(self) -> list[SeedRun]:
        return [run for run in self.runs if run.safe]

    def rows(self) -> list[tuple[str, str]]:
        """Return the spread as pairs of a name and a string, for people."""
        best, worst = self.best, self.worst
        text = f"{len(self.rewards)} of {len(self.runs)} safe"
        if best is not None and worst is not None:
            text = (
                f"reward {show_reward(worst.reward)} to {show_reward(best.reward)} "
                f"(seed {best.seed}), mean {show_reward(self.mean)} ± "
                f"{self.deviation:.2g}; {text}"
            )
        if self.left_out:
            text += f"; {len(self.left_out)} left out"
        rows = [("seeds", text)]
        rows += [(f"seed {run.seed}", f"failed: {run.error}") for run in self.failed]
        if self.lost_workers:
            rows.append(describe_lost(self.lost_workers))
        return rows

    def tabulate(self) -> TextTable:
        """Return the runs as a table, for people."""
        return TextTable(
            ["", "seed", "reward", "risk", "samples", "time", ""],
            [
                [
                    "✓" if run.safe else "✗" if run.reward is not None else MISSING,
                    str(run.seed),
                    show_reward(run.reward),
                    show_probability(run.risk),
                    show_count(run.samples),
                    show_seconds(run.seconds),
                    run.explanation,
                ]
                for run in self.runs
            ],
            left=1,
        )

    def __str__(self) -> str:
        return str(self.tabulate())


def _earn(run: SeedRun) -> float:
    """Return what a policy earns."""
    assert run.reward is not None
    return run.reward


def describe_lost(workers: int) -> tuple[str, str]:
    """Return how many workers were lost, as a row for people."""
    return ("workers", f"{workers:,} died on the way; others did their work")
