"""Unrolling a state graph over the levels, and numbering the decisions of a policy over them.

`vulcan.graphs.levels` says what the arrays are. Both go level by level, with a number for each
state: the last level in which it was met, or its place in the next.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from vulcan.kernels.compilation import borrow, kernel
from vulcan.kernels.level_arrays import borrow_levels, put_in_place, skip_children
from vulcan.sentinels import END, NONE

__all__ = ["DECIDED", "DECISION", "WAY", "Found", "find_following", "number_decisions"]

DECIDED = -1
"""The mode of decisions that are taken one by one."""

DECISION = np.dtype([("node", "i4"), ("row", "i4"), ("first_way", "i4")])
WAY = np.dtype([("mode", "i4"), ("number", "i4")])


class Found(NamedTuple):
    """What `number_decisions` fills.

    Attributes
    ----------
    rows, nodes, modes
        Of each decision.
    children
        One for each safe outcome of each decision.
    numbers
        Scratch: the decision of each state in each mode, -1 before.
    """

    rows: Any
    nodes: Any
    modes: Any
    children: Any
    numbers: Any


@kernel
def find_following(states, actions, outcomes, here, level, met, following):
    """Fill the states that a level leads to, each once; return how many there are.

    `here` has the states of the level that are expanded, and `met` the last level in which each
    state was met.
    """
    states, actions, outcomes = borrow(states), borrow(actions), borrow(outcomes)
    here, met, following = borrow(here), borrow(met), borrow(following)
    count = 0
    for k in range(len(here)):
        state = states[here[k]]
        for a in range(state.first_action, state.first_action + state.action_count):
            action = actions[a]
            for o in range(action.first_outcome, action.first_outcome + action.safe_count):
                target = outcomes[o].state
                if met[target] != level:
                    met[target] = level
                    following[count] = target
                    count += 1
    return count


@kernel
def number_decisions(levels, choices, decided, ways, found):  # noqa: PLR0912 - one loop
    """Give numbers to the decisions of a policy, level by level, in the order they are met.

    Parameters
    ----------
    levels
        The graph.
    choices
        The row of each node in each of some modes: choices[mode, node]. A tip has none.
    decided, ways
        Decisions that are taken one by one: node, row and first way; and of each way the mode in
        which it goes on, or the number of a decided one. The first is the root; without any, the
        root is in mode 0.
    found
        What is filled: rows, nodes and modes of decisions, their children, and scratch.

    Returns
    -------
    tuple
        How many decisions and children there are.
    """
    levels, choices = borrow_levels(levels), borrow(choices)
    decided, ways = borrow(decided), borrow(ways)
    rows, nodes, modes = borrow(found.rows), borrow(found.nodes), borrow(found.modes)
    children, numbers = borrow(found.children), borrow(found.numbers)
    tree = len(levels.first_child) > 0
    count, written, begin = 1, 0, 0
    nodes[0], modes[0] = 0, 0 if len(decided) == 0 else DECIDED
    for level in range(len(levels.first) - 1):
        last = level + 2 == len(levels.first)
        if not tree and not last:
            put_in_place(levels, level + 1)
        end = count
        for decision in range(begin, end):
            n, mode, way = nodes[decision], modes[decision], np.int32(0)
            if mode == DECIDED:
                n, row, way = decided[n].node, decided[n].row, decided[n].first_way
                nodes[decision] = n
            else:
                row = choices[mode, n]
            rows[decision] = row
            if row == NONE:
                continue
            child = np.int32(0)
            if tree:
                child = levels.first_child[n] + skip_children(levels, n, row)
            first = levels.first_outcome[row]
            for o in range(first, first + levels.safe_count[row]):
                state, after, place = levels.target[o], mode, NONE
                if mode == DECIDED:
                    after, place = ways[way].mode, ways[way].number
                    way += 1
                if last or levels.action_count[state] == 0:
                    children[written] = END
                elif after == DECIDED or tree or numbers[after, state] < end:
                    nodes[count], modes[count] = levels.place[state], after
                    if after == DECIDED:
                        nodes[count] = place
                    else:
                        numbers[after, state] = count
                    if tree:
                        nodes[count] = child
                        child += 1
                    children[written] = count
                    count += 1
                else:
                    children[written] = numbers[after, state]
                written += 1
        begin = end
    return count, written
