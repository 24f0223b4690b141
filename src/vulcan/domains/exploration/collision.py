"""Convex obstacles, a vehicle that is unsure of its position, and the risk that the two collide.

After t actions the position is normally distributed around its mean μ, with a covariance that grows
by the same amount with each action:

    Σ_t = Σ_0 + t Σ_w.

A convex obstacle is where n_i · x <= b_i for each of its edges i, n_i being the outward normal of
length 1. Who is inside has crossed all of the edges, so that the probability of a collision is at
most that of having crossed any one of them (Ono et al., 2013). The smallest of these,

    risk = min_i P(n_i · X <= b_i) = min_i Φ((b_i - n_i · μ) / sqrt(n_i' Σ_t n_i)),

is taken for the risk of one obstacle, and the sum over the obstacles, at most 1, for that of all.

This is the risk of *being* in a place after a move, as in the paper, and not of the way there: a
wall is closed only if no move leads from one side of it to the other, so make it thicker than a
move is long. An obstacle that shall also close the way along an edge of the grid has to reach past
that edge, where crossing its end is certain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from vulcan.errors import OptionError
from vulcan.parameters import require_number, require_pair, shorten

__all__ = ["Matrix", "Obstacle", "Point", "Vehicle"]

Point = tuple[float, float]
Matrix = tuple[Point, Point]


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
        turns = _find_turns(vertices)
        if all(turn < 0 for turn in turns):
            vertices, turns = vertices[::-1], [-turn for turn in turns]
        # A polygon that only ever turns left may still wind round more than once.
        if not all(turn > 0 for turn in turns) or _count_windings(vertices) != 1:
            raise OptionError(
                "vertices must be the corners of a convex polygon, one after the other and none "
                f"of them on a line between its neighbours, not {shorten(given)}"
            )
        object.__setattr__(self, "vertices", vertices)

    @classmethod
    def rectangle(cls, left: float, right: float, bottom: float, top: float) -> Obstacle:
        """Return the rectangle left <= x <= right, bottom <= y <= top."""
        west, east = require_number("left", left), require_number("right", right)
        south, north = require_number("bottom", bottom), require_number("top", top)
        if not (west < east and south < north):
            raise OptionError(
                "a rectangle has left < right and bottom < top, "
                f"not left={west:g}, right={east:g}, bottom={south:g}, top={north:g}"
            )
        return cls(((west, south), (east, south), (east, north), (west, north)))

    @cached_property
    def edges(self) -> tuple[tuple[float, float, float], ...]:
        """Outward normal of length 1 and offset (n_x, n_y, b) of each edge."""
        edges = []
        for (x0, y0), (x1, y1) in pairwise((*self.vertices, self.vertices[0])):
            length = math.hypot(x1 - x0, y1 - y0)
            normal_x, normal_y = (y1 - y0) / length, (x0 - x1) / length
            edges.append((normal_x, normal_y, normal_x * x0 + normal_y * y0))
        return tuple(edges)

    def contains(self, point: Point) -> bool:
        """Return whether a point is inside, or on the boundary."""
        return all(a * point[0] + b * point[1] <= offset for a, b, offset in self.edges)

    def risk(self, mean: Point, covariance: Matrix) -> float:
        """Return the smallest of the probabilities of having crossed one of the edges.

        Parameters
        ----------
        mean, covariance
            Distribution of the position.
        """
        (xx, xy), (_, yy) = covariance
        smallest = 1.0
        for a, b, offset in self.edges:
            distance = a * mean[0] + b * mean[1] - offset
            variance = max(0.0, a * a * xx + 2 * a * b * xy + b * b * yy)
            smallest = min(smallest, _find_tail(distance, math.sqrt(variance)))
        return smallest


@dataclass(frozen=True)
class Vehicle:
    """How unsure the vehicle is of its position.

    Parameters
    ----------
    covariance
        Σ_0, before the mission: a matrix of two rows, or a number that stands for that many times
        the identity.
    growth
        Σ_w, what each action adds; likewise.

    Examples
    --------
    >>> Vehicle(0.005, 0.0001).covariance_after(10)
    ((0.006, 0.0), (0.0, 0.006))
    """

    covariance: Matrix | float = 0.005
    growth: Matrix | float = 0.0001

    def __post_init__(self) -> None:
        for name in ("covariance", "growth"):
            object.__setattr__(self, name, _require_covariance(name, getattr(self, name)))

    def covariance_after(self, actions: int) -> Matrix:
        """Return Σ_t after this many actions."""
        (a, b), (c, d) = _to_matrix(self.covariance)
        (e, f), (g, h) = _to_matrix(self.growth)
        return (a + actions * e, b + actions * f), (c + actions * g, d + actions * h)


def _find_tail(distance: float, deviation: float) -> float:
    """Return the probability that a normal variable is further than so far from its mean."""
    if deviation == 0:
        return 1.0 if distance <= 0 else 0.0
    return 0.5 * math.erfc(distance / (deviation * math.sqrt(2)))


def _find_turns(vertices: Sequence[Point]) -> list[float]:
    """Return the cross product of the edges at each corner: positive for a left turn."""
    around = (*vertices, *vertices[:2])
    corners = zip(around, around[1:], around[2:], strict=False)
    return [
        (x1 - x0) * (y2 - y1) - (y1 - y0) * (x2 - x1) for (x0, y0), (x1, y1), (x2, y2) in corners
    ]


def _count_windings(vertices: Sequence[Point]) -> int:
    """Return how often the edges of a polygon turn all the way round."""
    sides = pairwise((*vertices, vertices[0]))
    angles = [math.atan2(y1 - y0, x1 - x0) for (x0, y0), (x1, y1) in sides]
    turns = [(b - a) % (2 * math.pi) for a, b in pairwise((*angles, angles[0]))]
    return round(sum(turns) / (2 * math.pi))


def _require_covariance(name: str, value: Any) -> Matrix | float:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return require_number(name, value, least=0.0)
    if len(value) != 2:
        raise OptionError(f"{name} must be a number or two rows of two, not {shorten(value)}")
    upper, lower = (require_pair(f"a row of {name}", row) for row in value)
    determinant = upper[0] * lower[1] - upper[1] * lower[0]
    if upper[1] != lower[0] or min(upper[0], lower[1]) < 0 or determinant < 0:
        raise OptionError(
            f"{name} must be symmetric and without negative eigenvalues, not {shorten(value)}"
        )
    return upper, lower


def _to_matrix(covariance: Matrix | float) -> Matrix:
    if isinstance(covariance, float):
        return (covariance, 0.0), (0.0, covariance)
    assert isinstance(covariance, tuple)
    return covariance
