"""Following a policy through an exploration mission, to all of its journeys.

A policy knows no states, so it is followed from the start, level by level. The model is asked once
for each history that has a decision, and what it says has to be what the policy was made with.
Nothing is sampled: a policy that a search made has no more safe histories than outcomes, and all of
them are returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from vulcan.domains.exploration.maps import Cell
from vulcan.domains.exploration.model import MOVES, Exploration, History
from vulcan.errors import MismatchError, OptionError
from vulcan.model import Outcome, describe_model
from vulcan.plotting.journeys import Journeys, Numbers, Visits, add_up, get_map, require_mission
from vulcan.policy import END, FAILED, UNPLANNED, open_own_model
from vulcan.randomised import AnyPolicy

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
    open_own_model(policy.about, require_mission(mission))
    walk = _Walk(policy, mission)
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
        # Per safe history that goes on: its number, member, node and state.
        self.places: list[tuple[int, int, int, History]] = []
        # Per history of the level before that goes on.
        self.sources: list[int] = []
        self.targets: list[Cell] = []
        self.risks: list[float] = []
        self.failing_rewards: list[float] = []


class _Walk:
    """Follows the members of a policy through a mission."""

    def __init__(self, policy: AnyPolicy, mission: Exploration) -> None:
        self.policy, self.mission, self.area = policy, mission, get_map(mission)
        self.moves = 0
        # Lists: numbers are taken from them one by one.
        self.children = [member.child.tolist() for member in policy.members]
        self.firsts = [member.first_outcome.tolist() for member in policy.members]
        self.actions = [
            [member.labels[action] for action in member.action.tolist()]
            for member in policy.members
        ]

    def begin(self) -> _Level:
        """Return the histories before the first move: one per member."""
        level, root = _Level(0), self.mission.initial_state()
        for member, (policy, weight) in enumerate(
            zip(self.policy.members, self.policy.weights, strict=True)
        ):
            self._arrive(level, (member, -1, 0, root), END if not len(policy) else 0)
            level.chances.append(weight)
            level.rewards.append(0.0)
        return level

    def go_on(self, before: _Level) -> _Level:
        """Return the safe histories that are one move longer."""
        level = _Level(before.moves + 1)
        outcomes = self.mission.outcomes
        for source, member, node, state in before.places:
            label = self.actions[member][node]
            target = self._move(state, label)
            answers = outcomes(state, label)
            first, end = self.firsts[member][node : node + 2]
            children = self.children[member][first:end]
            self._compare(answers, member, node, state)
            new = target not in state.path
            risk = failing_reward = 0.0
            for outcome, child in zip(answers, children, strict=True):
                if child == FAILED:
                    risk += outcome.probability
                    failing_reward += outcome.probability * outcome.reward
                    continue
                level.chances.append(outcome.probability)
                level.rewards.append(outcome.reward)
                self._arrive(level, (member, source, new, outcome.state), child)
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

    def _arrive(self, level: _Level, way: tuple[int, int, Any, History], child: int) -> None:
        """Note a safe history."""
        member, source, new, state = way
        if child >= 0:
            if level.moves == self.mission.horizon:
                raise self._mismatch(f"the policy acts beyond the horizon, in {state!r}")
            level.places.append((len(level.cells), member, child, state))
        elif child == END and level.moves < self.mission.horizon and self.mission.actions(state):
            raise self._mismatch(f"the policy ends in state {state!r}, which has actions")
        level.parents.append(source)
        level.cells.append(state.path[-1])
        level.sampled.append(bool(new))
        level.children.append(child)

    def _move(self, state: History, label: str) -> Cell:
        (x, y), (east, north) = state.path[-1], MOVES.get(label, (0, 0))
        target = (x + east, y + north)
        if label not in MOVES or not self.area.contains(target):
            raise self._mismatch(f"the policy takes {label!r} in state {state!r}, where it can't")
        return target

    def _compare(self, answers: Sequence[Outcome], member: int, node: int, state: History) -> None:
        """Refuse answers that are not those that the policy was made with."""
        policy = self.policy.members[member]
        first, end = self.firsts[member][node : node + 2]
        said = [(outcome.probability, outcome.reward, outcome.fails) for outcome in answers]
        recorded = list(
            zip(
                policy.probability[first:end].tolist(),
                policy.reward[first:end].tolist(),
                [child == FAILED for child in self.children[member][first:end]],
                strict=True,
            )
        )
        if said != recorded:
            raise self._mismatch(
                f"the model changed its answers for {self.actions[member][node]!r} in state "
                f"{state!r}: (probability, reward, fails) were {recorded}, are {said}"
            )

    def _mismatch(self, detail: str) -> MismatchError:
        return MismatchError(
            f"this policy was made for {self.policy.about.model}; "
            f"{describe_model(self.mission)} is another, or no longer answers the same: {detail}"
        )


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
