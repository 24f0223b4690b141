"""Exploration missions on several maps, and random histories of them."""

from __future__ import annotations

import random

from vulcan.domains.exploration.field import Field
from vulcan.domains.exploration.maps import Map, Obstacle, Vehicle
from vulcan.domains.exploration.model import Exploration, History

BOUND = "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)"
OPEN = Map(7, 7, (3, 3))
BLOCKED = Map(7, 7, (3, 3), [Obstacle.rectangle(3.6, 5.4, 2.6, 7.0)])

MISSIONS = [
    Exploration(),
    Exploration(map="wide", first_sample=1.9),
    Exploration(
        field=Field(0.3, (-0.2, 0.1), 2.0, 1.1),
        vehicle=Vehicle(0.02, 0.002),
        map=Map(8, 6, (1, 2), [Obstacle([(3, 1), (6, 0), (4, 4)])], 0.7, (-1.0, 3.0)),
        degree=5,
        collision_reward=-2.0,
    ),
]


def wander(mission: Exploration, seed: int, moves: int) -> History:
    """Return a random history that has not failed."""
    rng = random.Random(seed)
    state = mission.initial_state()
    for _ in range(moves):
        ways = [mission.outcomes(state, action) for action in mission.actions(state)]
        safe = [o.state for outcomes in ways for o in outcomes if not o.fails]
        state = rng.choice(safe)
    return state
