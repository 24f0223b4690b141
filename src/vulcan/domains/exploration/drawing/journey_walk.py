"""Following a policy through an exploration mission, to all of its journeys.

Nothing is sampled: a policy that a search made has no more safe histories than outcomes, and all of
them are returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from vulcan.domains.exploration.drawing.journeys import (
    Journeys,
    Numbers,
    Visits,
    add_up,
    get_map,
    require_mission,
)
from vulcan.domains.exploration.maps import Cell
from vulcan.domains.exploration.model import MOVES, Exploration
from vulcan.errors import OptionError
from vulcan.policies.policy import open_own_model
from vulcan.policies.randomised import AnyPolicy
from vulcan.policies.walk import Place, PolicyWalk
from vulcan.runtime.garbage import pause_collection
from vulcan.sentinels import END, FAILED, UNPLANNED

__all__ = ["follow_policy"]

MOST_MOVES: Final = 20_000_000
"""Moves of all journeys together, some 700 MB: more than any search would keep."""


def follow_policy(policy: AnyPolicy, mission: Exploration) -> Journeys:
    """Return all journeys of a policy.

    Parameters
    ----------
    policy
        Any policy for the mission. Of a randomised one, the journeys of all members, with the
        probabilities before one is drawn.
    mission
        The model that the policy was made for.

    Raises
    ------
    MismatchError
        If it was made for another, or the model no longer answers the same.
    OptionError
        If the model is no exploration mission, or the policy has too many histories.
    """
    walk = _Walk(policy, require_mission(mission))
    with pause_collection():
        levels = [walk.begin()]
        while levels[-1].places:
            levels.append(walk.go_on(levels[-1]))
    return _collect(mission, levels)


class _Level:
    """The safe histories of some length, and what the moves that led to them were like."""

    def __init__(self, moves: int) -> None:
        self.moves = moves
        # Per safe history.
        self.parents: list[int] = []
        self.cells: list[Cell] = []
        self.rewards: list[float] = []
        self.chances: list[float] = []
        self.sampled: list[bool] = []
        self.children: list[int] = []
        # Per safe history that goes on: its number, and where it is.
        self.places: list[tuple[int, Place]] = []
        # Per history of the level before that goes on.
        self.sources: list[int] = []
        self.targets: list[Cell] = []
        self.risks: list[float] = []
        self.failing_rewards: list[float] = []


class _Walk:
    """Follows the members of a policy through a mission, each history by itself."""

    def __init__(self, policy: AnyPolicy, mission: Exploration) -> None:
        self.policy, self.mission = policy, mission
        self.walk = PolicyWalk(policy, open_own_model(policy.about, mission))
        self.moves = 0

    def begin(self) -> _Level:
        """Return the histories before the first move: one per member."""
        level, root = _Level(0), self.mission.initial_state()
        planned = {place.member for place in self.walk.begin()}
        for member, weight in enumerate(self.policy.weights):
            child = 0 if member in planned else END
            self._arrive(level, -1, False, Place(member, child, root))
            level.chances.append(weight)
            level.rewards.append(0.0)
        return level

    def go_on(self, before: _Level) -> _Level:
        """Return the safe histories that are one move longer."""
        level = _Level(before.moves + 1)
        for source, place in before.places:
            ways = self.walk.follow(place, before.moves)
            east, north = MOVES[self.walk.describe_action(place)]
            x, y = place.state.path[-1]
            target = (x + east, y + north)
            new = target not in place.state.path
            risk = failing_reward = 0.0
            for outcome, child in ways:
                if child == FAILED:
                    risk += outcome.probability
                    failing_reward += outcome.probability * outcome.reward
                    continue
                level.chances.append(outcome.probability)
                level.rewards.append(outcome.reward)
                self._arrive(level, source, new, Place(place.member, child, outcome.state))
            level.sources.append(source)
            level.targets.append(target)
            level.risks.append(risk)
            level.failing_rewards.append(failing_reward)
        self.moves += len(level.cells) * level.moves
        if self.moves > MOST_MOVES:
            raise OptionError(
                f"this policy has too many histories to be drawn: more than {MOST_MOVES:,} moves"
            )
        return level

    def _arrive(self, level: _Level, source: int, new: bool, place: Place) -> None:
        """Note a safe history."""
        if place.node >= 0:
            level.places.append((len(level.cells), place))
        level.parents.append(source)
        level.cells.append(place.state.path[-1])
        level.sampled.append(new)
        level.children.append(place.node)


def _collect(mission: Exploration, levels: Sequence[_Level]) -> Journeys:
    """Return the journeys of all levels, from their ends back to the start."""
    reaches, reward, risk = _spread(mission, levels)
    ends = [np.flatnonzero(np.array(level.children, np.int64) < 0) for level in levels]
    lengths = np.repeat(np.arange(len(levels)), [len(end) for end in ends])
    count, most = len(lengths), len(levels) - 1
    cells = np.zeros((count, most + 1, 2), np.int32)
    rewards, risks = np.zeros((count, most)), np.zeros((count, most))
    sampled = np.zeros((count, most), bool)
    here = np.zeros(count, np.int64)
    for moves in range(most, 0, -1):
        level = levels[moves]
        here[lengths == moves] = ends[moves]
        live = np.flatnonzero(lengths >= moves)
        at = here[live]
        parents = np.array(level.parents, np.int64)[at]
        cells[live, moves] = np.array(level.cells, np.int32).reshape(-1, 2)[at]
        rewards[live, moves - 1] = np.array(level.rewards)[at]
        sampled[live, moves - 1] = np.array(level.sampled, bool)[at]
        by_source = np.zeros(len(levels[moves - 1].cells))
        by_source[level.sources] = level.risks
        risks[live, moves - 1] = by_source[parents]
        here[live] = parents
    cells[:, 0] = get_map(mission).start
    for moves in range(1, most + 1):
        over = lengths < moves
        cells[over, moves] = cells[over, moves - 1]
    return Journeys(
        mission=mission,
        cells=cells,
        lengths=lengths,
        rewards=rewards,
        risks=risks,
        sampled=sampled,
        probability=np.concatenate([reach[end] for reach, end in zip(reaches, ends, strict=True)]),
        planned=np.concatenate(
            [
                np.array(level.children, np.int64)[end] != UNPLANNED
                for level, end in zip(levels, ends, strict=True)
            ]
        ),
        reward=reward,
        risk=risk,
        visits=_count_visits(levels, reaches),
    )


def _spread(mission: Exploration, levels: Sequence[_Level]) -> tuple[list[Numbers], float, float]:
    """Return how probable each history of each level is, and reward and risk of the policy."""
    reaches = [np.array(levels[0].chances)]
    reward = risk = 0.0
    for moves, level in enumerate(levels[1:]):
        before = reaches[-1]
        reach = before[level.parents] * np.array(level.chances) if level.parents else np.zeros(0)
        reaches.append(reach)
        leaving = before[level.sources]
        risk += float(leaving @ np.array(level.risks))
        paid = reach @ np.array(level.rewards) + leaving @ np.array(level.failing_rewards)
        reward += mission.discount**moves * float(paid)
    return reaches, reward, risk


def _count_visits(levels: Sequence[_Level], reaches: Sequence[Numbers]) -> Visits:
    """Return where histories are for the first time, and where they collide."""
    places: list[Cell] = [levels[0].cells[0]]
    arriving, colliding = [np.ones(1)], [np.zeros(1)]
    for number, level in enumerate(levels[1:], 1):
        # A cell that gave a sample was not visited before.
        arriving += [reaches[number] * np.array(level.sampled, bool), np.zeros(len(level.targets))]
        leaving = reaches[number - 1][level.sources]
        colliding += [np.zeros(len(level.cells)), leaving * np.array(level.risks)]
        places += [*level.cells, *level.targets]
    cells, number_of = np.unique(np.array(places, np.int64), axis=0, return_inverse=True)
    probability, collision = (
        add_up(number_of, np.concatenate(parts)) for parts in (arriving, colliding)
    )
    return Visits(cells, probability, collision)
