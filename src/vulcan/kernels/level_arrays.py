"""What kernels are given of a state graph that is unrolled over the levels, in one tuple."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.kernels.compilation import borrow, part
from vulcan.sentinels import END

__all__ = [
    "VALUE",
    "LevelArrays",
    "borrow_levels",
    "find_next",
    "put_in_place",
    "skip_children",
]

VALUE: Final = np.dtype([("reward", "f8"), ("risk", "f8")])
"""What a policy earns and risks from somewhere on."""


class LevelArrays(NamedTuple):
    """The arrays; see `vulcan.graphs.levels`.

    Attributes
    ----------
    first
        The nodes of level t are first[t] to first[t + 1] - 1.
    state
        The state of each node.
    expanded
        Whether each node is expanded; empty if all are.
    first_child
        The first node after each node where every history is a node; else empty.
    weights
        γ^t of each level.
    first_action, action_count
        Of each state: its actions are consecutive rows.
    expected_reward, immediate_risk, first_outcome, safe_count
        Of each row of an action: R̄, r, and its safe outcomes, which are consecutive.
    probability, target
        Of each outcome: how likely it is, and the state that it leads to.
    place
        Scratch, one for each state: its node in the level that follows (`put_in_place`).
    """

    first: Any
    state: Any
    expanded: Any
    first_child: Any
    weights: Any
    first_action: Any
    action_count: Any
    expected_reward: Any
    immediate_risk: Any
    first_outcome: Any
    safe_count: Any
    probability: Any
    target: Any
    place: Any


@part
def borrow_levels(levels):
    """Return the same levels without counted references."""
    return LevelArrays(
        borrow(levels.first),
        borrow(levels.state),
        borrow(levels.expanded),
        borrow(levels.first_child),
        borrow(levels.weights),
        borrow(levels.first_action),
        borrow(levels.action_count),
        borrow(levels.expected_reward),
        borrow(levels.immediate_risk),
        borrow(levels.first_outcome),
        borrow(levels.safe_count),
        borrow(levels.probability),
        borrow(levels.target),
        borrow(levels.place),
    )


@part
def put_in_place(levels, level):
    """Note the nodes of a level by their states."""
    for n in range(levels.first[level], levels.first[level + 1]):
        levels.place[levels.state[n]] = n


@part
def find_next(levels, level, o):
    """Return the node after an outcome at a level, END if the history ends there."""
    state = levels.target[o]
    if level + 2 >= len(levels.first) or levels.action_count[state] == 0:
        return END
    return levels.place[state]


@part
def skip_children(levels, n, row):
    """Return how many nodes come after the actions of a node before one of them, in a tree."""
    skipped = np.int32(0)
    for a in range(levels.first_action[levels.state[n]], row):
        first = levels.first_outcome[a]
        for o in range(first, first + levels.safe_count[a]):
            if levels.action_count[levels.target[o]] != 0:
                skipped += 1
    return skipped
