"""Risk bounds that are any concave function, checked where they were used."""

from __future__ import annotations

import math
import reprlib
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np

from vulcan.bounds.base import RiskBound, Tangent, require_factor
from vulcan.bounds.shape import verify_shape
from vulcan.bounds.table import GUARD, BoundTable, RefinedTable
from vulcan.errors import BoundError
from vulcan.parameters import require_number
from vulcan.rounding import Number, round_down, round_up

GRID: Final = 256
"""Intervals of the grid on which a function is verified."""

FEW: Final = 3
"""Bends up, or down, of some values that are not taken for scatter if they are fewer."""

NARROW: Final = 1e-8
"""As a share of rewards: so close to each other, their values may scatter by a rounding."""

LARGEST_SCATTER: Final = 1e-7
"""Values that scatter by more, relative to those above 1, are not rounded but wrong."""

LARGEST_GAP: Final = 1e-12
"""A tangent that is found numerically is at most this far above the bound where it touches."""

SHIFT: Final = 4 * sys.float_info.epsilon
"""What a function is trusted to do to its argument by roundings, as a share of it."""


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

    def enclose(self, low: Number, high: Number) -> tuple[float, float]:
        """Return floats around all values between two rewards.

        A function is trusted to round as little as a plain formula does: the reward that it is
        given by `SHIFT`, as a share of it, and its value by `GUARD`, as a share of it or of 1.
        """
        ends = round_down(low), round_up(high)
        least, most = (
            end + side * SHIFT * abs(end) for end, side in zip(ends, (-1, 1), strict=True)
        )
        return self._round(least, -1), self._round(most, 1)

    def _round(self, reward: float, side: int) -> float:
        """Return the value at a reward, rounded down or up."""
        try:
            value = self(reward)
        except BoundError:
            return side * math.inf
        return value + side * GUARD * max(1.0, abs(value)) if math.isfinite(value) else value

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
                doubt = 2 * GUARD * max(1.0, abs(value)) / width
                return Tangent(reward, value + gap, max(0.0, slope), doubt)
            width /= 4

    def table(self) -> BoundTable:
        """Return a table that is refined where a search needs it."""
        return RefinedTable(self)

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
        scatter = partial(self._find_scatter, low, high)
        verify_shape([(place, self(place)) for place in places], scatter)

    def _find_scatter(self, low: float, high: float, reward: float) -> float:
        """Return by how much the values near a reward scatter: what the function rounds them by.

        Of values at even distances, those that scatter bend up and down in turn. Kinks and jumps
        are few, and all other functions bend one way.
        """
        scatter, width = 0.0, 10 * math.pi * math.ulp(reward)  # no multiple of what it rounds to
        widest = max((high - low) / 8, NARROW * max(abs(low), abs(high)))
        while width < widest:
            near = sorted({reward + width * (k / 8) for k in range(-8, 9)})
            width *= 8
            try:
                values = [self(place) for place in near]
            except BoundError:  # beside what is verified it need not have a value
                continue
            if -math.inf not in values and len(near) > 2 * FEW:
                bends = np.sort(np.diff(values, 2))
                scatter = max(scatter, min(bends[-FEW], -bends[FEW - 1]))
        return min(4 * float(scatter), LARGEST_SCATTER * max(1.0, abs(self(reward))))

    def scale(self, factor: float) -> Concave:
        times = require_factor(factor)
        function, derivative, text = self.function, self.derivative, self._text
        return Concave(
            partial(_multiply, times, function),
            derivative=None if derivative is None else partial(_multiply, times, derivative),
            text=None if text is None else f"{times!r} * ({text})",
        )

    @property
    def text(self) -> str | None:
        """A string that `vulcan.parse` reads back, if there is one."""
        return self._text


def _multiply(times: float, function: Callable[[float], float], reward: float) -> float:
    return times * function(reward)
