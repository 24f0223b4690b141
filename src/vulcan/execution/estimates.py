"""What simulated episodes show, and whether it is what the exact values say.

Around each estimate stands a confidence interval: of the mean reward Student's, of a probability
that of Clopper and Pearson, which covers the truth at least as often as it says.

Whether episodes *disagree* with the exact values is another question, and has to be wrong far less
often. It is asked of the exact values: if they were true, how likely would episodes like these be?
A number of failures has a binomial distribution then, and is tested by it. The sum of n rewards,
each with standard deviation σ and within b of its mean, is further than nε from its mean with
probability at most 2 exp(-nε² / (2σ² + 2bε/3)) (Bernstein), whatever else their distribution is;
σ and b are those of the policy, exactly. All these tests together raise a false alarm with a
probability of at most `ERROR_LEVEL`. An episode that strays is a disagreement by itself: what
happened there is impossible under the policy's own model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from vulcan.execution.played import Episodes, Expected
from vulcan.runtime.formatting import (
    TextTable,
    show_percent,
    show_probability,
    show_reward,
    show_seconds,
)
from vulcan.tolerance import AGREEMENT

__all__ = ["ERROR_LEVEL", "Estimate", "Simulation", "find_disagreements", "judge"]

ERROR_LEVEL: Final = 1e-6
"""How likely a false alarm is at the most."""

MOST_BARS: Final = 12
"""Rows of the histogram in the text."""
BAR: Final = 40
MOST_STEPS: Final = 12


@dataclass(frozen=True)
class Estimate:
    """A number that episodes estimate, and what it is exactly.

    Attributes
    ----------
    value
        The estimate.
    low, high
        Its confidence interval.
    exact
        What it is by the policy and the model that it was made for.
    """

    value: float
    low: float
    high: float
    exact: float


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """What episodes of a policy came to, beside its exact values.

    Attributes
    ----------
    model
        Where they were played, as a text.
    engine
        How: "compiled", from the policy's own arrays, or "Python", in another model or environment.
    episodes, seed
        How many, and the seed of their random numbers.
    confidence
        That of the intervals.
    reward, risk, frontier
        Mean reward, share of failures, and share that left an incomplete plan.
    deviation, exact_deviation
        Standard deviation of the reward, of the episodes and exactly.
    least, most
        The smallest and the largest reward that occurred.
    decisions
        Mean number of decisions in an episode.
    survival, exact_survival
        Share that has not failed after each decision, and the exact probability of it; before the
        first decision it is 1.
    edges, counts
        The histogram of rewards: counts[k] episodes had one from edges[k] to edges[k + 1]. Bins are
        narrow; `coarsen` joins them.
    strayed, example
        How many came to where the policy does not know on, and how the first one did.
    disagreements
        What is not as the exact values say; a false alarm has a probability of at most
        `vulcan.execution.estimates.ERROR_LEVEL`, 1e-6.
    seconds, workers
        How long it took, on how many threads.
    interrupted
        Whether Ctrl-C ended it before all episodes were played.
    """

    model: str
    engine: str
    episodes: int
    seed: int
    confidence: float
    reward: Estimate
    risk: Estimate
    frontier: Estimate
    deviation: float
    exact_deviation: float
    least: float
    most: float
    decisions: float
    survival: tuple[float, ...]
    exact_survival: tuple[float, ...]
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    strayed: int
    example: str | None
    disagreements: tuple[str, ...]
    seconds: float
    workers: int
    interrupted: bool = False

    @property
    def agrees(self) -> bool:
        """Whether episodes are what the exact values say, as far as they can tell."""
        return not self.disagreements

    def coarsen(self, most: int) -> tuple[tuple[float, ...], tuple[int, ...]]:
        """Return edges and counts of the histogram in at most this many bins, without empty ends.

        Parameters
        ----------
        most
            How many bins at the most.
        """
        filled = np.flatnonzero(self.counts)
        first, last = int(filled[0]), int(filled[-1]) + 1
        step = -(-(last - first) // most)
        begins = range(first, last, step)
        counts = [sum(self.counts[begin : min(last, begin + step)]) for begin in begins]
        edges = [self.edges[begin] for begin in begins] + [self.edges[min(last, begins[-1] + step)]]
        return tuple(edges), tuple(counts)

    def rows(self) -> list[tuple[str, str]]:
        """Return the numbers as pairs of a name and a string, for people."""
        rows = [
            ("reward", self._compare(self.reward, show_reward)),
            ("risk", self._compare(self.risk, show_probability)),
        ]
        if self.frontier.exact or self.frontier.value:
            rows.append(("leaves the plan", self._compare(self.frontier, show_probability)))
        if self.strayed:
            rows.append(("strays", f"{show_percent(self.strayed / self.episodes)}  {self.example}"))
        unit = "thread" if self.workers == 1 else "threads"
        how = f"{self.engine}, {self.workers} {unit}" if self.engine == "compiled" else self.engine
        return [
            *rows,
            ("spread", f"{self.deviation:.6f}  from {self.least:.6g} to {self.most:.6g}"),
            ("decisions", f"{self.decisions:.4g} in a mean episode"),
            ("time", f"{show_seconds(self.seconds)}  {how}, seed {self.seed}"),
        ]

    @property
    def _exactly(self) -> str:
        """What exact values are called: elsewhere than in its own model they are only expected."""
        return "exactly" if self.engine == "compiled" else "in its own model"

    def _compare(self, estimate: Estimate, show: Any) -> str:
        interval = f"{100 * self.confidence:g} %: {show(estimate.low)} to {show(estimate.high)}"
        return f"{show(estimate.value)}  ({interval})  {self._exactly} {show(estimate.exact)}"

    def tables(self) -> tuple[TextTable, TextTable]:
        """Return survival over the steps, and the histogram of rewards, as tables."""
        return _tabulate_survival(self), _tabulate_rewards(self)

    def __repr__(self) -> str:
        return (
            f"<Simulation of {self.episodes:,} episodes: reward {self.reward.value:.6g}, "
            f"risk {self.risk.value:.4g}, {'agrees' if self.agrees else 'DISAGREES'}>"
        )

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        lines = [f"{self.episodes:,} episodes of {self.model}"]
        lines += [f"  {name:<{width}}  {text}" for name, text in self.rows()]
        for table in self.tables():
            lines += ["", *(f"  {line}" for line in str(table).split("\n"))]
        lines += ["", *(f"  Disagreement: {text}" for text in self.disagreements)]
        return "\n".join(lines).rstrip()


def _tabulate_survival(simulation: Simulation) -> TextTable:
    """Return how likely it is not to have failed, after each decision or after some of many."""
    last = len(simulation.survival) - 1
    shown = np.linspace(0, last, min(last, MOST_STEPS) + 1).round().astype(int).tolist()
    rows = [
        [str(k), f"{simulation.survival[k]:.6f}", f"{simulation.exact_survival[k]:.6f}", ""]
        for k in shown
    ]
    return TextTable(["decisions", "not failed", simulation._exactly, ""], rows)


def _tabulate_rewards(simulation: Simulation) -> TextTable:
    edges, counts = simulation.coarsen(MOST_BARS)
    most = max(counts)
    rows = [
        [
            f"{low:.4g}",
            f"{high:.4g}",
            show_percent(count / simulation.episodes),
            "█" * round(BAR * count / most),
        ]
        for (low, high), count in zip(pairwise(edges), counts, strict=True)
    ]
    return TextTable(["reward from", "to", "share", ""], rows)


def judge(episodes: Episodes, exact: Expected, confidence: float) -> dict[str, Any]:
    """Return the estimates of episodes beside the exact values, by the names of `Simulation`."""
    from scipy import stats

    tally = episodes.tally
    count = int(tally["episodes"])
    mean = float(tally["mean"])
    deviation = math.sqrt(float(tally["squares"]) / max(1, count - 1))
    half = (
        float(stats.t.ppf(0.5 + confidence / 2, max(1, count - 1))) * deviation / math.sqrt(count)
    )

    def estimate(found: int, probability: float) -> Estimate:
        interval = stats.binomtest(found, count).proportion_ci(confidence, method="exact")
        return Estimate(found / count, float(interval.low), float(interval.high), probability)

    low, width, *counts = episodes.bins.tolist()
    levels = max(len(episodes.failures), len(exact.failures))
    failures = np.pad(episodes.failures, (0, levels - len(episodes.failures)))
    expected = np.pad(np.array(exact.failures), (0, levels - len(exact.failures)))
    return {
        "episodes": count,
        "confidence": confidence,
        "reward": Estimate(mean, mean - half, mean + half, exact.reward),
        "risk": estimate(int(tally["failed"]), exact.risk),
        "frontier": estimate(int(tally["unplanned"]), exact.frontier),
        "deviation": deviation,
        "exact_deviation": exact.deviation,
        "least": float(tally["least"]),
        "most": float(tally["most"]),
        "decisions": int(tally["decisions"]) / count,
        "survival": (1.0, *(1 - np.cumsum(failures) / count).tolist()),
        "exact_survival": (1.0, *(1 - np.cumsum(expected)).tolist()),
        "edges": tuple((low + width * np.arange(len(counts) + 1)).tolist()),
        "counts": tuple(map(int, counts)),
        "strayed": episodes.strayed,
        "example": episodes.example,
        "disagreements": find_disagreements(episodes, exact),
    }


def find_disagreements(episodes: Episodes, exact: Expected) -> tuple[str, ...]:
    """Return what episodes show that the exact values make too unlikely, in sentences."""
    tally = episodes.tally
    count, mean = int(tally["episodes"]), float(tally["mean"])
    found = []
    level = ERROR_LEVEL / 3
    if (chance := weigh_mean(mean, count, exact)) < level:
        found.append(
            f"the mean reward is {mean:.6f}, not {exact.reward:.6f}: by chance that has a "
            f"probability of at most {chance:.0e}"
        )
    for name, number, probability in (
        ("fails", int(tally["failed"]), exact.risk),
        ("leaves the plan", int(tally["unplanned"]), exact.frontier),
    ):
        if (chance := weigh_count(number, count, probability)) < level:
            found.append(
                f"it {name} in {number:,} of {count:,} episodes, not with probability "
                f"{probability:.6g}: by chance that has a probability of {chance:.0e}"
            )
    if episodes.strayed:
        found.append(
            f"{episodes.strayed:,} of {count:,} episodes did what can't happen under the policy's "
            f"own model: {episodes.example}"
        )
    return tuple(found)


def weigh_mean(mean: float, count: int, exact: Expected) -> float:
    """Return how likely a mean at least this far from the exact one is, at the most (Bernstein)."""
    farthest = max(exact.most - exact.reward, exact.reward - exact.least)
    distance = abs(mean - exact.reward)
    if distance <= AGREEMENT * max(1.0, abs(exact.most), abs(exact.least)):
        return 1.0
    spread = 2 * exact.deviation**2 + 2 * farthest * distance / 3
    return min(1.0, 2 * math.exp(-count * distance**2 / spread)) if spread else 0.0


def weigh_count(number: int, count: int, probability: float) -> float:
    """Return how likely a count is that is no likelier than this one (the binomial test)."""
    from scipy import stats

    # Sums of probabilities may be a rounding beyond 0 and 1.
    return float(stats.binomtest(number, count, min(1.0, max(0.0, probability))).pvalue)
