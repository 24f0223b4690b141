"""By how much a policy may fall short of the Lagrangian optimum, and still be worth looking at.

With k the price of failure of the dual bound, let v = max (E g - k er) over all policies. A policy
*falls short* by v - (E g - k er) >= 0. If it is acceptable and falls short by more than a slack, it
earns at most the largest y with y - k Δ(y) <= v - slack (`limit`). So a slack is enough once that
is no more than what the best policy so far earns: what falls short by more need not be looked at.
"""

from __future__ import annotations

import math
from typing import Final

from vulcan.bounds.reward_limit import limit_reward
from vulcan.solvers.layered.dual import ROUNDING, Dual
from vulcan.solvers.layered.run import LayeredRun

__all__ = ["SMALL_SHARE", "Shortfall"]

SMALL_SHARE: Final = 1e-6
"""A small slack, as a share of the rewards that matter."""


class Shortfall:
    """What policies may fall short, for one price of failure.

    Parameters
    ----------
    run
        The search, with its best policy and its upper bound.
    dual
        Its dual.

    Attributes
    ----------
    price
        The price of failure.
    size
        How large the rewards are that matter.
    ways, values
        What the policy of this price earns and risks from each node on, and what that is worth.
    """

    def __init__(self, run: LayeredRun, dual: Dual) -> None:
        self._run = run
        self.price, self.size = dual.multiplier, run.size
        self._least = min(dual.corners, key=lambda corner: corner.risk).reward
        self.ways = run.sweeps.follow_weights(1.0, self.price)
        self.values = self.ways.rewards - self.price * self.ways.risks

    def limit(self, slack: float) -> float:
        """Return an upper bound on acceptable policies that fall short by more than a slack."""
        value = float(self.values[0]) - slack + ROUNDING * self.size
        weights = (1.0, self.price)
        return limit_reward(self._run.bound, weights, value, self._least, self._run.upper)[0]

    def find_enough(self) -> float:
        """Return the smallest slack at which nothing better than the best policy is dropped."""
        best = self._run.best
        if best is None:
            return math.inf
        low, high = 0.0, self.size * SMALL_SHARE
        while self.limit(high) > best.reward:
            low, high = high, 2 * high
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (low, middle) if self.limit(middle) <= best.reward else (middle, high)
        return high
