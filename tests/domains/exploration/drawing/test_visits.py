"""The figure of where a policy goes."""

import pytest

from tests.helpers.figures import draw, legend
from tests.helpers.rule_policies import (
    WALL,
    plan_by_rule,
)
from vulcan.domains.exploration import Exploration, Map, drawing
from vulcan.domains.exploration.drawing.terrain import choose_window
from vulcan.domains.exploration.drawing.visits import tabulate_visits


def test_where_a_policy_goes(journeys, truth):
    window = choose_window(WALL, journeys.visits.cells)
    table = tabulate_visits(journeys, window)
    for y in range(6):
        for x in range(7):
            assert table[y, x] == pytest.approx(truth.visits.get((x, y), 0.0), rel=1e-12)
    ax = drawing.plot_visits(journeys)
    (image,) = ax.images
    assert image.get_array().tolist() == table.tolist()
    assert image.get_extent() == [-0.5, 6.5, -0.5, 5.5]
    texts = {text.get_position(): text.get_text() for text in ax.texts}
    assert texts[1, 2] == "100"
    assert texts[3, 2] == f"{100 * truth.visits[3, 2]:.0f}"
    _, collisions = legend(ax)
    assert f"{truth.collisions[3, 2]:.3g} at (3, 2)" in collisions
    draw(ax)


def test_a_map_too_large_for_numbers_and_borders():
    mission = Exploration(map=Map(300, 200, (100, 100)), horizon=65, degree=1)
    found = drawing.follow_policy(plan_by_rule(mission, lambda state: "E"), mission)
    ax = drawing.plot_visits(found)
    assert [text.get_text() for text in ax.texts] == []
    assert len(ax.lines) == 1  # that of the start in the legend, and no borders
    draw(ax)
