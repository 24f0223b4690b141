"""A Gaussian process that is sampled without noise, one place after the other.

The field has mean m(x) = c + s · x and kernel

    k(x, x') = v exp(-|x - x'|² / (2 l²)).

Let K be the kernel matrix of the places x_0, x_1, ... in the order in which they are sampled, and
K = L L' its Cholesky factor. In *whitened* coordinates the samples are independent:

    f(x_k) = m(x_k) + Σ_{j<=k} L_kj z_j,    z_j independent and standard normal.

So the distribution of the next sample, given all before it, is normal with mean
m(x_k) + Σ_{j<k} L_kj z_j and deviation L_kk: what a Gaussian process says after conditioning on the
samples f(x_0), ..., f(x_{k-1}). The weights L_kj depend on the places alone, and not on the values
seen, so that all histories that visit the same places share them; given a row of L, a prediction is
a dot product.

The outcomes of a sample are the nodes of a Gauss-Hermite quadrature of degree d, with its weights
as probabilities: z_k takes one of d values. It has mean 0 and, if d > 1, variance 1. The z_j of a
history then *are* its nodes, and nothing has to be solved for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from numpy.polynomial.hermite_e import hermegauss

from vulcan.domains.exploration.collision import Point
from vulcan.parameters import require_number, require_pair

__all__ = ["Field", "Row", "dot", "quadrature"]

Row = tuple[float, ...]
"""A row of L, up to and including its diagonal."""

SMALLEST_SHARE = 1e-12
"""A variance below this share of the kernel's is rounding: the sample is known beforehand."""


@dataclass(frozen=True)
class Field:
    """What is known of the field before the mission; the defaults are the paper's.

    Parameters
    ----------
    constant, slope
        The mean is constant + slope · x.
    variance
        Variance v of the field at any place, about that mean.
    length
        Length l over which it varies.

    Examples
    --------
    >>> Field().mean((4.0, 6.0))
    1.5
    >>> Field(variance=1.0, length=1.0).kernel((0.0, 0.0), (0.0, 0.0))
    1.0
    """

    constant: float = 1.0
    slope: Point = (0.05, 0.05)
    variance: float = 0.16
    length: float = 2.0

    def __post_init__(self) -> None:
        checked = {
            "constant": require_number("constant", self.constant),
            "slope": require_pair("slope", self.slope),
            "variance": require_number("variance", self.variance, above=0.0),
            "length": require_number("length", self.length, above=0.0),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def mean(self, place: Point) -> float:
        """Return the mean at a place, before any sample."""
        return self.constant + self.slope[0] * place[0] + self.slope[1] * place[1]

    def kernel(self, one: Point, other: Point) -> float:
        """Return the covariance between two places, before any sample."""
        square = (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2
        return self.variance * math.exp(-square / (2 * self.length**2))

    def extend(self, places: Sequence[Point], rows: Sequence[Row], place: Point) -> Row:
        """Return the next row of L.

        Parameters
        ----------
        places, rows
            The places sampled so far, and their rows.
        place
            The next one.
        """
        row: list[float] = []
        for known, earlier in zip(places, rows, strict=True):
            left = self.kernel(known, place) - dot(earlier, row)
            # Where a sample brings nothing new, nothing can be learned from it, either.
            row.append(left / earlier[-1] if earlier[-1] else 0.0)
        left = self.variance - dot(row, row)
        row.append(math.sqrt(left) if left > SMALLEST_SHARE * self.variance else 0.0)
        return tuple(row)

    def whiten(self, place: Point, sample: float) -> float:
        """Return z_0 if the first sample has this value."""
        return (sample - self.mean(place)) / math.sqrt(self.variance)


def quadrature(degree: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return nodes and probabilities of the Gauss-Hermite quadrature of a standard normal."""
    nodes, weights = hermegauss(degree)
    return tuple(nodes.tolist()), tuple((weights / weights.sum()).tolist())


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the sum of products, as far as both go."""
    total = 0.0
    # Not `sum`, which in some versions of Python adds otherwise than the compiled form does.
    for a, b in zip(one, other):  # noqa: B905 - the diagonal is left out
        total += a * b
    return total
