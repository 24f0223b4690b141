"""Risk against reward over all outcomes of a policy, with the risk bound and the policy itself.

A journey is a point: what it earns, and the risk that it takes on its way, 1 - the product of its
survivals. The bound speaks of no journey but of the policy: of its expected reward and of its
probability of failure. That is the mean of the journeys' risks, each weighed as if nothing could
collide: with p the probabilities and S the survivals, Σ (p / S) (1 - S), unless some move is sure
to fail. So single journeys may lie above the curve; how probable they are is what this figure is
for.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from vulcan.bounds.base import RiskBound
from vulcan.domains.exploration.drawing.journeys import Journeys, Numbers, add_up
from vulcan.domains.exploration.drawing.terrain import draw_bar, get_colours
from vulcan.errors import BoundError
from vulcan.model.interface import describe_model
from vulcan.plotting.comparison import Frame, trace_bound
from vulcan.plotting.labels import place_labels
from vulcan.plotting.style import (
    BLUE,
    INK,
    ORANGE,
    make_axes,
    put_legend_below,
    put_title,
    use_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["merge_points", "plot_risk_reward"]

MOST_POINTS: Final = 400
"""Points of which each is still seen; if there are more, they are counted in bins."""

COLUMNS, ROWS = 70, 45
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
    frame = _find_frame(rewards, risks, journeys, bound)
    with use_style():
        if ax is None:
            (ax,) = make_axes(4.2)
        ax.set_xlim(*frame.rewards)
        ax.set_ylim(*frame.risks)
        if len(share) <= MOST_POINTS:
            drawn = _draw_points(ax, rewards, risks, share)
        else:
            drawn = _draw_bins(ax, rewards, risks, share, frame)
        curve: list[tuple[float, float]] = []
        if bound is not None:
            curve = trace_bound(bound, frame)
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
        place_labels(ax, [(policy, text)], [curve, *drawn], INK)
    return ax


def _find_frame(
    rewards: Numbers, risks: Numbers, journeys: Journeys, bound: RiskBound | None
) -> Frame:
    """Return a frame around all outcomes, the policy, and what it is allowed."""
    low, high = min(rewards.min(), journeys.reward), max(rewards.max(), journeys.reward)
    room = 0.04 * (high - low) or 0.5
    top = max(float(risks.max()), journeys.risk)
    if bound is not None:
        top = float(np.nanmax([top, _allow(bound, float(high))]))
    top = top if top > 0 else 1e-3
    return Frame((float(low - room), float(high + room)), (-0.03 * top, 1.12 * top))


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


def _draw_points(
    ax: Axes, rewards: Numbers, risks: Numbers, share: Numbers
) -> list[list[tuple[float, float]]]:
    """Draw all outcomes, and return what labels have to keep off."""
    sizes = np.maximum(6.0, LARGEST * share / share.max())
    style: dict[str, Any] = {"facecolor": BLUE, "alpha": 0.45, "edgecolor": INK, "linewidth": 0.5}
    ax.scatter(rewards, risks, sizes, label="outcomes, area by probability", zorder=4, **style)
    return [[place] for place in zip(rewards.tolist(), risks.tolist(), strict=True)]


def _draw_bins(
    ax: Axes, rewards: Numbers, risks: Numbers, share: Numbers, frame: Frame
) -> list[list[tuple[float, float]]]:
    """Draw how probable the outcomes of each bin are, and return what labels have to keep off."""
    from matplotlib.colors import LogNorm

    edges = [
        np.linspace(*frame.rewards, COLUMNS + 1),
        np.linspace(*frame.risks, ROWS + 1),
    ]
    table, _, _ = np.histogram2d(rewards, risks, edges, weights=share)
    shown = np.ma.masked_equal(table.T, 0)
    norm = LogNorm(max(float(shown.min()), 1e-4 * float(shown.max())), float(shown.max()))
    mesh = ax.pcolormesh(*edges, shown, cmap=get_colours(pale=False), norm=norm, zorder=2)
    draw_bar(ax, mesh, "probability of the outcomes in a bin")
    middles = [(side[1:] + side[:-1]) / 2 for side in edges]
    filled = zip(*np.nonzero(table), strict=True)
    return [[(float(middles[0][x]), float(middles[1][y]))] for x, y in filled]
