"""The compiled mission says what the plain one says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.plain_models import PlainExploration
from vulcan.domains.exploration.field import Field
from vulcan.domains.exploration.maps import Map, Obstacle, Vehicle
from vulcan.domains.exploration.model import MOVES, Exploration
from vulcan.numerics import SMALLEST_PROBABILITY
from vulcan.testing import check_compiled


@st.composite
def missions(draw: Callable[..., Any]) -> Exploration:
    """Missions of at most nine moves, so that there are two sizes of records to compile."""
    columns, rows = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    start = (draw(st.integers(0, columns - 1)), draw(st.integers(0, rows - 1)))
    spacing, origin = draw(st.sampled_from([1.0, 0.7])), (draw(st.floats(-2, 2)), 0.5)
    obstacles = []
    for _ in range(draw(st.integers(0, 3))):
        left, bottom = draw(st.floats(-1, 7)), draw(st.floats(-1, 7))
        wide, high = draw(st.floats(0.2, 3)), draw(st.floats(0.2, 3))
        obstacle = Obstacle.rectangle(left, left + wide, bottom, bottom + high)
        place = (origin[0] + spacing * start[0], origin[1] + spacing * start[1])
        if not obstacle.contains(place):
            obstacles.append(obstacle)
    slope = (draw(st.floats(-0.3, 0.3)), draw(st.floats(-0.3, 0.3)))
    return Exploration(
        horizon=draw(st.integers(1, 9)),
        map=Map(columns, rows, start, obstacles, spacing, origin),
        field=Field(
            draw(st.floats(-1, 2)), slope, draw(st.floats(0.05, 2)), draw(st.floats(0.5, 2))
        ),
        vehicle=Vehicle(draw(st.sampled_from([0.0, 0.005, 0.3])), 0.01),
        degree=draw(st.integers(1, 5)),
        first_sample=draw(st.none() | st.floats(-2, 3)),
        collision_reward=draw(st.sampled_from([0.0, -3.0, 1.5])),
        discount=draw(st.sampled_from([1.0, 0.8, 0.0])),
    )


@settings(max_examples=20)
@given(mission=missions())
def test_what_the_functions_note_in_their_parameters_never_shows(mission: Exploration) -> None:
    report = check_compiled(mission, most_states=60)
    assert report.ok, report


def test_risks_too_small_to_be_probabilities_are_the_smallest_one() -> None:
    far = Obstacle(((4.5, 0.0), (5.5, 0.0), (5.5, 1.0), (4.5, 1.0)))
    area = Map(1, 2, (0, 0), (far,), 1.0, (-1.5, 0.5))
    mission = Exploration(horizon=2, map=area, vehicle=Vehicle(0.005, 0.01))
    assert mission.risk((0, 0), 2) == SMALLEST_PROBABILITY
    report = check_compiled(mission)
    assert report.ok, report


def test_long_missions_have_no_compiled_form_and_subclasses_neither() -> None:
    assert Exploration(horizon=41).compiled is None
    assert PlainExploration().compiled is None
    assert Exploration(horizon=2).compiled.actions == tuple(MOVES)
