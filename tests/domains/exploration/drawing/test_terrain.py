"""What a map shows: the field, the window, the levels."""

import numpy as np
import pytest

from tests.helpers.rule_policies import MISSION, cross_wall, find_journey
from vulcan.domains.exploration import Map
from vulcan.domains.exploration.drawing.terrain import (
    Window,
    choose_levels,
    choose_window,
    predict_field,
)


def test_the_field_is_what_the_model_expects(journeys, truth):
    for state, (rewards, _, _) in list(truth.histories.items())[::20]:
        journey = journeys.journey(find_journey(journeys, state.path, rewards))
        for moves in range(4):
            cell = journey.path[moves + 1]
            if not journey.sampled[moves]:
                continue
            cells, values = journey.samples(moves)
            (mean,) = predict_field(MISSION, cells, values, np.array([cell], float))
            past = state._replace(
                path=state.path[: moves + 1], nodes=state.nodes[: sum(journey.sampled[:moves])]
            )
            safe = [o for o in MISSION.outcomes(past, cross_wall(past)) if not o.fails]
            chance = sum(o.probability for o in safe)
            expected = sum(o.probability * o.reward for o in safe) / chance
            assert mean == pytest.approx(expected, abs=1e-9)
        cells, values = journey.samples()
        known = predict_field(MISSION, cells, values, np.array(cells, float))
        assert known == pytest.approx(values, abs=1e-6)


def test_the_window():
    assert choose_window(Map(5, 4, (0, 0)), [(1, 1)]) == Window(0, 4, 0, 3)
    large = Map(1000, 1000, (500, 500))
    assert choose_window(large, [(520, 500)]) == Window(498, 522, 491, 510)
    assert choose_window(large, []) == Window(496, 504, 496, 504)
    corner = choose_window(Map(1000, 1000, (0, 999)), [])
    assert corner == Window(0, 8, 991, 999)
    assert corner.shape == (9, 9)


def test_levels_span_all_fields():
    levels = choose_levels([np.array([1.02, 1.5]), np.array([0.4, 1.1])])
    assert levels[0] <= 0.4 < 1.5 <= levels[-1]
    assert np.all(np.diff(levels) > 0)
    flat = choose_levels([np.full(4, 2.0)])
    assert flat[0] < 2 < flat[-1]
