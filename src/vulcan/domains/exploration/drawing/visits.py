"""Where a policy goes: how probable it is that each cell is visited, and where it may collide.

Both are exact, over all outcomes of the policy. A cell counts as visited if the vehicle is ever
there after a move that it survived, and wherever the mission ends later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from vulcan.domains.exploration.drawing.journeys import Journeys, get_map
from vulcan.domains.exploration.drawing.routes import SMALLEST
from vulcan.domains.exploration.drawing.terrain import (
    Numbers,
    Window,
    choose_window,
    draw_bar,
    draw_map,
    get_colours,
    list_obstacles,
)
from vulcan.domains.exploration.maps import Cell
from vulcan.model.interface import describe_model
from vulcan.plotting.labels import PLATE, Box
from vulcan.plotting.style import INK, ORANGE, make_figure, put_legend_below, put_title, use_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_visits", "tabulate_visits"]

MAP_WIDTH: Final = 4.6
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
            figure = make_figure(float(np.clip(1.1 + MAP_WIDTH * rows / columns, 3.2, 8.0)))
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
    size = min(8.0, 72 * MAP_WIDTH / max(window.shape) * 0.42)
    obstacles = [obstacle.get_path() for obstacle in list_obstacles(ax)]
    for row, column in zip(*np.nonzero(table >= 0.0005), strict=True):
        share = 100 * table[row, column]
        text = f"{share:.0f}" if share >= 9.95 else f"{share:.1f}"
        x, y = window.west + column, window.south + row
        across = 0.1 + 0.08 * len(text)
        hatched = any(Box(x - across, y - 0.3, x + across, y + 0.3).cover(o) for o in obstacles)
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
