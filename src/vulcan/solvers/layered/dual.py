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

What is computed here is rounded. So v is raised by what rounding may have done to it, and that no
policy is acceptable is only said where this is certain (`vulcan.solvers.layered.referee`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from vulcan.bounds.reward_limit import RewardLine, Weights, limit_reward
from vulcan.bounds.shape import upper_hull
from vulcan.solvers.layered.corners import Corner, Mix
from vulcan.solvers.layered.referee import Referee
from vulcan.tolerance import TOLERANCE

__all__ = ["Dual", "DualSearch", "Floor", "best_mix"]

MOST_CORNERS: Final = 500
"""A guard only: some twenty are usual."""


@dataclass(frozen=True)
class Floor:
    """What the policy of least risk says of others: where it is refused, so are those below it.

    Attributes
    ----------
    least
        Rewards below this are out of the question: where they are acceptable, so is that policy.
    reward
        What it earns at most; -inf if the bound refuses it for certain.
    """

    least: float
    reward: float

    @classmethod
    def under(cls, referee: Referee, safest: Corner) -> Floor:
        """Return what the policy of least risk says, of those the one that earns most."""
        if referee.refuses(safest):
            return cls(referee.raise_reward(safest.reward), -math.inf)
        return cls(referee.lower_reward(safest.reward), referee.raise_reward(safest.reward))

    def limit(
        self, referee: Referee, weights: Weights, value: float, most: float
    ) -> tuple[float, float]:
        """Return what `limit_reward` does, for policies below the floor, too."""
        reward, slope = limit_reward(referee.bound, weights, value, self.least, most)
        return max(reward, self.reward), slope


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
    floor
        What the policy of least risk says of others.
    """

    upper_bound: float
    multiplier: float
    value: float
    price: float
    best: Mix | None
    corners: tuple[Corner, ...]
    lines: tuple[RewardLine, ...]
    floor: Floor


Oracle = Callable[[float, float], Corner]
"""From weights of reward and risk to the best policy."""


class DualSearch:
    """One search for the best randomised policy.

    Parameters
    ----------
    referee
        The risk bound, and how accurately policies are evaluated.
    oracle
        The dynamic program.
    may_go_on
        Asked before each dynamic program but the first two.
    accepts
        Asked whether the policy of largest reward is acceptable; by default, whether that is
        certain.

    Attributes
    ----------
    finished
        Whether value and bound are the same, or it is proved that no policy is accepted.
    rewards
        Rewards at which the bound was evaluated: all others lie between them.
    """

    def __init__(
        self,
        referee: Referee,
        oracle: Oracle,
        may_go_on: Callable[[], bool] = lambda: True,
        accepts: Callable[[Corner], bool] | None = None,
    ) -> None:
        self._referee, self._bound = referee, referee.bound
        self._oracle = oracle
        self._may_go_on = may_go_on
        self._accepts = referee.accepts if accepts is None else accepts
        self._corners: list[Corner] = []
        self._lines: list[RewardLine] = []
        self._upper = self._most = math.inf
        self.rewards: list[float] = []
        self.finished = False

    def run(self) -> Dual:
        """Search until nothing lies beyond the best edge, or may not go on."""
        referee, safest, top = self._referee, self._find(0.0, 1.0), self._find_top()
        self._floor = Floor.under(referee, safest)
        self._upper = self._most
        if self._accepts(top):
            self.finished = True
            return self._finish(0.0, top.reward, 0.0, Mix(top, top, 0.0))
        multiplier, value, price = 0.0, top.reward, 0.0
        best = best_mix(self._corners, referee)
        while not self.finished and len(self._corners) < MOST_CORNERS and self._may_go_on():
            weights = self._aim(best)
            if weights is None:
                self.finished = True  # a policy that earns as much as any is acceptable
                break
            known = max(_value(corner, weights) for corner in self._corners)
            found = _value(self._find(*weights), weights)
            most = referee.raise_value(found, weights, self._most)
            upper, slope = self._floor.limit(referee, weights, most, self._upper)
            if upper <= self._upper:
                self._upper = upper
                if upper > -math.inf and weights[0] > 0:
                    multiplier, value = weights[1] / weights[0], found / weights[0]
                    price = _find_price(multiplier, slope)
            self.finished = upper <= self._floor.reward or found <= known + 4 * (most - found)
            best = best_mix(self._corners, referee)
        return self._finish(multiplier, value, price, best)

    def _finish(self, multiplier: float, value: float, price: float, best: Mix | None) -> Dual:
        corners = tuple(sorted(self._corners, key=lambda corner: corner.reward))
        given = (self._upper, multiplier, value, price, best, corners, tuple(self._lines))
        return Dual(*given, self._floor)

    def _find_top(self) -> Corner:
        """Return the policy of largest reward."""
        top = self._oracle(1.0, 0.0)
        self._most = self._referee.raise_reward(top.reward)
        self._corners.append(top)
        self.rewards.append(top.reward)
        self._lines.append(RewardLine(0.0, self._most))
        return top

    def _find(self, reward_weight: float, risk_weight: float) -> Corner:
        corner = self._oracle(reward_weight, risk_weight)
        self._corners.append(corner)
        self.rewards.append(corner.reward)
        if reward_weight > 0:
            weights = (reward_weight, risk_weight)
            most = self._referee.raise_value(_value(corner, weights), weights, self._most)
            most = math.nextafter(most / reward_weight, math.inf)
            self._lines.append(RewardLine(risk_weight / reward_weight, most))
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
        place = max(range(len(chain)), key=lambda k: self._referee.slack(chain[k]))
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


def best_mix(corners: Sequence[Corner], referee: Referee) -> Mix | None:
    """Return the acceptable point of largest reward among some policies and their mixtures."""
    chain = _upper_chain(corners)
    if referee.accepts(chain[-1]):
        return Mix(chain[-1], chain[-1], 0.0)
    for safe, daring in reversed(list(pairwise(chain))):
        weight = _largest_weight(safe, daring, referee)
        if weight is not None:
            return Mix(safe, daring if weight else safe, weight)
    return Mix(chain[0], chain[0], 0.0) if referee.accepts(chain[0]) else None


def _largest_weight(safe: Corner, daring: Corner, referee: Referee) -> float | None:
    """Return the largest weight of the daring policy, which alone is not acceptable."""

    def passes(weight: float) -> bool:
        return referee.accepts(Mix(safe, daring, weight))

    low, high = 0.0, 1.0
    if not passes(0.0):
        # Both ends fail. The slack is concave: look for a place between them where it does not.
        between = _find_acceptable(safe, daring, referee)
        if between is None:
            return None
        low = between
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low


def _find_acceptable(safe: Corner, daring: Corner, referee: Referee) -> float | None:
    """Return some weight that is acceptable though neither end is; None if there is none."""
    bound = referee.bound
    for end in (safe, daring):
        if bound(end.reward) > -math.inf:
            line = bound.tangent(end.reward)
            if max(line(corner.reward) - corner.risk for corner in (safe, daring)) < -TOLERANCE:
                return None  # not even the tangent, which lies above the bound, reaches the edge
    low, high = 0.0, 1.0
    for _ in range(100):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        points = [Mix(safe, daring, weight) for weight in (left, right)]
        for point in points:
            if referee.accepts(point):
                return point.weight
        at_left, at_right = map(referee.slack, points)
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
