"""Maps of missions: cells, convex obstacles, and the risk of a vehicle to collide with them.

A cell (x, y) counts from 0, x to the east and y to the north; it lies at origin + spacing · (x, y).

The paper shows its map in a figure and gives no coordinates. Those in `MAPS` were made for its
field, its vehicle and its bound (docs/examples/exploration.md says how):

    narrow   19 by 19 cells, the start at (8, 8); the wall 18.5 <= x + y <= 20.5 has a narrow gap at
             (10, 10), with 0.14 to either side, and a wider one at (12, 8), with 0.16
    wide     11 by 11 cells, the start at (2, 4); two walls 4.3 <= x <= 5.7, open for y in 5 ± 0.16
    wider    the same, open for y in 5 ± 0.18

**Collisions.** After t actions the position is normally distributed around its mean μ, with a
covariance that grows by the same amount with each action:

    Σ_t = (σ_0² + t σ_w²) I.

A convex obstacle is where n_i · x <= b_i for each of its edges i, n_i being the outward normal of
length 1. A vehicle inside has crossed all of the edges, so that the probability of a collision is
at most that of having crossed any one of them (Ono et al., 2013). The smallest of these,

    risk = min_i P(n_i · X <= b_i) = min_i Φ((b_i - n_i · μ) / sqrt(n_i' Σ_t n_i)),

is taken for the risk of one obstacle, and the sum over the obstacles, at most 1, for that of all.

This is the risk of *being* in a place after a move, as in the paper, and not of the way there: a
wall is closed only if no move leads from one side of it to the other, so make it thicker than a
move is long. An obstacle that shall also close the way along an edge of the grid has to reach past
that edge, where crossing its end is certain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

from vulcan.errors import OptionError
from vulcan.parameters import require_number, require_pair, require_whole, shorten

Point = tuple[float, float]


@dataclass(frozen=True)
class Obstacle:
    """A convex polygon.

    Parameters
    ----------
    vertices
        Its corners (x, y), at least three, one after the other in either sense of rotation.

    Examples
    --------
    >>> Obstacle.rectangle(0, 2, 0, 1) == Obstacle([(0, 0), (2, 0), (2, 1), (0, 1)])
    True
    >>> Obstacle([(0, 0), (1, 0), (0, 1)]).contains((0.4, 0.4))
    True
    """

    vertices: Sequence[Point]

    def __post_init__(self) -> None:
        given: Any = self.vertices
        if not isinstance(given, Sequence) or isinstance(given, str) or len(given) < 3:
            raise OptionError(f"vertices must be at least three points, not {shorten(given)}")
        vertices = tuple(require_pair("a vertex", vertex) for vertex in given)
        if sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in _list_sides(vertices)) < 0:
            vertices = vertices[::-1]
        # Every other corner is to the left of every edge.
        for (x0, y0), (x1, y1) in _list_sides(vertices):
            others = [v for v in vertices if v not in ((x0, y0), (x1, y1))]
            lefts = [(x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) > 0 for x, y in others]
            if not all(lefts) or len(others) < len(vertices) - 2:
                raise OptionError(
                    "vertices must be the corners of a convex polygon, one after the other and "
                    f"none of them on a line between its neighbours, not {shorten(given)}"
                )
        object.__setattr__(self, "vertices", vertices)

    @classmethod
    def rectangle(cls, left: float, right: float, bottom: float, top: float) -> Obstacle:
        """Return the rectangle left <= x <= right, bottom <= y <= top."""
        return cls(((left, bottom), (right, bottom), (right, top), (left, top)))

    @cached_property
    def edges(self) -> tuple[tuple[float, float, float], ...]:
        """Outward normal of length 1 and offset (n_x, n_y, b) of each edge."""
        edges = []
        for (x0, y0), (x1, y1) in _list_sides(self.vertices):
            length = math.hypot(x1 - x0, y1 - y0)
            normal_x, normal_y = (y1 - y0) / length, (x0 - x1) / length
            edges.append((normal_x, normal_y, normal_x * x0 + normal_y * y0))
        return tuple(edges)

    def contains(self, point: Point) -> bool:
        """Return whether a point is inside, or on the boundary."""
        return all(a * point[0] + b * point[1] <= offset for a, b, offset in self.edges)

    def risk(self, mean: Point, variance: float) -> float:
        """Return the smallest of the probabilities of having crossed one of the edges.

        The position is normally distributed, with the same variance in all directions.
        """
        smallest = 1.0
        for a, b, offset in self.edges:
            distance = a * mean[0] + b * mean[1] - offset
            deviation = math.sqrt(a * a * variance + b * b * variance)
            tail = 1.0 if distance <= 0 else 0.0
            if deviation > 0:
                tail = 0.5 * math.erfc(distance / (deviation * math.sqrt(2)))
            smallest = min(smallest, tail)
        return smallest


@dataclass(frozen=True)
class Vehicle:
    """Uncertainty of the vehicle's position.

    Parameters
    ----------
    covariance
        σ_0², its variance in every direction before the mission.
    growth
        σ_w², what each action adds.

    Examples
    --------
    >>> Vehicle(0.005, 0.0001).variance_after(10)
    0.006
    """

    covariance: float = 0.005
    growth: float = 0.0001

    def __post_init__(self) -> None:
        for name in ("covariance", "growth"):
            value = require_number(name, getattr(self, name), least=0.0)
            object.__setattr__(self, name, value)

    def variance_after(self, actions: int) -> float:
        """Return the variance after this many actions."""
        return self.covariance + actions * self.growth


def _list_sides(vertices: Sequence[Point]) -> Iterator[tuple[Point, Point]]:
    return pairwise((*vertices, vertices[0]))


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


def _require_obstacles(given: Any) -> tuple[Obstacle, ...]:
    listed = isinstance(given, Sequence) and not isinstance(given, str)
    if not listed or not all(isinstance(obstacle, Obstacle) for obstacle in given):
        raise OptionError(f"obstacles must be a list of Obstacle, not {shorten(given)}")
    return tuple(given)


def _build_narrow() -> Map:
    # Half the widths of the gaps, measured along x - y.
    narrow, wide = math.sqrt(2) * 0.14, math.sqrt(2) * 0.16
    walls = []
    for low, high in ((-20.0, -narrow), (narrow, 4 - wide), (4 + wide, 20.0)):
        corners = ((18.5, low), (18.5, high), (20.5, high), (20.5, low))  # x + y and x - y
        walls.append(
            Obstacle([((both + apart) / 2, (both - apart) / 2) for both, apart in corners])
        )
    return Map(19, 19, (8, 8), walls)


def _build_wide(low: float, high: float) -> Map:
    walls = (Obstacle.rectangle(4.3, 5.7, -1, low), Obstacle.rectangle(4.3, 5.7, high, 11))
    return Map(11, 11, (2, 4), walls)


MAPS: Final = {
    "narrow": _build_narrow(),
    "wide": _build_wide(4.84, 5.16),
    "wider": _build_wide(4.82, 5.18),
}
"""The maps that have a name; see the head of this module."""
