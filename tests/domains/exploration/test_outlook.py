"""How much can still be earned, at most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.missions import BLOCKED, OPEN, wander
from tests.oracles.exploration import value
from vulcan.domains.exploration.collision import Obstacle, Vehicle
from vulcan.domains.exploration.field import Field, quadrature
from vulcan.domains.exploration.maps import Map
from vulcan.domains.exploration.model import Exploration
from vulcan.domains.exploration.outlook import find_norms


@pytest.mark.parametrize(
    "mission",
    [
        Exploration(degree=2),
        Exploration(map="wide", degree=3, discount=0.8),
        Exploration(map=BLOCKED, field=Field(-2.0, (0.1, 0.3), 1.5, 1.0), degree=1),
        Exploration(map=OPEN, field=Field(-1.0, (0.0, 0.0), 4.0, 3.0), degree=2),
        Exploration(map=BLOCKED, collision_reward=2.0, vehicle=Vehicle(0.3, 0.0), degree=2),
    ],
)
def test_no_policy_earns_more_than_the_bound(mission: Exploration) -> None:
    for seed in range(4):
        state = wander(mission, seed, 7)
        assert value(mission, state, 7) <= mission.reward_to_go_bound(state, 7) + 1e-12
    short = replace(mission, horizon=3)
    start = short.initial_state()
    assert value(short, start, 0) <= short.reward_to_go_bound(start, 0) + 1e-12
    assert mission.reward_to_go_bound(start, 9) == 0


def test_one_move_is_bounded_exactly() -> None:
    mission = Exploration(map=OPEN, horizon=1)
    start = mission.initial_state()
    assert mission.reward_to_go_bound(start, 0) == pytest.approx(value(mission, start, 0))


@st.composite
def small_missions(draw: Callable[..., Any]) -> Exploration:
    """Missions of which all policies can be enumerated; many are risky, and pay little."""
    start = (1, draw(st.integers(0, 2)))
    left, bottom = draw(st.floats(-0.5, 3)), draw(st.floats(-0.5, 3))
    obstacle = Obstacle.rectangle(left, left + 0.8, bottom, bottom + draw(st.floats(0.3, 2)))
    slope = (draw(st.floats(-0.3, 0.3)), draw(st.floats(-0.3, 0.3)))
    return Exploration(
        horizon=draw(st.integers(2, 4)),
        map=Map(3, 3, start, [] if obstacle.contains(start) else [obstacle]),
        field=Field(
            draw(st.floats(-1, 2)), slope, draw(st.floats(0.05, 2)), draw(st.floats(0.5, 2))
        ),
        vehicle=Vehicle(draw(st.sampled_from([0.005, 0.1, 0.5])), 0.01),
        degree=draw(st.integers(1, 3)),
        first_sample=draw(st.none() | st.floats(-2, 3)),
        collision_reward=draw(st.sampled_from([0.0, -3.0, 1.5])),
        discount=draw(st.sampled_from([1.0, 0.8])),
    )


@settings(max_examples=60)
@given(
    mission=small_missions(), price=st.floats(0, 30), taken=st.integers(0, 2), seed=st.integers(0)
)
def test_no_policy_is_worth_more_than_the_bound_at_any_price(
    mission: Exploration, price: float, taken: int, seed: int
) -> None:
    step = max(taken, mission.horizon - 3)
    state = wander(mission, seed, min(step, mission.horizon))
    bound = mission.value_to_go_bound(state, step, price)
    assert value(mission, state, step, price) <= bound + 1e-9
    assert bound <= mission.reward_to_go_bound(state, step) + 1e-9


def test_one_move_is_valued_exactly() -> None:
    mission = Exploration(map=BLOCKED, horizon=1, vehicle=Vehicle(0.3, 0.0))
    start = mission.initial_state()
    exact = value(mission, start, 0, 10.0)
    assert mission.value_to_go_bound(start, 0, 10.0) == pytest.approx(exact)
    assert exact < mission.reward_to_go_bound(start, 0) - 0.01


@pytest.mark.parametrize("degree", [1, 2, 4, 7])
def test_mean_norms_are_those_of_all_combinations(degree: int) -> None:
    z, chances = map(np.array, quadrature(degree))
    norms = find_norms(z, chances, 4)
    three = np.sqrt(z[:, None, None] ** 2 + z[None, :, None] ** 2 + z[None, None, :] ** 2)
    expected = np.einsum("ijk,i,j,k", three, chances, chances, chances)
    assert norms[0] == 0
    assert norms[1] == pytest.approx(np.abs(z) @ chances, abs=1e-8)
    assert norms[3] == pytest.approx(expected, abs=1e-8)
    assert find_norms(*quadrature(9), 12)[11] <= np.sqrt(11)  # rounded up, but never above
