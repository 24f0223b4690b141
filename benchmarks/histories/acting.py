"""Plan while acting: `python -m benchmarks.histories.acting --seconds 0.2 --episodes 50`.

For each mission: the expected reward and risk of a controller in random episodes, its share of the
optimum, what the bound allows for that reward, and the longest step.

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
from functools import cache
from typing import Any

import numpy as np

import vulcan
from benchmarks.histories.missions import MISSIONS, History, Merged, Mission


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


def play(
    mission: Mission, twin: TwinValues, first: vulcan.Controller, seed: int
) -> tuple[float, float, float]:
    """Return what an episode loses against the twin, what it risks, and its longest step."""
    stream = random.Random(seed)
    controller = first.restart()
    state, step, loss, risk, longest = mission.initial, 0, 0.0, 0.0, 0.0
    while not controller.finished:
        action = controller.action
        loss += twin.value(state, step) - twin.evaluate(state, step, action)
        outcomes = mission.outcomes(state, action)
        risk += sum(p for p, _, then, _ in outcomes if then is None)
        weights = [max(p, 0.0) for p, *_ in outcomes]
        _, _, then, label = stream.choices(outcomes, weights)[0]
        if then is None:
            break
        state, step = then, step + 1
        began = time.perf_counter()
        controller.observe(label)
        longest = max(longest, time.perf_counter() - began)
    return loss, risk, longest


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
    print("mission      first plan   reward  optimum   share (±)       risk  allowed  longest step")
    for name in given.names:
        mission = MISSIONS[name]()
        optimum = vulcan.solve(vulcan.Problem(Merged(mission), mission.bound), gap=1e-3)
        price = find_price(optimum)
        twin = TwinValues(mission, price)
        controller = vulcan.Controller(
            vulcan.Problem(History(mission), mission.bound),
            seconds_per_step=given.seconds,
            samples_per_step=given.samples,
        )
        found = np.array([play(mission, twin, controller, k) for k in range(given.episodes)])
        risk = float(found[:, 1].mean())
        reward = twin.value(mission.initial, 0) - float(found[:, 0].mean()) + price * risk
        error = (found[:, 0] - price * found[:, 1]).std() / given.episodes**0.5
        best = float(optimum.certificate.reward)
        first = float(controller.result.certificate.reward)
        allowed = float(vulcan.parse(mission.bound)(reward))
        print(
            f"{name:12} {first / best:10.1%} {reward:8.3f} {best:8.3f} {reward / best:7.1%} "
            f"({error / best:.1%})  {risk:9.5f} {allowed:8.5f} {found[:, 2].max():9.3f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
