"""What the value of policies at a price of risk says about the reward of those that are acceptable.

If w E g - k er <= v for every policy, one that is acceptable and earns y has (w y - v) / k <= Δ(y).
With w = 1 that is a line in the plane of risk and reward, E g <= v + k er, which holds whatever the
bound is: proved for one bound, it limits the reward under every other.

All that is computed here is rounded so that limits can only get larger.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Final

from vulcan.bounds.base import RiskBound
from vulcan.tolerance import TOLERANCE

__all__ = ["RewardLine", "Weights", "limit_reward"]

ROUNDING: Final = 4 * sys.float_info.epsilon
"""What a few operations do to a number, as a share of the largest that is involved."""

MOST_STEPS: Final = 100
"""Of Newton's method; a few are usual, and each is a limit by itself."""

Weights = tuple[float, float]
"""w and k: of reward and of risk."""


@dataclass(frozen=True)
class RewardLine:
    """No policy, randomised or not, acceptable or not, earns more than value + price · its risk.

    Attributes
    ----------
    price
        k, of risk.
    value
        The largest E g - k er of any policy, or more.
    """

    price: float
    value: float

    def __call__(self, risk: float) -> float:
        """Return what a policy with this risk earns at most."""
        return self.value + self.price * risk


def limit_reward(
    bound: RiskBound, weights: Weights, value: float, least: float, most: float
) -> tuple[float, float]:
    """Return the largest acceptable reward of policies up to a value, and the slope of Δ there.

    A policy with w E g - k er <= value and reward y has at least the risk (w y - value) / k.
    Newton's method from the right, where `most` is, never passes below the largest y at which Δ
    allows that, since tangents lie above Δ. Rewards below `least`, that of the policy of least
    risk, are out of the question: where they are acceptable, that policy is, too.
    """
    reward_weight, risk_weight = weights
    reward, slope = most, 0.0
    for _ in range(MOST_STEPS):
        if reward < least or bound(reward) == -math.inf:
            return -math.inf, slope
        tangent = bound.tangent(reward)
        slope = tangent.least_slope
        allowed = max(tangent.value, float(bound.enclose(reward, reward)[1])) + TOLERANCE
        worth, cost = reward_weight * reward, risk_weight * allowed
        excess = worth - value - cost - ROUNDING * (abs(worth) + abs(value) + abs(cost))
        if not excess > 0:
            break
        steepness = reward_weight - (1 - ROUNDING) * risk_weight * slope
        if steepness <= 0:
            return -math.inf, slope  # to the left the bound falls at least as fast as the risk
        following = math.nextafter(reward - (1 - ROUNDING) * excess / steepness, math.inf)
        if following >= reward:
            break
        reward = following
    return reward, slope
