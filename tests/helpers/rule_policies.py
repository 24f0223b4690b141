"""Policies of exploration missions that follow a rule, and all that can happen then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from examples.exploration.drawing.journeys import Journeys
from tests.helpers.plans import build_merged, edit
from vulcan.domains.exploration import Exploration, History, Map, Obstacle
from vulcan.policy.policy import Policy

Rule = Callable[[History], str]
BOUND = "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)"

WALL = Map(
    7,
    6,
    (0, 2),
    [Obstacle.rectangle(2.6, 3.4, -1, 1.84), Obstacle.rectangle(2.6, 3.4, 2.16, 7)],
)
"""A wall with one gap, at (3, 2)."""

MISSION = Exploration(map=WALL, horizon=4, discount=0.9, collision_reward=-1.0)


def cross_wall(state: History) -> str:
    """Go through the gap, into it and back, past it, or away: as the first samples tell."""
    step, nodes = len(state.path) - 1, state.nodes
    if step == 0:
        return "E"
    if nodes[0] == 0:
        return ["W", "N", "NE"][step - 1]  # to the start again, and away
    if nodes[0] == 1:
        return ["NE", "N", "N"][step - 1]
    if step == 1:
        return "E"
    if nodes[1] == 3:
        return "E"
    if nodes[1] == 2:
        return ["E", "W"][step - 2]
    return ["S", "SW"][step - 2]


def go_east(state: History) -> str:
    """Go through the gap of the wide map, whatever the samples are."""
    return ["NE", "E", "E"][len(state.path) - 1] if len(state.path) <= 3 else "E"


def plan_by_rule(mission: Exploration, rule: Rule, bound: str | None = BOUND) -> Policy:
    """Return the policy of a rule."""
    plan = build_merged(mission, lambda level, state, names: rule(state))
    policy: Policy = edit(plan, origin={"risk_bound": bound})
    return policy


@dataclass
class Enumeration:
    """All that can happen under a rule."""

    histories: dict[History, tuple] = field(default_factory=dict)
    visits: dict = field(default_factory=lambda: defaultdict(float))
    collisions: dict = field(default_factory=lambda: defaultdict(float))
    reward: float = 0.0


def enumerate_histories(mission: Exploration, rule: Rule) -> Enumeration:
    """Return all safe histories with their rewards, risks and probability, and where they go."""
    found = Enumeration()

    def go(state, probability, rewards, risks):
        here = state.path[-1]
        if here not in state.path[:-1]:
            found.visits[here] += probability
        if len(rewards) == mission.horizon:
            found.histories[state] = (rewards, risks, probability)
            return
        outcomes = mission.outcomes(state, rule(state))
        risk = sum(o.probability for o in outcomes if o.fails)
        discount = mission.discount ** len(rewards)
        for o in outcomes:
            found.reward += discount * probability * o.probability * o.reward
            if o.fails:
                east, north = mission_move(rule(state))
                cell = (here[0] + east, here[1] + north)
                found.collisions[cell] += probability * o.probability
            else:
                chance = probability * o.probability
                go(o.state, chance, (*rewards, o.reward), (*risks, risk))

    go(mission.initial_state(), 1.0, (), ())
    return found


def mission_move(name: str) -> tuple[int, int]:
    """Return where a move leads, from its name."""
    return ("E" in name) - ("W" in name), ("N" in name) - ("S" in name)


def find_journey(journeys: Journeys, path: tuple, rewards: tuple) -> int:
    """Return the number of the journey with this path and these rewards."""
    same = (journeys.cells == np.array(path)).all(axis=(1, 2))
    (number,) = np.flatnonzero(same & (journeys.rewards == rewards).all(axis=1))
    return int(number)
