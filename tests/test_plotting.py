"""Figures: what they show, drawn without a window, and their files."""

import math
import subprocess
import sys
from dataclasses import replace
from itertools import combinations

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

import vulcan
from vulcan import Linear, OptionError, Pareto, Penalty, Problem, plotting
from vulcan.compare import Comparison, ComparisonRow, compare
from vulcan.domains import Bandit
from vulcan.frontier import Span, trace_frontier
from vulcan.plotting.comparison import CLOSENESS, Mark, find_frame, group_rows, trace_bound
from vulcan.plotting.frontier import extract_curves
from vulcan.plotting.labels import Box, Place, place_labels
from vulcan.plotting.style import LONGEST_TITLE
from vulcan.solvers.linear_program import LinearProgram

PROBLEM = Problem(Bandit(horizon=4), Linear(0.002))


@pytest.fixture(scope="module")
def frontier():
    return trace_frontier(Bandit(horizon=4), levels=[-0.001, 0, 0.001, 0.002, 0.003, 0.0047])


@pytest.fixture(scope="module")
def comparison():
    return compare(PROBLEM, time_limit=60)


@pytest.fixture(autouse=True)
def no_windows(monkeypatch):
    """Fail whatever would need a display, and whatever changes the user's own settings."""
    monkeypatch.delenv("DISPLAY", raising=False)
    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def draw(ax):
    """Draw for real; warnings of the drawing are errors."""
    canvas = FigureCanvasAgg(ax.get_figure())
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


def text_boxes(ax):
    """The boxes of all labels, without the lines to their points."""
    draw(ax)
    extents = [Text.get_window_extent(label) for label in ax.texts]
    return [Box(extent.x0, extent.y0, extent.x1, extent.y1) for extent in extents]


# Frontiers.


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


# Comparisons.


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
    assert all(low < row.reward < high for row in comparison)
    assert ax.get_ylim()[0] >= 0
    draw(ax)


def test_upper_bounds_that_can_not_be_told_apart_are_one_line(comparison):
    width = find_frame(comparison).rewards[1] - find_frame(comparison).rewards[0]
    near = comparison.randomised_upper_bound - 0.5 * CLOSENESS * width
    for upper, count in ((near, 1), (comparison.upper_bound, 2), (None, 1)):
        ax = plotting.plot_comparison(replace(comparison, upper_bound=upper))
        drawn = [label for label in legend(ax) if label.startswith("upper bound")]
        assert len(drawn) == count
        assert ("upper bound" in drawn) is (count == 1)


def test_solvers_that_coincide_share_a_label(comparison):
    ax = plotting.plot_comparison(comparison)
    texts = [text.get_text() for text in ax.texts]
    names = [name for text in texts for name in text.replace("\n", " ").split(", ")]
    assert sorted(names) == sorted(row.name for row in comparison)
    assert "ForwardSearch, Vulcan" in texts
    assert "Lagrangian, Pareto,\nIntegerProgram, RAOStar" in texts
    assert len(texts) == 5


def test_labels_lie_over_neither_each_other_nor_the_edge(comparison):
    ax = plotting.plot_comparison(comparison)
    boxes = text_boxes(ax)
    assert len(boxes) == 5
    assert all(a.overlap(b) == 0 for a, b in combinations(boxes, 2))
    frame = ax.get_window_extent()
    assert all(box.excess(Box(frame.x0, frame.y0, frame.x1, frame.y1)) < 2 for box in boxes)


def test_marks_are_grouped_by_place_and_kind(comparison):
    frame = find_frame(comparison)
    width = frame.rewards[1] - frame.rewards[0]
    pareto = next(row for row in comparison if row.name == "Pareto")

    def shift(share, name, passes=True):
        certificate = replace(
            pareto.certificate,
            reward=pareto.reward + share * width,
            allowed=pareto.risk + (0.1 if passes else -0.1),
        )
        return replace(pareto, name=name, result=replace(pareto.result, certificate=certificate))

    rows = [
        pareto,
        shift(0.5 * CLOSENESS, "near"),
        shift(3 * CLOSENESS, "far"),
        shift(0.0, "unsafe", passes=False),
        ComparisonRow("none", Pareto(), error="refused"),
    ]
    marks = group_rows(rows, frame)
    assert [mark.names for mark in marks] == [("Pareto", "near"), ("far",), ("unsafe",)]
    assert marks[2].kind == "not acceptable"
    assert marks[0] == Mark(pareto.reward, pareto.risk, "safe, deterministic", ("Pareto", "near"))


def test_an_incomplete_policy_is_marked_as_one():
    few = vulcan.solve(PROBLEM, vulcan.Vulcan(), samples=30, complete=False)
    assert not few.certificate.complete
    comparison = Comparison(PROBLEM, (ComparisonRow("few", vulcan.Vulcan(), few),))
    kind = "incomplete" if few.certificate.passes else "not acceptable"
    assert kind in legend(plotting.plot_comparison(comparison))


def test_a_comparison_without_policies_or_bounds():
    rows = (ComparisonRow("none", Pareto(), error="refused"),)
    ax = plotting.plot_comparison(Comparison(PROBLEM, rows, upper_bound=-math.inf))
    assert legend(ax) == ["acceptable", "Δ(x) = 0.002 * x"]
    draw(ax)


def test_a_single_point_has_room_around_it():
    ax = plotting.plot_comparison(compare(PROBLEM, [Penalty()], bound=False))
    low, high = ax.get_xlim()
    assert high - low > 0.1
    draw(ax)


def test_a_bound_is_drawn_where_it_has_a_value():
    comparison = compare(PROBLEM, [Penalty()], bound=False)
    frame = find_frame(comparison)
    start = sum(frame.rewards) / 2
    root = vulcan.Concave(lambda x: math.sqrt(x - start))
    cut = vulcan.Concave(lambda x: 0.01 if x > start else -math.inf)
    for bound in (root, cut):
        values = [risk for _, risk in trace_bound(bound, frame)]
        assert all(map(math.isnan, values[:200]))
        assert all(map(math.isfinite, values[200:]))
        draw(plotting.plot_comparison(replace(comparison, problem=Problem(Bandit(), bound))))


def test_names_of_models_are_not_mathematics_and_command_nothing():
    class Costly(Bandit):
        def __repr__(self):
            return "Costly($\\frac{1}$, \x1b[31m" + "x" * 200

    named = trace_frontier(Costly(horizon=2), levels=[0.001])
    ax = plotting.plot_frontier(named)
    title = ax.get_title(loc="left")
    assert title.startswith("Costly($\\frac{1}$, ?[31m")
    assert len(title) == LONGEST_TITLE
    draw(ax)
    comparison = compare(Problem(Costly(horizon=2), Linear(0.002)), {"$x_": Pareto()})
    draw(plotting.plot_comparison(comparison))


# Labels.


def test_a_box():
    box = Box(0, 0, 10, 4)
    assert box.overlap(Box(5, 2, 20, 20)) == 10
    assert box.overlap(Box(10, 0, 20, 4)) == box.overlap(Box(11, 0, 20, 4)) == 0
    assert box.excess(Box(0, 0, 10, 4)) == 0
    assert box.excess(Box(1, 1, 8, 8)) == 1 + 2 + 1
    assert box.holds((10, 4))
    assert not box.holds((5, 5))
    assert not box.holds((math.nan, 2))


def test_the_box_of_a_place():
    place = Place((10.0, -5.0), ("left", "top"), 10.0)
    assert place.box((100.0, 100.0), (30.0, 8.0), 2.0) == Box(120.0, 82.0, 150.0, 90.0)
    middle = Place((0.0, 5.0), ("center", "bottom"), 5.0)
    assert middle.box((100.0, 100.0), (30.0, 8.0), 1.0) == Box(85.0, 105.0, 115.0, 113.0)


def test_labels_of_many_points_close_together():
    figure = Figure(figsize=(6, 4))
    ax = figure.subplots()
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    points = [((0.5 + 0.01 * k, 0.5 + 0.02 * (k % 3)), f"solver {k}") for k in range(8)]
    place_labels(ax, points, [[(0.5, y) for y in np.linspace(0, 1, 100)]], "black")
    boxes = text_boxes(ax)
    assert len(boxes) == 8
    assert all(a.overlap(b) == 0 for a, b in combinations(boxes, 2))


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
    message = r"a figure is written to \.png, \.svg, \.pdf; not to '.*'"
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


def run_python(code, folder):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_importing_vulcan_and_its_figures_imports_no_matplotlib(tmp_path):
    code = "import sys, vulcan, vulcan.plotting; print('matplotlib' in sys.modules)"
    assert run_python(code, tmp_path) == "False\n"


def test_figures_are_drawn_without_the_library_that_opens_windows(tmp_path):
    code = """
import sys
from vulcan.domains import Bandit
from vulcan.frontier import trace_frontier
from vulcan.plotting import plot_frontier, save
save(plot_frontier(trace_frontier(Bandit(horizon=2), levels=[0, 0.001])), "a.png")
print("matplotlib.pyplot" in sys.modules)
"""
    assert run_python(code, tmp_path) == "False\n"
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_a_randomised_policy_is_marked(comparison):
    row = next(row for row in comparison if isinstance(row.solver, LinearProgram))
    (mark,) = group_rows([row], find_frame(comparison))
    assert mark.kind == "safe, randomised"
