"""Numbers that are drawn or observed: distributions as nodes, or as cells.

**Nodes.** The Gauss quadrature of a distribution with n nodes x_k and weights w_k has
Σ w_k p(x_k) = E p for every polynomial p of degree up to 2n - 1. With y the standardised number,
the polynomials that are orthogonal under the distribution satisfy

    p_k+1 = (y - a_k) p_k - b_k p_k-1,    a_k = E y p_k² / E p_k²,    b_k = E p_k² / E p_k-1²,

and nodes and weights are the eigenvalues, and squares of the first components of the eigenvectors,
of the tridiagonal matrix with diagonal a and √b beside it (Golub and Welsch 1969). A model with
nodes is another model than that with the number: its certificate holds for the nodes.

**Cells.** A policy that acts on the cell of a number does not need the number, and the probability
of a cell is F(b) - F(a), with F the distribution function: a certificate is true of the cells. If
the distribution is not known, only that F is between the least and the largest of some F_i, then

    max(0, min F_i(b) - max F_i(a))  <=  P(cell)  <=  max F_i(b) - min F_i(a).

A model in which each cell has its inner probability, and what is missing to 1 fails, risks at least
as much as with any of these distributions, another at each step if need be: failing is the most
that can follow. It earns at most as much if failing earns no more than whatever else can follow.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from vulcan.errors import OptionError
from vulcan.numerics import SMALLEST_PROBABILITY
from vulcan.parameters import require_number, require_whole, shorten

MOST_NODES: Final = 20
NO_MORE: Final = 1e-10  # norm of a polynomial that is 0 wherever the number can be
NOT_FINITE: Final = "The (integral is probably divergent|maximum number of subdivisions)"
ACCURACY: Final = {"epsabs": 1e-14, "epsrel": 1e-12, "limit": 200}


def quadrature(distribution: Any, count: int) -> dict[float, float]:
    """Return the nodes of a distribution's Gauss quadrature, each with its probability.

    Parameters
    ----------
    distribution
        A distribution of `scipy.stats` with its parameters, such as ``norm(0, 0.5)``.
    count
        Number of nodes, at most 20. Moments up to 2 count - 1 are then those of the distribution,
        which must be finite. A distribution of fewer values has these as its nodes.

    Returns
    -------
    dict
        Nodes from the smallest to the largest, and their probabilities.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> {round(x, 6): round(p, 6) for x, p in quadrature(norm(10, 1), 3).items()}
    {8.267949: 0.166667, 10.0: 0.666667, 11.732051: 0.166667}
    """
    from scipy.integrate import IntegrationWarning
    from scipy.linalg import eigh_tridiagonal

    require_whole("the number of nodes", count, 1, MOST_NODES)
    for name in ("expect", "mean", "std"):
        _require_method(distribution, name)
    mean, deviation = float(distribution.mean()), float(distribution.std())
    if not (math.isfinite(mean) and math.isfinite(deviation)):
        raise OptionError(f"{shorten(distribution)} has no finite mean and standard deviation")
    if deviation == 0:
        return {mean: 1.0}
    options = ACCURACY if hasattr(getattr(distribution, "dist", None), "pdf") else {}

    def expect(function: Callable[[Any], Any]) -> float:
        """Return the mean of a function of the standardised number."""
        shifted = distribution.expect(lambda x: function((x - mean) / deviation), **options)
        return float(shifted)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as that the last digits are rounding
        warnings.filterwarnings("error", NOT_FINITE, IntegrationWarning)
        try:
            diagonal, beside = _find_recursion(expect, count)
        except IntegrationWarning:
            moments = f"moments up to {2 * count - 1}"
            raise OptionError(
                f"the {moments} of a distribution must be finite for {count} nodes; take fewer, or "
                "Cells"
            ) from None
    nodes, vectors = eigh_tridiagonal(np.array(diagonal), np.array(beside))
    weights = vectors[0] ** 2
    return dict(zip((mean + deviation * nodes).tolist(), weights.tolist(), strict=True))


def _find_recursion(
    expect: Callable[[Any], float], count: int
) -> tuple[Sequence[float], Sequence[float]]:
    """Return a_k, and the square roots of b_k, up to the number of nodes or of values."""
    before, now = np.poly1d([0.0]), np.poly1d([1.0])
    diagonal, beside, size = list[float](), list[float](), 1.0
    while True:
        diagonal.append(expect(np.poly1d([1.0, 0.0]) * now * now) / size)
        last = beside[-1] ** 2 if beside else 0.0
        before, now = now, np.poly1d([1.0, -diagonal[-1]]) * now - last * before
        share = expect(now * now) / size if len(diagonal) < count else 0.0
        if share < NO_MORE:
            return diagonal, beside
        size *= share
        beside.append(math.sqrt(share))


class Cells:
    """The cells between some edges of the number line, by which a number is observed.

    A cell contains its upper edge. The first and the last reach to infinity.

    Parameters
    ----------
    edges
        Where cells end, increasing.

    Attributes
    ----------
    ends
        The lower and upper end of each cell, by its text: the observation, or the hidden state.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> cells = Cells([2, 5])
    >>> {cell: round(p, 4) for cell, p in cells.probabilities(norm(3, 1)).items()}
    {'up to 2': 0.1587, '2 to 5': 0.8186, 'above 5': 0.0228}
    >>> cells.find(4.3)
    '2 to 5'
    >>> inner, outer = cells.bounds(norm(3, 1), norm(3.5, 1))["2 to 5"]
    >>> round(inner, 4), round(outer, 4)
    (0.7745, 0.9104)
    """

    def __init__(self, edges: Sequence[float]) -> None:
        self._edges = [require_number("an edge", edge) for edge in edges]
        if not self._edges or any(b <= a for a, b in pairwise(self._edges)):
            raise OptionError(f"edges must be one number or several increasing ones, not {edges}")
        texts = [f"{edge:.15g}" for edge in self._edges]
        if len(set(texts)) < len(texts):
            raise OptionError(f"edges must differ in their first 15 digits; these are {edges}")
        middle = [f"{a} to {b}" for a, b in pairwise(texts)]
        names = [f"up to {texts[0]}", *middle, f"above {texts[-1]}"]
        spans = pairwise([-math.inf, *self._edges, math.inf])
        self.ends: Mapping[str, tuple[float, float]] = dict(zip(names, spans, strict=True))

    def __repr__(self) -> str:
        return f"Cells({self._edges})"

    def find(self, number: float) -> str:
        """Return the cell that a number is in."""
        if math.isnan(number):
            raise OptionError("a number is missing: nan is in no cell")
        return list(self.ends)[bisect_left(self._edges, number)]

    def probabilities(self, distribution: Any) -> dict[str, float]:
        """Return the probability of each cell that a number may be in.

        `distribution` is one of `scipy.stats` with its parameters, or has a method `cdf`.
        """
        bounds = self.bounds(distribution).items()
        return {cell: low for cell, (low, _) in bounds if low > SMALLEST_PROBABILITY}

    def bounds(self, *distributions: Any) -> dict[str, tuple[float, float]]:
        """Return the least (inner) and the largest (outer) probability of each cell.

        They hold for every distribution whose distribution function is nowhere above or below all
        of those given: those between, and any mixture. For one alone they are equal.
        """
        below, above = zip(*(self._evaluate(one) for one in distributions), strict=True)
        (least, most), (under, over) = ((np.min(f, 0), np.max(f, 0)) for f in (below, above))
        inner = np.maximum(_subtract(most, least, under, over), 0.0).tolist()
        outer = np.minimum(_subtract(least, most, over, under), 1.0).tolist()
        return dict(zip(self.ends, zip(inner, outer, strict=True), strict=True))

    def _evaluate(self, distribution: Any) -> tuple[list[float], list[float]]:
        """Return the probabilities below, and above, each end of a cell."""
        _require_method(distribution, "cdf")
        below = [0.0, *(float(distribution.cdf(edge)) for edge in self._edges), 1.0]
        if not all(0 <= a <= b <= 1 for a, b in pairwise(below)):
            found = f"at {self._edges} it has {below[1:-1]}"
            raise OptionError(f"a distribution function must rise from 0 to 1; {found}")
        above = [1 - chance for chance in below]
        if hasattr(distribution, "sf"):  # small probabilities above have all their digits
            above = [1.0, *(float(distribution.sf(edge)) for edge in self._edges), 0.0]
        return below, above


def _subtract(lower: Any, upper: Any, over: Any, under: Any) -> Any:
    """Return F(b) - F(a) of each cell from a to b, by the tail that is shorter.

    F(a) is in `lower` and 1 - F(a) in `over`, F(b) in `upper` and 1 - F(b) in `under`.
    """
    return np.where(lower[:-1] < over[:-1], upper[1:] - lower[:-1], over[:-1] - under[1:])


def _require_method(distribution: Any, name: str) -> None:
    if not callable(getattr(distribution, name, None)):
        allowed = (
            f"one of scipy.stats with its parameters, such as norm(0, 1), or any with {name}()"
        )
        raise OptionError(f"a distribution must be {allowed}, not {shorten(distribution)}")
