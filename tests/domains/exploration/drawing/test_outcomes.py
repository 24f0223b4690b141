"""The figure of several outcomes, and what all figures share."""

import sys

import pytest
from matplotlib.figure import Figure

from tests.helpers.figures import draw
from tests.helpers.rule_policies import WALL, plan_by_rule
from vulcan import OptionError
from vulcan.domains.exploration import Exploration, drawing
from vulcan.plotting.labels import Box


def test_outcomes_side_by_side(journeys):
    outcomes = drawing.choose_outcomes(journeys)
    ax = drawing.plot_outcomes(journeys)
    figure = ax.get_figure()
    panels = [a for a in figure.axes if a.get_title(loc="left")]
    assert len(panels) == 6
    for letter, panel, outcome in zip("abcdef", panels, outcomes, strict=True):
        title = panel.get_title(loc="left").replace("\n", " ").replace("\u00a0", " ")
        assert title == f"({letter}) {outcome.words} {outcome.numbers}"
        path = next(line for line in panel.lines if line.get_label() == "path")
        assert path.get_xydata().tolist() == [list(cell) for cell in outcome.journey.path]
        assert panel.get_xlim() == panels[0].get_xlim()
    draw(ax)
    boxes = []
    for panel in panels:
        extent = panel.get_tightbbox(for_layout_only=False)
        boxes.append(Box(extent.x0, extent.y0, extent.x1, extent.y1))
    pairs = [(a, b) for k, a in enumerate(boxes) for b in boxes[:k]]
    assert all(a.overlap(b) == 0 for a, b in pairs)
    heading = figure._suptitle.get_window_extent()
    assert all(box.high <= heading.y0 for box in boxes)


def test_axes_that_are_given_are_drawn_into(journeys):
    figure = Figure(figsize=(12, 9))
    grid = figure.subplots(2, 3)
    outcomes = drawing.choose_outcomes(journeys, 2)
    assert drawing.plot_outcomes(journeys, outcomes, grid[0, :2]) is grid[0, 0]
    assert drawing.plot_visits(journeys, grid[0, 2]) is grid[0, 2]
    assert drawing.plot_risk_reward(journeys, ax=grid[1, 0]) is grid[1, 0]
    assert drawing.plot_mission(outcomes[0], grid[1, 1], risk_ax=grid[1, 2]) is grid[1, 1]
    assert grid[1, 2].lines[0].get_ydata().tolist() == outcomes[0].journey.risked.tolist()
    assert [ax for ax in figure.axes if ax in grid.ravel().tolist()] == grid.ravel().tolist()
    draw(grid[0, 0])
    with pytest.raises(OptionError, match="2 outcomes need as many axes, not 3"):
        drawing.plot_outcomes(journeys, outcomes, grid[0])
    with pytest.raises(OptionError, match="from 1 to 26 outcomes can be drawn, not 0"):
        drawing.plot_outcomes(journeys, [])


def test_names_of_models_are_not_mathematics(journeys):
    class Costly(Exploration):
        def __repr__(self):
            return "Costly($\\frac{1}$, \x1b[31m" + "x" * 200

    mission = Costly(map=WALL, horizon=2)
    found = drawing.follow_policy(plan_by_rule(mission, lambda state: "E"), mission)
    for ax in (drawing.plot_outcomes(found), drawing.plot_visits(found)):
        draw(ax)


def test_without_matplotlib_there_is_a_readable_error(journeys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for act in (
        lambda: drawing.plot_mission(journeys.journey(0)),
        lambda: drawing.plot_outcomes(journeys),
        lambda: drawing.plot_visits(journeys),
        lambda: drawing.plot_risk_reward(journeys),
        lambda: drawing.check_animation_file(tmp_path / "a.gif"),
    ):
        with pytest.raises(OptionError, match=r"pip install 'vulcan-planner\[plot\]'"):
            act()
