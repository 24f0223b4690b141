"""Maps of exploration missions: cells, obstacles, the expected field, and journeys over them.

Everything is drawn in units of cells, with the centre of cell (x, y) at x and y, whatever the
spacing and the origin of the map are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.domains.exploration.drawing.journeys import Journey, get_map
from vulcan.domains.exploration.drawing.routes import SMALLEST
from vulcan.domains.exploration.maps import Cell, Map
from vulcan.domains.exploration.model import Exploration
from vulcan.plotting.style import INK, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

__all__ = [
    "Window",
    "choose_levels",
    "choose_window",
    "draw_bar",
    "draw_field",
    "draw_journey",
    "draw_map",
    "list_obstacles",
    "predict_field",
]

Numbers = NDArray[np.float64]

MARGIN: Final = 2
SMALLEST_SIDE: Final = 9
SQUARENESS: Final = 0.8
"""Cells shown around where the vehicle goes, cells on a side at the least, and how much shorter one
side may be than the other; as far as the map goes."""

MOST_BORDERS: Final = 60
"""Cells on a side; if there are more, their borders would be all that is seen."""

FINENESS: Final = 4
FINEST: Final = 240
"""Points per cell, and points at the most, at which the expected field is computed."""

FIELD_COLOURS: Final = ("#fdfaf0", "#d3e5ea", "#92c1da", "#4f95c0", "#256d9f")
"""From pale to dark: it can be read in grey."""

DEVIATIONS: Final = 3.0
"""Ellipses hold the position with a probability of 98.9 %."""

KNOWN: Final = 1e-10
"""Of the kernel's eigenvalues, those below this share of the largest are rounding."""

HALO: Final = 1.6
"""Points of white around lines, so that they are seen on a dark field."""


@dataclass(frozen=True)
class Window:
    """The cells that are shown, the first and the last of either side."""

    west: int
    east: int
    south: int
    north: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of columns and of rows."""
        return self.east - self.west + 1, self.north - self.south + 1

    def grid(self) -> tuple[Numbers, Numbers]:
        """Return where the field is computed, along either side."""
        counts = [min(FINEST, FINENESS * cells + 1) for cells in self.shape]
        return (
            np.linspace(self.west - 0.5, self.east + 0.5, counts[0]),
            np.linspace(self.south - 0.5, self.north + 0.5, counts[1]),
        )


def choose_window(area: Map, cells: Iterable[Sequence[int]]) -> Window:
    """Return the part of a map to show: what lies around some cells.

    Parameters
    ----------
    area
        The map.
    cells
        Where the vehicle can be.
    """
    places = np.array([area.start, *cells])
    lows, highs = places.min(axis=0) - MARGIN, places.max(axis=0) + MARGIN
    sizes = highs - lows + 1
    least = max(SMALLEST_SIDE, int(SQUARENESS * sizes.max()))
    sides = []
    for low, size, count in zip(lows, sizes, (area.columns, area.rows), strict=True):
        wanted = min(count, max(least, int(size)))
        first = int(low) - (max(least, int(size)) - int(size)) // 2
        first = min(max(0, first), count - wanted)
        sides += [first, first + wanted - 1]
    return Window(*sides)


def predict_field(
    mission: Exploration, cells: Sequence[Cell], values: Sequence[float], places: Numbers
) -> Numbers:
    """Return the mean of the field given some samples.

    Parameters
    ----------
    mission
        The model.
    cells, values
        Where samples were taken, and what they were.
    places
        Shape [..., 2]: where the mean is wanted, in units of cells.
    """
    area, field = get_map(mission), mission.field

    def locate(points: Any) -> Numbers:
        located: Numbers = area.origin + area.spacing * np.asarray(points, np.float64)
        return located

    def relate(one: Numbers, other: Numbers) -> Numbers:
        squares = ((one[..., None, :] - other) ** 2).sum(axis=-1)
        kernel: Numbers = field.variance * np.exp(-squares / (2 * field.length**2))
        return kernel

    known, wanted, slope = locate(cells), locate(places), np.array(field.slope)
    surprise = np.asarray(values) - field.constant - known @ slope
    # Samples close together may say the same, so that there is no inverse.
    inverse = np.linalg.pinv(relate(known, known), KNOWN, hermitian=True)
    means: Numbers = field.constant + wanted @ slope + relate(wanted, known) @ (inverse @ surprise)
    return means


def predict_window(journey: Journey, window: Window, moves: int) -> Numbers:
    """Return the mean of the field over a window, after this many moves of a journey."""
    columns, rows = window.grid()
    places = np.stack(np.meshgrid(columns, rows), axis=-1)
    return predict_field(journey.mission, *journey.samples(moves), places)


def choose_levels(fields: Iterable[Numbers]) -> Numbers:
    """Return round levels that span all values of some fields: those of their common colours."""
    from matplotlib.ticker import MaxNLocator

    spans = [(float(values.min()), float(values.max())) for values in fields]
    low, high = min(span[0] for span in spans), max(span[1] for span in spans)
    if high - low <= 1e-9 * max(1.0, abs(high)):
        low, high = low - 0.5, high + 0.5
    levels: Numbers = np.asarray(MaxNLocator(12, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    return levels


def draw_map(ax: Axes, area: Map, window: Window, alpha: float = 1.0) -> None:
    """Draw the cells and obstacles of a map.

    Parameters
    ----------
    ax, area, window
        Where, what, and which part of it.
    alpha
        Opacity of the obstacles.
    """
    from matplotlib.patches import Polygon
    from matplotlib.ticker import MaxNLocator

    columns, rows = window.shape
    ax.set_xlim(window.west - 0.5, window.east + 0.5)
    ax.set_ylim(window.south - 0.5, window.north + 0.5)
    ax.set_aspect("equal")
    ax.grid(visible=False)
    if max(columns, rows) <= MOST_BORDERS:
        borders: dict[str, Any] = {"color": "white", "linewidth": 0.4, "alpha": 0.7, "zorder": 1.5}
        for x in range(columns + 1):
            ax.axvline(window.west - 0.5 + x, **borders)
        for y in range(rows + 1):
            ax.axhline(window.south - 0.5 + y, **borders)
    for obstacle in area.obstacles:
        corners = (np.array(obstacle.vertices) - area.origin) / area.spacing
        style: dict[str, Any] = {"facecolor": "#8c8c8c", "edgecolor": INK, "linewidth": 0.8}
        ax.add_patch(Polygon(corners, hatch="////", zorder=2, alpha=alpha, **style))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(8, integer=True))
    for spine in ax.spines.values():
        spine.set_visible(True)


def list_obstacles(ax: Axes) -> list[Any]:
    """Return the hatched patches of a map that was drawn: labels keep off them."""
    return [patch for patch in ax.patches if patch.get_hatch()]


def draw_field(ax: Axes, means: Numbers, window: Window, levels: Numbers) -> Any:
    """Draw the mean of a field under everything else, and return what a colour bar needs."""
    columns, rows = window.grid()
    return ax.contourf(columns, rows, means, levels=levels, cmap=get_colours(), zorder=0)


def draw_bar(ax: Axes, shown: Any, name: str) -> Any:
    """Draw a colour bar beside a map, as high as the map."""
    figure = ax.get_figure()
    assert figure is not None
    bar = figure.colorbar(shown, cax=ax.inset_axes((1.03, 0.0, 0.035, 1.0)))
    bar.set_label(name)
    bar.outline.set_linewidth(0.5)
    return bar


def get_colours(*, pale: bool = True) -> Colormap:
    """Return the colours of fields and probabilities; without the palest, all differ from white."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("vulcan", FIELD_COLOURS[not pale :])


def draw_journey(ax: Axes, journey: Journey, moves: int | None = None, scale: float = 1.0) -> None:
    """Draw a journey, or the first moves of it: path, ellipses, samples and risky places.

    Parameters
    ----------
    ax
        A map.
    journey
        The journey.
    moves
        How many moves of it; by default all.
    scale
        Of lines and markers.
    """
    from matplotlib.patheffects import withStroke

    made = len(journey) if moves is None else moves
    path = np.array(journey.path[: made + 1])
    halo = [withStroke(linewidth=(1.3 + HALO) * scale, foreground="white")]
    line: dict[str, Any] = {"color": INK, "linewidth": 1.3 * scale, "path_effects": halo}
    ax.plot(*path.T, "-", zorder=3, solid_joinstyle="round", label="path", **line)
    _draw_ellipses(ax, journey, made, scale)
    new = [True, *journey.sampled[:made]]
    samples = path[new]
    dots: dict[str, Any] = {"markeredgecolor": INK, "markeredgewidth": 0.7 * scale, "zorder": 4}
    dots |= {"markerfacecolor": "white", "linestyle": ""}
    ax.plot(*samples[1:].T, "o", markersize=3.2 * scale, label="sample", **dots)
    ax.plot(*path[:1].T, "s", markersize=5.0 * scale, label="start", **dots)
    last = dots | {"markerfacecolor": INK}
    ax.plot(
        *path[-1:].T, "^", markersize=5.5 * scale, label="end" if moves is None else "now", **last
    )
    risky = [k + 1 for k, risk in enumerate(journey.risks) if risk >= SMALLEST]
    if risky:
        _draw_rings(ax, [journey.path[k] for k in risky if k <= made], scale)


def _draw_rings(ax: Axes, cells: Sequence[Cell], scale: float) -> None:
    """Mark where risk was taken; before any was, with nothing but an entry of the legend."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=(1.8 + HALO) * scale, foreground="white")]
    ring: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": ORANGE, "zorder": 5}
    ring |= {"markersize": 12.0 * scale, "markeredgewidth": 1.8 * scale, "linestyle": ""}
    places = np.array(cells).reshape(-1, 2)
    ax.plot(*places.T, "o", label="risk taken", path_effects=halo, **ring)


def _draw_ellipses(ax: Axes, journey: Journey, moves: int, scale: float) -> None:
    from matplotlib.patches import Ellipse

    spacing = get_map(journey.mission).spacing
    for step, cell in enumerate(journey.path[: moves + 1]):
        covariance = np.array(journey.mission.vehicle.covariance_after(step)) / spacing**2
        variances, axes = np.linalg.eigh(covariance)
        width, height = 2 * DEVIATIONS * np.sqrt(np.maximum(0.0, variances))
        angle = float(np.degrees(np.arctan2(axes[1, 0], axes[0, 0])))
        style: dict[str, Any] = {
            "facecolor": "white",
            "alpha": 0.6,
            "edgecolor": INK,
            "zorder": 3.5,
        }
        ax.add_patch(Ellipse(cell, width, height, angle=angle, linewidth=0.6 * scale, **style))
    ring: dict[str, Any] = {"markerfacecolor": "white", "markeredgecolor": INK, "alpha": 0.6}
    name = f"position ({DEVIATIONS:g} deviations)"
    ax.plot([], [], "o", linestyle="", markersize=8.0, markeredgewidth=0.6, label=name, **ring)
