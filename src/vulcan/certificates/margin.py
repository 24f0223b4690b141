"""The margin of a certificate: how wrong the model's risks may be.

It is the largest common factor κ on all immediate risks up to which the bound holds: each r becomes
min(1, κ r), and the safe outcomes share what is left. It says how wrong the model's risks may be,
all in the same direction, before the policy is no longer acceptable. It is found by trying factors,
ever wider apart (fewer of them for large policies), and then to a relative 1e-7 between the last
that held and the first that did not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count, pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RiskBound
from vulcan.certificates.levels import Level, Number, arrive
from vulcan.errors import BoundError
from vulcan.tolerance import TOLERANCE

__all__ = ["find_margin"]

# Factors to try from 1 upwards: densely where it matters, and then ever wider apart.
FACTORS: Final = (
    *np.geomspace(1.0, 2.0, 16),
    *np.geomspace(2.0, 10.0, 10)[1:],
    *np.geomspace(10.0, 1e12, 40)[1:],
)

FEW_FACTORS: Final = (1.0, 1.0001, 1.01, 1.2, 2.0, 5.0, 20.0, 100.0, 1e4, 1e6, 1e9, 1e12)
"""The same for policies with this many ways from place to place."""
LARGE: Final = 200_000

PRECISION: Final = 1e-7
"""Of the margin, as a share of it."""


def find_margin(levels: Sequence[Level], start: Sequence[Number], bound: RiskBound) -> float:
    """Return the largest factor up to which the bound held at every factor that was tried.

    Parameters
    ----------
    levels
        The places of all histories.
    start
        Probability of each place of the first level.
    bound
        The bound that is to hold.
    """
    if not levels:
        return math.inf
    scaled = _Scaled(levels, start)
    certified, _ = scaled.evaluate(1.0)

    def find_slack(factor: float) -> float:
        reward, risk = scaled.evaluate(factor)
        try:
            allowed = bound(reward)
            # Far from any reward that a policy has, the function need not be a bound any more.
            most = bound(certified) if reward < certified else math.inf
        except BoundError:
            return -1.0
        return max(-1.0, min(allowed, most) + TOLERANCE - risk)

    now = find_slack(1.0)
    if now < 0:
        tried = np.linspace(0.0, 1.0, 16).tolist()
        now = find_slack(0.0)
        if now < 0:
            return 0.0
    else:
        # Beyond this every risky action fails for sure, and nothing changes any more.
        most = 1 / max(scaled.smallest_risk(), FACTORS[-1] ** -1)
        factors = FACTORS if scaled.size < LARGE else FEW_FACTORS
        tried = [*(factor for factor in factors if factor < most), max(most, 1.0)]
    for low, high in pairwise(tried):
        after = find_slack(high)
        if after < 0:
            return _narrow(find_slack, (low, now), (high, after))
        now = after
    return math.inf


def _narrow(
    find_slack: Callable[[float], float], low: tuple[float, float], high: tuple[float, float]
) -> float:
    """Return a factor up to which the slack is not negative, between one and another.

    It is the secant method between the two. Of an end that stays, half the slack counts (Illinois),
    and every third time the middle is tried, so that both ends move.
    """
    (left, above), (right, below) = low, high
    for attempt in count(1):
        if right - left <= PRECISION * right:
            break
        middle = left + (right - left) * (above / (above - below) if attempt % 3 else 0.5)
        middle = min(max(middle, left + PRECISION * right / 2), right - PRECISION * right / 2)
        slack = find_slack(middle)
        if slack >= 0:
            left, above, below = middle, slack, below / 2
        else:
            right, below, above = middle, slack, above / 2
    return left


class _Scaled:
    """Reward and risk of the same policy with every immediate risk times a factor."""

    def __init__(self, levels: Sequence[Level], start: Sequence[Number]) -> None:
        self._start = _floats(start)
        self._weights = [float(level.weight) for level in levels]
        self._sources = [np.asarray(level.source, np.int32) for level in levels]
        self._targets = [np.asarray(level.target, np.int32) for level in levels]
        self._probabilities = [_floats(level.probability) for level in levels]
        self._risks = [_floats(level.risk) for level in levels]
        self._failing = [_floats(level.failing_reward) for level in levels]
        self._safe = [_floats(level.safe_reward) for level in levels]

    @property
    def size(self) -> int:
        """How many ways there are from place to place."""
        return sum(map(len, self._sources))

    def smallest_risk(self) -> float:
        """Return the smallest positive immediate risk; inf without any."""
        risks = np.concatenate(self._risks)
        return float(np.min(risks, where=risks > 0, initial=math.inf))

    def evaluate(self, factor: float) -> tuple[float, float]:
        """Return reward and risk under a factor."""
        reward = risk = 0.0
        reach = self._start
        for k, risks in enumerate(self._risks):
            scaled = np.minimum(1.0, factor * risks)
            more = np.divide(scaled, risks, out=np.zeros_like(risks), where=risks > 0)
            less = np.divide(1 - scaled, 1 - risks, out=np.zeros_like(risks), where=risks < 1)
            risk += float((reach * scaled).sum())
            earned = more * self._failing[k] + less * self._safe[k]
            reward += self._weights[k] * float((reach * earned).sum())
            source = self._sources[k]
            arriving = reach[source] * less[source] * self._probabilities[k]
            following = len(self._risks[k + 1]) if k + 1 < len(self._risks) else 0
            reach = arrive(self._targets[k], arriving, following)
        return reward, risk


def _floats(numbers: Any) -> NDArray[np.float64]:
    if isinstance(numbers, np.ndarray):
        return numbers
    return np.array([float(number) for number in numbers])
