"""Risk bounds: how much probability of failure is acceptable for how much expected reward.

A risk bound Δ is concave and nondecreasing on every interval on which it is used. It may go below
0, or be -inf, for small rewards: nothing is acceptable there. It is never clipped at 0 from below,
which would break concavity and with it the guarantee. Values above 1 are harmless.

Three kinds are exact by construction: `Constant`, `Linear` and `PiecewiseLinear`. Their parameters
are checked when they are made. `Concave` takes any function. That one is checked where it was
used: `verify` looks at every point at which it was evaluated, and at a grid between them.

Kernels evaluate a bound through its `BoundTable` (see `vulcan.bounds.table`).

A tangent is a line that is nowhere below Δ: Δ(y) <= value + slope (y - at) for all y.

An expected reward that was computed is known up to its roundings, and so is what a bound makes of
it. `enclose` takes both into account: as Δ is nondecreasing, its values between two rewards lie
between those at the two, and these are rounded outwards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from vulcan.bounds.table import BoundTable
from vulcan.errors import BoundError
from vulcan.parameters import require_number
from vulcan.rounding import Number


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
    doubt
        How far the slope may be off, where it had to be found from rounded values.
    """

    at: float
    value: float
    slope: float
    doubt: float = 0.0

    @property
    def least_slope(self) -> float:
        """The slope of a line that is nowhere below the bound on the left of `at`, for certain."""
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
        """Return the same in rational arithmetic, as far as the bound allows it."""

    @abstractmethod
    def enclose(self, low: Number, high: Number) -> tuple[Number, Number]:
        """Return two numbers between which the bound lies at all rewards from `low` to `high`.

        What the bound itself rounds is taken into account. Infinite rewards are allowed, and where
        the bound has no value the answer is infinite.
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
        """Return the bound that accepts this many times the risk for every reward.

        The factor is a positive number: with 0, what the bound refuses for its small reward would
        pass if it had no risk. `Constant(0)` says that, if it is meant.
        """

    @property
    @abstractmethod
    def text(self) -> str | None:
        """A string that `vulcan.parse` reads back, or None for a function that has none."""

    def __str__(self) -> str:
        return self.text or repr(self)

    def _repr_html_(self) -> str:
        from vulcan.bounds.picture import write_bound

        return write_bound(self)


def require_factor(value: Any) -> float:
    """Return the factor by which a bound is scaled: a positive number."""
    return require_number("the factor of a bound", value, above=0.0, error=BoundError)
