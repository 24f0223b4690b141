"""Reward against allowed risk, with the price of risk below.

Between points only what is proved is drawn (`vulcan.planning.frontier.enclosure`): the staircase of
what certified policies earn, and the limit that no policy exceeds. The price of risk is the slope
of the envelope that this limit comes from: steps, for constant bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

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
"""What is less than this share of the figure's height or width is no wider than a line."""

MANY_TIMES: Final = 100.0
"""How much larger than usual a price is that would leave nothing to be seen of the others."""

MOST_DECADES: Final = 4
"""Powers of ten that a low axis has room for."""

Curve = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class FrontierCurves:
    """What the figure shows, as points (level or scale, height).

    Attributes
    ----------
    rewards
        Certified rewards at the points, of policies found for the very bound and of others.
    carried
        Those of them whose policy was found for another point.
    earned
        What certified policies earn between the points: the corners of a staircase.
    limit
        What no policy earns more than, between the points as well; NaN where nothing is proved, or
        where there is no policy.
    prices
        The price of risk, as steps: where each begins, and in the end where the last one ends. NaN
        where none is known.
    exact_prices, estimated_prices
        Prices of risk at the points, from the dual, and from differences.
    missing
        Levels or scales without a policy.
    """

    rewards: Curve
    carried: Curve
    earned: Curve
    limit: Curve
    prices: Curve
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

    places, enclosure = [point.at for point in frontier], frontier.enclosure
    ends = (min(places, default=0.0), max(places, default=0.0))
    return FrontierCurves(
        rewards=tuple((p.at, p.reward) for p in frontier if p.reward is not None),
        carried=tuple(
            (p.at, p.reward)
            for p in frontier
            if p.reward is not None and p.carried_from is not None
        ),
        earned=tuple(enclosure.trace_reward(*ends)),
        limit=tuple(enclosure.trace_limit(*ends)),
        prices=tuple(enclosure.trace_price(*ends)),
        exact_prices=prices("dual"),
        estimated_prices=prices("difference"),
        missing=tuple(p.at for p in frontier if p.reward is None),
    )


def plot_frontier(frontier: Frontier, ax: Axes | None = None, price_ax: Axes | None = None) -> Axes:
    """Draw what is earned and what is the limit against the allowed risk, and the price of risk.

    Points are bounds that were planned for. Between them everything that is drawn is proved: what
    is acceptable for some allowed risk is so for every larger one, and no policy exceeds the limit.
    That is bent for multiples of a bound, and drawn with lines too short for the eye to tell.

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
            ax, price_ax = make_axes(4.9, (2.2, 1.0))
        _draw_rewards(ax, curves, "deterministic policy" if frontier.deterministic else "policy")
        put_title(ax, frontier.model)
        lowest = ax
        if price_ax is not None:
            _draw_prices(price_ax, curves)
            lowest = price_ax
        lowest.set_xlabel(_describe_places(frontier))
        put_legend_below(lowest, 2, *([] if lowest is ax else [ax]))
    return ax


def _draw_rewards(ax: Axes, curves: FrontierCurves, kind: str) -> None:
    _draw_gap(ax, curves)
    if curves.limit:
        label = f"limit: no {kind} earns more"
        ax.plot(*zip(*curves.limit, strict=True), "--", color=ORANGE, label=label, zorder=2.4)
    if curves.earned:
        label = "earned by a certified policy"
        ax.plot(*zip(*curves.earned, strict=True), "-", color=BLUE, label=label, linewidth=1.0)
    if curves.rewards:
        label = "bounds that were planned for"
        ax.plot(*zip(*curves.rewards, strict=True), "o", color=BLUE, markersize=3.6, label=label)
    if curves.carried:
        ax.plot(
            *zip(*curves.carried, strict=True),
            "o",
            color=BLUE,
            markersize=3.6,
            markerfacecolor="white",
            label="with the policy of another bound",
        )
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


def _draw_gap(ax: Axes, curves: FrontierCurves) -> None:
    """Fill what lies between the staircase and the limit, if it can be seen."""
    if not curves.limit or not curves.earned:
        return
    places, limits = (np.array(side) for side in zip(*curves.limit, strict=True))
    steps, rewards = (np.array(side) for side in zip(*curves.earned, strict=True))
    # Both sides of each step: `earned` has its foot and its top at the same place.
    grid = np.sort(np.concatenate((places, steps, np.nextafter(steps, -math.inf))))
    inside = grid[(grid >= steps[0]) & (grid <= steps[-1])]
    lows = rewards[np.searchsorted(steps, inside, side="right") - 1]
    highs = np.interp(inside, places, limits)
    height = max(np.nanmax(limits), rewards[-1]) - rewards[0]
    gaps = highs - lows
    wide = (gaps[1:] + gaps[:-1]) / 2 > VISIBLE * height
    width = np.diff(inside)[wide].sum()
    if width > VISIBLE * (steps[-1] - steps[0]):
        look: dict[str, Any] = {"color": ORANGE, "alpha": 0.25, "linewidth": 0}
        ax.fill_between(inside, lows, highs, label="not known", **look)


def _draw_prices(ax: Axes, curves: FrontierCurves) -> None:
    if curves.prices:
        steps: dict[str, Any] = {"drawstyle": "steps-post", "linewidth": 1.0}
        ax.plot(*zip(*curves.prices, strict=True), "-", color=INK, label="price of risk", **steps)
    if curves.exact_prices:
        ax.plot(*zip(*curves.exact_prices, strict=True), "D", color=INK, markersize=2.6)
    if curves.estimated_prices:
        ax.plot(
            *zip(*curves.estimated_prices, strict=True),
            ":D",
            drawstyle="steps-mid",
            color=GREY,
            markersize=3.0,
            markerfacecolor="white",
            label="price, estimated from neighbours",
        )
    shown = (*curves.prices, *curves.exact_prices, *curves.estimated_prices)
    known = [price for _, price in shown if price > 0]
    if known and max(known) > MANY_TIMES * float(np.median(known)):
        # The first risk may be worth thousands of times the rest. Linear below, so that 0 is seen.
        low, high = (math.floor(math.log10(end)) for end in (min(known), max(known)))
        step = -(-(high - low) // MOST_DECADES)
        ax.set_yscale("symlog", linthresh=10.0**low, linscale=0.3)
        ax.set_yticks([0.0, *(10.0**power for power in range(low + step, high + 1, step))])
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("price of risk\n(reward per risk)")


def _describe_places(frontier: Frontier) -> str:
    if frontier.bound is None:
        return "allowed probability of failure"
    return f"scale k of the risk bound k Δ(x), Δ(x) = {frontier.bound}"
