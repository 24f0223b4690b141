"""The places that the histories of a policy can be in, level by level, and what is added up there.

A place is a decision of the policy in a state; histories that come to the same place go on as one.
With reach the probability of being in a place,

    er = Σ reach · r,    E g = Σ γ^t reach · R̄,    frontier = Σ reach at unplanned places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.model.reader import ModelReader
from vulcan.policies.walk import Place, PolicyWalk, Way
from vulcan.sentinels import END, FAILED, UNPLANNED

__all__ = ["Level", "Number", "Watch", "add_up", "arrive", "follow_levels"]

NEGLIGIBLE: Final = 1e-200

Number = float | Fraction

Watch = Callable[[float], None]
"""Told now and then which share of the levels is done."""


class Level:
    """The places of one level, and the safe ways on from them.

    Attributes
    ----------
    weight
        γ^t.
    risk, failing_reward, safe_reward, unplanned
        Of each place: its immediate risk, the parts of R̄ that come with failure and without, and
        the probability of leaving the plan.
    source, target, probability
        Of each way to the next level: the places that it leads from and to, and how likely it is.
    """

    def __init__(self, weight: Number) -> None:
        self.weight = weight
        self.risk: Any = []
        self.failing_reward: Any = []
        self.safe_reward: Any = []
        self.unplanned: Any = []
        self.source: Any = []
        self.target: Any = []
        self.probability: Any = []


def follow_levels(
    walk: PolicyWalk, reader: ModelReader, number: Callable[[Any], Any], watch: Watch
) -> Iterator[Level]:
    """Yield the levels, in plain Python; the first has one place for each member."""
    places = {place: place.member for place in walk.begin()}
    weight = number(1)
    for level_number in range(reader.levels):
        if not places:
            return
        level = Level(weight)
        following: dict[Place, int] = {}
        for place in places:
            _add_place(level, place, walk.follow(place, level_number), following, number)
        yield level
        places = following
        weight *= number(reader.discount_after(level_number))
        watch((level_number + 1) / reader.levels)


def _add_place(
    level: Level,
    place: Place,
    ways: Sequence[Way],
    following: dict[Place, int],
    number: Callable[[Any], Any],
) -> None:
    """Add a place and the ways from it; histories that meet go on as one."""
    risk = failing_reward = safe_reward = unplanned = number(0)
    for outcome, child in ways:
        probability = number(outcome.probability)
        part = probability * number(outcome.reward)
        if child == FAILED:
            risk += probability
            failing_reward += part
            continue
        safe_reward += part
        if child == UNPLANNED:
            unplanned += probability
        elif child != END:
            level.source.append(len(level.risk))
            target = Place(place.member, child, outcome.state)
            level.target.append(following.setdefault(target, len(following)))
            level.probability.append(probability)
    level.risk.append(risk)
    level.failing_reward.append(failing_reward)
    level.safe_reward.append(safe_reward)
    level.unplanned.append(unplanned)


def add_up(
    levels: Sequence[Level], start: Sequence[Number], exact: bool
) -> tuple[Number, Number, Number]:
    """Return expected reward, risk and the probability of reaching the frontier.

    The places of the first level are reached with the probabilities `start`.
    """
    if any(isinstance(level.risk, np.ndarray) for level in levels):
        return _add_up_arrays(levels, np.array(start, float))
    total = sum if exact else math.fsum
    rewards: list[Number] = []
    risks: list[Number] = []
    unplanned: list[Number] = []
    reach: Sequence[Number] = start
    for level in levels:
        arrived: list[list[Number]] = [[] for _ in range(max(level.target, default=-1) + 1)]
        for place, (here, risk) in enumerate(zip(reach, level.risk, strict=True)):
            risks.append(here * risk)
            unplanned.append(here * level.unplanned[place])
            earned = level.failing_reward[place] + level.safe_reward[place]
            rewards.append(level.weight * here * earned)
        for source, target, probability in zip(
            level.source, level.target, level.probability, strict=True
        ):
            arrived[target].append(reach[source] * probability)
        reach = [total(parts) for parts in arrived]
    return total(rewards), total(risks), total(unplanned)


def arrive(
    targets: NDArray[Any], probabilities: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    """Return the probability of arriving in each place.

    What is less likely than any sum of it could show counts as 0: arithmetic with numbers at the
    lower end of floating point takes a hundred times as long.
    """
    probabilities[probabilities < NEGLIGIBLE] = 0.0
    return np.bincount(targets, probabilities, size).astype(float, copy=False)


def _add_up_arrays(
    levels: Sequence[Level], reach: NDArray[np.float64]
) -> tuple[float, float, float]:
    """Return the same of levels that are arrays."""
    rewards, risks, unplanned = [], [], []
    for level in levels:
        earned = level.failing_reward + level.safe_reward
        # Not by matrix products: libraries start threads for them, and wait for those.
        rewards.append(float(level.weight) * float((reach * earned).sum()))
        risks.append(float((reach * level.risk).sum()))
        unplanned.append(float((reach * level.unplanned).sum()))
        size = int(level.target.max(initial=-1)) + 1
        reach = arrive(level.target, reach[level.source] * level.probability, size)
    return math.fsum(rewards), math.fsum(risks), math.fsum(unplanned)
