"""The figure of one mission."""

import math
from dataclasses import replace

import pytest
from matplotlib.patches import Ellipse, Polygon
from matplotlib.text import Text

from tests.helpers.figures import draw
from tests.helpers.rule_policies import MISSION, WALL, cross_wall, plan_by_rule
from vulcan.domains.exploration import Exploration, Field, Map, Obstacle, Vehicle, drawing
from vulcan.plotting.labels import Box


def test_spacing_and_origin_do_not_change_the_picture():
    obstacles = [
        Obstacle([(3 + 0.5 * x, -1 + 0.5 * y) for x, y in obstacle.vertices])
        for obstacle in WALL.obstacles
    ]
    small = replace(WALL, obstacles=obstacles, spacing=0.5, origin=(3.0, -1.0))
    field = Field(slope=(0.1, 0.1), constant=1.0 - 0.1 * 3 + 0.1, length=1.0)
    mission = Exploration(map=small, horizon=4, field=field, vehicle=Vehicle(0.00125, 0.000025))
    large = Exploration(map=WALL, horizon=4)
    pictures = []
    for drawn in (mission, large):
        journeys = drawing.follow_policy(plan_by_rule(drawn, cross_wall), drawn)
        ax = drawing.plot_mission(journeys.journey(40))
        corners = [p.get_xy() for p in ax.patches if isinstance(p, Polygon)]
        ellipses = [(p.center, p.width) for p in ax.patches if isinstance(p, Ellipse)]
        pictures.append((corners, ellipses, [text.get_text() for text in ax.texts]))
    assert pictures[0][0][0] == pytest.approx(pictures[1][0][0])
    assert pictures[0][2] == pictures[1][2]
    for one, other in zip(pictures[0][1], pictures[1][1], strict=True):
        assert one[0] == other[0]
        assert one[1] == pytest.approx(other[1])


def test_one_mission(journeys, truth):
    outcome = drawing.choose_outcomes(journeys)[0]
    journey = outcome.journey
    ax = drawing.plot_mission(outcome)
    figure = ax.get_figure()
    assert len([a for a in figure.axes if a.lines]) == 3
    lines = {line.get_label(): line for line in ax.lines}
    assert lines["path"].get_xydata().tolist() == [list(cell) for cell in journey.path]
    assert lines["risk taken"].get_xydata().tolist() == [[3, 2]]
    assert lines["start"].get_xydata().tolist() == [[0, 2]]
    progress = {a.get_ylabel(): a.lines[0].get_ydata() for a in figure.axes if a.lines}
    assert progress["reward so far"].tolist() == journey.earned.tolist()
    assert progress["risk so far"].tolist() == journey.risked.tolist()
    ellipses = [patch for patch in ax.patches if isinstance(patch, Ellipse)]
    assert [e.center for e in ellipses] == list(journey.path)
    widths = [6 * math.sqrt(0.005 + 0.0001 * step) for step in range(5)]
    assert [e.width for e in ellipses] == pytest.approx(widths)
    assert [e.height for e in ellipses] == pytest.approx(widths)
    assert len([p for p in ax.patches if isinstance(p, Polygon)]) == 2
    _, values = journey.samples()
    assert [text.get_text() for text in ax.texts] == [f"{value:.2f}" for value in values]
    title = figure.get_suptitle().split("\n")
    assert title == [repr(MISSION), outcome.words, outcome.numbers]
    assert draw(ax).std() > 1


def test_labels_of_samples_lie_over_neither_each_other_nor_the_edge(journeys):
    for outcome in drawing.choose_outcomes(journeys)[::3]:
        ax = drawing.plot_mission(outcome)
        draw(ax)
        extents = [Text.get_window_extent(label) for label in ax.texts]
        boxes = [Box(e.x0, e.y0, e.x1, e.y1) for e in extents]
        pairs = [(a, b) for k, a in enumerate(boxes) for b in boxes[:k]]
        assert all(a.overlap(b) == 0 for a, b in pairs)


def test_ellipses_turn_with_the_covariance():
    tilted = Vehicle(((0.02, 0.01), (0.01, 0.02)), 0.0)
    mission = Exploration(map=Map(5, 5, (2, 2)), horizon=1, vehicle=tilted)
    journeys = drawing.follow_policy(plan_by_rule(mission, lambda state: "N"), mission)
    ax = drawing.plot_mission(journeys.journey(0))
    ellipse = next(patch for patch in ax.patches if isinstance(patch, Ellipse))
    long, short = max(ellipse.width, ellipse.height), min(ellipse.width, ellipse.height)
    assert long == pytest.approx(6 * math.sqrt(0.03))
    assert short == pytest.approx(6 * math.sqrt(0.01))
    angle = ellipse.angle + (0 if ellipse.width > ellipse.height else 90)
    assert angle % 180 == pytest.approx(45)
