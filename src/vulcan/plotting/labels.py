"""Labels beside points, where they cover nothing.

Of all places around a point, near and far, a label gets the one that covers least: other texts,
points and areas that are hatched count most, what lies outside the axes as well, then lines, then
the distance. Where an area can't be avoided, the label gets a plate to lie on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PLATE", "Box", "place_labels"]

Point = tuple[float, float]

DISTANCES: Final = (7.0, 14.0, 24.0, 36.0, 50.0, 70.0, 95.0, 125.0)
"""How far a label may be from its point, in typographic points."""

DIRECTIONS: Final = (
    (1.0, 0.0, "left", "center"),
    (-1.0, 0.0, "right", "center"),
    (0.7, -0.7, "left", "top"),
    (-0.7, -0.7, "right", "top"),
    (0.7, 0.7, "left", "bottom"),
    (-0.7, 0.7, "right", "bottom"),
    (0.0, -1.0, "center", "top"),
    (0.0, 1.0, "center", "bottom"),
)

SHARE_BEFORE: Final = {"left": 0.0, "bottom": 0.0, "center": 0.5, "right": 1.0, "top": 1.0}
"""How much of a text lies to the left of, or below, the place that it is aligned to."""

PLATE: Final = {"facecolor": "white", "edgecolor": "none", "boxstyle": "round,pad=0.12"}
"""What a text lies on where it would be read with difficulty."""

SAMPLES: Final = 7
"""Places along either side of a box at which it is looked what covers it."""

MARGIN: Final = 2.5
"""Typographic points that are kept free around a text that is there already."""

ROOM: Final = 9.0
"""Typographic points that are kept free around a point."""

COVERED, CROSSED = 10.0, 20.0
"""What a pixel counts that covers something, and a line that is crossed, in points of distance."""


@dataclass(frozen=True)
class Box:
    """A rectangle, in pixels."""

    left: float
    low: float
    right: float
    high: float

    def widen(self, room: float) -> Box:
        """Return the box with some room on all sides."""
        return Box(self.left - room, self.low - room, self.right + room, self.high + room)

    def overlap(self, other: Box) -> float:
        """Return the common area with another box, in square pixels."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.high, other.high) - max(self.low, other.low)
        return max(0.0, width) * max(0.0, height)

    def excess(self, frame: Box) -> float:
        """Return how far the box reaches out of a frame, in pixels."""
        across = max(0.0, frame.left - self.left) + max(0.0, self.right - frame.right)
        return across + max(0.0, frame.low - self.low) + max(0.0, self.high - frame.high)

    def holds(self, point: Point) -> bool:
        """Whether a point lies in the box."""
        return self.left <= point[0] <= self.right and self.low <= point[1] <= self.high

    def cover(self, area: Any) -> float:
        """Return how much of the box an area covers, about, in square pixels.

        Parameters
        ----------
        area
            A `matplotlib.path.Path`, in pixels.
        """
        across = np.linspace(self.left, self.right, SAMPLES)
        up = np.linspace(self.low, self.high, SAMPLES)
        places = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
        size = (self.right - self.left) * (self.high - self.low)
        return float(area.contains_points(places).mean() * size)


@dataclass(frozen=True)
class Place:
    """Where a label is: an offset in typographic points, and how its text is aligned to that."""

    offset: Point
    alignment: tuple[Any, Any]
    distance: float

    def box(self, at: Point, size: Point, scale: float) -> Box:
        """Return the box of a text of some size beside a point, in pixels."""
        low = [
            at[k] + scale * self.offset[k] - SHARE_BEFORE[self.alignment[k]] * size[k]
            for k in range(2)
        ]
        return Box(low[0], low[1], low[0] + size[0], low[1] + size[1])


def list_places() -> Iterator[Place]:
    """Yield all places around a point, the nearest first."""
    for distance, (along, up, horizontal, vertical) in product(DISTANCES, DIRECTIONS):
        yield Place((along * distance, up * distance), (horizontal, vertical), distance)


def place_labels(
    ax: Axes,
    labelled: Sequence[tuple[Point, str]],
    lines: Sequence[Sequence[Point]],
    color: str,
    areas: Sequence[Any] = (),
) -> None:
    """Write a label beside each point.

    A label that is not close to its point is tied to it by a line.

    Parameters
    ----------
    ax
        Where; with its limits, and all else that it is going to have.
    labelled
        The points, in the coordinates of the data, and their labels.
    lines
        Lines that labels keep off: points of each, dense ones.
    color
        Of the text.
    areas
        Patches that labels keep off.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # so that the axes are where they are going to be
    scale = figure.dpi / 72
    extent = ax.get_window_extent()
    frame = Box(extent.x0, extent.y0, extent.x1, extent.y1)
    points: list[Point] = [tuple(ax.transData.transform(point)) for point, _ in labelled]
    crossed: list[list[Point]] = [
        [(x, y) for x, y in ax.transData.transform(line) if frame.holds((x, y))]
        for line in lines
        if len(line)
    ]
    reach = ROOM * scale
    taken = [Box(x - reach, y - reach, x + reach, y + reach) for x, y in points]
    texts = [_surround(text).widen(MARGIN * scale) for text in ax.texts]
    hatched = [patch.get_transform().transform_path(patch.get_path()) for patch in areas]
    for k, (point, text) in enumerate(labelled):
        size = _measure(ax, point, text)
        others = texts + taken[:k] + taken[k + 1 :]
        costs = [
            (_judge(place.box(points[k], size, scale), others, frame, crossed, hatched), place)
            for place in list_places()
        ]
        _, best = min(costs, key=lambda cost: cost[0] + cost[1].distance)
        box = best.box(points[k], size, scale)
        taken.append(box)
        _write(ax, point, text, best, color, plate=any(box.cover(area) for area in hatched))


def _judge(
    box: Box,
    others: Sequence[Box],
    frame: Box,
    lines: Sequence[Sequence[Point]],
    areas: Sequence[Any],
) -> float:
    """Return how bad it would be to write into a box."""
    covered = sum(box.overlap(other) for other in others) + 100 * box.excess(frame)
    covered += sum(box.cover(area) for area in areas)
    return COVERED * covered + CROSSED * sum(any(map(box.holds, line)) for line in lines)


def _measure(ax: Axes, point: Point, text: str) -> Point:
    """Return the size of a label, in pixels."""
    label = _write(ax, point, text, Place((0.0, 0.0), ("left", "center"), 0.0), "black")
    box = _surround(label)
    label.remove()
    return box.right - box.left, box.high - box.low


def _surround(text: Any) -> Box:
    """Return the box of a text."""
    from matplotlib.text import Text

    extent = Text.get_window_extent(text)  # that of an annotation has the line to its point as well
    return Box(extent.x0, extent.y0, extent.x1, extent.y1)


def _write(ax: Axes, point: Point, text: str, place: Place, color: str, plate: bool = False) -> Any:
    from matplotlib.patheffects import withStroke

    tie = {"arrowstyle": "-", "color": color, "linewidth": 0.5, "shrinkA": 1.0, "shrinkB": 4.0}
    return ax.annotate(
        text,
        point,
        xytext=place.offset,
        textcoords="offset points",
        horizontalalignment=place.alignment[0],
        verticalalignment=place.alignment[1],
        fontsize=8.0,
        color=color,
        zorder=6,
        parse_math=False,
        in_layout=False,  # the axes stay where they were when its place was chosen
        arrowprops=tie if place.distance > DISTANCES[0] else None,
        path_effects=[withStroke(linewidth=2.0, foreground="white")],
        bbox=PLATE if plate else None,
    )
