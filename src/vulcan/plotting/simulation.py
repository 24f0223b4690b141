"""Simulated episodes: a histogram of their rewards, and how many survive how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vulcan.execution.estimates import Simulation
from vulcan.plotting.style import (
    BLUE,
    INK,
    ORANGE,
    make_figure,
    put_legend_below,
    put_title,
    use_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["EpisodeCurves", "extract_episodes", "plot_simulation"]

MOST_BARS: Final = 48


@dataclass(frozen=True)
class EpisodeCurves:
    """What the figure shows.

    Attributes
    ----------
    edges, shares
        The bars of the histogram: where they begin and end, and the share of episodes in each.
    survival, exact_survival
        Share that has not failed after 0, 1, ... decisions.
    """

    edges: tuple[float, ...]
    shares: tuple[float, ...]
    survival: tuple[float, ...]
    exact_survival: tuple[float, ...]


def extract_episodes(simulation: Simulation) -> EpisodeCurves:
    """Return what a figure of a simulation shows."""
    edges, counts = simulation.coarsen(MOST_BARS)
    if simulation.least == simulation.most:
        # All episodes earn the same: a bar around that, as wide as its bin.
        half = (edges[-1] - edges[0]) / 2
        edges = (simulation.least - half, simulation.least + half)
    return EpisodeCurves(
        edges=edges,
        shares=tuple(count / simulation.episodes for count in counts),
        survival=simulation.survival,
        exact_survival=simulation.exact_survival,
    )


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
    curves = extract_episodes(simulation)
    with use_style():
        if ax is None:
            ax, survival_ax = make_figure(5.4).subplots(2, height_ratios=[1.6, 1.0])
        _draw_rewards(ax, curves, simulation)
        put_title(ax, simulation.model, f"{simulation.episodes:,} episodes, seed {simulation.seed}")
        if survival_ax is not None:
            _draw_survival(survival_ax, curves, simulation)
    return ax


def _draw_rewards(ax: Axes, curves: EpisodeCurves, simulation: Simulation) -> None:
    ax.stairs(curves.shares, curves.edges, fill=True, color=BLUE, alpha=0.6, label="episodes")
    reward = simulation.reward
    ax.axvline(reward.value, color=INK, linestyle="-", label=f"mean, {reward.value:.4f}")
    ax.axvline(reward.exact, color=ORANGE, linestyle="--", label=f"exactly, {reward.exact:.4f}")
    ax.set_xlabel("reward of an episode")
    ax.set_ylabel("share of episodes")
    put_legend_below(ax, 3)


def _draw_survival(ax: Axes, curves: EpisodeCurves, simulation: Simulation) -> None:
    from matplotlib.ticker import MaxNLocator

    risk = simulation.risk
    steps = range(len(curves.survival))
    few = len(curves.survival) <= MOST_BARS
    ax.plot(steps, curves.survival, "-o" if few else "-", color=BLUE, label="episodes")
    ax.plot(steps, curves.exact_survival, "--", color=ORANGE, label="exactly")
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
