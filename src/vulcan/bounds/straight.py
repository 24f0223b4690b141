"""Risk bounds of straight pieces, exact by construction: constant, linear, piecewise linear."""

from __future__ import annotations

import math
import reprlib
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from vulcan.bounds.base import RiskBound, Tangent, require_factor
from vulcan.bounds.shape import Point, verify_shape
from vulcan.bounds.table import BoundTable, ExactTable
from vulcan.errors import BoundError
from vulcan.parameters import require_number
from vulcan.rounding import Number, divide_down, is_infinite


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

    @cached_property
    def _lines(self) -> Sequence[tuple[int, int, int]]:
        """Triples of integers (a, b, d): the piece is (a + b · reward) / d."""
        lines = []
        for start, value, slope in self._exact_pieces:
            at_zero = value - slope * start
            common = math.lcm(at_zero.denominator, slope.denominator)
            lines.append((int(at_zero * common), int(slope * common), common))
        return lines

    def _find(self, reward: Number) -> int:
        """Return the number of the piece that a reward lies on."""
        if len(self._pieces) == 1:
            return 0
        return max(0, bisect_right(self._pieces, reward, key=lambda piece: piece[0]) - 1)

    def __call__(self, reward: float) -> float:
        """Return the risk that is acceptable for an expected reward."""
        start, value, slope = self._pieces[self._find(reward)]
        return value + float(slope) * (reward - start)

    def exact(self, reward: Number) -> Fraction:
        """Return the same without rounding."""
        start, value, slope = self._exact_pieces[self._find(reward)]
        return value + slope * (Fraction(reward) - start) if slope else value

    def enclose(self, low: Number, high: Number) -> tuple[Number, Number]:
        """Return the least and the largest value between two rewards.

        Those of fractions are fractions, without rounding; others are floats, rounded outwards.
        """
        if isinstance(low, Fraction):
            least = self.exact(low)
            return least, least if high == low else self.exact(high)
        return self._round(low, 1), -self._round(high, -1) + 0.0  # never -0.0

    def _round(self, reward: Number, sign: int) -> float:
        """Return the value at a reward times a sign, rounded down.

        Searches ask this so often that it is done in integers.
        """
        if is_infinite(reward):
            return float(sign * reward)
        constant, slope, common = self._lines[self._find(reward)]
        top, bottom = reward.as_integer_ratio()
        return divide_down(sign * (constant * bottom + slope * top), common * bottom)

    def tangent(self, reward: float) -> Tangent:
        """Return the tangent at an expected reward; at a corner, the one that goes on."""
        return Tangent(reward, self(reward), float(self._pieces[self._find(reward)][2]))

    def table(self) -> BoundTable:
        """Return the pieces themselves."""
        return ExactTable([(start, value, float(slope)) for start, value, slope in self._pieces])

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
        points = tuple(
            (
                require_number("a point's reward", x, error=BoundError),
                require_number("a point's risk", y, error=BoundError),
            )
            for x, y in pairs
        )
        if len(points) < 2:
            raise BoundError("a piecewise linear bound needs at least two points")
        for (x0, y0), (x1, y1) in pairwise(points):
            if x1 <= x0:
                raise BoundError(
                    f"rewards of the points must increase: {x0!r} is followed by {x1!r}"
                )
            if y1 < y0:
                raise BoundError(
                    f"risks of the points must not decrease: {y0!r} at {x0!r}, {y1!r} at {x1!r}"
                )
        verify_shape(points)
        object.__setattr__(self, "points", points)
        for _, _, slope in self._pieces:
            require_number("the slope between two points", slope, error=BoundError)

    @cached_property
    def _pieces(self) -> Sequence[tuple[float, float, Fraction]]:
        slopes = [
            (Fraction(y1) - Fraction(y0)) / (Fraction(x1) - Fraction(x0))
            for (x0, y0), (x1, y1) in pairwise(self.points)
        ]
        return [
            (x, y, slope) for (x, y), slope in zip(self.points, [*slopes, Fraction(0)], strict=True)
        ]

    def scale(self, factor: float) -> PiecewiseLinear:
        times = require_factor(factor)
        return PiecewiseLinear([(reward, times * risk) for reward, risk in self.points])

    @property
    def text(self) -> str:
        """A string that `vulcan.parse` reads back."""
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
            object.__setattr__(
                self, name, require_number(name, getattr(self, name), error=BoundError)
            )
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
        """A string that `vulcan.parse` reads back."""
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
