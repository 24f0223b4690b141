"""Figures of frontiers, comparisons and simulations, and what all figures share."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import pytest
from matplotlib.figure import Figure

import vulcan
from tests.helpers.figures import PROBLEM, draw, legend
from vulcan import Linear, Pareto, Problem, plotting
from vulcan.baselines import LinearProgram, Penalty
from vulcan.domains import Bandit, ThreeActions
from vulcan.errors import OptionError
from vulcan.planning.compare import Comparison, ComparisonRow, compare
from vulcan.planning.frontier import trace_frontier
from vulcan.plotting.figures import trace_bound
from vulcan.plotting.style import LONGEST_TITLE


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
        "limit: no deterministic policy earns more",
        "earned by a certified policy",
        "bounds that were planned for",
        "no policy",
        "price of risk",
    }
    (prices,) = bottom.lines
    assert prices.get_ydata().tolist() == [p.price for p in frontier.points[1:]]
    assert ax.get_ylabel() == "expected reward"
    assert bottom.get_xlabel() == "allowed probability of failure"
    assert bottom.get_ylabel().startswith("price of risk")
    assert ax.get_title(loc="left") == "Bandit(horizon=4)"
    assert draw(ax).std() > 1


def test_carried_policies_are_hollow(frontier):
    first, *others = frontier.points[1:]
    worse = [
        replace(p, best=replace(p.best, certificate=first.certificate), carried_from=first.level)
        for p in others
    ]
    wide = replace(frontier, points=(first, *worse))
    ax = plotting.plot_frontier(wide)
    name = "with the policy of another bound"
    carried = next(line for line in ax.lines if line.get_label() == name)
    assert carried.get_markerfacecolor() == "white"
    assert len(carried.get_xdata()) == 4


def test_the_limit_says_of_which_policies_it_speaks():
    """Between two policies a coin earns more than any deterministic policy."""
    mixed = trace_frontier(ThreeActions(), solver=LinearProgram(), levels=[0.02, 0.03])
    ax = plotting.plot_frontier(mixed)
    assert "limit: no policy earns more" in legend(ax.get_figure().axes[1])
    assert mixed.points[1].reward == pytest.approx(7.5)
    plain = trace_frontier(ThreeActions(), levels=[0.02, 0.03])
    assert plain.points[1].upper_bound == pytest.approx(6.0)
    assert (plain.deterministic, mixed.deterministic) == (True, False)


def test_the_policy_space(comparison):
    ax = plotting.plot_comparison(comparison)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("expected reward", "probability of failure")
    labels = legend(ax)
    assert labels == [
        *("acceptable", "Δ(x) = 0.002 * x"),
        *("upper bound, deterministic policies", "upper bound, all policies"),
        *("safe, deterministic", "safe, randomised", "not acceptable"),
    ]
    lines = {line.get_label(): line for line in ax.lines}
    bound = lines["Δ(x) = 0.002 * x"].get_xydata()
    assert bound[:, 1] == pytest.approx(0.002 * bound[:, 0])
    assert lines["upper bound, all policies"].get_xdata()[0] == comparison.randomised_upper_bound
    uct = next(row for row in comparison if row.name == "UCT")
    assert lines["not acceptable"].get_xydata().tolist() == [[uct.reward, uct.risk]]
    markers = {lines[label].get_marker() for label in labels[4:]}
    assert len(markers) == 3
    low, high = ax.get_xlim()
    rewards = [row.reward for row in comparison if row.reward is not None]
    assert len(rewards) >= 10
    assert all(low < reward < high for reward in rewards)
    assert ax.get_ylim()[0] >= 0
    draw(ax)


def test_a_comparison_without_policies_or_bounds():
    rows = (ComparisonRow("none", Pareto(), error="refused"),)
    ax = plotting.plot_comparison(Comparison(PROBLEM, rows, upper_bound=-math.inf))
    assert legend(ax) == ["acceptable", "Δ(x) = 0.002 * x"]
    draw(ax)


def test_a_bound_is_drawn_where_it_has_a_value():
    comparison = compare(PROBLEM, [Penalty()], upper_bound=False)
    start = comparison.rows[0].reward
    span = (start - 1, start + 1)
    root = vulcan.Concave(lambda x: math.sqrt(x - start))
    cut = vulcan.Concave(lambda x: 0.01 if x > start else -math.inf)
    for bound in (root, cut):
        values = [risk for _, risk in trace_bound(bound, span)]
        assert all(map(math.isnan, values[:200]))
        assert all(map(math.isfinite, values[200:]))
        draw(plotting.plot_comparison(replace(comparison, problem=Problem(Bandit(), bound))))


@pytest.fixture(scope="module")
def simulation():
    return vulcan.simulate(vulcan.solve(PROBLEM).policy, episodes=20_000)


def test_a_simulation_is_drawn_in_two_panels(simulation):
    ax = plotting.plot_simulation(simulation)
    top, bottom = ax.get_figure().axes
    assert top is ax
    mean, exact = (line.get_xdata()[0] for line in top.lines)
    assert (mean, exact) == (simulation.reward.value, simulation.reward.exact)
    assert bottom.lines[0].get_ydata().tolist() == list(simulation.survival)
    assert bottom.lines[1].get_ydata().tolist() == list(simulation.exact_survival)
    assert legend(ax)[0] == "episodes"
    assert ax.get_title(loc="left").startswith(simulation.model)
    assert draw(ax).std() > 1


def test_axes_that_are_given_are_drawn_into(frontier, comparison):
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plotting.plot_frontier(frontier, left) is left
    assert plotting.plot_comparison(comparison, right) is right
    assert figure.axes == [left, right]
    assert left.get_xlabel() == "allowed probability of failure"
    draw(left)
    top, bottom = Figure().subplots(2)
    plotting.plot_frontier(frontier, top, bottom)
    assert bottom.lines


def test_names_of_models_are_not_mathematics_and_command_nothing():
    class Costly(Bandit):
        def __repr__(self):
            return "Costly($\\frac{1}$, \x1b[31m" + "x" * 200

    named = trace_frontier(Costly(horizon=2), levels=[0.001])
    ax = plotting.plot_frontier(named)
    first, second = ax.get_title(loc="left").splitlines()
    assert first.startswith("Costly($\\frac{1}$, ?[31mxxx")
    assert len(first + second) == LONGEST_TITLE
    draw(ax)
    comparison = compare(Problem(Costly(horizon=2), Linear(0.002)), {"$x_": Pareto()})
    draw(plotting.plot_comparison(comparison))


# Files.


@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")]
)
def test_figures_are_written_to_files(frontier, comparison, tmp_path, ending, start):
    for name, make in (
        ("a", lambda: plotting.plot_frontier(frontier)),
        ("b", lambda: plotting.plot_comparison(comparison)),
    ):
        path = tmp_path / f"{name}.{ending}"
        path.write_text("something else")
        plotting.save(make(), path)
        assert path.read_bytes().startswith(start)
        assert path.stat().st_size > 5000
        again = tmp_path / f"{name}2.{ending}"
        plotting.save(make(), again)
        assert again.read_bytes() == path.read_bytes()
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("name", ["figure", "figure.jpg", "figure.png.txt", ".png"])
def test_other_endings_are_refused(frontier, tmp_path, name):
    message = r"figures can be saved as \.png, \.svg, \.pdf, not '.*'"
    with pytest.raises(OptionError, match=message):
        plotting.check_figure_file(tmp_path / name)
    with pytest.raises(OptionError, match=message):
        plotting.save(plotting.plot_frontier(frontier), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_there_is_a_readable_error(frontier, comparison, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for act in (
        lambda: plotting.plot_frontier(frontier),
        lambda: plotting.plot_comparison(comparison),
        lambda: plotting.check_figure_file(tmp_path / "a.png"),
    ):
        with pytest.raises(OptionError, match=r"pip install 'vulcan-planner\[plot\]'"):
            act()
