"""Risk bounds: how much probability of failure is acceptable for how much expected reward.

A risk bound Δ is concave and nondecreasing on every interval on which it is used. It may go below
0, or be -inf, for small rewards: nothing is acceptable there. It is never clipped at 0 from below,
which would break concavity and with it the guarantee. Values above 1 are harmless.

Three kinds are exact by construction: `Constant`, `Linear` and `PiecewiseLinear`. Their parameters
are checked when they are made. `Concave` takes any function. That one is checked where it was
used: `verify` looks at every point at which it was evaluated, and at a grid between them.

Kernels evaluate a bound through its `BoundTable` (see `vulcan.bound_table`).

A tangent at x is a line that is nowhere below Δ: Δ(y) <= value + slope (y - x) for all y.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any

from vulcan.bound_table import BoundTable, ExactTable, RefinedTable
from vulcan.errors import BoundError
from vulcan.tolerance import TOLERANCE

__all__ = ["Concave", "Constant", "Linear", "PiecewiseLinear", "RiskBound", "Tangent"]


@dataclass(frozen=True)
class Tangent:
    """A line nowhere below the bound, touching it at `at`.

    Attributes
    ----------
    at, value
        Where it touches, and the bound there.
    slope
        Its slope; never negative.
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
    def exact(self, reward: Fraction) -> Fraction:
        """Return the same in rational arithmetic, as far as the bound allows it."""

    @abstractmethod
    def tangent(self, reward: float) -> Tangent:
        """Return a tangent at an expected reward."""

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

    @property
    @abstractmethod
    def text(self) -> str | None:
        """A text that `vulcan.parse` reads back, or None for a function that has none."""

    def __str__(self) -> str:
        return self.text or repr(self)


def _require_number(name: str, value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
        raise BoundError(f"{name} must be a finite number, not {value!r}")
    return float(value)


class PiecewiseLinear(RiskBound):
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

    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        pairs = [
            (_require_number("a reward of the bound", x), _require_number("a risk of the bound", y))
            for x, y in points
        ]
        if len(pairs) < 2:
            raise BoundError("a piecewise linear bound needs at least two points")
        self.points = tuple(pairs)
        slopes = []
        for (x0, y0), (x1, y1) in zip(pairs, pairs[1:], strict=False):
            if x1 <= x0:
                raise BoundError(
                    f"rewards of the bound must increase: {x0:g} is followed by {x1:g}"
                )
            if y1 < y0:
                raise BoundError(
                    f"the bound must not decrease: {y0:g} at reward {x0:g}, {y1:g} at reward {x1:g}"
                )
            slopes.append((y1 - y0) / (x1 - x0))
        for position, (before, after) in enumerate(zip(slopes, slopes[1:], strict=False)):
            if after > before + TOLERANCE:
                raise BoundError(
                    "the bound must be concave: its slope grows from "
                    f"{before:g} to {after:g} at reward {pairs[position + 1][0]:g}"
                )
        # Piece k runs from its start to the next; the first reaches back, the last is level.
        self._starts = [x for x, _ in pairs]
        self._pieces = [(x, y, slope) for (x, y), slope in zip(pairs, [*slopes, 0.0], strict=True)]

    def __repr__(self) -> str:
        return f"PiecewiseLinear({list(self.points)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PiecewiseLinear) and self.points == other.points

    def __hash__(self) -> int:
        return hash(self.points)

    def _piece(self, reward: float | Fraction) -> tuple[float, float, float]:
        return self._pieces[max(0, bisect_right(self._starts, reward) - 1)]

    def __call__(self, reward: float) -> float:
        start, value, slope = self._piece(reward)
        return value + slope * (reward - start)

    def exact(self, reward: Fraction) -> Fraction:
        start, value, slope = (Fraction(number) for number in self._piece(reward))
        return value + slope * (reward - start)

    def tangent(self, reward: float) -> Tangent:
        return Tangent(reward, self(reward), self._piece(reward)[2])

    def table(self) -> BoundTable:
        return ExactTable(self._pieces)

    def verify(self, points: Iterable[float]) -> None:
        """Do nothing: the points were checked when the bound was made."""

    @property
    def text(self) -> str | None:
        return f"piecewise({', '.join(f'({x!r}, {y!r})' for x, y in self.points)})"


@dataclass(frozen=True)
class Linear(RiskBound):
    """The bound slope · reward + offset.

    Parameters
    ----------
    slope
        Risk per unit of reward; at least 0.
    offset
        Risk that is acceptable for no reward.

    Examples
    --------
    >>> Linear(0.002)(4.5)
    0.009
    """

    slope: float
    offset: float = 0.0

    def __post_init__(self) -> None:
        if _require_number("slope", self.slope) < 0:
            raise BoundError(
                f"the bound must not decrease: slope must be at least 0, not {self.slope!r}"
            )
        _require_number("offset", self.offset)

    def __call__(self, reward: float) -> float:
        return self.offset + self.slope * reward

    def exact(self, reward: Fraction) -> Fraction:
        return Fraction(self.offset) + Fraction(self.slope) * reward

    def tangent(self, reward: float) -> Tangent:
        return Tangent(reward, self(reward), self.slope)

    def table(self) -> BoundTable:
        return ExactTable([(0.0, self.offset, self.slope)])

    def verify(self, points: Iterable[float]) -> None:
        """Do nothing: slope and offset were checked when the bound was made."""

    @property
    def text(self) -> str | None:
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

    @property
    def level(self) -> float:
        """The acceptable probability of failure."""
        return self.offset

    @property
    def text(self) -> str | None:
        return repr(self.offset)


class Concave(RiskBound):
    """Any concave, nondecreasing function of the expected reward.

    Parameters
    ----------
    function
        From a float to a float. It may return -inf where nothing is acceptable.
    derivative
        Its derivative, used for tangents. Without it they are found numerically.
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
            raise BoundError(f"a concave bound needs a function, not {function!r}")
        self.function = function
        self.derivative = derivative
        self._text = text

    def __repr__(self) -> str:
        name = self._text or getattr(self.function, "__name__", repr(self.function))
        return f"Concave({name})"

    def __call__(self, reward: float) -> float:
        try:
            value = float(self.function(reward))
        except (ArithmeticError, TypeError, ValueError) as error:
            raise BoundError(f"the risk bound can't be evaluated at {reward!r}: {error}") from error
        if math.isnan(value) or value == math.inf:
            raise BoundError(f"the risk bound is {value} at {reward!r}; it may be finite or -inf")
        return value

    def exact(self, reward: Fraction) -> Fraction:
        """Return the value at the nearest float; the function itself is not rational."""
        return Fraction(self(float(reward)))

    def tangent(self, reward: float) -> Tangent:
        value = self(reward)
        if self.derivative is not None:
            return Tangent(reward, value, max(0.0, float(self.derivative(reward))))
        # A slope between the secants on either side is a supergradient up to their curvature.
        step = 1e-6 * max(1.0, abs(reward))
        right = (self(reward + step) - value) / step
        try:
            left = (value - self(reward - step)) / step
        except BoundError:
            left = right
        slope = right if math.isinf(left) else (left + right) / 2
        return Tangent(reward, value, max(0.0, slope))

    def table(self) -> BoundTable:
        return RefinedTable(self)

    def verify(self, points: Iterable[float]) -> None:
        """Check the function at the points and on a grid over their range, at every scale."""
        given = set(points)
        low, high = min(given), max(given)
        grid = {low + (high - low) * k / 256 for k in range(257)}
        places = sorted(x for x in given | grid if low <= x <= high)
        _verify_shape([(x, self(x)) for x in places])

    @property
    def text(self) -> str | None:
        return self._text


def _verify_shape(pairs: Sequence[tuple[float, float]]) -> None:
    finite = [(x, y) for x, y in pairs if y > -math.inf]
    gone = [x for x, y in pairs if y == -math.inf and finite and x > finite[0][0]]
    if gone:
        raise BoundError(
            f"the risk bound decreases: it is -inf at {gone[0]!r}, {finite[0][1]!r} at {finite[0][0]!r}"
        )
    stride = 1
    # Neighbours close to each other hide a slow bend in the tolerance; wider strides show it.
    while stride < len(finite):
        _verify_stride(finite[::stride])
        stride *= 2


def _verify_stride(pairs: Sequence[tuple[float, float]]) -> None:
    for (x0, y0), (x1, y1) in zip(pairs, pairs[1:], strict=False):
        if y1 < y0 - TOLERANCE:
            raise BoundError(
                f"the risk bound decreases from {y0!r} at {x0!r} to {y1!r} at {x1!r}; "
                "it must be nondecreasing"
            )
    for (x0, y0), (x1, y1), (x2, y2) in zip(pairs, pairs[1:], pairs[2:], strict=False):
        chord = y0 + (y2 - y0) * ((x1 - x0) / (x2 - x0))
        if y1 < chord - TOLERANCE:
            raise BoundError(
                f"the risk bound is not concave: {y1!r} at {x1!r} lies below the line from "
                f"{y0!r} at {x0!r} to {y2!r} at {x2!r}"
            )
