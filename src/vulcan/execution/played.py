"""Episodes of a policy as it stands: compiled, on all cores.

A policy carries what its model said of every action that it takes, so that episodes need no model.
They are played in chunks of a fixed size. Each chunk has its own stream of random numbers
(SplitMix64, at a place of its period that the seed and the chunk's number choose), its own share of
a randomised policy's members, and its own tally. Tallies are joined in the order of the chunks, so
that the numbers are the same bit for bit on any number of cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.policies.prospects import find_prospects, read_plan
from vulcan.policies.randomised import AnyPolicy

__all__ = ["BINS", "Episodes", "Expected", "GoOn", "PlayedPolicy", "start_histogram"]

GoOn = Callable[[int, float], bool]
"""Told how many episodes were played and their mean reward: whether to play the others."""

CHUNK: Final = 1 << 14
"""Episodes with one stream of random numbers."""

BINS: Final = 960
"""Bins of the histogram: more than anybody looks at, so that any part of them can be drawn."""


@dataclass(frozen=True)
class Expected:
    """What a policy comes to exactly, as the model that it was made for has it.

    Attributes
    ----------
    reward, risk, frontier
        Expected reward, probability of failure, and of leaving an incomplete plan.
    deviation
        Standard deviation of the reward.
    least, most
        The smallest and the largest reward of any episode.
    failures
        Probability of failing at each level of decisions.
    """

    reward: float
    risk: float
    frontier: float
    deviation: float
    least: float
    most: float
    failures: tuple[float, ...]


@dataclass
class Episodes:
    """What was counted over episodes.

    Attributes
    ----------
    tally
        A record of `vulcan.kernels.episodes.TALLY`.
    bins
        Lower edge and width of the bins of rewards, and then the count of each.
    failures
        How many episodes failed at each level.
    strayed
        How many came to where the policy does not know on.
    example
        What happened in the first of these.
    """

    tally: Any
    bins: NDArray[np.float64]
    failures: NDArray[np.int64]
    strayed: int = 0
    example: str | None = None

    def join(self, other: Episodes) -> None:
        """Add other episodes to these."""
        ours, others = self.tally, other.tally
        count = ours["episodes"] + others["episodes"]
        if count:
            distance = others["mean"] - ours["mean"]
            share = others["episodes"] / count
            ours["squares"] += others["squares"] + distance**2 * share * ours["episodes"]
            ours["mean"] += distance * share
        ours["least"] = min(ours["least"], others["least"])
        ours["most"] = max(ours["most"], others["most"])
        for name in ("episodes", "failed", "unplanned", "decisions"):
            ours[name] += others[name]
        self.bins[2:] += other.bins[2:]
        self.failures += other.failures


def start_histogram(least: float, most: float) -> NDArray[np.float64]:
    """Return the empty bins of rewards between two."""
    width = (most - least) / BINS or 1.0
    return np.array([least, width, *[0.0] * BINS])


class PlayedPolicy:
    """A policy whose episodes are played by its own arrays.

    Parameters
    ----------
    policy
        Any policy.
    first
        The discount after its first decision.
    """

    def __init__(self, policy: AnyPolicy, first: float) -> None:
        self._weights = np.array(policy.weights) / math.fsum(policy.weights)
        self._plans = [read_plan(member, first) for member in policy.members]
        self._longest = policy.about.horizon + 1
        self.expected = self._expect()

    def play(
        self, episodes: int, seed: int, workers: int, go_on: GoOn = lambda *_: True
    ) -> Episodes:
        """Return episodes, the same for a seed whatever the number of threads."""
        sizes = [min(CHUNK, episodes - done) for done in range(0, episodes, CHUNK)]
        streams = np.random.SeedSequence(seed).generate_state(2 * len(sizes), np.uint64)
        whole = self._begin(0)
        with ThreadPoolExecutor(max(1, min(workers, len(sizes)))) as pool:
            for part in pool.map(self._play_chunk, sizes, streams[::2], streams[1::2]):
                whole.join(part)
                if not go_on(int(whole.tally["episodes"]), float(whole.tally["mean"])):
                    pool.shutdown(cancel_futures=True)
                    break
        return whole

    def _play_chunk(self, episodes: int, stream: int, draw: int) -> Episodes:
        from vulcan.kernels.episodes import play

        part = self._begin(stream)
        counts = np.random.default_rng(int(draw)).multinomial(episodes, self._weights)
        tally = part.tally.reshape(1)
        for plan, count in zip(self._plans, counts, strict=True):
            play(plan, count, tally, part.bins, part.failures)
        return part

    def _begin(self, stream: int) -> Episodes:
        from vulcan.kernels.episodes import TALLY

        tally = np.zeros((), TALLY)
        tally["random"], tally["least"], tally["most"] = stream, math.inf, -math.inf
        exact = self.expected
        bins = start_histogram(exact.least, exact.most)
        return Episodes(tally, bins, np.zeros(len(exact.failures), np.int64))

    def _expect(self) -> Expected:
        from vulcan.kernels.episodes import VALUE, spread

        values = np.zeros(len(self._plans), VALUE)
        failures, longest = np.zeros(self._longest), 0
        for k, (plan, weight) in enumerate(zip(self._plans, self._weights, strict=True)):
            if len(plan.first) > 1:
                values[k] = find_prospects(plan)[0]
            fails = np.zeros(self._longest)
            longest = max(longest, spread(plan, fails))
            failures += weight * fails
        mean = float(self._weights @ values["mean"])
        variance = self._weights @ (values["variance"] + (values["mean"] - mean) ** 2)
        return Expected(
            reward=mean,
            risk=float(self._weights @ values["risk"]),
            frontier=float(self._weights @ values["frontier"]),
            deviation=math.sqrt(variance),
            least=float(values["least"].min()),
            most=float(values["most"].max()),
            failures=tuple(failures[:longest].tolist()),
        )
