"""Plan while acting: `python -m benchmarks.histories.acting --seconds 0.2 --episodes 50`.

For each mission: the expected reward and risk of a controller in random episodes, its share of the
optimum, what the bound allows for that reward, failures with the probability p of at least as many
if the promise is just kept, and times of steps: the longest, the 99th percentile, and how many took
over 10 % more than --seconds, or 50 ms if that is more. These count only on an idle machine. The
command fails where p is below 1 %.

Rewards are estimated with little noise. Let V and Q be the values of the merged twin for a price of
failure λ. Whatever a controller does,

    E g - λ er  =  V(start) - E[sum over its decisions of V - Q],

so that only what it does worse than the twin's optimum is left to chance. Its risk is the mean sum
of immediate risks.
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import binomtest

import vulcan
from benchmarks.histories.missions import MISSIONS, History, Merged, Mission

SECONDS = 0.2  # per step, if nothing else is given
LEVEL = 0.01  # of the test that the promise is kept
HEAD = (
    "mission      first plan   reward  optimum   share (±)       risk  allowed  "
    "failures (p)     longest      99 %  late steps"
)


class TwinValues:
    """Values of a mission's twin for a price of failure."""

    def __init__(self, mission: Mission, price: float) -> None:
        self._mission, self._price = mission, price
        self.value = cache(self._value)

    def _value(self, state: Any, step: int) -> float:
        if step == self._mission.horizon:
            return 0.0
        actions = self._mission.actions(state)
        return max((self.evaluate(state, step, a) for a in actions), default=0.0)

    def evaluate(self, state: Any, step: int, action: str) -> float:
        """Return the value of an action."""
        found = 0.0
        for p, reward, then, _ in self._mission.outcomes(state, action):
            later = -self._price if then is None else self.value(then, step + 1)
            found += p * (reward + later)
        return found


@dataclass
class Episode:
    """What an episode loses against the twin, its immediate risks, and the times of its steps."""

    loss: float = 0.0
    risk: float = 0.0
    failed: bool = False
    seconds: list[float] = field(default_factory=list)


def play(mission: Mission, twin: TwinValues, first: vulcan.Controller, seed: int) -> Episode:
    """Play an episode."""
    stream = random.Random(seed)
    controller, found = first.restart(), Episode()
    state, step = mission.initial, 0
    while not controller.finished:
        action = controller.action
        found.loss += twin.value(state, step) - twin.evaluate(state, step, action)
        outcomes = mission.outcomes(state, action)
        found.risk += sum(p for p, _, then, _ in outcomes if then is None)
        weights = [max(p, 0.0) for p, *_ in outcomes]
        _, _, then, label = stream.choices(outcomes, weights)[0]
        if then is None:
            found.failed = True
            break
        state, step = then, step + 1
        began = time.perf_counter()
        controller.observe(label)
        if not controller.finished:  # else nothing was planned
            found.seconds.append(time.perf_counter() - began)
    return found


def find_price(optimum: vulcan.Result) -> float:
    """Return the price of failure at which the optimum is nearly the best policy.

    With the slope d of the bound, a unit of allowed risk brings `price` in reward and with it
    d · price of further allowed risk.
    """
    bound, reward = optimum.problem.risk_bound, float(optimum.certificate.reward)
    width = 1e-6 * max(1.0, abs(reward))
    slope = (bound(reward + width) - bound(reward - width)) / (2 * width)
    price = optimum.price or 0.0
    return price / (1 + slope * price)


def main() -> None:
    """Print a line for each mission."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(MISSIONS))
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--samples", type=int, default=None)
    parser.add_argument("--episodes", type=int, default=50)
    given = parser.parse_args()
    limit = SECONDS if given.samples is None and given.seconds is None else given.seconds
    print(HEAD)
    broken = []
    for name in given.names:
        mission = MISSIONS[name]()
        optimum = vulcan.solve(vulcan.Problem(Merged(mission), mission.bound), gap=1e-3)
        price = find_price(optimum)
        twin = TwinValues(mission, price)
        controller = vulcan.Controller(
            vulcan.Problem(History(mission), mission.bound),
            seconds_per_step=limit,
            samples_per_step=given.samples,
        )
        episodes = [play(mission, twin, controller, seed) for seed in range(given.episodes)]
        losses = np.array([episode.loss for episode in episodes])
        risks = np.array([episode.risk for episode in episodes])
        risk = float(risks.mean())
        reward = twin.value(mission.initial, 0) - float(losses.mean()) + price * risk
        error = (losses - price * risks).std() / given.episodes**0.5
        best = float(optimum.certificate.reward)
        first = float(controller.result.certificate.reward)
        allowed = float(vulcan.parse(mission.bound)(reward))
        failures = sum(episode.failed for episode in episodes)
        test = binomtest(failures, given.episodes, max(0.0, allowed), alternative="greater")
        if test.pvalue < LEVEL:
            broken.append(name)
        steps = np.array([seconds for episode in episodes for seconds in episode.seconds] or [0.0])
        late = "    -" if limit is None else f"{(steps > max(1.1 * limit, limit + 0.05)).sum():5}"
        print(
            f"{name:12} {first / best:10.1%} {reward:8.3f} {best:8.3f} {reward / best:7.1%} "
            f"({error / best:.1%})  {risk:9.5f} {allowed:8.5f} {failures:6} ({test.pvalue:5.3f})  "
            f"{steps.max():7.3f} s {np.percentile(steps, 99):7.3f} s {late} of {len(steps)}",
            flush=True,
        )
    if broken:
        raise SystemExit(f"more failures than promised: {', '.join(broken)}")


if __name__ == "__main__":
    main()
