"""Figures of frontiers."""

import math
from dataclasses import replace

import pytest

from tests.helpers.figures import PROBLEM, draw, legend
from vulcan import plotting
from vulcan.planning.frontier import Span, trace_frontier
from vulcan.plotting.frontier import extract_curves


def test_the_curves_of_a_frontier_are_its_points(frontier):
    curves = extract_curves(frontier)
    solved = frontier.points[1:]
    assert curves.rewards == tuple((p.level, p.reward) for p in solved)
    assert curves.upper == tuple((p.level, p.upper_bound) for p in solved)
    assert curves.exact_prices == tuple((p.level, p.price) for p in solved)
    assert curves.missing == (-0.001,)
    assert curves.carried == curves.estimated_prices == ()


def test_a_frontier_is_drawn_in_two_panels(frontier):
    ax = plotting.plot_frontier(frontier)
    top, bottom = ax.get_figure().axes
    assert top is ax
    lines = {line.get_label(): line for line in top.lines}
    rewards = lines["certified policy"].get_xydata()
    assert rewards.tolist() == [[p.level, p.reward] for p in frontier.points[1:]]
    assert lines["upper bound"].get_linestyle() == "--"
    assert lines["no policy"].get_xdata().tolist() == [-0.001]
    assert legend(ax) == ["certified policy", "upper bound", "no policy"]
    (prices,) = bottom.lines
    assert prices.get_ydata().tolist() == [p.price for p in frontier.points[1:]]
    assert ax.get_ylabel() == "expected reward"
    assert bottom.get_xlabel() == "allowed probability of failure"
    assert bottom.get_ylabel().startswith("price of risk")
    assert ax.get_title(loc="left") == "Bandit(horizon=4)"
    assert draw(ax).std() > 1


def test_a_gap_is_a_band_and_carried_policies_are_hollow(frontier):
    first, *others = frontier.points[1:]
    worse = [
        replace(p, policy=first.policy, certificate=first.certificate, carried_from=first.level)
        for p in others
    ]
    wide = replace(frontier, points=(first, *worse))
    ax = plotting.plot_frontier(wide)
    assert legend(ax) == ["gap", "certified policy", "policy of a smaller bound", "upper bound"]
    carried = next(line for line in ax.lines if line.get_label() == "policy of a smaller bound")
    assert carried.get_markerfacecolor() == "white"
    assert len(carried.get_xdata()) == 4
    (band,) = ax.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.max() == pytest.approx(others[-1].upper_bound)
    assert heights.min() == pytest.approx(first.reward)


def test_estimated_prices_look_like_estimates(frontier):
    estimated = [replace(p, price_from="difference") for p in frontier.points[1:]]
    ax = plotting.plot_frontier(replace(frontier, points=tuple(estimated)))
    bottom = ax.get_figure().axes[1]
    (line,) = bottom.lines
    assert (line.get_linestyle(), line.get_markerfacecolor()) == (":", "white")
    assert legend(bottom) == ["estimated from neighbours"]


def test_infinite_prices_and_bounds_are_left_out(frontier):
    points = [replace(p, price=math.inf, upper_bound=None) for p in frontier.points]
    ax = plotting.plot_frontier(replace(frontier, points=tuple(points)))
    assert ax.get_figure().axes[1].lines[:] == []
    assert legend(ax) == ["certified policy", "no policy"]
    draw(ax)


def test_scales_are_named_on_their_axis():
    scaled = trace_frontier(PROBLEM, scales=Span(), points=3)
    ax = plotting.plot_frontier(scaled)
    label = ax.get_figure().axes[1].get_xlabel()
    assert label == "scale k of the risk bound k Δ(x), Δ(x) = 0.002 * x"
    assert ax.lines[0].get_xdata().tolist() == [p.scale for p in scaled]


def test_a_frontier_without_any_policy(frontier):
    ax = plotting.plot_frontier(replace(frontier, points=frontier.points[:1]))
    assert legend(ax) == ["no policy"]
    draw(ax)
