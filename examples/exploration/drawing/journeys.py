"""Where the policy of an exploration mission goes: all of its histories, as plain arrays.

A *journey* is a safe history to its end. Histories that end in a collision have no arrays of their
own: they are in the sums (`reward`, `risk`) and in the places where they end (`Visits.collision`).
`follow_policy` finds all of them; none is sampled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.domains.exploration.maps import Cell, Map
from vulcan.domains.exploration.model import MOVES, Exploration, History
from vulcan.errors import OptionError
from vulcan.model.interface import describe_model
from vulcan.numerics import END, FAILED, UNPLANNED
from vulcan.policy.policy import AnyPolicy, open_own_model
from vulcan.policy.walk import MemberLists, ModelCheck
from vulcan.runtime.limits import pause_collection

__all__ = ["Journey", "Journeys", "Visits", "follow_policy", "require_mission"]


Numbers = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Journey:
    """One safe history of a policy.

    Attributes
    ----------
    mission
        The model.
    path
        The cells visited, the start first.
    rewards, risks, sampled
        Of each move: what it paid, its probability of a collision, and whether a sample was taken.
    probability
        Of all this.
    planned
        Whether it is a whole mission, rather than one that leaves an incomplete policy.
    """

    mission: Exploration
    path: tuple[Cell, ...]
    rewards: tuple[float, ...]
    risks: tuple[float, ...]
    sampled: tuple[bool, ...]
    probability: float
    planned: bool = True

    def __len__(self) -> int:
        """Return the number of moves."""
        return len(self.rewards)

    @property
    def earned(self) -> Numbers:
        """Reward so far, discounted, before the first move and after each."""
        paid = np.array(self.rewards) * self.mission.discount ** np.arange(len(self))
        return np.concatenate(([0.0], np.cumsum(paid)))

    @property
    def risked(self) -> Numbers:
        """Risk so far, before the first move and after each: 1 - the product of survivals."""
        return 1 - np.concatenate(([1.0], np.cumprod(1 - np.array(self.risks))))

    def samples(self, moves: int | None = None) -> tuple[list[Cell], list[float]]:
        """Return cells and values of the samples after this many moves, the start's first.

        Parameters
        ----------
        moves
            How many; by default all.
        """
        mission, area = self.mission, get_map(self.mission)
        first = mission.first_sample
        cells = [area.start]
        values = [mission.field.mean(area.locate(area.start)) if first is None else first]
        last = len(self) if moves is None else moves
        for cell, value, new in zip(self.path[1:], self.rewards, self.sampled, strict=True):
            if len(cells) > last:
                break
            if new:
                cells.append(cell)
                values.append(value)
            else:
                last -= 1  # a move that brought no sample
        return cells, values


@dataclass(frozen=True)
class Visits:
    """Where a policy goes, and where it may collide.

    Attributes
    ----------
    cells
        Shape [C, 2]: the cells in which the vehicle can be, or collide.
    probability
        Shape [C]: that it is ever there, after a move that it survived. A mission that collides
        later counts as well.
    collision
        Shape [C]: that the mission ends there in a collision. The sum is the risk of the policy.
    """

    cells: Whole
    probability: Numbers
    collision: Numbers


@dataclass(frozen=True)
class Journeys:
    """All safe histories of a policy: N journeys of at most T moves.

    Attributes
    ----------
    mission
        The model.
    cells
        Shape [N, T + 1, 2]: the cell before the first move and after each; after the end, the last.
    lengths
        Shape [N]: number of moves.
    rewards, risks, sampled
        Shape [N, T]: of each move what it paid, its risk, and whether a sample was taken; after the
        end 0, 0 and False.
    probability
        Shape [N]: of each journey. They sum to 1 - risk.
    planned
        Shape [N]: whether the journey is a whole mission, rather than one that leaves an incomplete
        policy.
    reward, risk
        Expected reward and probability of a collision of the policy, as in its certificate.
    visits
        Where it goes.
    """

    mission: Exploration
    cells: NDArray[np.int32]
    lengths: Whole
    rewards: Numbers
    risks: Numbers
    sampled: NDArray[np.bool_]
    probability: Numbers
    planned: NDArray[np.bool_]
    reward: float
    risk: float
    visits: Visits

    def __len__(self) -> int:
        """Return the number of journeys."""
        return len(self.probability)

    @property
    def earned(self) -> Numbers:
        """Shape [N]: reward of each journey, discounted."""
        earned: Numbers = self.rewards @ self.mission.discount ** np.arange(self.rewards.shape[1])
        return earned

    @property
    def risked(self) -> Numbers:
        """Shape [N]: risk of each journey, 1 - the product of survivals."""
        risked: Numbers = 1 - np.prod(1 - self.risks, axis=1)
        return risked

    def journey(self, number: int) -> Journey:
        """Return one journey."""
        moves = int(self.lengths[number])
        cells = self.cells[number, : moves + 1].tolist()
        return Journey(
            mission=self.mission,
            path=tuple((x, y) for x, y in cells),
            rewards=tuple(self.rewards[number, :moves].tolist()),
            risks=tuple(self.risks[number, :moves].tolist()),
            sampled=tuple(self.sampled[number, :moves].tolist()),
            probability=float(self.probability[number]),
            planned=bool(self.planned[number]),
        )

    def draw(self, seed: int) -> int:
        """Return the number of a journey, drawn with its probability among all that are safe.

        Parameters
        ----------
        seed
            The same seed draws the same journey.
        """
        self.require_some()
        if seed < 0:
            raise OptionError(f"seed must be a whole number from 0, not {seed}")
        share = self.probability / self.probability.sum()
        return int(np.random.default_rng(seed).choice(len(self), p=share))

    def require_some(self) -> None:
        """Refuse a policy that has no journey to show."""
        if not len(self):
            raise OptionError(
                "every outcome of this policy ends in a collision: there is no safe one to draw"
            )


def require_mission(model: object) -> Exploration:
    """Return a model that can be drawn, or say which ones can."""
    if isinstance(model, Exploration):
        return model
    raise OptionError(
        "only exploration missions can be drawn on a map: the model has to be an Exploration "
        f"(vulcan.domains.exploration), not {describe_model(model)}"
    )


def get_map(mission: Exploration) -> Map:
    """Return the map of a mission; it was found when the mission was made."""
    assert isinstance(mission.map, Map)
    return mission.map


def add_up(number_of: Whole, parts: Numbers) -> Numbers:
    """Return the sum of the parts of each number, from 0 to the largest."""
    sums: Numbers = np.bincount(number_of.ravel(), parts).astype(np.float64)
    return sums


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


class _Place(NamedTuple):
    """Where a history is: a member of the policy, a node of that member, and a state."""

    member: int
    node: int
    state: History


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
        self.places: list[tuple[int, _Place]] = []
        # Per history of the level before that goes on.
        self.sources: list[int] = []
        self.targets: list[Cell] = []
        self.risks: list[float] = []
        self.failing_rewards: list[float] = []


class _Walk:
    """Follows the members of a policy through a mission, each history by itself."""

    def __init__(self, policy: AnyPolicy, mission: Exploration) -> None:
        self.policy, self.mission = policy, mission
        self.check = ModelCheck(policy.about, open_own_model(policy.about, mission))
        self.members = [MemberLists(member) for member in policy.members]
        if not all(member.action for member in self.members):
            self.check.require_end(mission.initial_state(), 0)
        self.moves = 0

    def begin(self) -> _Level:
        """Return the histories before the first move: one per member."""
        level, root = _Level(0), self.mission.initial_state()
        for member, weight in enumerate(self.policy.weights):
            child = 0 if self.members[member].action else END
            self._arrive(level, -1, False, _Place(member, child, root))
            level.chances.append(weight)
            level.rewards.append(0.0)
        return level

    def go_on(self, before: _Level) -> _Level:
        """Return the safe histories that are one move longer."""
        level = _Level(before.moves + 1)
        for source, place in before.places:
            recorded, children = self.members[place.member].read(place.node)
            action = recorded[0]
            _, outcomes, labels = self.check.evaluate(place.state, action, before.moves)
            self.check.compare(outcomes, labels, recorded, place.state, before.moves)
            east, north = MOVES[action]
            x, y = place.state.path[-1]
            target = (x + east, y + north)
            new = target not in place.state.path
            risk = failing_reward = 0.0
            for outcome, child in zip(outcomes, children, strict=True):
                if child == FAILED:
                    risk += outcome.probability
                    failing_reward += outcome.probability * outcome.reward
                    continue
                self.check.compare_end(child, outcome.state, level.moves)
                level.chances.append(outcome.probability)
                level.rewards.append(outcome.reward)
                self._arrive(level, source, new, _Place(place.member, child, outcome.state))
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

    def _arrive(self, level: _Level, source: int, new: bool, place: _Place) -> None:
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
