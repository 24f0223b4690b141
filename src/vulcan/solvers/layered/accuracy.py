"""How far what a search computes may be from what it would be without rounding.

Every number that a dynamic program adds up, of the reward and of the risk, is rounded in the
factors that it is made of, and in each sum that it is a part of. With m outcomes of an action at
most, that is less than m + 16 times at each level, n times in all. With u = 2^-53, the roundings of
one number multiply it by a factor between (1 - u)^n and (1 + u)^n. So with

    e = n u / (1 - n u)

a reward that was computed is at most e E Σ γ^t |r| from the exact one, and a risk, whose parts are
all positive, at most e er. That knows that rewards may cancel: where 1e8 is earned and lost again,
digits of 1e8 are lost. With P the largest E Σ γ^t max(r, 0) of any policy, one dynamic program,

    E Σ γ^t |r|  =  2 E Σ γ^t max(r, 0) - E g  <=  2 P - E g,

so that what nobody would do, a way out that costs 1e15, does not blur what others earn.

Actions that can only fail count as risk 1, although their probabilities sum to 1 only up to
`SUM_TOLERANCE`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.base import Graph
from vulcan.graphs.levels import Levels
from vulcan.runtime.ranges import ranges
from vulcan.runtime.team import Team
from vulcan.solvers.layered.sweeps import Sweeps
from vulcan.tolerance import LARGEST_REWARD, SUM_TOLERANCE

__all__ = [
    "Accuracy",
    "Extremes",
    "bound_accuracy",
    "find_accuracy",
    "find_extremes",
    "join_extremes",
]

UNIT: Final = sys.float_info.epsilon / 2
"""By which share a single operation rounds."""

EVERY_LEVEL: Final = 16
"""Roundings at each level beside those of the outcomes, and some to spare for what is done next."""

BLOCK: Final = 1 << 16
"""Actions that are looked at at once."""


@dataclass(frozen=True)
class Accuracy:
    """What rounding may have done to policies.

    Attributes
    ----------
    share
        e: by which share the sizes of rewards are rounded.
    gains
        P: no policy gains more, losses not counted.
    risk
        By which share a risk is rounded.
    """

    share: float = 0.0
    gains: float = 0.0
    risk: float = 0.0

    def at(self, reward: float) -> float:
        """Return what rounding may have done to a policy that earns this, or about as much."""
        return self.share * (1 + self.share) * (2 * self.gains + abs(reward))


class Extremes(NamedTuple):
    """What is largest among the actions of a graph.

    Attributes
    ----------
    outcomes
        How many outcomes an action has.
    gains
        What one is expected to gain, losses not counted.
    certain
        Whether there is one that can only fail.
    """

    outcomes: int
    gains: float
    certain: bool


def find_accuracy(
    levels: Levels, tips: NDArray[np.void] | None = None, team: Team | None = None
) -> Accuracy:
    """Return how accurately the policies of some levels are evaluated.

    Parameters
    ----------
    levels, tips, team
        As `Sweeps` gets them.
    """
    each = _find_gains(levels.graph)
    gains = levels.arrays._replace(expected_reward=each)
    if tips is not None:
        tips = tips.copy()
        # What nobody knows is larger than anything, however it is rounded.
        known = np.abs(tips["reward"]) <= LARGEST_REWARD
        tips["reward"] = np.where(known, np.maximum(tips["reward"], 0.0), 0.0)
    most = Sweeps(Levels(levels.graph, gains), tips, team).find_best(1.0, 0.0).reward
    return _make_accuracy(_collect(levels.graph, each), len(levels.arrays.first) - 1, most)


def bound_accuracy(extremes: Extremes, weights: NDArray[np.float64]) -> Accuracy:
    """Return how accurately policies are evaluated in any form: less sharp, and quickly found.

    Parameters
    ----------
    extremes
        Of all that is known of the model.
    weights
        The discount of each level.
    """
    return _make_accuracy(extremes, len(weights), float(np.sum(weights)) * extremes.gains)


def find_extremes(graph: Graph) -> Extremes:
    """Return what is largest among the actions of a graph."""
    return _collect(graph, _find_gains(graph))


def join_extremes(some: Iterable[Extremes]) -> Extremes:
    """Return what is largest among the actions of several graphs."""
    return Extremes(*map(max, zip(*some, strict=True)))


def _collect(graph: Graph, gains: NDArray[np.float64]) -> Extremes:
    actions = graph.actions.array[: graph.actions.count]
    outcomes = int(actions["outcome_count"].max(initial=1))
    certain = bool((actions["safe_count"] == 0).any())
    return Extremes(outcomes, float(gains.max(initial=0.0)), certain)


def _make_accuracy(extremes: Extremes, levels: int, gains: float) -> Accuracy:
    """Return the accuracy of sums over some levels, where no policy gains more."""
    count = levels * (extremes.outcomes + EVERY_LEVEL)
    share = count * UNIT / (1 - count * UNIT)
    risk = share + (SUM_TOLERANCE if extremes.certain else 0.0)
    return Accuracy(share, gains * (1 + share), risk)


def _find_gains(graph: Graph) -> NDArray[np.float64]:
    """Return what each action is expected to gain, losses not counted."""
    actions = graph.actions.array[: graph.actions.count]
    outcomes = graph.outcomes.array
    gains = np.zeros(len(actions))
    for begin in range(0, len(actions), BLOCK):
        stored = actions["first_outcome"][begin : begin + BLOCK] >= 0
        counts = np.where(stored, actions["outcome_count"][begin : begin + BLOCK], 0)
        rows = ranges(actions["first_outcome"][begin : begin + BLOCK], counts)
        parts = outcomes["probability"][rows] * np.maximum(outcomes["reward"][rows], 0.0)
        owner = np.repeat(np.arange(len(counts)), counts)
        gains[begin : begin + BLOCK] = np.bincount(owner, parts, len(counts))
    for row, answers in graph.ask_unstored():
        gains[row] = sum(p * max(r, 0.0) for p, r, _ in answers.tolist())
    return gains
