"""An upper bound on what a vehicle can still earn by sampling a field.

Given the samples so far, let μ and σ be mean and deviation of the field in a cell. A sample taken i
moves from now has, just before, the mean

    μ + Σ_j l_j z_j,

where j runs over the samples taken until then, at most i - 1, and Σ_j l_j² <= σ². By Cauchy and
Schwarz that is at most μ + σ |z|, whichever cell the z have made the policy choose. Each z_j has
mean 0 and a variance of at most 1 whatever came before it (exactly 1 unless the degree is 1), hence

    E |z| <= sqrt(E |z|²) <= sqrt(i - 1).

With a_i the largest μ and b_i the largest σ within i moves, the i-th move earns at most a_i + b_i
sqrt(i - 1) on average. What was visited pays 0, and counts in a_i as such; a collision pays what it
pays, once, and nothing afterwards. The sum over i is the bound. Obstacles are not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vulcan.domains.exploration.field import Field, Row
from vulcan.domains.exploration.maps import Cell, Map

__all__ = ["Outlook", "look_ahead"]

Array = NDArray[np.float64]


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
    """

    means: Array
    weights: Array
    counts: NDArray[np.intp]
    deviations: Array

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
    columns = np.arange(max(0, here[0] - moves), min(area.columns, here[0] + moves + 1))
    lines = np.arange(max(0, here[1] - moves), min(area.rows, here[1] + moves + 1))
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
    return Outlook(means, weights, counts, deviations)


def _predict(field: Field, known: Array, rows: Sequence[Row], places: Array) -> Array:
    """Return the rows of L that the places would have, as columns: L⁻¹ K."""
    squares = ((known[:, None] - places) ** 2).sum(axis=2)
    weights: Array = field.variance * np.exp(-squares / (2 * field.length**2))
    for k, row in enumerate(rows):
        left = weights[k] - np.array(row[:-1]) @ weights[:k]
        weights[k] = left / row[-1] if row[-1] else 0.0
    return weights
