"""Risk bounds as kernels see them: straight pieces, never above the bound.

A table is an array of pieces. On piece k, which begins at `start` and ends where the next begins,

    value + slope (x - start)  <=  Δ(x)  <=  value + slope (x - start) + error,

and credits from `low` to `high` can be looked up. A bound that is piecewise linear is its own
table, with error 0 and no limits. For any other function there are two pieces for each place where
it was evaluated: the place alone, with error 0, and the chord to the next place. A chord lies below
a concave function, and how far the function can rise above it follows from the chords beside it:
the function lies below both of them when they are extended.

A kernel never guesses. Where the pieces leave open whether a history passes (its risk lies between
the piece and the piece plus its error), or a credit is outside the limits, it stops and requests
`cover(credit)`. The table then evaluates the function at that credit and the kernel continues. So
kernels decide as if they had the function itself. That is exact as long as the function's own
rounding errors are ordinary ones, below about `GUARD`.

The function is evaluated at these credits only: elsewhere it need not be concave, or have a value
at all. That it is concave and nondecreasing at these credits is assumed here; `verify_shape` checks
it afterwards.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import BoundError
from vulcan.numerics import TOLERANCE

PIECE: Final = np.dtype(
    [("start", "f8"), ("value", "f8"), ("slope", "f8"), ("error", "f8")], align=True
)

GUARD: Final = TOLERANCE / 100
"""Assumed rounding error of a function's values, relative to values above 1."""

LARGEST: Final = sys.float_info.max


class BoundTable:
    """A risk bound as straight pieces: its own, or chords of a function.

    Evaluations of a function are rare: the error of chords falls with the square of their width,
    and the number of evaluations grows like the cube root of the number of comparisons. The pieces
    are in the order of `start`, and the first also covers all credits before it. Credits from `low`
    to `high` can be looked up; above, the bound is at most top + beyond (x - high), and nowhere
    above `ceiling`.
    """

    def __init__(
        self,
        pieces: Sequence[tuple[float, float, float]] = (),
        function: Callable[[float], float] | None = None,
    ) -> None:
        self.function = function
        self.top = self.beyond = self.ceiling = math.inf
        # Where the function was evaluated and is finite, in order; and its values there.
        self._places: list[float] = []
        self._values: list[float] = []
        self._undefined_up_to = -math.inf  # the function is -inf up to here
        self.pieces: NDArray[np.void] = np.zeros(1, PIECE)
        self.low, self.high = math.inf, -math.inf
        if function is None:
            self.pieces = np.array([(*piece, 0.0) for piece in pieces], PIECE)
            self.low, self.high = -math.inf, math.inf
            _, level, slope = pieces[-1]
            if slope == 0:
                # Rounding may put rising pieces above the level on which they end.
                self.ceiling = level + GUARD * max(1.0, abs(level))

    def cover(self, credit: float) -> None:
        """Make the table exact at a credit: evaluate the function there."""
        index = bisect_left(self._places, credit)
        if credit <= self._undefined_up_to or credit in self._places[index : index + 1]:
            return
        assert self.function is not None  # straight pieces cover every credit
        value = self.function(credit)
        if value > -math.inf:
            self._places.insert(index, credit)
            self._values.insert(index, value)
        elif index:
            raise BoundError(
                f"the risk bound decreases from {self._values[0]!r} at {self._places[0]!r} "
                f"to -inf at {credit!r}; it must be nondecreasing"
            )
        else:
            self._undefined_up_to = credit
        self.pieces = self._lay_chords()
        if self._undefined_up_to > -math.inf:
            nothing = (-LARGEST, -math.inf, 0.0, 0.0)
            unknown = (math.nextafter(self._undefined_up_to, math.inf), -LARGEST, 0.0, math.inf)
            self.pieces = np.concatenate([np.array([nothing, unknown], PIECE), self.pieces])
        self.low = -math.inf if self._undefined_up_to > -math.inf else self._places[0]
        self.high = self._places[-1] if self._places else self._undefined_up_to

    def evaluated(self, low: float, high: float) -> list[float]:
        """Return `low`, `high` and the places between them where the function was evaluated."""
        between = (place for place in self._places if low < place < high)
        return [low, *between, high] if low <= high else []

    def _lay_chords(self) -> NDArray[np.void]:
        """Return, in turn, a place alone and the chord to the next place."""
        places, values = np.array(self._places), np.array(self._values)
        pieces = np.zeros(max(0, 2 * len(places) - 1), PIECE)
        pieces["start"][::2], pieces["value"][::2] = places, values
        with np.errstate(over="ignore"):
            width = np.minimum(np.diff(places), LARGEST)
            climb = np.diff(values)
            slope = np.clip(climb / width, -LARGEST, LARGEST)
            # A function rounds its argument and its values.
            size = np.maximum(1.0, np.maximum(np.abs(values[:-1]), np.abs(values[1:])))
            reach = np.maximum(np.abs(places[:-1]), np.abs(places[1:]))
            guard = GUARD * size + 4 * sys.float_info.epsilon * reach * np.abs(slope)
            # Rounding blurs the slope of a narrow chord, which says little about a wide neighbour.
            doubt = 2 * guard / width
            rise = np.append(np.inf, (slope + doubt)[:-1]) - slope
            fall = slope - np.append((slope - doubt)[1:], 0.0)
            peak = width * np.maximum(0.0, np.minimum(rise, fall))
            # No chord of a concave function is less steep than the function after it.
            self.beyond = max(0.0, float(np.min(slope + doubt, initial=math.inf)))
            self.top = float(values[-1]) + float(guard[-1]) if len(guard) else math.inf
        chords = pieces[1::2]
        chords["start"] = np.nextafter(places[:-1], np.inf)
        chords["value"] = values[:-1] + slope * (chords["start"] - places[:-1]) - guard
        chords["slope"] = slope
        # A slope too large for a float leaves the line below the chord.
        chords["error"] = peak + np.abs(climb - slope * width) + 3 * guard
        return pieces
