"""The compiled mission says what the plain one says."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.plain_models import PlainExploration
from vulcan.domains.exploration.field import Field
from vulcan.domains.exploration.maps import Map, Obstacle, Vehicle
from vulcan.domains.exploration.model import MOVES, Exploration, History
from vulcan.testing import CompiledAnswers


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


def compare_answers(
    mission: Exploration, asked: CompiledAnswers, state: History, record: np.ndarray
) -> list[tuple[History, np.ndarray]]:
    """Compare all answers about one history, and return the histories after it."""
    step, moves = len(state.path) - 1, mission.actions(state)
    limit = mission.reward_to_go_bound(state, step)
    assert asked.bound(record, step) == pytest.approx(limit, abs=1e-9, rel=1e-9)
    for price in (0.0, 3.0, 25.0):
        value = mission.value_to_go_bound(state, step, price)
        found = asked.value_bound(record, step, price)
        assert found == pytest.approx(value, abs=1e-9, rel=1e-9)
    after = []
    for number, move in enumerate(MOVES):
        answers, records = asked.outcomes(record, number)
        plain = mission.outcomes(state, move) if move in moves else []
        assert len(answers) == len(plain)
        for (probability, reward, fails), outcome, then in zip(
            answers, plain, records, strict=True
        ):
            assert probability == outcome.probability
            assert reward == outcome.reward  # to the last bit
            assert fails == outcome.fails
            if not fails:
                after.append((outcome.state, then.reshape(1)))
    return after


@pytest.mark.slow
@settings(max_examples=60)
@given(mission=missions(), seed=st.integers(0, 1 << 32))
def test_compiled_exploration_says_what_the_plain_one_says(mission: Exploration, seed: int) -> None:
    asked, rng = CompiledAnswers(mission.compiled), random.Random(seed)
    state, record = mission.initial_state(), mission.compiled.initial
    for step in range(mission.horizon):
        assert len(state.path) == step + 1
        after = compare_answers(mission, asked, state, record)
        if not after:
            break
        state, record = rng.choice(after)


@settings(max_examples=20)
@given(mission=missions(), seed=st.integers(0, 1 << 32))
def test_order_of_questions_does_not_matter(mission: Exploration, seed: int) -> None:
    """What the functions note in their parameters must never show."""
    rng, fresh = random.Random(seed), lambda: CompiledAnswers(mission.compiled)
    known = [(0, mission.compiled.initial)]
    for _ in range(60):  # histories, many of which return to cells that they know
        step, record = rng.choice(known)
        records = [
            then.reshape(1)
            for number in range(len(MOVES))
            for answers, following in [fresh().outcomes(record, number)]
            for (_, _, fails), then in zip(answers, following, strict=True)
            if not fails and step + 1 < mission.horizon
        ]
        known += [(step + 1, record) for record in rng.sample(records, min(2, len(records)))]
    asked = fresh()
    for _ in range(200):
        step, record = rng.choice(known)
        if rng.random() < 0.5:
            number = rng.randrange(len(MOVES))
            (answers, after), (new, new_after) = (
                one.outcomes(record, number) for one in (asked, fresh())
            )
            assert answers == new  # to the last bit
            safe = [k for k, answer in enumerate(new) if not answer[2]]
            assert (after[safe] == new_after[safe]).all()
        else:
            other = rng.randrange(mission.horizon + 1)  # of a step that is not the history's own
            when = rng.choice([step, max(step, other)])
            assert asked.bound(record, when) == fresh().bound(record, when)
            price = rng.choice([0.0, 7.0])
            value = asked.value_bound(record, when, price)
            assert value == fresh().value_bound(record, when, price)


def test_long_missions_have_no_compiled_form_and_subclasses_neither() -> None:
    assert Exploration(horizon=41).compiled is None
    assert PlainExploration().compiled is None
    assert Exploration(horizon=2).compiled.actions == tuple(MOVES)
