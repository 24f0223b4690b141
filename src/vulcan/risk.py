"""Risk bounds: how much probability of failure is acceptable for how much expected reward.

A risk bound Δ is concave and nondecreasing on every interval on which it is used. It may go below
0, or be -inf, for small rewards: nothing is acceptable there. It is never clipped at 0 from below,
which would break concavity and with it the guarantee. Values above 1 are harmless.

Three kinds are exact by construction: `Constant`, `Linear` and `PiecewiseLinear`. Their parameters
are checked when they are made. `Concave` takes any function. That one is checked where it was
used: `verify` looks at every point at which it was evaluated, and at a grid between them.

Kernels evaluate a bound through its `BoundTable` (see `vulcan.bound_table`).

A tangent is a line that is nowhere below Δ: Δ(y) <= value + slope (y - at) for all y.
"""

from __future__ import annotations

import math
import reprlib
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from numbers import Real
from typing import Any, Final

import numpy as np

from vulcan.bound_table import BoundTable, ExactTable, Point, RefinedTable, verify_shape
from vulcan.errors import BoundError

__all__ = ["Concave", "Constant", "Linear", "PiecewiseLinear", "RiskBound", "Tangent"]

GRID: Final = 256
"""Intervals of the grid on which a function is verified."""

LARGEST_GAP: Final = 1e-12
"""A tangent that is found numerically is at most this far above the bound where it touches."""


@dataclass(frozen=True)
class Tangent:
    """A line nowhere below the bound, touching it at `at`.

    Attributes
    ----------
    at, value
        Where it touches, and its height there: the bound itself, or a trifle more where the slope
        had to be found numerically.
    slope
        Its slope: finite, and never negative.
    """

    at: float
    value: float
    slope: float

    def __call__(self, reward: float) -> float:
        """Return the height of the line at a reward."""
        return self.value + self.slope * (reward - self.at)


class RiskBound(ABC):
    """A concave, nondecreasing function from expected reward to acceptable probability of failure.

    Use `Constant`, `Linear`, `PiecewiseLinear` or `Concave`, or `vulcan.parse` for a text.
    """

    @abstractmethod
    def __call__(self, reward: float) -> float:
        """Return the risk that is acceptable for an expected reward."""

    @abstractmethod
    def exact(self, reward: Fraction) -> Fraction | float:
        """Return the same in rational arithmetic, as far as the bound allows it."""

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
        """Return the bound that accepts so many times the risk for every reward.

        The factor is a positive number: with 0, what the bound refuses for its small reward would
        pass if it had no risk. `Constant(0)` says that, if it is meant.
        """

    @property
    @abstractmethod
    def text(self) -> str | None:
        """A text that `vulcan.parse` reads back, or None for a function that has none."""

    def __str__(self) -> str:
        return self.text or repr(self)


class _Straight(RiskBound):
    """A bound made of straight pieces: checked when it is made, and its own table."""

    @property
    @abstractmethod
    def _pieces(self) -> Sequence[tuple[float, float, Fraction]]:
        """Triples (start, value, slope); the first also serves what lies before it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Straight) and self._pieces == other._pieces

    def __hash__(self) -> int:
        return hash(tuple(self._pieces))

    def _piece(self, reward: float | Fraction) -> tuple[float, float, Fraction]:
        after = bisect_right(self._pieces, reward, key=lambda piece: piece[0])
        return self._pieces[max(0, after - 1)]

    def __call__(self, reward: float) -> float:
        """Return the risk that is acceptable for an expected reward."""
        start, value, slope = self._piece(reward)
        return value + float(slope) * (reward - start)

    def exact(self, reward: Fraction) -> Fraction:
        """Return the same without rounding."""
        start, value, slope = self._piece(reward)
        return Fraction(value) + slope * (reward - Fraction(start))

    def tangent(self, reward: float) -> Tangent:
        """Return the tangent at an expected reward; at a corner, the one that goes on."""
        return Tangent(reward, self(reward), float(self._piece(reward)[2]))

    def table(self) -> BoundTable:
        """Return the pieces themselves."""
        return ExactTable([(start, value, float(slope)) for start, value, slope in self._pieces])

    def verify(self, points: Iterable[float]) -> None:
        """Do nothing: the bound was checked when it was made."""


@dataclass(frozen=True, eq=False)
class PiecewiseLinear(_Straight):
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
            (_require_number("a point's reward", x), _require_number("a point's risk", y))
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
            _require_number("the slope between two points", slope)

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
        times = _require_factor(factor)
        return PiecewiseLinear([(reward, times * risk) for reward, risk in self.points])

    @property
    def text(self) -> str:
        """A text that `vulcan.parse` reads back."""
        return f"piecewise({', '.join(map(repr, self.points))})"


@dataclass(frozen=True, eq=False)
class Linear(_Straight):
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
            object.__setattr__(self, name, _require_number(name, getattr(self, name)))
        if self.slope < 0:
            raise BoundError(
                f"the bound must not decrease: slope must be at least 0, not {self.slope!r}"
            )

    @cached_property
    def _pieces(self) -> Sequence[tuple[float, float, Fraction]]:
        return [(0.0, self.offset, Fraction(self.slope))]

    def scale(self, factor: float) -> Linear:
        times = _require_factor(factor)
        return Linear(times * self.slope, times * self.offset)

    @property
    def text(self) -> str:
        """A text that `vulcan.parse` reads back."""
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
        super().__init__(0.0, _require_number("level", level))

    def __repr__(self) -> str:
        return f"Constant({self.level!r})"

    def scale(self, factor: float) -> Constant:
        return Constant(_require_factor(factor) * self.level)

    @property
    def level(self) -> float:
        """The acceptable probability of failure."""
        return self.offset


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
        A text that `vulcan.parse` reads back, if there is one.

    Examples
    --------
    >>> import math
    >>> bound = Concave(lambda x: 0.02 * (1 - math.exp(-x)))
    >>> round(bound(1.0), 6)
    0.012642
    """

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
        self.function = function
        self.derivative = derivative
        self._text = text

    def __repr__(self) -> str:
        name = self._text or getattr(self.function, "__name__", repr(self.function))
        return f"Concave({name})"

    def __call__(self, reward: float) -> float:
        """Return the risk that is acceptable for an expected reward."""
        try:
            with np.errstate(all="ignore"):  # whatever NumPy would warn of is refused below
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

    def tangent(self, reward: float) -> Tangent:
        """Return a tangent at an expected reward.

        Where the function is infinitely steep (a root at its edge) no line through its value
        stays above it. The line returned there is very steep, and a trifle above the value.
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
        # Wide, since the slope of what is almost straight is lost in roundings otherwise.
        width = 1e-2 * max(1.0, abs(reward))
        while True:
            middle, end = reward + width / 2, reward + width
            slope = (self(end) - value) / (end - reward)
            # A concave function rises above a chord at most twice as far as in its middle.
            gap = max(0.0, 2 * (self(middle) - value - slope * (middle - reward)))
            narrow = width <= max(1e-200, 16 * math.ulp(reward))
            if narrow or gap <= LARGEST_GAP * max(1.0, abs(value)):
                return Tangent(reward, value + gap, max(0.0, slope))
            width /= 4

    def table(self) -> BoundTable:
        """Return a table that is refined where a search needs it."""
        return RefinedTable(self)

    def verify(self, points: Iterable[float]) -> None:
        """Check the function at the points and on a grid from the least to the largest."""
        given = {_require_number("a reward that the bound is used at", point) for point in points}
        if not given:
            return
        low, high = min(given), max(given)
        grid = {low + (high - low) * (k / GRID) for k in range(GRID)}
        places = sorted(place for place in given | grid if place <= high)
        verify_shape([(place, self(place)) for place in places])

    def scale(self, factor: float) -> Concave:
        times = _require_factor(factor)
        function, derivative, text = self.function, self.derivative, self._text
        return Concave(
            lambda reward: times * function(reward),
            derivative=None if derivative is None else lambda reward: times * derivative(reward),
            text=None if text is None else f"{times!r} * ({text})",
        )

    @property
    def text(self) -> str | None:
        """A text that `vulcan.parse` reads back, if there is one."""
        return self._text


def _require_factor(value: Any) -> float:
    factor = _require_number("the factor of a bound", value)
    if factor <= 0:
        raise BoundError(f"the factor of a bound must be positive, not {factor!r}")
    return factor


def _require_number(name: str, value: Any) -> float:
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            raise BoundError(f"{name} must be a finite number; this is too large") from None
        if math.isfinite(number):
            return number
    raise BoundError(f"{name} must be a finite number, not {reprlib.repr(value)}")
