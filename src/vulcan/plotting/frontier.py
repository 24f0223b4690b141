"""Reward against allowed risk, with the price of risk below."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vulcan.planning.frontier import Frontier
from vulcan.plotting.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    make_axes,
    put_legend_below,
    put_title,
    use_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FrontierCurves", "extract_curves", "plot_frontier"]

VISIBLE: Final = 0.005
"""A gap of less than this share of the figure's height is no wider than a line."""

Curve = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class FrontierCurves:
    """What the figure shows, as points (level or scale, height).

    Attributes
    ----------
    rewards
        Certified rewards, of policies found for the very bound and of carried ones.
    carried
        Those of them that were carried forward.
    upper
        Upper bounds.
    exact_prices, estimated_prices
        Prices of risk from the dual, and from differences.
    missing
        Levels or scales without a policy.
    """

    rewards: Curve
    carried: Curve
    upper: Curve
    exact_prices: Curve
    estimated_prices: Curve
    missing: tuple[float, ...]


def extract_curves(frontier: Frontier) -> FrontierCurves:
    """Return what a figure of a frontier shows."""

    def prices(source: str) -> Curve:
        return tuple(
            (point.at, point.price)
            for point in frontier
            if point.price_from == source and point.price is not None and point.price < math.inf
        )

    return FrontierCurves(
        rewards=tuple((p.at, p.reward) for p in frontier if p.reward is not None),
        carried=tuple(
            (p.at, p.reward)
            for p in frontier
            if p.reward is not None and p.carried_from is not None
        ),
        upper=tuple(
            (p.at, p.upper_bound)
            for p in frontier
            if p.upper_bound is not None and math.isfinite(p.upper_bound)
        ),
        exact_prices=prices("dual"),
        estimated_prices=prices("difference"),
        missing=tuple(p.at for p in frontier if p.reward is None),
    )


def plot_frontier(frontier: Frontier, ax: Axes | None = None, price_ax: Axes | None = None) -> Axes:
    """Draw certified rewards and upper bounds against the allowed risk, and the price of risk.

    Points are what was computed. The lines between them only guide the eye.

    Parameters
    ----------
    frontier
        What to draw.
    ax
        Where to draw rewards; by default in a new figure, with prices below.
    price_ax
        Where to draw prices; with an `ax` and without this they are left out.

    Returns
    -------
    Axes
        Those of the rewards.
    """
    curves = extract_curves(frontier)
    with use_style():
        if ax is None:
            ax, price_ax = make_axes(4.6, (2.2, 1.0))
        _draw_rewards(ax, curves)
        put_title(ax, frontier.model)
        lowest = ax
        if price_ax is not None:
            _draw_prices(price_ax, curves)
            lowest = price_ax
        lowest.set_xlabel(_describe_places(frontier))
        put_legend_below(ax, 3) if price_ax is None else ax.legend(loc="lower right")
    return ax


def _draw_rewards(ax: Axes, curves: FrontierCurves) -> None:
    upper = dict(curves.upper)
    band = [(x, y, upper[x]) for x, y in curves.rewards if x in upper]
    heights = [y for _, y in (*curves.rewards, *curves.upper)]
    height = max(heights, default=0.0) - min(heights, default=0.0)
    if any(high - low > VISIBLE * height for _, low, high in band):
        places, lows, highs = zip(*band, strict=True)
        ax.fill_between(places, lows, highs, color=ORANGE, alpha=0.25, linewidth=0, label="gap")
    if curves.rewards:
        ax.plot(*zip(*curves.rewards, strict=True), "-o", color=BLUE, label="certified policy")
    if curves.carried:
        ax.plot(
            *zip(*curves.carried, strict=True),
            "o",
            color=BLUE,
            markerfacecolor="white",
            label="policy of a smaller bound",
        )
    if curves.upper:
        # Over the rewards: where both are the same, both are seen.
        ax.plot(*zip(*curves.upper, strict=True), "--", color=ORANGE, label="upper bound")
    if curves.missing:
        # At the lower edge, whatever the rewards are.
        ax.plot(
            curves.missing,
            [0.04] * len(curves.missing),
            "x",
            color=INK,
            transform=ax.get_xaxis_transform(),
            label="no policy",
        )
    ax.set_ylabel("expected reward")


def _draw_prices(ax: Axes, curves: FrontierCurves) -> None:
    if curves.exact_prices:
        ax.plot(
            *zip(*curves.exact_prices, strict=True), "-D", color=INK, markersize=3.0, clip_on=False
        )
    if curves.estimated_prices:
        ax.plot(
            *zip(*curves.estimated_prices, strict=True),
            ":D",
            color=GREY,
            markersize=3.0,
            markerfacecolor="white",
            label="estimated from neighbours",
        )
        ax.legend(loc="upper right")
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("price of risk\n(reward per risk)")


def _describe_places(frontier: Frontier) -> str:
    if frontier.bound is None:
        return "allowed probability of failure"
    return f"scale k of the risk bound k Δ(x), Δ(x) = {frontier.bound}"
