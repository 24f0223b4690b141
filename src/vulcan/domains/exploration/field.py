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

**Upper bounds** on what a vehicle can still earn by sampling the field. Given the
samples so far, let μ and σ be mean and deviation of the field in a cell. A sample taken i moves
from now has, just before, the mean μ + ξ_i with

    ξ_i = Σ_j l_j z_j,

where j runs over the samples taken until then, at most i - 1, and Σ_j l_j² <= σ². By Cauchy and
Schwarz ξ_i is at most σ |z|, whichever cell the z have made the policy choose. Each z_j has mean 0
and a variance of at most 1 whatever came before it (exactly 1 unless the degree is 1), hence

    E |z| <= sqrt(E |z|²) <= sqrt(i - 1).

**Reward to go.** With a_i the largest μ and b_i the largest σ within i moves, the i-th move earns
at most a_i + b_i sqrt(i - 1) on average. What was visited pays 0, and counts in a_i as such; a
collision pays what it pays, once, and nothing afterwards. The sum over i is the bound. Obstacles
are not looked at.

**Value to go.** Let a collision cost the price λ >= 0 beside what it pays, κ. On a path c_1, c_2,
... with risks r_i let S_i be the probability of surviving i moves. Averaged over collisions, the
path is worth

    Σ_i γ^(i-1) [S_i (μ + ξ_i) + S_{i-1} r_i (κ - λ)],

where μ + ξ_i is 0 in a cell visited before. The part without ξ depends on the path alone, so that
its mean over the paths that a policy takes is at most the largest one. With max(μ, 0) in place of μ
in cells not visited yet, it is large enough for a cell that is visited again, and the largest path
is found by a dynamic program over moves and cells, in which a cell may pay more than once:

    W_i(c) = max_c' (1 - r_i(c')) (max(μ(c'), 0) + γ W_{i+1}(c')) + r_i(c') (κ - λ),

with c' a neighbour of c, W = 0 after the last move, and a payment of 0 in cells visited by now.

The part with ξ is at most Σ_i γ^(i-1) b_i E |z|, since S_i <= 1. The z_j are independent of each
other, nodes of the quadrature, and samples not taken would only make |z| larger: so E |z| is at
most the mean norm of i - 1 such variables, a number (`find_norms`) below sqrt(i - 1). Each term is
at most that of the reward to go, and so is the bound W_1 + Σ_i γ^(i-1) b_i E |z|.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray

from vulcan.domains.exploration.maps import Point
from vulcan.parameters import require_number, require_pair

Array = NDArray[np.float64]

Row = tuple[float, ...]
"""A row of L, up to and including its diagonal."""

SMALLEST_SHARE = 1e-12
"""A variance below this share of the kernel's is rounding: the sample is known beforehand."""


@dataclass(frozen=True)
class Field:
    """The prior of the field; the defaults are the paper's.

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
        """Return the next row of L, given the places sampled so far and their rows."""
        row: list[float] = []
        for known, earlier in zip(places, rows, strict=True):
            left = self.kernel(known, place) - dot(earlier, row)
            # Where a sample brings nothing new, nothing can be learned from it, either.
            row.append(left / earlier[-1] if earlier[-1] else 0.0)
        left = self.variance - dot(row, row)
        row.append(math.sqrt(left) if left > SMALLEST_SHARE * self.variance else 0.0)
        return tuple(row)


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


MOST_SQUARES: Final = 2000  # a distribution of more values than that is rounded up to fewer


def find_norms(nodes: Sequence[float], chances: Sequence[float], count: int) -> Array:
    """Return the mean norm of 0, 1, ... independent samples of a distribution, `count` numbers."""
    squares, likely = np.zeros(1), np.ones(1)
    norms = np.zeros(count)
    for k in range(1, count):
        sums = np.add.outer(squares, np.square(nodes)).round(9).ravel()
        step = sums.max() / MOST_SQUARES
        if len(np.unique(sums)) > MOST_SQUARES:
            sums = np.ceil(sums / step) * step
        squares, index = np.unique(sums, return_inverse=True)
        likely = np.bincount(index.ravel(), np.outer(likely, chances).ravel()).astype(np.float64)
        norms[k] = min(np.sqrt(squares) @ likely + 1e-9, np.sqrt(k))
    return norms


def predict(
    field: Field, known: Array, rows: Sequence[Row], places: Array
) -> tuple[Array, Array, Array]:
    """Return what samples in known places, whose rows of L are given, say of others.

    Given samples z, the field there has the mean `mean + z @ weights`; the third is its variance.
    """
    squares = ((known[:, None] - places) ** 2).sum(axis=2)
    weights: Array = field.variance * np.exp(-squares / (2 * field.length**2))
    for k, row in enumerate(rows):  # L⁻¹ K: what the rows of the places would be, as columns
        left = weights[k] - np.array(row[:-1]) @ weights[:k]
        weights[k] = left / row[-1] if row[-1] else 0.0
    mean = field.constant + places @ np.array(field.slope)
    return mean, weights, np.maximum(0.0, field.variance - (weights**2).sum(axis=0))


def step_back(worth: Array) -> Array:
    """Return the largest worth among the neighbours of each cell; 0 without any."""
    rows, columns = worth.shape
    edged = np.pad(worth, 1, constant_values=-np.inf)
    around = [
        edged[1 + north : 1 + north + rows, 1 + east : 1 + east + columns]
        for north in (-1, 0, 1)
        for east in (-1, 0, 1)
        if north or east
    ]
    largest: Array = np.max(around, axis=0)
    return np.where(largest > -np.inf, largest, 0.0)
