"""Figures of frontiers, comparisons and simulations.

**Frontiers**: reward against allowed risk, with the price of risk below. Between points only what
is proved is drawn (`vulcan.planning.frontier`): the staircase of what certified policies earn, and
the limit that no policy exceeds.

**Comparisons**: the reward and risk of each solver's policy, and what is acceptable. The figure of
the paper in which policies are points of lifetime reward and probability of failure, and the
acceptable ones lie below the line Δ, with the numbers of a comparison.

**Simulations**: a histogram of the rewards of episodes, and how many survive how long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from vulcan.bounds.base import RiskBound
from vulcan.errors import BoundError
from vulcan.execution.simulation import Simulation
from vulcan.model.interface import describe_model
from vulcan.planning.compare import Comparison, ComparisonRow
from vulcan.planning.frontier import Frontier
from vulcan.plotting.style import (
    BLUE,
    COLORS,
    GREY,
    INK,
    ORANGE,
    PALE,
    make_axes,
    make_figure,
    place_labels,
    put_legend_below,
    put_title,
    use_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Span = tuple[float, float]

MANY_TIMES: Final = 100.0  # prices this much larger would leave nothing to be seen of the others


def plot_frontier(
    frontier: Frontier | Sequence[Frontier],
    ax: Axes | None = None,
    price_ax: Axes | None = None,
) -> Axes:
    """Draw reward and upper bound against the allowed risk, and the price of risk.

    Points are bounds that were planned for. Between them everything that is drawn is proved: what
    is acceptable for some allowed risk is so for every larger one, and no policy exceeds the limit.

    Parameters
    ----------
    frontier
        What to draw. Several frontiers, under different constraints, become curves without prices.
    ax
        Where to draw rewards; by default in a new figure, with prices below.
    price_ax
        Where to draw prices; with an `ax` and without this they are left out.

    Returns
    -------
    Axes
        Those of the rewards.
    """
    with use_style():
        if not isinstance(frontier, Frontier):
            return _draw_curves(frontier, make_axes(3.6, (1.0,))[0] if ax is None else ax)
        if ax is None:
            ax, price_ax = make_axes(4.9, (2.2, 1.0))
        _draw_rewards(ax, frontier)
        put_title(ax, frontier.model)
        lowest = ax if price_ax is None else price_ax
        if price_ax is not None:
            _draw_prices(price_ax, frontier)
        lowest.set_xlabel(_name_places(frontier))
        put_legend_below(lowest, 2, *([] if lowest is ax else [ax]))
    return ax


def _name_places(frontier: Frontier) -> str:
    if frontier.bound is None:
        return "allowed probability of failure"
    return f"scale k of the risk bound k Δ(x), Δ(x) = {frontier.bound}"


def _draw_curves(frontiers: Sequence[Frontier], ax: Axes) -> Axes:
    """Draw what is earned and the limit of frontiers that differ in their constraints."""
    common = set.intersection(*({str(c) for c in one.constraints} for one in frontiers))
    for number, one in enumerate(frontiers):
        own = [str(c) for c in one.constraints if str(c) not in common]
        places, color = [point.at for point in one], COLORS[number % len(COLORS)]
        ends = (min(places, default=0.0), max(places, default=0.0))
        earned = one.trace_reward(*ends) or [(math.nan, math.nan)]
        _draw(ax, earned, "-", color=color, label=", ".join(own) or "no other limit")
        _draw(ax, one.trace_limit(*ends), "--", color=color, linewidth=0.9)
    _draw(ax, [(math.nan, math.nan)], "--", color=INK, linewidth=0.9, label="no policy earns more")
    put_title(ax, frontiers[0].model)
    ax.set_ylabel("expected reward")
    ax.set_xlabel(_name_places(frontiers[0]))
    put_legend_below(ax, 2)
    return ax


def _draw(ax: Axes, points: Sequence[Span], form: str, **look: Any) -> None:
    """Draw points, if there are any."""
    if points:
        ax.plot(*zip(*points, strict=True), form, **look)


def _draw_rewards(ax: Axes, frontier: Frontier) -> None:
    places = [point.at for point in frontier]
    ends = (min(places, default=0.0), max(places, default=0.0))
    kind = "deterministic policy" if frontier.deterministic else "policy"
    limit = frontier.trace_limit(*ends)
    _draw(ax, limit, "--", color=ORANGE, label=f"limit: no {kind} earns more", zorder=2.4)
    earned = frontier.trace_reward(*ends)
    _draw(ax, earned, "-", color=BLUE, label="earned by a certified policy", linewidth=1.0)
    found = [(p.at, p.reward, p.carried_from) for p in frontier if p.reward is not None]
    look: dict[str, Any] = {"color": BLUE, "markersize": 3.6}
    points = [(at, reward) for at, reward, _ in found]
    _draw(ax, points, "o", label="bounds that were planned for", **look)
    carried = [(at, reward) for at, reward, source in found if source is not None]
    name = "with the policy of another bound"
    _draw(ax, carried, "o", label=name, markerfacecolor="white", **look)
    # At the lower edge, whatever the rewards are.
    missing = [(p.at, 0.04) for p in frontier if p.reward is None]
    _draw(ax, missing, "x", color=INK, transform=ax.get_xaxis_transform(), label="no policy")
    ax.set_ylabel("expected reward")


def _draw_prices(ax: Axes, frontier: Frontier) -> None:
    points = [(p.at, p.price) for p in frontier if p.price is not None and p.price < math.inf]
    _draw(ax, points, "D", color=INK, markersize=2.6, label="price of risk")
    known = [price for _, price in points if price > 0]
    if known and max(known) > MANY_TIMES * float(np.median(known)):
        # The first risk may be worth thousands of times the rest. Linear below, so that 0 is seen.
        low, high = (math.floor(math.log10(end)) for end in (min(known), max(known)))
        ax.set_yscale("symlog", linthresh=10.0**low, linscale=0.3)
        ax.set_yticks([0.0, *(10.0**power for power in range(high, low, -(1 + (high - low) // 4)))])
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("price of risk\n(reward per risk)")


CLOSENESS: Final = 0.004  # policies within this share of the figure are one mark

KINDS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "safe, deterministic": ("o", {"markersize": 6.0, "color": BLUE}),
    # Larger and hollow: it is seen around a deterministic policy that is almost as good.
    "safe, randomised": ("D", {"markersize": 8.5, "color": BLUE, "fillstyle": "none"}),
    "incomplete": ("s", {"markersize": 6.0, "color": GREY, "fillstyle": "none"}),
    "not acceptable": ("X", {"markersize": 6.5, "color": ORANGE}),
}
"""Markers of kinds of policies, and their looks."""


def plot_comparison(comparison: Comparison, ax: Axes | None = None) -> Axes:
    """Draw the policies of a comparison in the plane of reward and risk.

    Parameters
    ----------
    comparison
        What to draw. Solvers without a policy are left out.
    ax
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes
        Where it was drawn.
    """
    found = [row.certificate for row in comparison if row.certificate is not None]
    uppers = _find_upper_bounds(comparison)
    rewards = _widen([*(float(one.reward) for one in found), *uppers.values()], 0.15)
    allowed = [float(one.allowed) for one in found if one.allowed > 0]
    low, high = _widen([*(float(one.risk) for one in found), *allowed], 0.4)
    risks = (max(0.0, low), high)
    with use_style():
        if ax is None:
            (ax,) = make_axes(4.4)
        ax.set_xlim(*rewards)
        ax.set_ylim(*risks)
        bound = comparison.problem.risk_bound
        places, most = zip(*trace_bound(bound, rewards), strict=True)
        accepted = [risk > 0 for risk in most]
        look: dict[str, Any] = {"color": PALE, "linewidth": 0, "label": "acceptable"}
        ax.fill_between(places, risks[0], most, accepted, **look)
        text = f"Δ(x) = {bound}"
        ax.plot(places, most, "-", color=INK, label=text if len(text) <= 40 else "risk bound Δ")
        for name, upper in uppers.items():
            dashes = "--" if name.endswith("deterministic policies") else ":"
            ax.axvline(upper, linestyle=dashes, color=ORANGE, label=name)
        marks = _group(comparison.rows, rewards, risks)
        for kind, (marker, look) in KINDS.items():
            points = [place for (found, *_), (place, _) in marks.items() if found == kind]
            _draw(ax, points, marker, label=kind, zorder=5, clip_on=False, **look)
        ax.set_xlabel("expected reward")
        ax.set_ylabel("probability of failure")
        put_title(ax, describe_model(comparison.problem.model))
        put_legend_below(ax, 3)
        labels = [(place, ", ".join(names)) for place, names in marks.values()]
        place_labels(ax, [(place, fill(x, 34, break_on_hyphens=False)) for place, x in labels])
    return ax


def _widen(values: Sequence[float], share: float) -> Span:
    """Return the least and the largest value, with some room around them."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    room = share * (high - low) or 0.1 * abs(high) or 0.1
    return low - room, high + room


def _group(
    rows: Sequence[ComparisonRow], rewards: Span, risks: Span
) -> dict[tuple[str, int, int], tuple[Span, list[str]]]:
    """Return places and names of policies; those of a kind that look alike share a place."""
    width, height = (CLOSENESS * (high - low) for low, high in (rewards, risks))
    marks: dict[tuple[str, int, int], tuple[Span, list[str]]] = {}
    for row in rows:
        if row.certificate is None:
            continue
        kind = "safe, deterministic" if row.deterministic else "safe, randomised"
        if not row.certificate.passes:
            kind = "not acceptable"
        elif not row.complete:
            kind = "incomplete"
        place = float(row.certificate.reward), float(row.certificate.risk)
        key = (kind, round(place[0] / width), round(place[1] / height))
        marks.setdefault(key, (place, []))[1].append(row.name)
    return marks


def trace_bound(bound: RiskBound, rewards: Span) -> list[Span]:
    """Return points of the bound over a range of rewards; NaN where it has no value."""
    points = []
    for reward in np.linspace(*rewards, 400).tolist():
        try:
            risk = bound(reward)
        except BoundError:
            risk = math.nan
        points.append((reward, risk if math.isfinite(risk) else math.nan))
    return points


def _find_upper_bounds(comparison: Comparison) -> dict[str, float]:
    """Return the upper bounds with their names; one where those of all policies are the same."""
    bounds = (comparison.upper_bound, comparison.randomised_upper_bound)
    upper, of_all = (x if x is not None and math.isfinite(x) else None for x in bounds)
    if upper is None or of_all is None:
        only = upper if of_all is None else of_all
        return {} if only is None else {"upper bound": only}
    if math.isclose(of_all, upper, rel_tol=1e-3):
        return {"upper bound": of_all}
    return {"upper bound, deterministic policies": upper, "upper bound, all policies": of_all}


MOST_BARS: Final = 48


def plot_simulation(
    simulation: Simulation, ax: Axes | None = None, survival_ax: Axes | None = None
) -> Axes:
    """Draw the rewards of simulated episodes, and how many survive how long.

    Parameters
    ----------
    simulation
        What to draw.
    ax
        Where to draw the histogram of rewards; by default in a new figure, with survival below.
    survival_ax
        Where to draw survival; with an `ax` and without this it is left out.

    Returns
    -------
    Axes
        Those of the histogram.
    """
    with use_style():
        if ax is None:
            ax, survival_ax = make_figure(5.4).subplots(2, height_ratios=[1.6, 1.0])
        counts, edges = np.histogram(simulation.rewards, MOST_BARS)
        shares, reward = counts / simulation.episodes, simulation.reward
        ax.stairs(shares, edges, fill=True, color=BLUE, alpha=0.6, label="episodes")
        ax.axvline(reward.value, color=INK, linestyle="-", label=f"mean, {reward.value:.4f}")
        ax.axvline(reward.exact, color=ORANGE, linestyle="--", label=f"exactly, {reward.exact:.4f}")
        ax.set_xlabel("reward of an episode")
        ax.set_ylabel("share of episodes")
        put_legend_below(ax, 3)
        put_title(ax, simulation.model, f"{simulation.episodes:,} episodes, seed {simulation.seed}")
        if survival_ax is not None:
            _draw_survival(survival_ax, simulation)
    return ax


def _draw_survival(ax: Axes, simulation: Simulation) -> None:
    from matplotlib.ticker import MaxNLocator

    risk = simulation.risk
    steps = range(len(simulation.survival))
    form = "-o" if len(steps) <= MOST_BARS else "-"
    ax.plot(steps, simulation.survival, form, color=BLUE, label="episodes")
    ax.plot(steps, simulation.exact_survival, "--", color=ORANGE, label="exactly")
    ax.errorbar(
        [steps[-1]],
        [1 - risk.value],
        yerr=[[risk.high - risk.value], [risk.value - risk.low]],
        color=INK,
        capsize=3.0,
        linestyle="none",
        label=f"{100 * simulation.confidence:g} % interval",
    )
    ax.set_xlabel("decisions")
    ax.set_ylabel("not failed")
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    put_legend_below(ax, 3)
