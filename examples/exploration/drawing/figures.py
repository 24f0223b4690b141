"""Figures of exploration missions: one journey, several, all of them, and an animation.

All are drawn in units of cells, with the centre of cell (x, y) at x and y, whatever the spacing and
the origin of the map are. The background of a map is the mean of the field given the samples of the
journey so far (that of the start is one of them); circles hold the position, which gets less
certain with every move.
"""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RiskBound
from vulcan.domains.exploration.maps import Cell, Map
from vulcan.domains.exploration.model import Exploration
from vulcan.errors import BoundError, OptionError
from vulcan.model.interface import describe_model
from vulcan.plotting.figures import trace_bound
from vulcan.plotting.style import (
    BLUE,
    INK,
    ORANGE,
    PLATE,
    make_axes,
    make_figure,
    place_labels,
    put_heading,
    put_legend_below,
    put_title,
    require_matplotlib,
    use_style,
)
from vulcan.runtime.files import write_atomically

from .journeys import Journey, Journeys, Numbers, add_up, get_map
from .outcomes import SMALLEST, TellingOutcome, choose_outcomes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from PIL.Image import Image

__all__ = [
    "Window",
    "animate_mission",
    "check_animation_file",
    "choose_levels",
    "choose_window",
    "draw_bar",
    "draw_field",
    "draw_journey",
    "draw_map",
    "merge_points",
    "plot_mission",
    "plot_outcomes",
    "plot_risk_reward",
    "plot_visits",
    "predict_field",
    "tabulate_visits",
]

# --- The map: cells, obstacles, the expected field, and a journey over them


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
    """Draw a journey, or the first moves of it: path, circles, samples and risky places.

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
    _draw_positions(ax, journey, made, scale)
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


def _draw_positions(ax: Axes, journey: Journey, moves: int, scale: float) -> None:
    from matplotlib.patches import Circle

    spacing = get_map(journey.mission).spacing
    for step, cell in enumerate(journey.path[: moves + 1]):
        variance = journey.mission.vehicle.variance_after(step) / spacing**2
        radius = DEVIATIONS * variance**0.5
        style: dict[str, Any] = {
            "facecolor": "white",
            "alpha": 0.6,
            "edgecolor": INK,
            "zorder": 3.5,
        }
        ax.add_patch(Circle(cell, radius, linewidth=0.6 * scale, **style))
    ring: dict[str, Any] = {"markerfacecolor": "white", "markeredgecolor": INK, "alpha": 0.6}
    name = f"position ({DEVIATIONS:g} deviations)"
    ax.plot([], [], "o", linestyle="", markersize=8.0, markeredgewidth=0.6, label=name, **ring)


# --- One journey, with reward and risk so far beside the map

MAP_WIDTH: Final = 2.95
"""Inches, about."""


def plot_mission(
    outcome: TellingOutcome | Journey,
    ax: Axes | None = None,
    reward_ax: Axes | None = None,
    risk_ax: Axes | None = None,
) -> Axes:
    """Draw one journey, with its reward and its risk so far.

    Parameters
    ----------
    outcome
        The journey; with what happens on it, if there are words for that.
    ax
        Where to draw the map; by default in a new figure, with reward and risk beside it.
    reward_ax, risk_ax
        Where to draw reward and risk; with an `ax` and without these they are left out.

    Returns
    -------
    Axes
        Those of the map.
    """
    journey = outcome if isinstance(outcome, Journey) else outcome.journey
    window = choose_window(get_map(journey.mission), journey.path)
    moves = len(journey)
    with use_style():
        own = ax is None
        if ax is None:
            ax, reward_ax, risk_ax = make_mission_axes(window)
        means = predict_window(journey, window, moves)
        draw_stage(ax, journey, None, window, choose_levels([means]), means)
        if own:
            put_around(ax, title_mission(outcome))
        else:
            put_title(ax, *title_mission(outcome))
            put_legend_below(ax, 3)
        if reward_ax is not None:
            draw_progress(reward_ax, journey.earned, "reward so far", BLUE)
        if risk_ax is not None:
            draw_progress(risk_ax, journey.risked, "risk so far", ORANGE)
            risk_ax.set_xlabel("step")
        label_samples(ax, journey, moves)
    return ax


def title_mission(outcome: TellingOutcome | Journey) -> list[str]:
    """Return what the mission is, and what happens on the journey."""
    if isinstance(outcome, Journey):
        return [describe_model(outcome.mission)]
    return [describe_model(outcome.journey.mission), outcome.words, outcome.numbers]


def make_mission_axes(window: Window) -> tuple[Axes, Axes, Axes]:
    """Return the axes of a new figure: a map, and two beside it for what adds up."""
    columns, rows = window.shape
    figure = make_figure(float(np.clip(1.42 + MAP_WIDTH * rows / columns, 3.4, 7.0)))
    grid = figure.add_gridspec(2, 2, width_ratios=(2.0, 1.0))
    reward_ax = figure.add_subplot(grid[0, 1])
    return (
        figure.add_subplot(grid[:, 0]),
        reward_ax,
        figure.add_subplot(grid[1, 1], sharex=reward_ax),
    )


def put_around(ax: Axes, title: Sequence[str]) -> None:
    """Put title and legend around the whole figure of a map, so that all of its axes are alike."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    put_heading(figure, *title)
    handles, labels = ax.get_legend_handles_labels()
    style: dict[str, Any] = {"columnspacing": 1.3, "handletextpad": 0.5}
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), **style)


def draw_stage(
    ax: Axes, journey: Journey, moves: int | None, window: Window, levels: Numbers, means: Numbers
) -> None:
    """Draw a map with a journey or the first moves of it, and the field as it is expected then.

    Parameters
    ----------
    ax
        Where.
    journey, moves
        The journey, and how many moves of it; None for a journey that is over.
    window
        The part of the map.
    levels, means
        Levels of the colours, and the expected field.
    """
    draw_map(ax, get_map(journey.mission), window)
    contours = draw_field(ax, means, window, levels)
    draw_journey(ax, journey, moves)
    ax.set_xlabel("east (cells)")
    ax.set_ylabel("north (cells)")
    draw_bar(ax, contours, "expected field, given the samples")


def draw_progress(
    ax: Axes, values: Numbers, name: str, colour: str, moves: int | None = None
) -> None:
    """Draw what adds up over the steps, with its value at the end.

    Parameters
    ----------
    ax
        Where.
    values
        Before the first move and after each; the axes have room for all of them.
    name, colour
        What it is, and how it is drawn.
    moves
        How many moves of it are shown; by default all.
    """
    from matplotlib.ticker import MaxNLocator

    last = len(values) - 1 if moves is None else moves
    low, high = min(0.0, float(values.min())), float(values.max())
    (line,) = ax.plot(values[: last + 1], "-o", color=colour, markersize=3.5, clip_on=False)
    ax.set_xlim(0, max(1, len(values) - 1))
    ax.set_ylim(low, low + (1.2 * (high - low) or 1e-3))
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(5))
    ax.ticklabel_format(axis="y", scilimits=(-3, 4), useMathText=True)
    ax.set_ylabel(name)
    text = f"{values[last]:.2f}" if name.startswith("reward") else f"{values[last]:.2g}"
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8.0, "color": INK}
    aside: dict[str, Any] = {"xytext": (-1, 6), "horizontalalignment": "right"}
    if last < (len(values) - 1) / 2:
        aside = {"xytext": (1, 6), "horizontalalignment": "left"}
    label = ax.annotate(text, (last, float(values[last])), **aside, **style)
    for artist in (line, label):
        artist.set_in_layout(False)  # the axes stay where they are, however far it is


def label_samples(ax: Axes, journey: Journey, moves: int) -> None:
    """Write the value of each sample beside it, off the path."""
    cells, values = journey.samples(moves)
    labels = [
        ((float(x), float(y)), f"{value:.2f}") for (x, y), value in zip(cells, values, strict=True)
    ]
    place_labels(ax, labels)


# --- Several outcomes side by side: the paper's figure of the exploration

PANEL_COLUMNS: Final = 3
PANEL: Final = 1.8
"""Inches: the width of a panel, about."""

CAPTION: Final = 37
"""Letters in a line of a caption."""

MOST_PANELS: Final = len(ascii_lowercase)


def plot_outcomes(
    journeys: Journeys,
    outcomes: Sequence[TellingOutcome] | None = None,
    axes: Sequence[Axes] | None = None,
) -> Axes:
    """Draw some outcomes of a policy, side by side.

    Parameters
    ----------
    journeys
        All of the policy's.
    outcomes
        Those to draw; by default the six that `choose_outcomes` returns.
    axes
        Where to draw them, one each; by default in a new figure.

    Returns
    -------
    Axes
        Those of the first outcome.
    """
    if outcomes is None:
        outcomes = choose_outcomes(journeys)
    if not 1 <= len(outcomes) <= MOST_PANELS:
        raise OptionError(f"from 1 to {MOST_PANELS} outcomes can be drawn, not {len(outcomes)}")
    if axes is not None and len(axes) != len(outcomes):
        raise OptionError(f"{len(outcomes)} outcomes need as many axes, not {len(axes)}")
    cells = [cell for outcome in outcomes for cell in outcome.journey.path]
    window = choose_window(get_map(journeys.mission), cells)
    fields = [predict_window(o.journey, window, len(o.journey)) for o in outcomes]
    with use_style():
        levels = choose_levels(fields)
        own = axes is None
        if axes is None:
            columns, rows = window.shape
            axes = _make_panels(len(outcomes), rows / columns)
        contours = None
        for letter, ax, outcome, means in zip(
            ascii_lowercase, axes, outcomes, fields, strict=False
        ):
            draw_map(ax, get_map(journeys.mission), window)
            contours = draw_field(ax, means, window, levels)
            draw_journey(ax, outcome.journey, scale=0.75)
            _write_caption(ax, letter, outcome)
        if own:
            _finish(axes, contours, journeys)
    return axes[0]


def _make_panels(count: int, shape: float) -> list[Axes]:
    columns = min(PANEL_COLUMNS, count)
    rows = math.ceil(count / columns)
    figure = make_figure(1.6 + rows * (PANEL * shape + 0.85))
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for ax in grid.flat[count:]:
        ax.remove()
    for ax in grid[:, 0]:
        ax.set_ylabel("north (cells)")
    for column in range(columns):
        lowest = [row for row in range(rows) if row * columns + column < count][-1]
        grid[lowest, column].set_xlabel("east (cells)")
        grid[lowest, column].tick_params(labelbottom=True)
    return list(grid.flat[:count])


def _write_caption(ax: Axes, letter: str, outcome: TellingOutcome) -> None:
    earned, _, probable = outcome.numbers.rpartition(", ")
    # A cell such as (5, 5) is not broken in two, and neither are step 3 and the north-west.
    words = re.sub(r"(\(\d+,|step) (\d)", "\\1\u00a0\\2", outcome.words)
    wrapped = wrap(f"({letter}) {words}", CAPTION, break_on_hyphens=False)
    lines = [*wrapped, f"{earned},", probable]
    ax.set_title("\n".join(lines), fontsize=7.0, color=INK, parse_math=False, linespacing=1.15)


def _finish(axes: Sequence[Axes], contours: Any, journeys: Journeys) -> None:
    """Add what all panels share: title, colour bar and legend."""
    figure = axes[0].get_figure(root=True)
    assert figure is not None
    bar = figure.colorbar(contours, ax=list(axes), location="bottom", aspect=60, shrink=0.7)
    bar.set_label("expected field, given the samples")
    bar.outline.set_linewidth(0.5)
    named: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    style: dict[str, Any] = {"columnspacing": 1.3, "handletextpad": 0.5}
    shown = (list(named.values()), list(named))
    figure.legend(*shown, loc="outside lower center", ncols=len(named), **style)
    put_heading(
        figure,
        describe_model(journeys.mission),
        f"{len(axes)} of {len(journeys):,} safe outcomes of one policy "
        f"(reward {journeys.reward:.2f}, risk {journeys.risk:.3g})",
    )


# --- Where a policy goes

VISITS_WIDTH: Final = 4.6
"""Inches, about."""

MOST_NAMED: Final = 6
"""Cells with collisions that the legend names."""

MOST_NUMBERED: Final = 24
"""Cells on a side; if there are more, there is no room for a number in each."""

TICKS: Final = (0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)


def tabulate_visits(journeys: Journeys, window: Window) -> Numbers:
    """Return the probability of a visit of each cell of a window, rows from south to north."""
    visits, (columns, rows) = journeys.visits, window.shape
    x, y = (visits.cells - (window.west, window.south)).T
    inside = (x >= 0) & (x < columns) & (y >= 0) & (y < rows)
    table = np.zeros((rows, columns))
    table[y[inside], x[inside]] = visits.probability[inside]
    return table


def plot_visits(journeys: Journeys, ax: Axes | None = None) -> Axes:
    """Draw the probability that a policy visits each cell.

    Parameters
    ----------
    journeys
        All of the policy's.
    ax
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes
        Where it was drawn.
    """
    area = get_map(journeys.mission)
    window = choose_window(area, journeys.visits.cells)
    table = tabulate_visits(journeys, window)
    with use_style():
        if ax is None:
            columns, rows = window.shape
            figure = make_figure(float(np.clip(1.1 + VISITS_WIDTH * rows / columns, 3.2, 8.0)))
            ax = figure.add_subplot()
        draw_map(ax, area, window, alpha=0.6)
        _draw_cells(ax, table, window)
        ax.set_xlabel("east (cells)")
        ax.set_ylabel("north (cells)")
        numbered = "; numbers are percentages" if max(window.shape) <= MOST_NUMBERED else ""
        sums = f"reward {journeys.reward:.2f}, risk {journeys.risk:.3g}"
        put_title(ax, describe_model(journeys.mission), f"{sums}{numbered}")
        _draw_marks(ax, journeys)
        put_legend_below(ax, 3)
    return ax


def _draw_cells(ax: Axes, table: Numbers, window: Window) -> None:
    from matplotlib.colors import PowerNorm
    from matplotlib.patheffects import withStroke
    from matplotlib.transforms import Bbox

    # The square root: what is rare is told from what never happens.
    norm = PowerNorm(0.5, 0.0, 1.0)
    extent = (window.west - 0.5, window.east + 0.5, window.south - 0.5, window.north + 0.5)
    picture: dict[str, Any] = {"origin": "lower", "extent": extent, "interpolation": "none"}
    shown = ax.imshow(table, cmap=get_colours(), norm=norm, zorder=0, **picture)
    bar = draw_bar(ax, shown, "probability that the cell is visited")
    bar.set_ticks(TICKS)
    bar.ax.set_yticklabels([f"{tick:g}" for tick in TICKS])
    bar.ax.minorticks_off()
    if max(window.shape) > MOST_NUMBERED:
        return
    size = min(8.0, 72 * VISITS_WIDTH / max(window.shape) * 0.42)
    obstacles = [patch.get_path() for patch in ax.patches if patch.get_hatch()]
    for row, column in zip(*np.nonzero(table >= 0.0005), strict=True):
        share = 100 * table[row, column]
        text = f"{share:.0f}" if share >= 9.95 else f"{share:.1f}"
        x, y = window.west + column, window.south + row
        across = 0.1 + 0.08 * len(text)
        box = Bbox([(x - across, y - 0.3), (x + across, y + 0.3)])
        hatched = any(obstacle.intersects_bbox(box) for obstacle in obstacles)
        colour, halo = ("white", None) if share > 45 and not hatched else (INK, "white")
        effects = [withStroke(linewidth=1.4, foreground=halo)] if halo else []
        ax.text(
            x,
            y,
            text,
            fontsize=size,
            color=colour,
            horizontalalignment="center",
            verticalalignment="center",
            path_effects=effects,
            bbox=PLATE if hatched else None,
            zorder=4,
        )


def _draw_marks(ax: Axes, journeys: Journeys) -> None:
    """Frame the start, and where collisions occur."""
    visits, start = journeys.visits, get_map(journeys.mission).start
    _frame_cells(ax, [start], INK, "start")
    risky = np.flatnonzero(visits.collision >= SMALLEST)
    cells = [(x, y) for x, y in visits.cells[risky].tolist()]
    if cells:
        risks = dict(zip(cells, visits.collision[risky].tolist(), strict=True))
        _frame_cells(ax, cells, ORANGE, _name_collisions(risks))


def _name_collisions(risks: Mapping[Cell, float]) -> str:
    """Return where collisions are how probable: on the map there is no room for that."""
    ranked = sorted(risks, key=lambda cell: -risks[cell])
    named = [f"{risks[cell]:.3g} at ({cell[0]}, {cell[1]})" for cell in ranked[:MOST_NAMED]]
    rest = ranked[MOST_NAMED:]
    if rest:
        named.append(f"{sum(risks[cell] for cell in rest):.3g} in {len(rest)} other cells")
    rows = [", ".join(named[k : k + 3]) for k in range(0, len(named), 3)]
    return "collision with probability " + ",\n".join(rows)


def _frame_cells(ax: Axes, cells: Sequence[Cell], colour: str, name: str) -> None:
    from matplotlib.patches import Rectangle

    style: dict[str, Any] = {"facecolor": "none", "edgecolor": colour, "linewidth": 2.0}
    for x, y in cells:
        ax.add_patch(Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, zorder=3, **style))
    proxy: dict[str, Any] = {"markeredgecolor": colour, "markeredgewidth": 2.0}
    ax.plot([], [], "s", markerfacecolor="none", markersize=9.0, label=name, **proxy)


# --- Risk against reward over all outcomes
#
# A journey is a point: its reward, and its risk, 1 - the product of its survivals. The bound
# applies to the policy, not to single journeys: to its expected reward and its probability of
# failure. With p the probabilities of the journeys and S their survivals, that probability is
# Σ (p / S) (1 - S), unless some move is certain to fail. So single journeys may lie above the
# curve; the figure shows how probable they are.

Span = tuple[float, float]

MOST_POINTS: Final = 400
"""Points of which each is still seen; if there are more, they are counted in bins."""

BIN_COLUMNS, BIN_ROWS = 70, 45
"""Bins from left to right, and from below to above."""

LARGEST: Final = 220.0
"""Area of the largest point, in square typographic points."""


def merge_points(journeys: Journeys) -> tuple[Numbers, Numbers, Numbers]:
    """Return the distinct points of all journeys: rewards, risks, and their probabilities.

    Numbers that agree in nine digits are taken for the same.
    """
    points = np.stack((journeys.earned, journeys.risked), axis=1)
    places, number_of = np.unique(points.round(9), axis=0, return_inverse=True)
    return places[:, 0], places[:, 1], add_up(number_of, journeys.probability)


def plot_risk_reward(
    journeys: Journeys, bound: RiskBound | None = None, ax: Axes | None = None
) -> Axes:
    """Draw what each outcome of a policy earns and risks.

    Parameters
    ----------
    journeys
        All of the policy's.
    bound
        The risk bound to draw as a curve.
    ax
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes
        Where it was drawn.
    """
    journeys.require_some()
    rewards, risks, share = merge_points(journeys)
    across, up = _find_spans(rewards, risks, journeys, bound)
    with use_style():
        if ax is None:
            (ax,) = make_axes(4.2)
        ax.set_xlim(*across)
        ax.set_ylim(*up)
        if len(share) <= MOST_POINTS:
            _draw_points(ax, rewards, risks, share)
        else:
            _draw_bins(ax, rewards, risks, share, (across, up))
        if bound is not None:
            curve = trace_bound(bound, across)
            label = f"Δ(x) = {bound}"
            name = label if len(label) <= 50 else "risk bound Δ"
            ax.plot(*zip(*curve, strict=True), "--", color=INK, label=name, zorder=3)
        star: dict[str, Any] = {"markersize": 13.0, "markeredgecolor": "white", "zorder": 6}
        policy = (journeys.reward, journeys.risk)
        ax.plot(*policy, "*", color=ORANGE, linestyle="", label="the policy", **star)
        ax.set_xlabel("reward of an outcome; expected reward of the policy")
        ax.set_ylabel("risk of an outcome; risk of the policy")
        put_title(ax, describe_model(journeys.mission), _summarise(journeys, bound))
        put_legend_below(ax, 3)
        text = f"policy: reward {journeys.reward:.2f}, risk {journeys.risk:.2g}"
        place_labels(ax, [(policy, text)])
    return ax


def _find_spans(
    rewards: Numbers, risks: Numbers, journeys: Journeys, bound: RiskBound | None
) -> tuple[Span, Span]:
    """Return the rewards and risks of all outcomes, the policy, and what it is allowed."""
    low, high = min(rewards.min(), journeys.reward), max(rewards.max(), journeys.reward)
    room = 0.04 * (high - low) or 0.5
    top = max(float(risks.max()), journeys.risk)
    if bound is not None:
        top = float(np.nanmax([top, _allow(bound, float(high))]))
    top = top if top > 0 else 1e-3
    return (float(low - room), float(high + room)), (-0.03 * top, 1.12 * top)


def _allow(bound: RiskBound, reward: float) -> float:
    """Return what is allowed for a reward; NaN where the bound has no value."""
    try:
        risk = bound(reward)
    except BoundError:
        return math.nan
    return risk if math.isfinite(risk) else math.nan


def _summarise(journeys: Journeys, bound: RiskBound | None) -> str:
    text = f"{len(journeys):,} safe outcomes"
    if bound is None:
        return text
    rewards, number_of = np.unique(journeys.earned.round(9), return_inverse=True)
    allowed = np.array([_allow(bound, reward) for reward in rewards.tolist()])
    above = journeys.risked > allowed[number_of.ravel()]
    return f"{text}; {100 * journeys.probability[above].sum():.2g} % take more than Δ(their reward)"


def _draw_points(ax: Axes, rewards: Numbers, risks: Numbers, share: Numbers) -> None:
    """Draw all outcomes."""
    sizes = np.maximum(6.0, LARGEST * share / share.max())
    style: dict[str, Any] = {"facecolor": BLUE, "alpha": 0.45, "edgecolor": INK, "linewidth": 0.5}
    ax.scatter(rewards, risks, sizes, label="outcomes, area by probability", zorder=4, **style)


def _draw_bins(
    ax: Axes, rewards: Numbers, risks: Numbers, share: Numbers, spans: tuple[Span, Span]
) -> None:
    """Draw how probable the outcomes of each bin are."""
    from matplotlib.colors import LogNorm

    edges = [np.linspace(*spans[0], BIN_COLUMNS + 1), np.linspace(*spans[1], BIN_ROWS + 1)]
    table, _, _ = np.histogram2d(rewards, risks, edges, weights=share)
    shown = np.ma.masked_equal(table.T, 0)
    norm = LogNorm(max(float(shown.min()), 1e-4 * float(shown.max())), float(shown.max()))
    mesh = ax.pcolormesh(*edges, shown, cmap=get_colours(pale=False), norm=norm, zorder=2)
    draw_bar(ax, mesh, "probability of the outcomes in a bin")


# --- One journey as an animation: a frame per step

Picture = NDArray[np.uint8]

ENDING: Final = ".gif"
COLOURS: Final = 128

FRAME, LAST = 900, 3000
"""Milliseconds that a frame, and the last one, are shown."""

RESOLUTIONS: Final = ((16, 110), (40, 80), (1000, 55))
"""Dots per inch for missions of up to this many frames: long ones are kept small as well."""


def check_animation_file(path: str | os.PathLike[str]) -> None:
    """Refuse, before any work, a file that an animation can't be written to.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    OptionError
        If it does not end in .gif, or matplotlib is not installed.
    """
    if Path(path).suffix.lower() != ENDING:
        raise OptionError(f"an animation is written to {ENDING}; not to {os.fspath(path)!r}")
    require_matplotlib()


def animate_mission(outcome: TellingOutcome | Journey, path: str | os.PathLike[str]) -> None:
    """Write one journey to a file as an animation, at once or not at all.

    Parameters
    ----------
    outcome
        The journey; with what happens on it, if there are words for that.
    path
        The file: .gif.
    """
    check_animation_file(path)
    frames = _shrink(_draw_frames(outcome))
    times = [FRAME] * (len(frames) - 1) + [LAST]
    content = io.BytesIO()
    further: dict[str, Any] = {"append_images": frames[1:], "duration": times, "loop": 0}
    frames[0].save(content, format="GIF", save_all=True, optimize=False, **further)
    write_atomically(path, content.getvalue())


def _draw_frames(outcome: TellingOutcome | Journey) -> list[Picture]:
    """Return the pictures of all steps, as arrays of red, green and blue."""
    journey = outcome if isinstance(outcome, Journey) else outcome.journey
    window = choose_window(get_map(journey.mission), journey.path)
    fields = [predict_window(journey, window, moves) for moves in range(len(journey) + 1)]
    dots = next(dots for most, dots in RESOLUTIONS if len(fields) <= most)
    pictures = []
    with use_style():
        levels = choose_levels(fields)
        for moves, means in enumerate(fields):
            # Each figure is made anew, and laid out like the others: limits, colours and legend are
            # the same from the first frame on.
            axes = make_mission_axes(window)
            draw_stage(axes[0], journey, moves, window, levels, means)
            _draw_rest(axes, outcome, journey, moves)
            pictures.append(_render(axes[0], dots))
    return pictures


def _draw_rest(
    axes: tuple[Axes, Axes, Axes], outcome: TellingOutcome | Journey, journey: Journey, moves: int
) -> None:
    ax, reward_ax, risk_ax = axes
    title, *words = title_mission(outcome)
    put_around(ax, [f"{title}, step {moves} of {len(journey)}", *words])
    draw_progress(reward_ax, journey.earned, "reward so far", BLUE, moves)
    draw_progress(risk_ax, journey.risked, "risk so far", ORANGE, moves)
    risk_ax.set_xlabel("step")
    label_samples(ax, journey, moves)


def _render(ax: Axes, dots: int) -> Picture:
    figure: Any = ax.get_figure(root=True)
    figure.set_layout_engine("none")  # it is laid out already: labels needed to know where
    figure.set_dpi(dots)
    figure.canvas.draw()
    picture: Picture = np.asarray(figure.canvas.buffer_rgba())[..., :3].copy()
    return picture


def _shrink(pictures: Sequence[Picture]) -> list[Image]:
    """Return pictures with few colours, the same in all of them so that nothing flickers."""
    from PIL import Image

    ends = Image.fromarray(np.concatenate((pictures[0], pictures[-1])))
    # The method that keeps the colours of thin lines, rather than many shades of the field.
    colours = ends.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    return [
        Image.fromarray(picture).quantize(palette=colours, dither=Image.Dither.NONE)
        for picture in pictures
    ]
