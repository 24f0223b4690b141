"""The margin of a certificate: how wrong the model's risks may be.

It is the largest common factor κ on all immediate risks up to which the bound holds: each r becomes
min(1, κ r), and the safe outcomes share what is left. It says how wrong the model's risks may be,
all in the same direction, before the policy is no longer acceptable. It is found by trying factors,
ever wider apart, and then to a relative 1e-7 between the last that held and the first that did not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RiskBound
from vulcan.errors import BoundError
from vulcan.tolerance import TOLERANCE

if TYPE_CHECKING:
    from vulcan.certificates.certificate import Level, Number

__all__ = ["find_margin"]

# Factors to try from 1 upwards: densely where it matters, and then ever wider apart.
FACTORS: Final = (
    *np.geomspace(1.0, 2.0, 16),
    *np.geomspace(2.0, 10.0, 10)[1:],
    *np.geomspace(10.0, 1e12, 40)[1:],
)


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

    def holds(factor: float) -> bool:
        reward, risk = scaled.evaluate(factor)
        try:
            allowed = bound(reward)
            # Far from any reward that a policy has, the function need not be a bound any more.
            most = bound(certified) if reward < certified else math.inf
        except BoundError:
            return False
        return risk <= min(allowed, most) + TOLERANCE

    if not holds(1.0):
        tried = np.linspace(0.0, 1.0, 16).tolist()
        if not holds(0.0):
            return 0.0
    else:
        # Beyond this every risky action fails for sure, and nothing changes any more.
        most = 1 / max(scaled.smallest_risk(), FACTORS[-1] ** -1)
        tried = [*(factor for factor in FACTORS if factor < most), max(most, 1.0)]
    broken = next((k for k, factor in enumerate(tried) if k and not holds(factor)), None)
    if broken is None:
        return math.inf
    low, high = float(tried[broken - 1]), float(tried[broken])
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


class _Scaled:
    """Reward and risk of the same policy with every immediate risk times a factor."""

    def __init__(self, levels: Sequence[Level], start: Sequence[Number]) -> None:
        self._start = _floats(start)
        self._weights = [float(level.weight) for level in levels]
        self._sources = [np.array(level.source, int) for level in levels]
        self._targets = [np.array(level.target, int) for level in levels]
        self._probabilities = [_floats(level.probability) for level in levels]
        self._risks = [_floats(level.risk) for level in levels]
        self._failing = [_floats(level.failing_reward) for level in levels]
        self._safe = [_floats(level.safe_reward) for level in levels]

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
            risk += float(reach @ scaled)
            reward += self._weights[k] * float(
                reach @ (more * self._failing[k] + less * self._safe[k])
            )
            source = self._sources[k]
            arriving = reach[source] * less[source] * self._probabilities[k]
            following = len(self._risks[k + 1]) if k + 1 < len(self._risks) else 0
            reach = np.bincount(self._targets[k], arriving, following).astype(float)
        return reward, risk


def _floats(numbers: Sequence[Number]) -> NDArray[np.float64]:
    return np.array([float(number) for number in numbers])
