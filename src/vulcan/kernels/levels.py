"""Levels of states: a layered graph that is not written out, and how kernels walk it.

Level t has a node for each state that some policy can be in at that level and that has a decision
to take. What follows an outcome is the node of its state in the next level: `put_in_place` notes
those before a level is worked on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from vulcan.kernels.compilation import borrow, part
from vulcan.sentinels import END

__all__ = ["LevelArrays", "borrow_levels", "find_next", "put_in_place", "value_action"]


class LevelArrays(NamedTuple):
    """The levels, and the rows of the state graph.

    Attributes
    ----------
    first
        Nodes of level t are first[t], ..., first[t + 1] - 1.
    state
        Of each node; ascending within a level.
    weights
        γ^t of each level.
    states, actions, outcomes
        The rows; see `vulcan.graphs.base`.
    place
        Scratch, one for each state: its node in the level that follows.
    """

    first: Any
    state: Any
    weights: Any
    states: Any
    actions: Any
    outcomes: Any
    place: Any


@part
def borrow_levels(levels):
    """Return the arrays of levels without counted references."""
    return LevelArrays(
        borrow(levels.first),
        borrow(levels.state),
        borrow(levels.weights),
        borrow(levels.states),
        borrow(levels.actions),
        borrow(levels.outcomes),
        borrow(levels.place),
    )


@part
def put_in_place(levels, t):
    """Note the nodes of a level by their states."""
    for n in range(levels.first[t], levels.first[t + 1]):
        levels.place[levels.state[n]] = n


@part
def find_next(levels, t, o):
    """Return the node after an outcome at a level, END if the history ends there."""
    state = levels.outcomes[o].state
    if t + 2 >= len(levels.first) or levels.states[state].action_count == 0:
        return END
    return levels.place[state]


@part
def value_action(levels, values, price, t, a):
    """Return the largest reward - price · risk from an action on."""
    action = levels.actions[a]
    value = levels.weights[t] * action.expected_reward - price * action.immediate_risk
    for o in range(action.first_outcome, action.first_outcome + action.safe_count):
        n = find_next(levels, t, o)
        if n >= 0:
            value += levels.outcomes[o].probability * values[n]
    return value
