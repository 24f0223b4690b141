"""Figures of comparisons: solvers in the space of policies."""

import math
from dataclasses import replace
from itertools import combinations

import pytest

import vulcan
from tests.helpers.figures import PROBLEM, draw, legend, text_boxes
from vulcan import Pareto, Penalty, Problem, plotting
from vulcan.domains import Bandit
from vulcan.planning.compare import Comparison, ComparisonRow, compare
from vulcan.plotting.comparison import CLOSENESS, Mark, find_frame, group_rows, trace_bound
from vulcan.plotting.labels import Box
from vulcan.solvers.baselines.linear_program import LinearProgram


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
    groups = [set(text.replace("\n", " ").split(", ")) for text in texts]
    for alike in ({"ForwardSearch", "LocalVulcan"}, {"Pareto", "Lagrangian", "RAOStar"}):
        assert any(alike <= group for group in groups)
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
    few = vulcan.solve(PROBLEM, vulcan.LocalVulcan(), samples=30, complete=False)
    assert not few.certificate.complete
    comparison = Comparison(PROBLEM, (ComparisonRow("few", vulcan.LocalVulcan(), few),))
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


def test_a_randomised_policy_is_marked(comparison):
    row = next(row for row in comparison if isinstance(row.solver, LinearProgram))
    (mark,) = group_rows([row], find_frame(comparison))
    assert mark.kind == "safe, randomised"
