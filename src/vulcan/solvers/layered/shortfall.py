"""By how much a policy may fall short of the Lagrangian optimum, and still be worth looking at.

With k the price of failure of the dual bound, let v = max (E g - k er) over all policies. A policy
*falls short* by v - (E g - k er) >= 0. If it is acceptable and falls short by more than a slack, it
earns at most the largest y with y - k Δ(y) <= v - slack (`limit`). So a slack is enough once that
is no more than what the best policy so far earns: what falls short by more need not be looked at.
"""

from __future__ import annotations

import math
from typing import Final

from vulcan.solvers.layered.dual import Dual
from vulcan.solvers.layered.run import LayeredRun

__all__ = ["SMALL_SHARE", "Shortfall"]

ROUNDING: Final = 1e-12
"""What rounding may do to a slack, as a share of it: it is divided by probabilities, and summed."""

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
        self._floor = dual.floor
        self._most = run.referee.raise_reward(dual.corners[-1].reward)
        self.ways = run.sweeps.follow_weights(1.0, self.price)
        self.values = self.ways.rewards - self.price * self.ways.risks

    def limit(self, slack: float) -> float:
        """Return an upper bound on acceptable policies that fall short by more than a slack."""
        referee, weights, best = self._run.referee, (1.0, self.price), float(self.values[0])
        # The value of every policy is rounded, and what each of its parts falls short of that.
        rounding = 4 * (referee.raise_value(best, weights, self._most) - best)
        value = best - (1 - ROUNDING) * slack + rounding
        return self._floor.limit(referee, weights, value, self._run.upper)[0]

    def find_enough(self) -> float:
        """Return the smallest slack at which nothing better than the best policy is dropped."""
        best = self._run.best
        if best is None:
            return math.inf
        # Where the policy of least risk is in doubt, no limit is below what it earns.
        goal = max(self._run.referee.raise_reward(best.reward), self._floor.reward)
        low, high = 0.0, self.size * SMALL_SHARE or SMALL_SHARE
        while high < math.inf and self.limit(high) > goal:
            low, high = high, 2 * high
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (low, middle) if self.limit(middle) <= goal else (middle, high)
        return high
