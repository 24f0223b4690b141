"""Maps: a grid of cells, a start, and the obstacles between them.

A cell (x, y) counts from 0, x to the east and y to the north; it lies at origin + spacing · (x, y).

The paper shows its map in a figure and gives no coordinates. These two were made for its field, its
vehicle and its bound Δ(x) = (1 - exp(-0.4x)) (0.015 + 0.001x). The numbers below are those of a
simple planner, the best path for the means, planned anew after every sample, summed over all 4^9
outcomes.

**narrow**, the default: 19 by 19 cells, the start at (8, 8), where the edges hardly limit nine
moves. The wall 18.5 <= x + y <= 20.5 lies across the way to the rich corner in the north-east, and
has two gaps: a narrow one straight ahead, at (10, 10), with 0.14 to either side, and a wider one
aside, at (12, 8), with 0.16. (The wall is diagonal since along any other the vehicle would find
nearly as much as beyond it.) Crossed as soon as they can be reached, the narrow gap has a risk of
0.052, at step 2, and the wide one of 0.029, at step 4.

    gaps that may be used     reward   risk    allowed
    both                      20.18    0.050   0.035
    the wide one              19.29    0.025   0.034
    none                      18.38    0.000   0.033

A plan without regard to risk goes through the narrow gap in nearly all outcomes and violates the
bound by far. The wide gap is another matter: a local constraint admits it to a history if 1 -
survival <= Δ(credit) even when all later samples are poor, which is so after good samples and not
after bad ones. The same planner under constraint B goes through in 35 % of the outcomes, and earns
18.61. One gap could not do both: if the best plan takes a gap of risk r with probability p and
violates the bound, p r > Δ(E g), then r <= Δ(credit) asks a history to be sure of more than that
plan earns on average.

**wide**: 11 by 11 cells, the start at (2, 4), and two walls 4.3 <= x <= 5.7, open for y in 5 ± 0.16
only. The risk there is 0.028 at step 3. The plan without regard to risk earns 15.60 and satisfies
the bound as it is, at 0.021 where 0.031 is allowed: in 29 % of the outcomes the gap is not worth it
anyway. Without the gap there are 15.04 to be had.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from vulcan.domains.exploration.collision import Obstacle, Point
from vulcan.errors import OptionError
from vulcan.parameters import require_number, require_pair, require_whole, shorten, suggest

__all__ = ["MAPS", "Cell", "Map", "find_map"]

Cell = tuple[int, int]

LONGEST_SIDE: Final = 10_000


@dataclass(frozen=True)
class Map:
    """A grid of cells with obstacles.

    Parameters
    ----------
    columns, rows
        Number of cells from west to east, and from south to north.
    start
        Cell (x, y) in which the mission begins.
    obstacles
        Where the vehicle must not be, in the same unit of length as the origin.
    spacing
        Distance between the centres of neighbouring cells.
    origin
        Where the centre of cell (0, 0) lies.
    """

    columns: int
    rows: int
    start: Cell
    obstacles: Sequence[Obstacle] = ()
    spacing: float = 1.0
    origin: Point = (0.0, 0.0)

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "columns": require_whole("columns", self.columns, 1, LONGEST_SIDE),
            "rows": require_whole("rows", self.rows, 1, LONGEST_SIDE),
            "spacing": require_number("spacing", self.spacing, above=0.0),
            "origin": require_pair("origin", self.origin),
            "obstacles": _require_obstacles(self.obstacles),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        require_pair("start", self.start)
        cell = (
            require_whole("start, first", self.start[0], 0, self.columns - 1),
            require_whole("start, second", self.start[1], 0, self.rows - 1),
        )
        object.__setattr__(self, "start", cell)
        for number, obstacle in enumerate(self.obstacles, 1):
            if obstacle.contains(self.locate(cell)):
                raise OptionError(
                    f"start must be outside the obstacles; {cell} is in number {number}"
                )

    def locate(self, cell: Cell) -> Point:
        """Return where the centre of a cell lies."""
        return (
            self.origin[0] + self.spacing * cell[0],
            self.origin[1] + self.spacing * cell[1],
        )

    def contains(self, cell: Cell) -> bool:
        """Return whether there is such a cell."""
        return 0 <= cell[0] < self.columns and 0 <= cell[1] < self.rows


def find_map(choice: object) -> Map:
    """Return a map that was given, or the one of this name.

    Raises
    ------
    OptionError
        If it is neither a map nor the name of one.
    """
    if isinstance(choice, Map):
        return choice
    if isinstance(choice, str) and choice in MAPS:
        return MAPS[choice]
    names = " or ".join(map(repr, MAPS))
    hint = suggest(choice, MAPS)
    raise OptionError(f"map must be a Map, or {names}, not {shorten(choice)}{hint}")


def _require_obstacles(given: Any) -> tuple[Obstacle, ...]:
    listed = isinstance(given, Sequence) and not isinstance(given, str)
    if not listed or not all(isinstance(obstacle, Obstacle) for obstacle in given):
        raise OptionError(f"obstacles must be a list of Obstacle, not {shorten(given)}")
    return tuple(given)


def _build_diagonal_wall(low: float, high: float) -> Obstacle:
    """Return the part low <= x - y <= high of the wall 18.5 <= x + y <= 20.5."""
    corners = ((18.5, low), (18.5, high), (20.5, high), (20.5, low))
    return Obstacle([((along + across) / 2, (along - across) / 2) for along, across in corners])


def _build_narrow() -> Map:
    # Half the widths of the gaps, measured along x - y.
    narrow, wide = math.sqrt(2) * 0.14, math.sqrt(2) * 0.16
    pieces = ((-20.0, -narrow), (narrow, 4 - wide), (4 + wide, 20.0))
    return Map(19, 19, (8, 8), [_build_diagonal_wall(*piece) for piece in pieces])


MAPS: Final = {
    "narrow": _build_narrow(),
    "wide": Map(
        11,
        11,
        (2, 4),
        (Obstacle.rectangle(4.3, 5.7, -1, 4.84), Obstacle.rectangle(4.3, 5.7, 5.16, 11)),
    ),
}
"""The maps that have a name; see the head of this module."""
