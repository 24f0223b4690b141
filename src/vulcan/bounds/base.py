"""Risk bounds: the acceptable probability of failure as a function of expected reward.

A risk bound Δ is concave and nondecreasing on every interval on which it is used. It may be
negative, or -inf, for small rewards: nothing is acceptable there. It is never clipped at 0 from
below, which would break concavity and with it the guarantee. Values above 1 are harmless.

`Constant`, `Linear` and `PiecewiseLinear` are exact, and checked when they are made. `Concave`
takes any function; `verify` checks it at every point at which it was evaluated, and on a grid
between them. Kernels evaluate a bound through its `BoundTable` (`vulcan.bounds.table`).

**Rounding.** A computed expected reward is known up to its rounding errors, and so is the bound at
it. `enclose` accounts for both: as Δ is nondecreasing, its values between two rewards lie between
those at the two, and these are rounded outwards.

**Shape.** A function that is concave and nondecreasing on paper is not in floating point. It rounds
its argument, so that its value is that at a reward up to a `shift` away; and it rounds its values.
Points (x, y) lie on a concave, nondecreasing function up to that if none of them lies below the
least such function H above all of them by more than these roundings can explain:

    H(x - shift)  <=  y + TOLERANCE max(1, |H|).

**Limits on the reward.** A tangent is a line nowhere below Δ: Δ(y) <= value + slope (y - at). If
w E g - k er <= v for every policy, an acceptable policy with reward y has (w y - v) / k <= Δ(y).
With w = 1 that is a line in the plane of risk and reward, E g <= v + k er. All limits are rounded
up.
"""

from __future__ import annotations

import math
import sys
import warnings
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeVar

from vulcan.bounds.table import BoundTable
from vulcan.errors import BoundError, BoundWarning
from vulcan.numerics import TOLERANCE, Number
from vulcan.parameters import require_number


@dataclass(frozen=True)
class Tangent:
    """A line nowhere below the bound, touching it at `at`.

    Attributes
    ----------
    at, value
        Where it touches, and its height there: the bound itself, or slightly more where the slope
        was computed numerically.
    slope
        Its slope: finite, and never negative.
    doubt
        Error bound of a slope that was computed from rounded values.
    """

    at: float
    value: float
    slope: float
    doubt: float = 0.0

    @property
    def least_slope(self) -> float:
        """A slope for which the line is certainly nowhere below the bound on the left of `at`."""
        return max(0.0, self.slope - self.doubt)

    def __call__(self, reward: float) -> float:
        """Return the height of the line at a reward."""
        return self.value + self.slope * (reward - self.at)


class RiskBound(ABC):
    """A concave, nondecreasing function from expected reward to acceptable probability of failure.

    Use `Constant`, `Linear`, `PiecewiseLinear` or `Concave`, or `vulcan.parse` for a string.
    """

    @abstractmethod
    def __call__(self, reward: float) -> float:
        """Return the risk that is acceptable for an expected reward."""

    @abstractmethod
    def exact(self, reward: Fraction) -> Fraction | float:
        """Return the acceptable risk in rational arithmetic, as far as the bound allows it."""

    @abstractmethod
    def enclose(self, low: Number, high: Number) -> tuple[Number, Number]:
        """Return two numbers between which the bound lies at all rewards from `low` to `high`.

        Rounding errors of the bound itself are included. Infinite rewards are allowed; where the
        bound has no value the result is infinite.
        """

    @abstractmethod
    def tangent(self, reward: float) -> Tangent:
        """Return a tangent at an expected reward.

        Raises
        ------
        BoundError
            If the bound is -inf there, or can't be evaluated there and just to the right.
        """

    @abstractmethod
    def table(self) -> BoundTable:
        """Return a table from which kernels evaluate the bound, never above it."""

    @abstractmethod
    def verify(self, points: Iterable[float]) -> None:
        """Check that the bound is concave and nondecreasing between the points given.

        Raises
        ------
        BoundError
            If it is not; the message shows where.
        """

    @abstractmethod
    def scale(self, factor: float) -> RiskBound:
        """Return the bound that accepts this multiple of the risk for every reward.

        The factor must be positive: with 0, policies without risk would pass although the bound
        refuses their small reward. Use `Constant(0)` to allow no risk.
        """

    @property
    @abstractmethod
    def text(self) -> str | None:
        """A string that `vulcan.parse` reads back, or None for a function that has none."""

    def __str__(self) -> str:
        return self.text or repr(self)


def require_factor(value: Any) -> float:
    """Return the factor by which a bound is scaled: a positive number."""
    return require_number("the factor of a bound", value, above=0.0, error=BoundError)


Point = tuple[float, float]
"""A reward and a risk, or any other point of a plane."""

Item = TypeVar("Item")

SHIFT: Final = 8 * sys.float_info.epsilon
"""Rounding of a function's argument, relative to the largest reward."""


def verify_shape(points: Sequence[Point]) -> None:
    """Raise a `BoundError` if no risk bound fits points (reward, risk), within rounding.

    They are in the order of rewards, and compared with the least concave, nondecreasing function
    above them. Comparing neighbours only would miss a slow bend, which is smaller than the rounding
    errors between close points.
    """
    finite = [point for point in points if point[1] > -math.inf]
    if not finite:
        return
    shift = SHIFT * max(abs(reward) for reward, _ in points)
    end = (math.nextafter(points[-1][0], math.inf), max(risk for _, risk in finite))
    hull = upper_hull([*finite, end], lambda point: point)

    def find_edge(reward: float) -> tuple[Point, Point]:
        after = bisect_left(hull, reward, lo=1, hi=len(hull) - 1, key=lambda corner: corner[0])
        return hull[after - 1], hull[after]

    def find_excess(point: Point) -> float:
        shifted, risk = point[0] - shift, point[1]
        (x0, y0), (x1, y1) = find_edge(shifted)
        if shifted < x0:
            return 0.0
        left, right = (x1 - shifted) / (x1 - x0), (shifted - x0) / (x1 - x0)
        drop = left * (y0 - risk) + right * (y1 - risk)
        return drop - TOLERANCE * max(1.0, left * abs(y0) + right * abs(y1))

    worst = max(points, key=find_excess)
    if find_excess(worst) <= 0:
        return
    (x, y), ((x0, y0), (x1, y1)) = worst, find_edge(worst[0] - shift)
    if y0 == y1:
        raise BoundError(
            f"the risk bound decreases from {y0!r} at {x0!r} to {y!r} at {x!r}; "
            "it must be nondecreasing"
        )
    raise BoundError(
        f"the risk bound is not concave: {y!r} at {x!r} lies below the line from {y0!r} at {x0!r} "
        f"to {y1!r} at {x1!r}"
    )


def warn_of_loose(bound: RiskBound, points: Iterable[float]) -> None:
    """Warn of a bound that is above 1, so accepts everything, at all points where it was used."""
    least = min(map(bound, points))
    if least > 1:
        warnings.warn(
            f"every policy is acceptable under this bound, Δ(x) = {bound}: it allows a risk of "
            f"{least:.4g} or more at all rewards that the search reached, and no risk is above 1 "
            "(5 % is written 0.05)",
            BoundWarning,
            stacklevel=_count_own_frames(),
        )


def _count_own_frames() -> int:
    """Return the `stacklevel` of the first line outside of this package."""
    frame, level = sys._getframe(1), 1
    package = __name__.partition(".")[0]
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    return level


def upper_hull(points: Iterable[Item], at: Callable[[Item], Point]) -> list[Item]:
    """Return the corners of the least concave function above items that lie `at` some points."""
    hull: list[Item] = []
    for item in points:
        x2, y2 = at(item)
        while len(hull) > 1:
            (x0, y0), (x1, y1) = at(hull[-2]), at(hull[-1])
            if (x1 - x0) * (y2 - y0) < (x2 - x0) * (y1 - y0):
                break
            hull.pop()  # it lies on or below the line from the corner before it
        hull.append(item)
    return hull


ROUNDING: Final = 4 * sys.float_info.epsilon  # relative rounding error allowed for a few operations

MOST_STEPS: Final = 100
"""Largest number of Newton steps; a few are usual, and each gives a valid limit."""

Weights = tuple[float, float]
"""The weights w of reward and k of risk."""


@dataclass(frozen=True)
class RewardLine:
    """Reward <= value + price · risk for every policy, randomised or not, acceptable or not."""

    price: float
    value: float

    def __call__(self, risk: float) -> float:
        """Return the largest reward of a policy with this risk."""
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
    value, reward, slope = float(value), float(most), 0.0  # infinite ones warn in NumPy
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
