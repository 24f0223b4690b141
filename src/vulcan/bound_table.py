"""Risk bounds as kernels see them: straight pieces, never above the bound.

A table is an array of pieces. On piece k, which begins at `start` and ends where the next begins,

    Δ(x)  >=  value + slope (x - start)  >=  Δ(x) - error,

and credits from `low` to `high` can be looked up. A bound that is piecewise linear is its own
table, with error 0 and no limits. For any other function the pieces are chords, which lie below a
concave function, lowered by the rounding errors of their own evaluation. How far the function can
rise above a chord follows from the chords beside it: it lies below both when they are extended.

A kernel never guesses. Where the pieces leave open whether a history passes (its risk lies between
the piece and the piece plus its error), or a credit is outside the limits, it stops and asks for
`cover(credit)`. The table then evaluates the function at that very point and the kernel goes on.
So kernels decide as if they had the function itself.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import BoundError

__all__ = ["PIECE", "BoundTable", "ExactTable", "RefinedTable"]

PIECE: Final = np.dtype(
    [("start", "f8"), ("value", "f8"), ("slope", "f8"), ("error", "f8")], align=True
)

LARGEST_ERROR: Final = 1e-7
"""Pieces are split until a chord is at most this far below the function."""

MOST_PIECES: Final = 4096


class BoundTable(ABC):
    """A risk bound as straight pieces.

    Attributes
    ----------
    pieces
        Array of `PIECE`, in the order of `start`. The first also serves what lies before it.
    low, high
        The credits that can be looked up.
    """

    pieces: NDArray[np.void]
    low: float
    high: float

    @abstractmethod
    def cover(self, credit: float) -> None:
        """Make the table exact at a credit."""

    @abstractmethod
    def evaluated(self, low: float, high: float) -> list[float]:
        """Return the points from `low` to `high` at which the function was evaluated."""


class ExactTable(BoundTable):
    """A piecewise linear bound, which is its own table.

    Parameters
    ----------
    pieces
        Triples (start, value, slope).
    """

    def __init__(self, pieces: Sequence[tuple[float, float, float]]) -> None:
        self.pieces = np.array([(*piece, 0.0) for piece in pieces], PIECE)
        self.low, self.high = -math.inf, math.inf

    def cover(self, credit: float) -> None:
        raise AssertionError("an exact table covers every credit")

    def evaluated(self, low: float, high: float) -> list[float]:
        return [low, high]


class RefinedTable(BoundTable):
    """Chords of a concave function, refined where a search needs it.

    Parameters
    ----------
    function
        The bound; it raises `BoundError` where it has no value.
    """

    def __init__(self, function: Callable[[float], float]) -> None:
        self._function = function
        self._places: list[float] = []
        self._values: dict[float, float] = {}
        self._floor = -math.inf  # the function is -inf up to here
        self.pieces = np.zeros(1, PIECE)
        self.low, self.high = math.inf, -math.inf

    def cover(self, credit: float) -> None:
        """Make the table exact at a credit, reaching past it if it was outside."""
        if not self._places or not self.low <= credit <= self.high:
            self._reach(credit)
        self._evaluate(credit)
        self._split()
        self._rebuild()

    def evaluated(self, low: float, high: float) -> list[float]:
        return [low, *(x for x in self._places if low < x < high), high]

    def _evaluate(self, place: float) -> float:
        if place not in self._values:
            value = self._function(place)
            rising = (
                place > self._floor
                if value > -math.inf
                else not self._places or (place < self._places[0])
            )
            if not rising:
                raise BoundError(
                    f"the risk bound decreases: it is -inf at {self._floor!r} or {place!r}"
                )
            self._values[place] = value
            if value > -math.inf:
                insort(self._places, place)
            else:
                self._floor = max(self._floor, place)
        return self._values[place]

    def _reach(self, credit: float) -> None:
        self._evaluate(credit)
        # Reach as far again beyond the credit, so that the next one is likely to be inside; the
        # function need not have a value there.
        width = max(1.0, abs(credit - self._places[0]) if self._places else 1.0)
        for place in (credit - width, credit + width):
            try:
                self._evaluate(place)
            except BoundError:
                continue
        if self._floor > -math.inf and self._places:
            self._find_edge()

    def _find_edge(self) -> None:
        """Bring the last known -inf and the first known finite value next to each other."""
        below, above = self._floor, self._places[0]
        while (middle := below + (above - below) / 2) not in (below, above):
            if self._evaluate(middle) > -math.inf:
                above = middle
            else:
                below = middle

    def _split(self) -> None:
        while len(self._places) < MOST_PIECES:
            errors = self._errors()
            wide = np.flatnonzero(errors > LARGEST_ERROR)
            places = np.array(self._places)
            middles = (places[wide] + places[wide + 1]) / 2
            fresh = [x for x in middles.tolist() if x not in self._values]
            if not fresh:
                return
            for place in fresh[: MOST_PIECES - len(self._places)]:
                self._evaluate(place)

    def _slopes(self) -> NDArray[np.float64]:
        values = np.array([self._values[x] for x in self._places])
        return np.diff(values) / np.diff(self._places)

    def _errors(self) -> NDArray[np.float64]:
        """How far the function can rise above each chord, given the chords beside it."""
        if len(self._places) < 2:
            return np.zeros(0)
        slopes = self._slopes()
        rise = np.append(np.inf, slopes[:-1]) - slopes
        fall = slopes - np.append(slopes[1:], 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            peak = np.where(np.isinf(rise), fall, rise * fall / (rise + fall))
        return np.maximum(0.0, np.nan_to_num(peak)) * np.diff(self._places)

    def _rebuild(self) -> None:
        places = self._places
        rows: list[tuple[float, float, float, float]] = []
        if self._floor > -math.inf:
            rows.append((-sys.float_info.max, -math.inf, 0.0, 0.0))
        if len(places) > 1:
            values = [self._values[x] for x in places]
            slopes, errors = self._slopes().tolist(), self._errors().tolist()
            for k, (slope, error) in enumerate(zip(slopes, errors, strict=True)):
                guard = 8 * sys.float_info.epsilon * (abs(values[k]) + abs(values[k + 1]))
                rows.append((places[k], values[k] - guard, slope, error + 2 * guard))
        if places:
            rows.append((places[-1], self._values[places[-1]], 0.0, 0.0))
        self.pieces = np.array(rows, PIECE)
        self.low = -math.inf if self._floor > -math.inf else places[0]
        self.high = places[-1] if places else self._floor
