"""States of the exploration mission, and what follows from the path of one alone."""

from __future__ import annotations

from typing import NamedTuple

from vulcan.domains.exploration.field import Row
from vulcan.domains.exploration.maps import Cell

__all__ = ["History", "Track"]


class History(NamedTuple):
    """A state: all that happened so far.

    Attributes
    ----------
    path
        The cells visited, the start first.
    nodes
        For each sample taken on the way, which node of the quadrature it was, from 0 on.
    """

    path: tuple[Cell, ...]
    nodes: tuple[int, ...]

    def __str__(self) -> str:
        moves = len(self.path) - 1
        return f"cell {self.path[-1]}, {moves} move{'s' if moves != 1 else ''} made"


class Track(NamedTuple):
    """What follows from a path alone, and is shared by all histories that took it.

    Attributes
    ----------
    cells
        Where samples were taken, in order; the start comes first.
    rows
        Their rows of the Cholesky factor L.
    risk
        Probability of a collision in the last cell of the path.
    new
        Whether that cell was not visited before; only then it has what follows.
    base
        What a sample there yields if all others but the first are as expected: m + L_k0 z_0.
    weights, deviation
        What the others add, L_k1 to L_k,k-1, and what the sample's own node adds, L_kk.
    """

    cells: tuple[Cell, ...]
    rows: tuple[Row, ...]
    risk: float
    new: bool
    base: float = 0.0
    weights: Row = ()
    deviation: float = 0.0
