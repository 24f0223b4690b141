"""The shape of a risk bound: whether it is concave and nondecreasing, and refuses anything."""

from __future__ import annotations

import math
import sys
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from vulcan.errors import BoundError, BoundWarning
from vulcan.tolerance import TOLERANCE

if TYPE_CHECKING:
    from vulcan.bounds.base import RiskBound

__all__ = ["Point", "upper_hull", "verify_shape", "warn_of_loose"]

Point = tuple[float, float]
"""A reward and a risk, or any other place in a plane."""

Item = TypeVar("Item")


def verify_shape(points: Sequence[Point]) -> None:
    """Check that points lie on a concave, nondecreasing function.

    They are compared with the least such function above them. To look at neighbours only would
    miss a slow bend: between points close to each other it drowns in rounding errors.

    Parameters
    ----------
    points
        Pairs (reward, risk) in the order of rewards; risks may be -inf.

    Raises
    ------
    BoundError
        If they do not; the message shows the worst of them.
    """
    finite = [point for point in points if point[1] > -math.inf]
    if not finite:
        return
    highest = max(risk for _, risk in finite)
    hull = upper_hull(
        [*finite, (math.nextafter(points[-1][0], math.inf), highest)], lambda point: point
    )

    def edge(reward: float) -> tuple[Point, Point]:
        after = bisect_left(hull, reward, lo=1, hi=len(hull) - 1, key=lambda corner: corner[0])
        return hull[after - 1], hull[after]

    def excess(point: Point) -> float:
        (x, y), ((x0, y0), (x1, y1)) = point, edge(point[0])
        if x < x0:
            return 0.0
        left, right = (x1 - x) / (x1 - x0), (x - x0) / (x1 - x0)
        drop = left * (y0 - y) + right * (y1 - y)
        # A function rounds its values, and what it does to the reward before.
        slope = min((y1 - y0) / (x1 - x0), sys.float_info.max)
        rounding = 4 * sys.float_info.epsilon * abs(x) * slope
        return drop - rounding - TOLERANCE * max(1.0, left * abs(y0) + right * abs(y1))

    worst = max(points, key=excess)
    if excess(worst) <= 0:
        return
    (x, y), ((x0, y0), (x1, y1)) = worst, edge(worst[0])
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
