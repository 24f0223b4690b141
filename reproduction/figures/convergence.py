"""How runs converge: what many runs found after more and more work, beside what they aim at.

A `Curve` holds what each run found at each place of the horizontal axis. The line is the mean of
the runs, the band around it reaches from the tenth to the ninetieth of a hundred. Curves that
share axes are a `Panel`, and a figure is one panel or several; a curve has the same colour, line
and marker in all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from vulcan.errors import OptionError
from vulcan.plotting.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    make_figure,
    put_heading,
    put_title,
    use_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["Curve", "Panel", "plot_convergence", "summarise_runs"]

LOOKS: Final[Sequence[Mapping[str, Any]]] = (
    {"color": BLUE, "linestyle": "-", "marker": "o"},
    {"color": ORANGE, "linestyle": "--", "marker": "s", "markerfacecolor": "white"},
    {"color": INK, "linestyle": "-.", "marker": "^"},
    {"color": GREY, "linestyle": ":", "marker": "D", "markerfacecolor": "white"},
    {"color": BLUE, "linestyle": "--", "marker": "v", "markerfacecolor": "white"},
    {"color": ORANGE, "linestyle": "-", "marker": "P"},
)
"""How curves look, in the order of their names; they differ in shape, too."""

LINES: Final[Sequence[Mapping[str, Any]]] = (
    {"color": INK, "linestyle": (0, (6, 2)), "linewidth": 1.1},
    {"color": GREY, "linestyle": (0, (1, 1.5)), "linewidth": 1.5},
    {"color": ORANGE, "linestyle": (0, (4, 1.5, 1, 1.5)), "linewidth": 1.1},
    {"color": BLUE, "linestyle": (0, (3, 1, 1, 1, 1, 1)), "linewidth": 1.1},
)
"""How reference lines look."""

FEW, MOST = 10.0, 90.0
"""Percentiles: the edges of a band."""

PANEL_HEIGHT: Final = 2.3

LONG_NAME: Final = 25
"""Letters: with longer names a legend has two columns instead of three."""


@dataclass(frozen=True)
class Curve:
    """What runs found.

    Attributes
    ----------
    name
        For the legend; curves of the same name look the same.
    places
        Where on the horizontal axis, increasing.
    runs
        For each place, what each run found there.
    """

    name: str
    places: Sequence[float]
    runs: Sequence[Sequence[float]]

    def __post_init__(self) -> None:
        if len(self.places) != len(self.runs) or not all(len(values) for values in self.runs):
            raise OptionError(f"the curve {self.name!r} needs at least one run at every place")


@dataclass(frozen=True)
class Panel:
    """Curves that share axes.

    Attributes
    ----------
    curves
        What to draw.
    across, up
        Labels of the horizontal and the vertical axis, with their units.
    marks, levels
        Vertical and horizontal lines for reference: a name for the legend, and where.
    title
        Over the panel.
    across_scale
        "log" or "linear".
    up_scale
        "log", "linear", or a number: logarithmic above it and linear below, so that 0 is seen.
    """

    curves: Sequence[Curve]
    across: str
    up: str
    marks: Mapping[str, float] = field(default_factory=dict)
    levels: Mapping[str, float] = field(default_factory=dict)
    title: str = ""
    across_scale: str = "log"
    up_scale: str | float = "linear"


def summarise_runs(curve: Curve) -> tuple[list[float], list[float], list[float]]:
    """Return the mean of the runs at each place, and the edges of the band around it."""
    means = [float(np.mean(values)) for values in curve.runs]
    lows, highs = (
        [float(np.percentile(values, share)) for values in curve.runs] for share in (FEW, MOST)
    )
    return means, lows, highs


def plot_convergence(
    panels: Sequence[Panel],
    axes: Sequence[Axes] | None = None,
    *,
    columns: int = 2,
    title: str = "",
) -> Axes:
    """Draw what runs found, with the spread between them.

    Parameters
    ----------
    panels
        What to draw, from left to right and down.
    axes
        Where to draw them, one each; by default in a new figure.
    columns
        How many panels of a new figure are side by side. Neighbours with the same label up have a
        common vertical axis, and so have those below each other with the same label across.
    title
        Over a new figure.

    Returns
    -------
    Axes
        Those of the first panel.
    """
    if not panels:
        raise OptionError("a figure needs at least one panel")
    if axes is not None and len(axes) != len(panels):
        raise OptionError(f"{len(panels)} panels need as many axes, not {len(axes)}")
    looks = _assign([curve.name for panel in panels for curve in panel.curves], LOOKS)
    lines = _assign([name for p in panels for name in (*p.levels, *p.marks)], LINES)
    with use_style():
        own = axes is None
        if axes is None:
            axes = _make_panels(panels, min(columns, len(panels)))
        for ax, panel in zip(axes, panels, strict=True):
            _draw_panel(ax, panel, looks, lines)
        for ax, panel in zip(axes, panels, strict=True):
            _set_scales(ax, panel)  # when all is drawn: panels may share an axis
        if own:
            _finish(axes, title)
    return axes[0]


def _assign(
    names: Sequence[str], looks: Sequence[Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """Return a look for each name, in the order in which they come."""
    return {name: looks[k % len(looks)] for k, name in enumerate(dict.fromkeys(names))}


def _make_panels(panels: Sequence[Panel], columns: int) -> list[Axes]:
    count = len(panels)
    rows = math.ceil(count / columns)
    figure = make_figure(0.9 + rows * PANEL_HEIGHT)
    share: dict[str, Any] = {
        "sharex": "col" if _agree([panel.across for panel in panels], columns) else False,
        "sharey": "row" if len({(p.up, p.up_scale) for p in panels}) == 1 else False,
    }
    grid = figure.subplots(rows, columns, squeeze=False, **share)
    for ax in grid.flat[count:]:
        ax.remove()
    for k in range(count):
        ax = grid.flat[k]
        if not share["sharey"] or k % columns == 0:
            ax.set_ylabel(panels[k].up)
        if not share["sharex"] or k + columns >= count:
            ax.set_xlabel(panels[k].across)
            ax.tick_params(labelbottom=True)
    return list(grid.flat[:count])


def _agree(labels: Sequence[str], columns: int) -> bool:
    """Whether panels below each other have the same label."""
    return all(labels[k] == labels[k + columns] for k in range(len(labels) - columns))


def _draw_panel(
    ax: Axes,
    panel: Panel,
    looks: Mapping[str, Mapping[str, Any]],
    lines: Mapping[str, Mapping[str, Any]],
) -> None:
    for name, height in panel.levels.items():
        ax.axhline(height, label=name, zorder=1.5, **lines[name])
    for name, place in panel.marks.items():
        ax.axvline(place, label=name, zorder=1.5, **lines[name])
    for curve in panel.curves:
        look = looks[curve.name]
        means, lows, highs = summarise_runs(curve)
        ax.fill_between(curve.places, lows, highs, color=look["color"], alpha=0.15, linewidth=0)
        line: dict[str, Any] = {"markersize": 3.8, "clip_on": False, **look}
        ax.plot(curve.places, means, label=curve.name, **line)
    if panel.title:
        put_title(ax, panel.title)


def _set_scales(ax: Axes, panel: Panel) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.set_xscale(panel.across_scale)
    if panel.across_scale == "log":
        _number_decades(ax.xaxis)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if not isinstance(panel.up_scale, str):
        ax.set_yscale("symlog", linthresh=panel.up_scale, linscale=0.4)
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.set_ylim(bottom=0.0)
    else:
        ax.set_yscale(panel.up_scale)
        if panel.up_scale == "log":
            _number_decades(ax.yaxis)


def _number_decades(axis: Axis) -> None:
    """Label an axis with plain numbers, fewer of each decade where it has many decades."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    decades = math.log10(high / low) if low > 0 else math.inf
    steps = (1.0, 2.0, 5.0) if decades < 1.5 else (1.0, 3.0) if decades < 2.2 else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(lambda value, _: _write_number(value))
    axis.set_minor_formatter(NullFormatter())


def _write_number(value: float) -> str:
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _finish(axes: Sequence[Axes], title: str) -> None:
    """Add what all panels share: the legend, and a title."""
    figure = axes[0].get_figure(root=True)
    assert figure is not None
    named: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    style: dict[str, Any] = {"columnspacing": 1.5, "handlelength": 2.8}
    longest = max(map(len, named), default=0)
    style["ncols"] = min(3 if longest <= LONG_NAME else 2, len(named)) or 1
    figure.legend(list(named.values()), list(named), loc="outside lower center", **style)
    if title:
        put_heading(figure, title)
