"""The best randomised policy, by columns in the plane: primal and dual at once.

Every policy is a point (reward, risk). Randomising between policies gives all points between them,
so that the reachable set is convex, and the acceptable set {risk <= Δ(reward)} is convex too. For
any weights w, k >= 0 one dynamic program gives the policy with the largest value

    v = max over all policies, randomised or not, of   w E g - k er,

a corner of the reachable set. Since no policy lies beyond that line, none that is acceptable earns
more than the largest reward y with (w y - v) / k <= Δ(y): the *dual bound*. With Δ replaced by its
tangent at that y, of slope d, and λ = k / (w - k d), that is the bound of the design:

    E g  <=  max over policies of [(1 + λ d) E g - λ er]  +  λ (Δ(y) - d y).

λ is the price of risk: what the best reward gains per unit of allowed risk.

The search keeps the corners that it has found. Their hull lies inside the reachable set, and its
acceptable point of largest reward, on some edge between two corners, is the best that is known.
The dynamic program in the direction normal to that edge either finds a corner beyond it, or proves
that there is none; then bound and value are the same, and mixing the two corners attains it. As
long as no point of the hull is acceptable, the edge or corner that comes closest is treated the
same way; if nothing lies beyond it and it is not acceptable, no policy is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from vulcan.bounds.base import RiskBound
from vulcan.bounds.reward_limit import RewardLine, Weights, limit_reward
from vulcan.bounds.shape import upper_hull
from vulcan.tolerance import TOLERANCE

__all__ = ["Corner", "Dual", "DualSearch", "Mix", "accepts", "best_mix", "slack"]

ROUNDING: Final = 1e-13
"""Relative error that a dynamic program is granted."""

ACCEPTED: Final = 0.999 * TOLERANCE
"""A search must not use up what the certificate's own roundings need."""

MOST_CORNERS: Final = 500
"""A guard only: some twenty are usual."""


@dataclass(frozen=True)
class Corner:
    """A deterministic policy as a point.

    Attributes
    ----------
    reward, risk
        What it earns and risks.
    plan
        What makes the policy of it.
    """

    reward: float
    risk: float
    plan: Any = None


@dataclass(frozen=True)
class Mix:
    """A point between two policies.

    Attributes
    ----------
    safe, daring
        The policies; the same one twice for a policy alone.
    weight
        Probability of the second.
    """

    safe: Corner
    daring: Corner
    weight: float

    @property
    def reward(self) -> float:
        """Expected reward."""
        return self.safe.reward + self.weight * (self.daring.reward - self.safe.reward)

    @property
    def risk(self) -> float:
        """Probability of failure."""
        return self.safe.risk + self.weight * (self.daring.risk - self.safe.risk)


@dataclass(frozen=True)
class Dual:
    """The outcome of a dual search.

    Attributes
    ----------
    upper_bound
        No policy that the bound accepts earns more; -inf if none is accepted.
    multiplier
        k for w = 1: the last direction, in which no policy lies beyond the best edge.
    value
        The largest E g - multiplier · er of any policy, in that direction.
    price
        λ, the reward gained per unit of allowed risk; 0 where the bound does not bind.
    best
        The best randomised policy; None if no policy is accepted.
    corners
        All policies found on the way, in the order of their rewards.
    lines
        Every dynamic program with a weight of reward proves one, whatever the bound is.
    """

    upper_bound: float
    multiplier: float
    value: float
    price: float
    best: Mix | None
    corners: tuple[Corner, ...]
    lines: tuple[RewardLine, ...]


Oracle = Callable[[float, float], Corner]
"""From weights of reward and risk to the best policy."""


class DualSearch:
    """One search for the best randomised policy.

    Parameters
    ----------
    bound
        The risk bound.
    oracle
        The dynamic program.
    may_go_on
        Asked before each dynamic program but the first two.

    Attributes
    ----------
    finished
        Whether value and bound are the same, or it is proved that no policy is accepted.
    rewards
        Rewards at which the bound was evaluated: all others lie between them.
    """

    def __init__(
        self,
        bound: RiskBound,
        oracle: Oracle,
        may_go_on: Callable[[], bool] = lambda: True,
    ) -> None:
        self._bound = bound
        self._oracle = oracle
        self._may_go_on = may_go_on
        self._corners: list[Corner] = []
        self._lines: list[RewardLine] = []
        self._upper = math.inf
        self.rewards: list[float] = []
        self.finished = False

    def run(self) -> Dual:
        """Search until nothing lies beyond the best edge, or may not go on."""
        least, top = self._find(0.0, 1.0).reward, self._find(1.0, 0.0)
        self._upper = top.reward
        if accepts(self._bound, top):
            self.finished = True
            return self._finish(0.0, top.reward, 0.0, Mix(top, top, 0.0))
        multiplier, value, price = 0.0, top.reward, 0.0
        best = best_mix(self._corners, self._bound)
        while not self.finished and len(self._corners) < MOST_CORNERS and self._may_go_on():
            weights = self._aim(best)
            if weights is None:
                self.finished = True  # a policy that earns as much as any is acceptable
                break
            known = max(_value(corner, weights) for corner in self._corners)
            corner = self._find(*weights)
            found, margin = _value(corner, weights), _margin(corner, weights)
            upper, slope = limit_reward(self._bound, weights, found + margin, least, self._upper)
            if upper <= self._upper:
                self._upper = upper
                if upper > -math.inf and weights[0] > 0:
                    multiplier, value = weights[1] / weights[0], found / weights[0]
                    price = _find_price(multiplier, slope)
            self.finished = upper == -math.inf or found <= known + 4 * margin
            best = best_mix(self._corners, self._bound)
        return self._finish(multiplier, value, price, best)

    def _finish(self, multiplier: float, value: float, price: float, best: Mix | None) -> Dual:
        corners = tuple(sorted(self._corners, key=lambda corner: corner.reward))
        return Dual(self._upper, multiplier, value, price, best, corners, tuple(self._lines))

    def _find(self, reward_weight: float, risk_weight: float) -> Corner:
        corner = self._oracle(reward_weight, risk_weight)
        self._corners.append(corner)
        self.rewards.append(corner.reward)
        if reward_weight > 0:
            weights = (reward_weight, risk_weight)
            most = _value(corner, weights) + _margin(corner, weights)
            self._lines.append(RewardLine(risk_weight / reward_weight, most / reward_weight))
        return corner

    def _aim(self, best: Mix | None) -> Weights | None:
        """Return the weights normal to the edge to look beyond; None if there is none."""
        chain = _upper_chain(self._corners)
        if best is None:
            return self._aim_at_closest(chain)
        place = chain.index(best.safe)
        return None if place + 1 == len(chain) else _normal(best.safe, chain[place + 1])

    def _aim_at_closest(self, chain: Sequence[Corner]) -> Weights:
        """Return the weights where no point of the hull is acceptable: go for the largest slack."""
        place = max(range(len(chain)), key=lambda k: slack(self._bound, chain[k]))
        here = chain[place]
        slope = self._slope(here.reward)
        if place + 1 < len(chain) and slope > _slope_of(here, chain[place + 1]):
            return self._aim_between(here, chain[place + 1])
        if place > 0 and slope < _slope_of(chain[place - 1], here):
            return self._aim_between(chain[place - 1], here)
        return _scale(slope)

    def _aim_between(self, safe: Corner, daring: Corner) -> Weights:
        """Return the weights if the slack is largest between two corners, or at one of them."""
        edge = _slope_of(safe, daring)
        low, high = safe.reward, daring.reward
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self._slope(middle) > edge else (low, middle)
        closest = daring if high == daring.reward else safe if low == safe.reward else None
        return _normal(safe, daring) if closest is None else _scale(self._slope(closest.reward))

    def _slope(self, reward: float) -> float:
        if self._bound(reward) == -math.inf:
            return math.inf
        return self._bound.tangent(reward).slope


def slack(bound: RiskBound, point: Corner | Mix) -> float:
    """Return how much less a policy risks than is allowed."""
    return bound(point.reward) - point.risk


def accepts(bound: RiskBound, point: Corner | Mix) -> bool:
    """Whether a bound accepts a policy, up to the tolerance of certificates."""
    return slack(bound, point) >= -ACCEPTED


def best_mix(corners: Sequence[Corner], bound: RiskBound) -> Mix | None:
    """Return the acceptable point of largest reward among some policies and their mixtures."""
    chain = _upper_chain(corners)
    if accepts(bound, chain[-1]):
        return Mix(chain[-1], chain[-1], 0.0)
    for safe, daring in reversed(list(pairwise(chain))):
        weight = _largest_weight(safe, daring, bound)
        if weight is not None:
            return Mix(safe, daring if weight else safe, weight)
    return Mix(chain[0], chain[0], 0.0) if accepts(bound, chain[0]) else None


def _largest_weight(safe: Corner, daring: Corner, bound: RiskBound) -> float | None:
    """Return the largest weight of the daring policy, which alone is not acceptable."""

    def passes(weight: float) -> bool:
        return accepts(bound, Mix(safe, daring, weight))

    low, high = 0.0, 1.0
    if not passes(0.0):
        # Both ends fail. The slack is concave: look for a place between them where it does not.
        between = _find_acceptable(safe, daring, bound)
        if between is None:
            return None
        low = between
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low


def _find_acceptable(safe: Corner, daring: Corner, bound: RiskBound) -> float | None:
    """Return some weight that is acceptable though neither end is; None if there is none."""
    for end in (safe, daring):
        if bound(end.reward) > -math.inf:
            line = bound.tangent(end.reward)
            if max(line(corner.reward) - corner.risk for corner in (safe, daring)) < -TOLERANCE:
                return None  # not even the tangent, which lies above the bound, reaches the edge
    low, high = 0.0, 1.0
    for _ in range(100):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        at_left, at_right = (slack(bound, Mix(safe, daring, weight)) for weight in (left, right))
        for weight, found in ((left, at_left), (right, at_right)):
            if found >= -ACCEPTED:
                return weight
        rises = at_left < at_right or at_left == -math.inf  # a bound is -inf on its left side only
        low, high = (left, high) if rises else (low, right)
    return None


def _upper_chain(corners: Sequence[Corner]) -> list[Corner]:
    """Return the corners of the hull on the side of more reward and less risk, left to right."""
    rising: list[Corner] = []
    for corner in sorted(corners, key=lambda c: (c.risk, -c.reward)):
        if not rising or corner.reward > rising[-1].reward:  # else another earns as much
            rising.append(corner)
    return upper_hull(rising, lambda corner: (corner.risk, corner.reward))


def _find_price(multiplier: float, slope: float) -> float:
    """Return λ: k for w = 1, and the slope of Δ where it binds."""
    rest = 1 - multiplier * slope
    return multiplier / rest if rest > 0 else math.inf


def _value(corner: Corner, weights: Weights) -> float:
    return weights[0] * corner.reward - weights[1] * corner.risk


def _margin(corner: Corner, weights: Weights) -> float:
    """Return what rounding may have done to the value of a corner."""
    return ROUNDING * (weights[0] * abs(corner.reward) + weights[1] * corner.risk)


def _slope_of(safe: Corner, daring: Corner) -> float:
    """Return the risk per reward of the edge between two corners."""
    return (daring.risk - safe.risk) / (daring.reward - safe.reward)


def _normal(safe: Corner, daring: Corner) -> Weights:
    """Return the weights of reward and risk for which two corners are worth the same."""
    return _scale(_slope_of(safe, daring))


def _scale(slope: float) -> Weights:
    """Return the weights for which a unit of reward is worth a slope of risk."""
    if slope == math.inf:
        return (1.0, 0.0)
    return (1.0, 1 / slope) if slope >= 1e-9 else (slope, 1.0)
