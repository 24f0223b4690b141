"""Upper bounds on what a vehicle can still earn by sampling a field, with and without risk.

Given the samples so far, let μ and σ be mean and deviation of the field in a cell. A sample taken i
moves from now has, just before, the mean μ + ξ_i with

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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vulcan.domains.exploration.field import Field, Row
from vulcan.domains.exploration.maps import Cell, Map

__all__ = ["Outlook", "find_norms", "find_reach", "look_ahead"]

Array = NDArray[np.float64]

MOST_SQUARES: Final = 2000
"""A distribution of more values than that is rounded up to fewer."""


@dataclass(frozen=True)
class Outlook:
    """What can be sampled from a place on: the same for all histories with the same path.

    Attributes
    ----------
    means, weights
        Expected samples in the cells within reach, nearest first, are means + z @ weights. Both
        are 0 in cells that were visited.
    counts
        How many of these cells are within 1, 2, ... moves.
    deviations
        b_1, b_2, ...
    new
        Whether each of these cells was not visited before.
    order, shape
        Where they are in a rectangle of cells, as numbers and as rows and columns of it.
    """

    means: Array
    weights: Array
    counts: NDArray[np.intp]
    deviations: Array
    new: NDArray[np.bool_]
    order: NDArray[np.intp]
    shape: tuple[int, int]

    def bound(self, z: Sequence[float], least: float, discount: float) -> float:
        """Return the bound.

        Parameters
        ----------
        z
            The samples so far, in whitened coordinates.
        least
            What a move can pay without a sample.
        discount
            Discount of each step.
        """
        running = np.maximum.accumulate(self.means + np.asarray(z) @ self.weights)
        later = np.arange(len(self.counts))
        expected = np.maximum(running[self.counts - 1], least)
        return float((expected + self.deviations * np.sqrt(later)) @ discount**later)

    def value(
        self, z: Sequence[float], risks: Array, norms: Array, failure: float, discount: float
    ) -> float:
        """Return the bound on reward and price together.

        Parameters
        ----------
        z
            The samples so far, in whitened coordinates.
        risks
            The risk of each cell of the rectangle at each of the moves to come.
        norms
            The mean norm of 0, 1, ... samples; see `find_norms`.
        failure
            What a collision pays, less its price.
        discount
            Discount of each step.
        """
        pays = np.zeros(self.shape)
        expected = self.means + np.asarray(z) @ self.weights
        pays.flat[self.order] = np.where(self.new, np.maximum(expected, 0.0), 0.0)
        best = np.zeros(self.shape)
        for risk in risks[::-1]:
            best = _step_back((1 - risk) * (pays + discount * best) + risk * failure)
        later = np.arange(len(self.counts))
        learned = (self.deviations * norms[: len(later)]) @ discount**later
        return float(best.flat[self.order[0]] + learned)


def _step_back(worth: Array) -> Array:
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


def find_norms(nodes: Sequence[float], chances: Sequence[float], count: int) -> Array:
    """Return the mean norm of 0, 1, ... samples in whitened coordinates, each independent.

    Parameters
    ----------
    nodes, chances
        The distribution of each.
    count
        How many numbers to return.
    """
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


def find_reach(area: Map, here: Cell, moves: int) -> tuple[range, range]:
    """Return the columns and the rows of the map within this many moves."""
    (x, y) = here
    columns = range(max(0, x - moves), min(area.columns, x + moves + 1))
    return columns, range(max(0, y - moves), min(area.rows, y + moves + 1))


def look_ahead(
    area: Map, field: Field, visited: Sequence[Cell], rows: Sequence[Row], here: Cell, moves: int
) -> Outlook:
    """Return what can be sampled within this many moves.

    Parameters
    ----------
    area, field
        Where the vehicle is, and what it samples.
    visited, rows
        The cells sampled so far, and their rows of L.
    here
        The cell that it is in.
    moves
        How many moves are left.
    """
    columns, lines = find_reach(area, here, moves)
    cells = np.stack(np.meshgrid(columns, lines), axis=-1).reshape(-1, 2)
    distances = np.abs(cells - here).max(axis=1)
    order = np.argsort(distances, kind="stable")
    cells, distances = cells[order], distances[order]
    places = np.asarray(area.origin + area.spacing * cells, np.float64)
    weights = _predict(field, area.origin + area.spacing * np.array(visited), rows, places)
    means = field.constant + places @ np.array(field.slope)
    left = np.maximum(0.0, field.variance - (weights**2).sum(axis=0))
    old = (cells[:, None] == np.array(visited)).all(axis=2).any(axis=1)
    means[old], left[old], weights[:, old] = 0.0, 0.0, 0.0
    counts = np.searchsorted(distances, np.arange(1, moves + 1), side="right")
    deviations = np.sqrt(np.maximum.accumulate(left)[counts - 1])
    shape = (len(lines), len(columns))
    return Outlook(means, weights, counts, deviations, ~old, order, shape)


def _predict(field: Field, known: Array, rows: Sequence[Row], places: Array) -> Array:
    """Return the rows of L that the places would have, as columns: L⁻¹ K."""
    squares = ((known[:, None] - places) ** 2).sum(axis=2)
    weights: Array = field.variance * np.exp(-squares / (2 * field.length**2))
    for k, row in enumerate(rows):
        left = weights[k] - np.array(row[:-1]) @ weights[:k]
        weights[k] = left / row[-1] if row[-1] else 0.0
    return weights
