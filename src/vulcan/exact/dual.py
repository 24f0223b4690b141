"""The best randomised policy, by columns in the plane: primal and dual at once.

Every policy is a point (reward, risk). Randomising between policies gives all points between them,
so that the reachable set is convex, and the acceptable set {risk <= Δ(reward)} is convex too. For
any weights w, k >= 0 one dynamic program gives the policy with the largest value

    v = max over all policies, randomised or not, of   w E g - k er,

a point of the reachable set. Since no policy lies beyond that line, none that is acceptable earns
more than the largest reward y with (w y - v) / k <= Δ(y): the *dual bound*. With Δ replaced by its
tangent at that y, of slope d, and λ = k / (w - k d), that is the bound of the design:

    E g  <=  max over policies of [(1 + λ d) E g - λ er]  +  λ (Δ(y) - d y).

λ is the price of risk: what the best reward gains per unit of allowed risk.

The search keeps the points that it has found. Their hull lies inside the reachable set, and its
acceptable point of largest reward, on some edge between two points, is the best that is known.
The dynamic program in the direction normal to that edge either finds a point beyond it, or proves
that there is none; then bound and value are the same, and mixing the two points attains it. As
long as no point of the hull is acceptable, the edge or point that comes closest is treated the
same way; if nothing lies beyond it and it is not acceptable, no policy is.

**No policy is within the bound.** The smallest multiple m of Δ that accepts a policy is the least
risk / Δ(reward) over all policies for which Δ is positive. For a policy with the ratio m, and the
tangent T >= Δ at its reward, one dynamic program finds the policy with the smallest risk -
m T(reward). If that is not negative, then all policies, and all their mixtures, have

    risk  >=  m T(reward)  >=  m Δ(reward),

and no smaller multiple would do. If it is negative, the policy that was found often has a smaller
ratio, and takes the place of the first; for a straight Δ it always has, and this is Dinkelbach's
method. Where it has not, some policy between the two might, and m is the least ratio so far.

What is computed here is rounded. So v is raised by what rounding may have done to it, and that no
policy is acceptable is only said where this is certain (`vulcan.exact.acceptance`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, Self

from vulcan.bounds.base import RewardLine, RiskBound, Weights, limit_reward, upper_hull
from vulcan.exact.acceptance import BoundTest
from vulcan.exact.sweeps import PolicyPoint
from vulcan.numerics import TOLERANCE
from vulcan.solvers.finding import Sufficient, Worth

MOST_POINTS: Final = 500  # a safeguard: some twenty are usual


Oracle = Callable[[float, float], PolicyPoint]
"""From weights of reward and risk to the best policy."""


class Dual:
    """A search for the best randomised policy, and what it proved.

    `may_go_on` is called before each dynamic program but the first two, and `accepts` says whether
    the policy of largest reward is acceptable; by default, whether that is certain.
    """

    most: float  # no policy earns more, whatever the bound is
    least: float  # smaller rewards don't matter: with them the policy of least risk is acceptable
    least_reward: float  # the largest possible one of that policy; -inf if it is surely refused

    def __init__(
        self,
        bound_test: BoundTest,
        oracle: Oracle,
        may_go_on: Callable[[], bool] = lambda: True,
        accepts: Callable[[PolicyPoint], bool] | None = None,
    ) -> None:
        self._bound_test, self._bound = bound_test, bound_test.bound
        self._oracle, self._may_go_on = oracle, may_go_on
        self._accepts = bound_test.accepts if accepts is None else accepts
        self.points: list[PolicyPoint] = []  # found on the way; in the end by their rewards
        self.lines: list[RewardLine] = []  # one for each dynamic program with a weight of reward
        self.best: PolicyPoint | None = None  # the best policy, randomised or not
        self.upper_bound = math.inf  # of policies that the bound accepts; -inf if there is none
        self.multiplier = 0.0  # k for w = 1: the last direction, with nothing beyond the best edge
        self.price = 0.0  # λ; 0 where the bound does not bind
        self.finished = False

    def search(self) -> Self:
        """Search until nothing lies beyond the best edge, or may not go on."""
        if not self.points:
            self.begin()
        while not self.finished and len(self.points) < MOST_POINTS and self._may_go_on():
            weights = self._aim()
            if weights is None:
                break  # a policy that earns as much as any is acceptable
            beyond = self.look(weights)
            self.finished = not beyond or self.upper_bound <= self.least_reward
        self.points.sort(key=lambda point: point.reward)
        return self

    def begin(self) -> None:
        """Find the policies of least risk and of largest reward."""
        bound_test, safest, top = self._bound_test, self._find(0.0, 1.0), self._find(1.0, 0.0)
        self.upper_bound = self.most = bound_test.raise_reward(top.reward)
        self.least_reward = bound_test.raise_reward(safest.reward)
        self.least = bound_test.lower_reward(safest.reward)
        if bound_test.refuses(safest):
            self.least, self.least_reward = self.least_reward, -math.inf
        self.finished = self._accepts(top)
        self.best = top if self.finished else best_mix(self.points, bound_test)

    def look(self, weights: Weights, others: Sequence[PolicyPoint] = ()) -> bool:
        """Return whether a policy lies beyond those known, and some others, for these weights."""
        bound_test = self._bound_test
        self.points += others
        known = max(_value(point, weights) for point in self.points)
        found = _value(self._find(*weights), weights)
        most = bound_test.raise_value(found, weights, self.most)
        upper, slope = self.limit(weights, most, self.upper_bound)
        if upper <= self.upper_bound:
            self.upper_bound = upper
            if upper > -math.inf and weights[0] > 0:
                self.multiplier = weights[1] / weights[0]
                rest = 1 - self.multiplier * slope
                self.price = self.multiplier / rest if rest > 0 else math.inf
        self.best = best_mix(self.points, bound_test)
        return found > known + 4 * (most - found)

    def limit(self, weights: Weights, value: float, most: float) -> tuple[float, float]:
        """Return the result of `limit_reward`, for policies below that of least risk, too."""
        reward, slope = limit_reward(self._bound, weights, value, self.least, most)
        return max(reward, self.least_reward), slope

    def _find(self, reward_weight: float, risk_weight: float) -> PolicyPoint:
        """Return the best policy for some weights, and keep the line that it proves."""
        point = self._oracle(reward_weight, risk_weight)
        self.points.append(point)
        if risk_weight == 0:
            self.lines.append(RewardLine(0.0, self._bound_test.raise_reward(point.reward)))
        elif reward_weight > 0:
            weights = (reward_weight, risk_weight)
            most = self._bound_test.raise_value(_value(point, weights), weights, self.most)
            most = math.nextafter(most / reward_weight, math.inf)
            self.lines.append(RewardLine(risk_weight / reward_weight, most))
        return point

    def _aim(self) -> Weights | None:
        """Return the weights normal to the edge to look beyond; None if there is none."""
        chain = _upper_chain(self.points)
        if self.best is not None:
            safe = self.best.members[0] if self.best.members else self.best
            place = chain.index(safe)
            return None if place + 1 == len(chain) else _scale(_slope_of(safe, chain[place + 1]))
        # No point of the hull is acceptable: go for the largest slack.
        place = max(range(len(chain)), key=lambda k: self._bound_test.slack(chain[k]))
        here = chain[place]
        slope = self._slope(here.reward)
        if place + 1 < len(chain) and slope > _slope_of(here, chain[place + 1]):
            return self._aim_between(here, chain[place + 1])
        if place > 0 and slope < _slope_of(chain[place - 1], here):
            return self._aim_between(chain[place - 1], here)
        return _scale(slope)

    def _aim_between(self, safe: PolicyPoint, risky: PolicyPoint) -> Weights:
        """Return the weights if the slack is largest between two points, or at one of them."""
        edge = _slope_of(safe, risky)
        low, high = safe.reward, risky.reward
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self._slope(middle) > edge else (low, middle)
        closest = risky if high == risky.reward else safe if low == safe.reward else None
        return _scale(edge if closest is None else self._slope(closest.reward))

    def _slope(self, reward: float) -> float:
        if self._bound(reward) == -math.inf:
            return math.inf
        return self._bound.tangent(reward).slope


def best_mix(points: Sequence[PolicyPoint], bound_test: BoundTest) -> PolicyPoint | None:
    """Return the acceptable point of largest reward among some policies and their mixtures."""
    chain = _upper_chain(points)
    if bound_test.accepts(chain[-1]):
        return chain[-1]
    for safe, risky in reversed(list(pairwise(chain))):
        weight = _largest_weight(safe, risky, bound_test)
        if weight is not None:
            return PolicyPoint.mix(safe, risky, weight)
    return chain[0] if bound_test.accepts(chain[0]) else None


def _largest_weight(safe: PolicyPoint, risky: PolicyPoint, bound_test: BoundTest) -> float | None:
    """Return the largest weight of the risky policy, which alone is not acceptable."""
    low, high = 0.0, 1.0
    if not bound_test.accepts(safe):
        # Both ends fail. The slack is concave: look for a place between them where it does not.
        between = _find_acceptable(safe, risky, bound_test)
        if between is None:
            return None
        low = between
    while low < (middle := (low + high) / 2) < high:
        passes = bound_test.accepts(PolicyPoint.mix(safe, risky, middle))
        low, high = (middle, high) if passes else (low, middle)
    return low


def _find_acceptable(safe: PolicyPoint, risky: PolicyPoint, bound_test: BoundTest) -> float | None:
    """Return some weight that is acceptable though neither end is; None if there is none."""
    bound = bound_test.bound
    for end in (safe, risky):
        if bound(end.reward) > -math.inf:
            line = bound.tangent(end.reward)
            if max(line(point.reward) - point.risk for point in (safe, risky)) < -TOLERANCE:
                return None  # not even the tangent, which lies above the bound, reaches the edge
    low, high = 0.0, 1.0
    for _ in range(100):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        points = [PolicyPoint.mix(safe, risky, weight) for weight in (left, right)]
        for point in points:
            if bound_test.accepts(point):
                return point.weight
        at_left, at_right = map(bound_test.slack, points)
        rises = at_left < at_right or at_left == -math.inf  # a bound is -inf on its left side only
        low, high = (left, high) if rises else (low, right)
    return None


def _upper_chain(points: Sequence[PolicyPoint]) -> list[PolicyPoint]:
    """Return the points of the hull on the side of more reward and less risk, left to right."""
    rising: list[PolicyPoint] = []
    for point in sorted(points, key=lambda c: (c.risk, -c.reward)):
        if not rising or point.reward > rising[-1].reward:  # else another earns as much
            rising.append(point)
    return upper_hull(rising, lambda point: (point.risk, point.reward))


def _value(point: PolicyPoint, weights: Weights) -> float:
    return weights[0] * point.reward - weights[1] * point.risk


def _slope_of(safe: PolicyPoint, risky: PolicyPoint) -> float:
    """Return the risk per reward of the edge between two points."""
    return (risky.risk - safe.risk) / (risky.reward - safe.reward)


def _scale(slope: float) -> Weights:
    """Return the weights for which a unit of reward is worth a slope of risk."""
    if slope == math.inf:
        return (1.0, 0.0)
    return (1.0, 1 / slope) if slope >= 1e-9 else (slope, 1.0)


MOST_PROGRAMS: Final = 100  # a guard only: a few are usual


def find_multiple(
    bound: RiskBound, known: Sequence[Worth], oracle: Oracle, may_go_on: Callable[[], bool]
) -> Sufficient | None:
    """Return the smallest multiple of a bound that accepts a policy; None if none does.

    `known` is what some policies are worth, among them one that earns as much as any. `may_go_on`
    is called before each dynamic program.
    """

    def ratio(policy: Worth) -> float:
        allowed = bound(policy.reward)
        return policy.risk / allowed if allowed > 0 else math.inf

    best = min(known, key=ratio)
    multiple, least = ratio(best), False
    if multiple == math.inf:
        return None
    for _ in range(MOST_PROGRAMS):
        if not may_go_on():
            break
        tangent = bound.tangent(best.reward)
        point = oracle(multiple * tangent.slope, 1.0)
        found = Worth(point.reward, point.risk)
        least = found.risk >= multiple * tangent(found.reward) - TOLERANCE
        if least or ratio(found) >= multiple:
            break
        best, multiple = found, ratio(found)
    return Sufficient(multiple, best.reward, best.risk, least)
