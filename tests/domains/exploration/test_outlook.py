"""How much can still be earned, at most."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.helpers.missions import BLOCKED, OPEN, wander
from tests.oracles.exploration import value
from vulcan.domains.exploration.collision import Vehicle
from vulcan.domains.exploration.field import Field
from vulcan.domains.exploration.model import Exploration


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
