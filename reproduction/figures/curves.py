"""Curves over a number: losses over bounds, seconds over horizons, values over penalties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from vulcan.plotting.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PALE,
    make_axes,
    place_labels,
    put_legend_below,
    put_title,
    use_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["find_envelope", "plot_curves", "plot_penalties"]

Point = tuple[float, float]

STYLES: Final[Sequence[Mapping[str, Any]]] = (
    {"color": BLUE, "linestyle": "-", "marker": "o"},
    {"color": ORANGE, "linestyle": "--", "marker": "s"},
    {"color": INK, "linestyle": "-.", "marker": "^"},
    {"color": GREY, "linestyle": ":", "marker": "D"},
    {"color": BLUE, "linestyle": "--", "marker": "v", "markerfacecolor": "white"},
    {"color": ORANGE, "linestyle": "-", "marker": "P", "markerfacecolor": "white"},
    {"color": INK, "linestyle": ":", "marker": "X", "markerfacecolor": "white"},
    {"color": GREY, "linestyle": "-.", "marker": "p", "markerfacecolor": "white"},
)
"""How curves are told apart, in their order: no two have the same line and marker."""

ARROW, ARROW_STEP = 18.0, 4.0
"""Height of an arrow, and how far apart those of two curves end, in points."""

MOST_MARKERS: Final = 14
"""A curve of more points has a marker on some of them only."""


def plot_curves(
    curves: Mapping[str, Sequence[Point]],
    *,
    x_label: str,
    y_label: str,
    title: str = "",
    logarithmic: bool = False,
    from_zero: bool = False,
    stopped: Mapping[str, Point] | None = None,
    levels: Mapping[str, float] | None = None,
    span: tuple[str, float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw curves that differ in their lines and markers.

    Parameters
    ----------
    curves
        The points of each, by name; those without any are left out.
    x_label, y_label
        What the axes are, with units.
    title
        Of the figure.
    logarithmic
        Whether the vertical axis is.
    from_zero
        Whether the vertical axis begins at 0, so that heights can be compared by sight.
    stopped
        Where a curve was interrupted, by its name: its next point is at this height or above.
    levels
        Heights to compare with, by name: horizontal lines.
    span
        A part of the horizontal axis to shade: its name, where it begins and ends.
    ax
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes
        Where it was drawn.
    """
    with use_style():
        if ax is None:
            (ax,) = make_axes(3.6)
        if logarithmic:
            ax.set_yscale("log")
        for k, (name, points) in enumerate(curves.items()):
            _draw_curve(ax, name, points, (stopped or {}).get(name), k, len(curves))
        if stopped:  # room for arrows
            low, high = ax.get_ylim()
            ax.set_ylim(top=high * (high / low) ** 0.06 if logarithmic else high)
        for k, (name, height) in enumerate((levels or {}).items()):
            dashes = (0, (1, 1)) if k % 2 else (0, (6, 2))
            ax.axhline(height, color=INK, linewidth=0.8, linestyle=dashes, label=name)
        if span is not None:
            name, first, last = span
            ax.axvspan(first, last, color=PALE, linewidth=0, label=name, zorder=0)
        if from_zero:
            ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
        places = {place for points in curves.values() for place, _ in points}
        if places and len(places) <= 12 and all(float(place).is_integer() for place in places):
            ax.set_xticks(sorted(places))
        ax.set_xlabel(x_label)
        ax.set_ylabel(y_label)
        put_title(ax, title)
        put_legend_below(ax, 3)
    return ax


def _draw_curve(
    ax: Axes, name: str, points: Sequence[Point], stopped: Point | None, number: int, count: int
) -> None:
    """Draw one of some curves, its markers where those of the others are not."""
    style = STYLES[number % len(STYLES)]
    if points:
        step = max(1, len(points) // MOST_MARKERS)
        every = (number * step // count, step)
        ax.plot(*zip(*points, strict=True), label=name, markevery=every, **style)
    if stopped is None:
        return
    # An arrow upwards: it takes so long, or longer. Those of several curves fan out.
    look: dict[str, Any] = {**style, "linestyle": "", "markerfacecolor": "white"}
    ax.plot(*stopped, **look)
    ax.annotate(
        "",
        xy=stopped,
        xytext=(ARROW_STEP * (number - (count - 1) / 2), ARROW),
        textcoords="offset points",
        arrowprops={"arrowstyle": "<|-", "color": style["color"], "linewidth": 1.0},
        annotation_clip=False,
    )
    if points:
        ends = zip(points[-1], stopped, strict=True)
        ax.plot(*ends, color=style["color"], linestyle=":", linewidth=0.8)


def find_envelope(choices: Mapping[str, Point], most: float) -> list[tuple[str, float, float]]:
    """Return what is best for which penalty of failure.

    Parameters
    ----------
    choices
        Expected reward and risk of each choice, by name. With a penalty M a choice is worth
        reward - M risk.
    most
        The largest penalty to look at; the least is 0.

    Returns
    -------
    list
        The best choices, with the penalties from which and up to which each is best. A choice that
        is no more than tied at a single penalty is not among them.

    Examples
    --------
    >>> find_envelope({"a1": (5, 0.01), "a2": (6, 0.02), "a3": (10, 0.05)}, 250)
    [('a3', 0.0, 125.0), ('a1', 125.0, 250)]
    """
    found: list[tuple[str, float, float]] = []
    name = max(choices, key=lambda name: (choices[name][0], -choices[name][1]))
    begin = 0.0
    while True:
        reward, risk = choices[name]
        # Only a choice of less risk becomes better when failure costs more.
        crossings = [
            ((reward - other_reward) / (risk - other_risk), other_risk, other)
            for other, (other_reward, other_risk) in choices.items()
            if other_risk < risk
        ]
        end, _, after = min(crossings, default=(most, 0.0, name))
        if end >= most:
            return [*found, (name, begin, most)]
        if end > begin:
            found.append((name, begin, end))
        name, begin = after, end


def plot_penalties(
    choices: Mapping[str, Point],
    most: float,
    *,
    found: Mapping[str, Sequence[float]] | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw what choices are worth when failure is penalised, and which is best for which penalty.

    Parameters
    ----------
    choices
        Expected reward and risk of each choice, by name.
    most
        The largest penalty to show.
    found
        The penalties for which a search found each choice, to mark on its line; some of them if
        they are many.
    title
        Of the figure.
    ax
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes
        Where it was drawn.
    """
    envelope = find_envelope(choices, most)

    def value(name: str, penalty: float) -> float:
        reward, risk = choices[name]
        return reward - penalty * risk

    with use_style():
        if ax is None:
            (ax,) = make_axes(3.4)
        best = [(end, value(name, end)) for name, begin, last in envelope for end in (begin, last)]
        label = "best for its penalty"
        ax.plot(*zip(*best, strict=True), color="#c9d6c9", linewidth=7.0, label=label, zorder=1)
        for k, (name, (reward, risk)) in enumerate(choices.items()):
            style = STYLES[k % len(STYLES)]
            marks = _spread((found or {}).get(name, ()), most)
            places = [0.0, *marks, most]
            label = name if marks or found is None else f"{name}, never found"
            heights = [reward - place * risk for place in places]
            # The ends of the line were not looked for, and have no markers.
            every = list(range(1, len(places) - 1))
            look = style if marks else {**style, "marker": ""}
            ax.plot(places, heights, label=label, markevery=every, **look)
        ax.set_xlim(0.0, most)
        ax.set_xlabel("penalty of failure M (reward)")
        ax.set_ylabel("expected reward - M · risk")
        put_title(ax, title)
        put_legend_below(ax, 4)
        ties = [
            ((begin, value(name, begin)), f"tie at {begin:g}") for name, begin, _ in envelope[1:]
        ]
        place_labels(ax, ties)
    return ax


def _spread(penalties: Sequence[float], most: float) -> list[float]:
    """Return some of many penalties, evenly spread."""
    shown = [penalty for penalty in penalties if 0 <= penalty <= most]
    places = [most * k / (2 * MOST_MARKERS) for k in range(1, 2 * MOST_MARKERS)] if shown else []
    nearest = {min(shown, key=lambda penalty: abs(penalty - place)) for place in places}
    return sorted(nearest)
