"""Figures of frontiers."""

import math
from dataclasses import replace

import pytest

from tests.helpers.figures import PROBLEM, draw, find_clashes, legend
from vulcan import LinearProgram, plotting
from vulcan.domains import ThreeActions
from vulcan.planning.frontier import Span, trace_frontier
from vulcan.plotting.frontier import extract_curves


def test_the_curves_of_a_frontier_are_its_points(frontier):
    curves = extract_curves(frontier)
    solved = frontier.points[1:]
    assert curves.rewards == tuple((p.level, p.reward) for p in solved)
    limit = dict(curves.limit)
    assert [limit[p.level] for p in solved] == [p.upper_bound for p in solved]
    assert curves.exact_prices == tuple((p.level, p.price) for p in solved)
    assert curves.missing == (-0.001,)
    assert curves.carried == curves.estimated_prices == ()


def test_a_frontier_is_drawn_in_two_panels(frontier):
    ax = plotting.plot_frontier(frontier)
    top, bottom = ax.get_figure().axes
    assert top is ax
    lines = {line.get_label(): line for line in top.lines}
    rewards = lines["bounds that were planned for"].get_xydata()
    assert rewards.tolist() == [[p.level, p.reward] for p in frontier.points[1:]]
    assert lines["limit: no deterministic policy earns more"].get_linestyle() == "--"
    assert lines["no policy"].get_xdata().tolist() == [-0.001]
    assert set(legend(bottom)) == {
        "not known",
        "limit: no deterministic policy earns more",
        "earned by a certified policy",
        "bounds that were planned for",
        "no policy",
        "price of risk",
    }
    steps, prices = bottom.lines
    assert steps.get_drawstyle() == "steps-post"
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
    name = "with the policy of another bound"
    carried = next(line for line in ax.lines if line.get_label() == name)
    assert carried.get_markerfacecolor() == "white"
    assert len(carried.get_xdata()) == 4
    (band,) = ax.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.max() == pytest.approx(others[-1].upper_bound)
    assert heights.min() == pytest.approx(first.reward)


def test_estimated_prices_look_like_estimates(frontier):
    estimated = [replace(p, price_from="difference") for p in frontier.points[1:]]
    ax = plotting.plot_frontier(replace(frontier, points=tuple(estimated), lines=()))
    bottom = ax.get_figure().axes[1]
    (line,) = bottom.lines
    assert (line.get_linestyle(), line.get_markerfacecolor()) == (":", "white")
    assert line.get_drawstyle() == "steps-mid"
    assert "price, estimated from neighbours" in legend(bottom)


def test_infinite_prices_and_bounds_are_left_out(frontier):
    points = [replace(p, price=math.inf, upper_bound=None) for p in frontier.points]
    ax = plotting.plot_frontier(replace(frontier, points=tuple(points), lines=()))
    bottom = ax.get_figure().axes[1]
    assert bottom.lines[:] == []
    planned = ["earned by a certified policy", "bounds that were planned for", "no policy"]
    assert legend(bottom) == planned
    draw(ax)


def test_scales_are_named_on_their_axis():
    scaled = trace_frontier(PROBLEM, scales=Span(), points=3)
    ax = plotting.plot_frontier(scaled)
    label = ax.get_figure().axes[1].get_xlabel()
    assert label == "scale k of the risk bound k Δ(x), Δ(x) = 0.002 * x"
    points = next(line for line in ax.lines if line.get_label().startswith("bounds"))
    assert points.get_xdata().tolist() == [p.scale for p in scaled]


def test_a_frontier_without_any_policy(frontier):
    ax = plotting.plot_frontier(replace(frontier, points=frontier.points[:1], lines=()))
    assert legend(ax.get_figure().axes[1]) == ["no policy"]
    draw(ax)


def test_what_can_not_be_seen_is_not_in_the_legend():
    """Three policies, and points just below the steps between them: nothing is left open."""
    ax = plotting.plot_frontier(trace_frontier(ThreeActions()))
    assert "not known" not in legend(ax.get_figure().axes[1])
    coarse = plotting.plot_frontier(trace_frontier(ThreeActions(), levels=[0.01, 0.05]))
    assert "not known" in legend(coarse.get_figure().axes[1])


def test_prices_fall_to_0_where_the_bound_no_longer_binds():
    scaled = extract_curves(trace_frontier(PROBLEM, scales=[0.5, 1, 3]))
    assert scaled.prices[-1] == (3, 0.0)
    places = [place for place, _ in scaled.prices]
    assert places == sorted(places)
    constant = extract_curves(trace_frontier(PROBLEM, levels=[0.0, 0.01]))
    prices = [price for _, price in constant.prices]
    assert prices == sorted(prices, reverse=True)
    assert len(prices) < 30  # steps, and nothing between them


def test_the_limit_says_of_which_policies_it_speaks():
    """Between two policies a coin earns more than any deterministic policy."""
    mixed = trace_frontier(ThreeActions(), solver=LinearProgram(), levels=[0.02, 0.03])
    ax = plotting.plot_frontier(mixed)
    assert "limit: no policy earns more" in legend(ax.get_figure().axes[1])
    assert mixed.points[1].reward == pytest.approx(7.5)
    plain = trace_frontier(ThreeActions(), levels=[0.02, 0.03])
    assert plain.points[1].upper_bound == pytest.approx(6.0)
    assert (plain.deterministic, mixed.deterministic) == (True, False)


def test_prices_of_many_sizes_are_all_seen(frontier):
    assert plotting.plot_frontier(frontier).get_figure().axes[1].get_yscale() == "linear"
    huge = [replace(p, price=1e7 if k == 1 else p.price) for k, p in enumerate(frontier)]
    bottom = plotting.plot_frontier(replace(frontier, points=tuple(huge))).get_figure().axes[1]
    assert bottom.get_yscale() == "symlog"
    assert bottom.get_ylim()[0] == 0
    assert find_clashes(bottom) == []
