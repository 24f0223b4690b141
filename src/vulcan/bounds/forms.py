"""The kinds of risk bounds.

`Constant`, `Linear` and `PiecewiseLinear` are exact by construction. `Concave` is any concave
function, checked where it was used.
"""

from __future__ import annotations

import math
import reprlib
import sys
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from typing import Final

import numpy as np

from vulcan.bounds.base import Point, RiskBound, Tangent, require_factor, verify_shape
from vulcan.bounds.table import GUARD, BoundTable
from vulcan.errors import BoundError
from vulcan.numerics import Number, is_infinite, round_down, round_up
from vulcan.parameters import require_number


class Straight(RiskBound):
    """A bound made of straight pieces: checked when it is made, and its own table."""

    @property
    @abstractmethod
    def _pieces(self) -> Sequence[tuple[float, float, Fraction]]:
        """Triples (start, value, slope); the first also serves what lies before it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Straight) and self._pieces == other._pieces

    def __hash__(self) -> int:
        return hash(tuple(self._pieces))

    @cached_property
    def _exact_pieces(self) -> Sequence[tuple[Fraction, Fraction, Fraction]]:
        return [(Fraction(start), Fraction(value), slope) for start, value, slope in self._pieces]

    def _find(self, reward: Number) -> int:
        """Return the number of the piece that a reward lies on."""
        if len(self._pieces) == 1:
            return 0
        return max(0, bisect_right(self._pieces, reward, key=lambda piece: piece[0]) - 1)

    def __call__(self, reward: float) -> float:
        start, value, slope = self._pieces[self._find(reward)]
        return value + float(slope) * (reward - start) if slope else value

    def exact(self, reward: Number) -> Fraction:
        start, value, slope = self._exact_pieces[self._find(reward)]
        return value + slope * (Fraction(reward) - start) if slope else value

    def enclose(self, low: Number, high: Number) -> tuple[Number, Number]:
        if isinstance(low, Fraction):  # without rounding; floats are rounded outwards
            return self.exact(low), self.exact(high)
        least = low if is_infinite(low) else round_down(self.exact(low))
        return least, high if is_infinite(high) else round_up(self.exact(high))

    def piece(self, reward: float) -> tuple[float, float, float]:
        """Return the start, end and slope of the straight piece that a reward lies on."""
        place = self._find(reward)
        starts = [-math.inf, *(start for start, _, _ in self._pieces[1:]), math.inf]
        return starts[place], starts[place + 1], float(self._pieces[place][2])

    def tangent(self, reward: float) -> Tangent:
        """Return the tangent at an expected reward; at a corner, the one to the right."""
        return Tangent(reward, self(reward), float(self._pieces[self._find(reward)][2]))

    def table(self) -> BoundTable:
        return BoundTable([(start, value, float(slope)) for start, value, slope in self._pieces])

    def verify(self, points: Iterable[float]) -> None:
        """Do nothing: the bound was checked when it was made."""


@dataclass(frozen=True, eq=False)
class PiecewiseLinear(Straight):
    """Straight between points; on the left the first slope goes on, on the right the last value.

    Parameters
    ----------
    points
        Pairs (reward, risk) with rewards that increase, risks that do not decrease, and slopes
        that do not increase. At least two; `Constant` needs none.

    Examples
    --------
    >>> bound = PiecewiseLinear([(0, 0), (1, 0.01), (3, 0.02)])
    >>> bound(2), bound(10), bound(-1)
    (0.015, 0.02, -0.01)
    """

    points: Sequence[Point]

    def __post_init__(self) -> None:
        try:
            pairs = [(x, y) for x, y in self.points]
        except (TypeError, ValueError):
            raise BoundError(
                "points must be a list of pairs (reward, risk), such as [(0, 0), (5, 0.01)], "
                f"not {reprlib.repr(self.points)}"
            ) from None
        require = partial(require_number, error=BoundError)
        points = tuple(
            (require("a point's reward", x), require("a point's risk", y)) for x, y in pairs
        )
        if len(points) < 2:
            raise BoundError("a piecewise linear bound needs at least two points")
        for (x0, y0), (x1, y1) in pairwise(points):
            if x1 <= x0:
                problem = f"rewards of the points must increase: {x0!r} is followed by {x1!r}"
                raise BoundError(problem)
            if y1 < y0:
                raise BoundError(
                    f"risks of the points must not decrease: {y0!r} at {x0!r}, {y1!r} at {x1!r}"
                )
        verify_shape(points)
        object.__setattr__(self, "points", points)
        for _, _, slope in self._pieces:
            require("the slope between two points", slope)

    @cached_property
    def _pieces(self) -> Sequence[tuple[float, float, Fraction]]:
        slopes = [
            (Fraction(y1) - Fraction(y0)) / (Fraction(x1) - Fraction(x0))
            for (x0, y0), (x1, y1) in pairwise(self.points)
        ]
        pairs = zip(self.points, [*slopes, Fraction(0)], strict=True)
        return [(x, y, slope) for (x, y), slope in pairs]

    def scale(self, factor: float) -> PiecewiseLinear:
        times = require_factor(factor)
        return PiecewiseLinear([(reward, times * risk) for reward, risk in self.points])

    @property
    def text(self) -> str:
        return f"piecewise({', '.join(map(repr, self.points))})"


@dataclass(frozen=True, eq=False)
class Linear(Straight):
    """The bound slope · reward + offset.

    Parameters
    ----------
    slope
        Risk per unit of reward; at least 0.
    offset
        Risk that is acceptable for no reward.

    Examples
    --------
    >>> Linear(0.002)(4)
    0.008
    """

    slope: float
    offset: float = 0.0

    def __post_init__(self) -> None:
        for name in ("slope", "offset"):
            number = require_number(name, getattr(self, name), error=BoundError)
            object.__setattr__(self, name, number)
        if self.slope < 0:
            raise BoundError(
                f"the bound must not decrease: slope must be at least 0, not {self.slope!r}"
            )

    @cached_property
    def _pieces(self) -> Sequence[tuple[float, float, Fraction]]:
        return [(0.0, self.offset, Fraction(self.slope))]

    def scale(self, factor: float) -> Linear:
        times = require_factor(factor)
        return Linear(times * self.slope, times * self.offset)

    @property
    def text(self) -> str:
        if not self.slope:
            return repr(self.offset)
        return f"{self.slope!r} * x" + (f" + {self.offset!r}" if self.offset else "")


class Constant(Linear):
    """The same acceptable risk whatever the reward: the chance constraint of the literature.

    Parameters
    ----------
    level
        Acceptable probability of failure.

    Examples
    --------
    >>> Constant(0.0125)(3.0)
    0.0125
    """

    def __init__(self, level: float) -> None:
        super().__init__(0.0, require_number("level", level, error=BoundError))

    def __repr__(self) -> str:
        return f"Constant({self.level!r})"

    def scale(self, factor: float) -> Constant:
        return Constant(require_factor(factor) * self.level)

    @property
    def level(self) -> float:
        """The acceptable probability of failure."""
        return self.offset


GRID: Final = 256  # intervals of the grid on which a function is verified
LARGEST_GAP: Final = 1e-12  # largest height of a numerical tangent above the bound where it touches

SHIFT: Final = 4 * sys.float_info.epsilon
"""Relative rounding error of a function's argument that is assumed."""


class Concave(RiskBound):
    """Any concave, nondecreasing function of the expected reward.

    Parameters
    ----------
    function
        From a float to a float. It may return -inf where nothing is acceptable, and need not have
        a value where no history comes.
    derivative
        Its derivative (at a corner, the one to the right), used for tangents and trusted. Without
        it, or where it is not finite, the slope is found numerically.
    text
        A string that `vulcan.parse` reads back, if there is one.

    Examples
    --------
    >>> import math
    >>> bound = Concave(lambda x: 0.02 * (1 - math.exp(-x)))
    >>> round(bound(1.0), 6)
    0.012642
    """

    text: str | None = None

    def __init__(
        self,
        function: Callable[[float], float],
        derivative: Callable[[float], float] | None = None,
        text: str | None = None,
    ) -> None:
        if not callable(function):
            raise BoundError(f"a concave bound needs a function, not {reprlib.repr(function)}")
        if derivative is not None and not callable(derivative):
            raise BoundError(f"the derivative must be a function, not {reprlib.repr(derivative)}")
        self.function, self.derivative, self.text = function, derivative, text

    def __repr__(self) -> str:
        name = self.text or getattr(self.function, "__name__", repr(self.function))
        return f"Concave({name})"

    def __call__(self, reward: float) -> float:
        try:
            with np.errstate(all="ignore"):  # invalid values are refused below
                value = float(self.function(reward))
        except Exception as error:
            raise BoundError(f"the risk bound can't be evaluated at {reward!r}: {error}") from error
        if math.isnan(value) or value == math.inf:
            raise BoundError(f"the risk bound is {value} at {reward!r}; it may be finite or -inf")
        return value

    def exact(self, reward: Fraction) -> Fraction | float:
        """Return the value at the nearest float; the function itself is not rational."""
        value = self(float(reward))
        return value if math.isinf(value) else Fraction(value)

    def enclose(self, low: Number, high: Number) -> tuple[float, float]:
        """Return floats around all values between two rewards.

        A function is assumed to round as little as a plain formula does: its argument by `SHIFT`,
        relative to it, and its value by `GUARD`, relative to it or to 1.
        """
        return self._round(round_down(low), -1), self._round(round_up(high), 1)

    def _round(self, reward: float, side: int) -> float:
        """Return the value at a reward, rounded down or up."""
        try:
            value = self(reward + side * SHIFT * abs(reward))
        except BoundError:
            return side * math.inf
        return value + side * GUARD * max(1.0, abs(value)) if math.isfinite(value) else value

    def tangent(self, reward: float) -> Tangent:
        """Return a tangent at an expected reward.

        Where the function is infinitely steep (a root at its edge) no line through its value
        stays above it. The line returned there is very steep, and slightly above the value.
        """
        value = self(reward)
        if value == -math.inf:
            raise BoundError(f"the risk bound is -inf at {reward!r}, and has no tangent there")
        try:
            slope = math.nan if self.derivative is None else float(self.derivative(reward))
        except Exception:
            slope = math.nan
        if math.isfinite(slope):
            return Tangent(reward, value, max(0.0, slope))
        return self._secant(reward, value)

    def _secant(self, reward: float, value: float) -> Tangent:
        """Return a line through neighbouring points, raised above what lies between them."""
        # Wide, since the slope of an almost straight function is lost in rounding otherwise.
        width = 1e-2 * max(1.0, abs(reward))
        while True:
            middle, end = reward + width / 2, reward + width
            slope = (self(end) - value) / (end - reward)
            # A concave function rises above a chord at most twice as far as in its middle.
            gap = max(0.0, 2 * (self(middle) - value - slope * (middle - reward)))
            narrow = width <= max(1e-200, 16 * math.ulp(reward))
            if narrow or gap <= LARGEST_GAP * max(1.0, abs(value)):
                doubt = 2 * GUARD * max(1.0, abs(value)) / width
                return Tangent(reward, value + gap, max(0.0, slope), doubt)
            width /= 4

    def table(self) -> BoundTable:
        return BoundTable(function=self)

    def verify(self, points: Iterable[float]) -> None:
        """Check the function at the points and on a grid from the least to the largest."""
        given = {
            require_number("a reward that the bound is used at", point, error=BoundError)
            for point in points
        }
        if not given:
            return
        low, high = min(given), max(given)
        grid = {low + (high - low) * (k / GRID) for k in range(GRID)}
        places = sorted(place for place in given | grid if place <= high)
        verify_shape([(place, self(place)) for place in places])

    def scale(self, factor: float) -> Concave:
        times = require_factor(factor)
        derivative = None
        if self.derivative is not None:
            derivative = partial(_multiply, times, self.derivative)
        text = None if self.text is None else f"{times!r} * ({self.text})"
        return Concave(partial(_multiply, times, self.function), derivative, text)


def _multiply(times: float, function: Callable[[float], float], reward: float) -> float:
    return times * function(reward)
