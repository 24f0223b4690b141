"""The shape of a risk bound: whether it is concave and nondecreasing, and refuses anything.

A function that is concave and nondecreasing on paper is not in floating point. It rounds what it
does to the reward, so that its value is that at a place up to a `shift` away; and it rounds its
values. Points (x, y) lie on a concave, nondecreasing function up to that if none of them lies below
the least such function H above all of them by more than these roundings can do:

    H(x - shift)  <=  y + rounding.

It is H at x - shift, and not a slope times the shift, since slopes change at kinks.
"""

from __future__ import annotations

import math
import sys
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from vulcan.errors import BoundError, BoundWarning
from vulcan.tolerance import TOLERANCE

if TYPE_CHECKING:
    from vulcan.bounds.base import RiskBound

__all__ = ["Point", "upper_hull", "verify_shape", "warn_of_loose"]

Point = tuple[float, float]
"""A reward and a risk, or any other place in a plane."""

Item = TypeVar("Item")

SAMPLES: Final = 128
"""At how many points the roundings of a function are measured."""

SHIFT: Final = 8 * sys.float_info.epsilon
"""By which share of the largest reward the places of two values may be apart, by rounding."""


def verify_shape(points: Sequence[Point], scatter: Callable[[float], float] | None = None) -> None:
    """Check that points lie on a concave, nondecreasing function, up to its roundings.

    They are compared with the least such function above them. To look at neighbours only would
    miss a slow bend: between points close to each other it drowns in rounding errors.

    Parameters
    ----------
    points
        Pairs (reward, risk) in the order of rewards; risks may be -inf.
    scatter
        By how much the function rounds its values near a reward. It is only asked if `TOLERANCE`
        does not explain what is wrong.

    Raises
    ------
    BoundError
        If they do not; the message shows the worst of them.
    """
    fault = _find_fault(points, [0.0] * len(points))
    if fault is not None and fault[0][1] > -math.inf and scatter is not None:
        # Here first: whatever values do elsewhere, they must scatter here to explain it.
        here = max(scatter(reward) for reward, _ in fault)
        again = _find_fault(points, [here] * len(points))
        fault = _find_fault(points, _spread(points, scatter)) if again is None else again
    if fault is None:
        return
    (x, y), (x0, y0), (x1, y1) = fault
    if y0 == y1:
        raise BoundError(
            f"the risk bound decreases from {y0!r} at {x0!r} to {y!r} at {x!r}; "
            "it must be nondecreasing"
        )
    raise BoundError(
        f"the risk bound is not concave: {y!r} at {x!r} lies below the line from {y0!r} at {x0!r} "
        f"to {y1!r} at {x1!r}"
    )


def _spread(points: Sequence[Point], scatter: Callable[[float], float]) -> list[float]:
    """Return the scatter at each of some points, from a few of them: the larger one beside it."""
    step = max(1, len(points) // SAMPLES)
    places = sorted({*range(0, len(points), step), len(points) - 1})
    found = [scatter(points[place][0]) for place in places]
    beside = [max(found[max(0, k - 1) : k + 2]) for k in range(len(found))]
    return [beside[bisect_left(places, k)] for k in range(len(points))]


def _find_fault(
    points: Sequence[Point], roundings: Sequence[float]
) -> tuple[Point, Point, Point] | None:
    """Return the point that lies lowest below the others, and those two; None if none does."""
    sure = [
        (reward, risk - rounding)
        for (reward, risk), rounding in zip(points, roundings, strict=True)
        if risk > -math.inf
    ]
    if not sure:
        return None
    shift = SHIFT * max(abs(reward) for reward, _ in points)
    highest = max(risk for _, risk in sure)
    hull = upper_hull(
        [*sure, (math.nextafter(points[-1][0], math.inf), highest)], lambda point: point
    )

    def edge(reward: float) -> tuple[Point, Point]:
        after = bisect_left(hull, reward, lo=1, hi=len(hull) - 1, key=lambda corner: corner[0])
        return hull[after - 1], hull[after]

    def excess(index: int) -> float:
        (reward, risk), rounding = points[index], roundings[index]
        place = reward - shift
        (x0, y0), (x1, y1) = edge(place)
        if place < x0:
            return 0.0
        left, right = (x1 - place) / (x1 - x0), (place - x0) / (x1 - x0)
        drop = left * (y0 - risk) + right * (y1 - risk)
        return drop - rounding - TOLERANCE * max(1.0, left * abs(y0) + right * abs(y1))

    worst = max(range(len(points)), key=excess)
    if excess(worst) <= 0:
        return None
    first, second = edge(points[worst][0] - shift)
    given = dict(points)
    before = first[0], given[first[0]]
    # What ends the last edge is no point of the function, but as high as its highest.
    level = before[1] if second[1] <= first[1] else second[1]
    return points[worst], before, (second[0], given.get(second[0], level))


def warn_of_loose(bound: RiskBound, points: Iterable[float]) -> None:
    """Warn of a bound that refuses nothing, being above 1 at all points where it was used."""
    least = min(map(bound, points))
    if least > 1:
        warnings.warn(
            f"every policy is acceptable under this bound, Δ(x) = {bound}: it allows a risk of "
            f"{least:.4g} or more at all rewards that the search met, and no risk is above 1 "
            "(5 % is written 0.05)",
            BoundWarning,
            stacklevel=_count_own_frames(),
        )


def _count_own_frames() -> int:
    """Return the `stacklevel` of the first line that is not in this package."""
    frame, level = sys._getframe(1), 1
    package = __name__.partition(".")[0]
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    return level


def upper_hull(points: Iterable[Item], at: Callable[[Item], Point]) -> list[Item]:
    """Return the corners of the least concave function above some points.

    Parameters
    ----------
    points
        The points, from left to right.
    at
        Where each of them lies.
    """
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
