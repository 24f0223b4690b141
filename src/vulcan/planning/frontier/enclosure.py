"""What is proved between the points of a frontier, from below and from above.

**From below.** A policy that earns y with risk r is within every bound that allows y at least r: on
from the level r, or from the scale r / Δ(y). So what certified policies earn is a staircase, with a
step where each of them begins to be acceptable.

**From above.** An upper bound holds for all smaller levels and scales as well: a staircase, too,
with its steps at the points. And the searches prove lines, E g <= v + k er for every policy and the
prices k that they tried (`vulcan.bounds.reward_limit`): for the level D no policy earns more than

    min over prices k of   v_k + k D,

a concave envelope whose slope is the price of risk, constant between two corners. For a multiple
s Δ it is the largest y with y <= v_k + k s Δ(y), again the least over all prices. The least of
staircase and envelope is the limit. The envelope holds for randomised policies as well; upper
bounds of points may speak of deterministic ones alone (`Result.upper_bound`), and so does the limit
then.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final

from vulcan.bounds.base import RiskBound
from vulcan.bounds.reward_limit import RewardLine, limit_reward
from vulcan.errors import BoundError
from vulcan.tolerance import TOLERANCE

if TYPE_CHECKING:
    from vulcan.planning.frontier.point import FrontierPoint

__all__ = ["Enclosure", "trim_lines"]

PARTS: Final = 16
"""Straight lines that a curve is drawn with at least, between two places where it bends."""

STRAIGHT: Final = 1e-4
"""Of the height of a curve: how far it may be from the straight lines that it is drawn with."""

SHORTEST: Final = 2.0**-12
"""Of the range that a curve is drawn over: a line no longer than this may be farther from it."""

Step = tuple[float, float]
"""A level or scale, and a reward."""


def trim_lines(lines: Iterable[RewardLine]) -> tuple[RewardLine, ...]:
    """Return the lines of which each is the least for some risk, in the order of these risks."""
    least: list[RewardLine] = []
    for line in sorted(set(lines), key=lambda line: (-line.price, line.value)):
        if least and line.price == least[-1].price:
            continue
        while least and line.value <= least[-1].value:
            least.pop()  # the other is above it from the risk 0 on
        while len(least) > 1 and _cross(least[-1], line) <= _cross(least[-2], least[-1]):
            least.pop()
        if not least or _cross(least[-1], line) < 1.0:
            least.append(line)
    return tuple(least)


def _cross(steep: RewardLine, flat: RewardLine) -> float:
    """Return the risk from which on the flatter of two lines is the lower one."""
    return (flat.value - steep.value) / (steep.price - flat.price)


class Enclosure:
    """What policies are proved to earn at least and at most, at every level or scale.

    Parameters
    ----------
    points
        Certified policies, and upper bounds on the reward of all others.
    lines
        What holds for every policy.
    base
        The bound whose multiples are meant; None for constant bounds.

    Attributes
    ----------
    steps
        From which level or scale on which reward is earned by a certified policy, both increasing.
    limits
        The upper bounds in the order of levels or scales, each the least that holds.
    lines
        Those of the lines that matter.
    """

    def __init__(
        self,
        points: Sequence[FrontierPoint],
        lines: Iterable[RewardLine],
        base: RiskBound | None,
    ) -> None:
        self._base = base
        self.steps = _climb(
            (min(point.at, self.find_place(point.risk, point.reward)), point.reward)
            for point in points
            if point.risk is not None and point.reward is not None
        )
        self.limits = _descend((p.at, p.upper_bound) for p in points if p.upper_bound is not None)
        self.lines = trim_lines(lines)

    def find_place(self, risk: float, reward: float) -> float:
        """Return the least level or scale that accepts a policy; inf if none does."""
        if self._base is None:
            return risk
        allowed = self._base(reward)
        if risk <= 0:
            return 0.0 if allowed >= 0 else math.inf
        return risk / allowed if allowed > 0 else math.inf

    def find_reward(self, place: float) -> float:
        """Return what a certified policy earns there; -inf without one."""
        number = bisect_right(self.steps, place, key=lambda step: step[0])
        return self.steps[number - 1][1] if number else -math.inf

    def find_limit(self, place: float) -> float:
        """Return what no policy there earns more than; inf if nothing is proved."""
        limit = self._carry_limit(place)
        return min(limit, self._follow_lines(place, limit)[0])

    def find_price(self, place: float) -> float | None:
        """Return the price of risk there, the slope of the envelope; None if there is none."""
        if self._carry_limit(place) == -math.inf:
            return None
        return self._follow_lines(place, math.inf)[1]

    def find_corners(self) -> list[float]:
        """Return the levels or scales where the limit bends: from line to line, and to a step."""
        risks = [_cross(steep, flat) for steep, flat in pairwise(self.lines)]
        rising = [line for line in self.lines if line.price > 0]
        for limit in {limit for _, limit in self.limits if rising and math.isfinite(limit)}:
            risks.append(max((limit - line.value) / line.price for line in rising))
        places = []
        for risk in risks:
            try:
                reward = min(line(risk) for line in self.lines)
                places.append(self.find_place(risk, reward))
            except BoundError:
                continue  # the bound can't be evaluated there, and no policy is there either
        return sorted(place for place in places if math.isfinite(place))

    def trace_reward(self, low: float, high: float) -> list[Step]:
        """Return the corners of the staircase of certified policies, from one place to another."""
        corners: list[Step] = []
        for place, reward in self.steps:
            if place > high:
                break
            if place <= low:
                corners = []  # it begins with the last step before it
            elif corners:
                corners.append((place, corners[-1][1]))
            corners.append((max(place, low), reward))
        return [*corners, (high, corners[-1][1])] if corners else []

    def trace_limit(self, low: float, high: float) -> list[Step]:
        """Return points of the limit, straight lines between them; NaN where there is none."""
        jumps = [math.nextafter(place, math.inf) for place, _ in self.limits]
        places = sorted({*self._spread(low, high), *(end for end in jumps if low < end < high)})
        limits = [(place, self.find_limit(place)) for place in places]
        heights = [limit for _, limit in limits if math.isfinite(limit)]
        if not heights:
            return []
        if self._base is not None:
            most, shortest = STRAIGHT * (max(heights) - min(heights)), SHORTEST * (high - low)
            pieces = [self._bend(*ends, most, shortest) for ends in pairwise(limits)]
            limits = [*limits[:1], *chain.from_iterable(pieces)]
        return [(place, limit if math.isfinite(limit) else math.nan) for place, limit in limits]

    def _bend(self, left: Step, right: Step, most: float, shortest: float) -> Iterator[Step]:
        """Yield points of the limit after one up to another, the closer the more it is bent."""
        if right[0] - left[0] > shortest:
            place = (left[0] + right[0]) / 2
            middle = (place, self.find_limit(place))
            if abs(middle[1] - (left[1] + right[1]) / 2) > most:
                yield from self._bend(left, middle, most, shortest)
                yield from self._bend(middle, right, most, shortest)
                return
        yield right

    def trace_price(self, low: float, high: float) -> list[Step]:
        """Return where steps of the price of risk begin, and the end of the last; NaN if unknown.

        For multiples of a bound the price changes between the corners, too: in small steps.
        """
        steps: list[Step] = []
        for left, right in pairwise(self._spread(low, high)):
            price = self.find_price((left + right) / 2)
            height = math.nan if price is None or price == math.inf else price
            if not steps or height != steps[-1][1]:
                steps.append((left, height))
        known = any(not math.isnan(height) for _, height in steps)
        return [*steps, (high, steps[-1][1])] if known else []

    def _spread(self, low: float, high: float) -> list[float]:
        """Return the places of a range between which curves are straight, or almost."""
        bends = [*self.find_corners(), *(place for place, _ in self.limits)]
        ends = sorted({low, high, *(place for place in bends if low < place < high)})
        parts = 1 if self._base is None else PARTS
        return [
            *(
                left + (right - left) * k / parts
                for left, right in pairwise(ends)
                for k in range(parts)
            ),
            high,
        ]

    def _carry_limit(self, place: float) -> float:
        """Return the least upper bound of a point for as much or more; inf without one."""
        number = bisect_left(self.limits, place, key=lambda step: step[0])
        return self.limits[number][1] if number < len(self.limits) else math.inf

    def _follow_lines(self, place: float, most: float) -> tuple[float, float | None]:
        """Return the least limit of the lines, and the price of risk there."""
        if self._base is None:
            allowed = place + TOLERANCE
            return min(((line(allowed), line.price) for line in self.lines), default=(most, None))
        if place <= 0 or not self.lines:
            return most, None
        return self._meet(self._base.scale(place), most)

    def _meet(self, bound: RiskBound, most: float) -> tuple[float, float]:
        """Return where the lines meet a bound, and the price of risk there.

        From the line that is exceeded most to the next, until none is.
        """
        reward, price = min(most, *(line(1.0) for line in self.lines)), 0.0  # no risk is above 1
        try:
            while reward > -math.inf:
                allowed = bound(reward) + TOLERANCE
                line = min(self.lines, key=lambda line: line(allowed))
                if line(allowed) >= reward:
                    break
                weights = (1.0, line.price)
                before = reward
                reward, slope = limit_reward(bound, weights, line.value, -math.inf, before)
                rest = 1 - line.price * slope
                price = line.price / rest if rest > 0 else math.inf
                if reward == before:
                    break  # within rounding
        except BoundError:
            pass  # it can't be evaluated at what lies so far below all that is earned
        return reward, price


def _climb(steps: Iterable[Step]) -> list[Step]:
    """Return those steps that lead higher than all before."""
    rising: list[Step] = []
    for place, reward in sorted(steps, key=lambda step: (step[0], -step[1])):
        if place < math.inf and (not rising or reward > rising[-1][1]):
            rising.append((place, reward))
    return rising


def _descend(limits: Iterable[Step]) -> list[Step]:
    """Return upper bounds, each the least of those for as much or more."""
    carried: list[Step] = []
    least = math.inf
    for place, limit in sorted(limits, reverse=True):
        least = min(least, limit)
        carried.append((place, least))
    return carried[::-1]
