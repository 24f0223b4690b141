"""The map that a page shows beside a plan, for models whose states are places.

A model that has a map says so by two methods: `page_map()` returns a `PageMap`, and
`page_position(state)` where on it a state is. Positions are in units of cells, x to the east and y
to the north; the centre of the cell in the south-west is (0, 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Position = tuple[float, float]


@dataclass(frozen=True)
class PageMap:
    """What is drawn under the way of a vehicle.

    Attributes
    ----------
    columns, rows
        Number of cells.
    walls
        Polygons that must not be entered, each a list of corners.
    shades, shade_name
        A number for each cell that is shown as its shade, southern row first, and what it is; no
        shades if it is empty.
    marks
        Cells that have a sign of their own: where, and the sign.
    note
        What people must know to read the plan: what outcomes and actions are.
    """

    columns: int
    rows: int
    walls: Sequence[Sequence[Position]] = ()
    shades: Sequence[Sequence[float]] = ()
    shade_name: str = ""
    marks: Sequence[tuple[float, float, str]] = ()
    note: str = ""

    @classmethod
    def from_lines(cls, lines: Sequence[str], wall: str = "#", free: str = ".") -> PageMap:
        """Return a map that is drawn with a character for each cell, its northern line first.

        All but `wall` and `free` cells are marks.
        """
        cells = [
            (float(x), float(len(lines) - 1 - y), sign)
            for y, line in enumerate(lines)
            for x, sign in enumerate(line)
        ]
        corners = ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))
        return cls(
            len(lines[0]),
            len(lines),
            walls=[
                [(x + dx, y + dy) for dx, dy in corners] for x, y, sign in cells if sign == wall
            ],
            marks=[cell for cell in cells if cell[2] not in (wall, free)],
        )
