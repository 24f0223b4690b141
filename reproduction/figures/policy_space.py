"""Many policies as points of expected reward and probability of failure, and the risk bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from vulcan.bounds.base import RiskBound
from vulcan.plotting.figures import trace_bound
from vulcan.plotting.style import BLUE, GREY, INK, make_axes, put_legend_below, put_title, use_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_policy_space"]

Point = tuple[float, float]

LIGHT_ORANGE: Final = "#ffb84d"
"""Told from blue by its lightness as well, however small the points are."""

GROUPS: Final[Sequence[Mapping[str, Any]]] = (
    {"marker": "o", "s": 3.0, "facecolor": "#bdbdbd", "linewidth": 0},
    {"marker": "o", "s": 9.0, "facecolor": "white", "edgecolor": GREY, "linewidth": 0.5},
    {"marker": "D", "s": 11.0, "facecolor": LIGHT_ORANGE, "edgecolor": INK, "linewidth": 0.3},
    {"marker": "^", "s": 12.0, "facecolor": BLUE, "edgecolor": INK, "linewidth": 0.3},
    {"marker": "v", "s": 12.0, "facecolor": INK, "edgecolor": INK, "linewidth": 0.3},
)
"""How groups of policies are told apart, in their order: by shape, size and lightness."""

MARKS: Final = ("*", "P", "X", "s")


def plot_policy_space(
    groups: Mapping[str, Sequence[Point]],
    bound: RiskBound,
    marked: Mapping[str, Point] | None = None,
    *,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw many policies in the plane of reward and risk, with the bound between them.

    Parameters
    ----------
    groups
        Expected reward and risk of the policies of each group, by name; later groups are drawn over
        earlier ones, and empty ones are left out.
    bound
        The risk bound: what lies below it is acceptable.
    marked
        Policies to mark and name in the legend, such as the best ones.
    title
        Of the figure.
    ax
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes
        Where it was drawn.
    """
    marked = marked or {}
    rewards, risks = _find_spans(
        [*marked.values(), *(point for group in groups.values() for point in group)]
    )
    with use_style():
        if ax is None:
            (ax,) = make_axes(4.6)
        ax.set_xlim(*rewards)
        ax.set_ylim(*risks)
        for k, (name, points) in enumerate(groups.items()):
            if points:
                style = GROUPS[k % len(GROUPS)]
                # Thousands of points would make a heavy file of vectors.
                ax.scatter(*zip(*points, strict=True), label=name, rasterized=True, **style)
        label = f"Δ(x) = {bound}"
        label = label if len(label) <= 40 else "risk bound Δ"
        line = zip(*trace_bound(bound, rewards), strict=True)
        ax.plot(*line, "-", color=INK, label=label, zorder=4)
        # Named in the legend: between thousands of points there is no room for a label.
        for k, (name, (reward, risk)) in enumerate(marked.items()):
            look: dict[str, Any] = {"markersize": 10.0, "markeredgecolor": INK, "zorder": 5}
            look |= {"marker": MARKS[k % len(MARKS)], "markerfacecolor": "white"}
            ax.plot(reward, risk, linestyle="", label=name, **look)
        ax.set_xlabel("expected reward")
        ax.set_ylabel("probability of failure")
        put_title(ax, title)
        put_legend_below(ax, 3)
    return ax


def _find_spans(points: Sequence[Point]) -> tuple[Point, Point]:
    """Return the rewards and risks of all policies, with some room around them."""
    rewards = [reward for reward, _ in points] or [0.0]
    most = max((risk for _, risk in points), default=0.0) or 1e-3
    room = 0.04 * (max(rewards) - min(rewards)) or 0.5
    return (min(rewards) - room, max(rewards) + room), (-0.03 * most, 1.08 * most)
