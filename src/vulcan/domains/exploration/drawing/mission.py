"""One journey of an exploration mission: its map, and reward and risk so far beside it.

The background is the mean of the field given all samples of the journey; that of the start is one
of them. Ellipses hold the position, which gets less certain with every move.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from vulcan.domains.exploration.drawing.choice import TellingOutcome
from vulcan.domains.exploration.drawing.journeys import Journey, get_map
from vulcan.domains.exploration.drawing.terrain import (
    Numbers,
    Window,
    choose_levels,
    choose_window,
    draw_bar,
    draw_field,
    draw_journey,
    draw_map,
    list_obstacles,
    predict_window,
)
from vulcan.model.interface import describe_model
from vulcan.plotting.labels import place_labels
from vulcan.plotting.style import (
    BLUE,
    INK,
    ORANGE,
    make_figure,
    put_heading,
    put_legend_below,
    put_title,
    use_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_mission"]

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
    path = np.array(journey.path, np.float64)
    stations = np.linspace(0, len(path) - 1, 40 * len(path))
    line = [np.interp(stations, np.arange(len(path)), side).tolist() for side in path.T]
    place_labels(ax, labels, [list(zip(*line, strict=True))], INK, list_obstacles(ax))
