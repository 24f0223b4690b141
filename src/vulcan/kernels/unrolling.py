"""Unrolling a state graph over the levels, and numbering the decisions of a policy over them.

`vulcan.graphs.levels` says what the arrays are. Both go level by level, with a number for each
state: the last level in which it was met, or its place in the next.
"""

from __future__ import annotations

from vulcan.kernels.compilation import borrow, kernel
from vulcan.kernels.level_arrays import borrow_levels, put_in_place, skip_children
from vulcan.sentinels import END, NONE

__all__ = ["find_following", "number_decisions"]


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
def number_decisions(levels, choice, rows, children, nodes, numbers):
    """Give numbers to the decisions of a policy, level by level, in the order they are met.

    Parameters
    ----------
    levels
        The graph.
    choice
        The row that is taken in each node; NONE in tips.
    rows, children, nodes
        What is filled: the row of each decision, what comes after each of its safe outcomes, and
        the node that it is taken in.
    numbers
        Scratch: the decision of each state, NONE before.

    Returns
    -------
    tuple
        How many decisions and children there are.
    """
    levels, choice, rows = borrow_levels(levels), borrow(choice), borrow(rows)
    children, nodes, numbers = borrow(children), borrow(nodes), borrow(numbers)
    tree = len(levels.first_child) > 0
    count, written, begin = 1, 0, 0
    nodes[0] = 0
    for level in range(len(levels.first) - 1):
        last = level + 2 == len(levels.first)
        if not tree and not last:
            put_in_place(levels, level + 1)
        end = count
        for decision in range(begin, end):
            n = nodes[decision]
            row = choice[n]
            rows[decision] = row
            if row == NONE:
                continue
            child = levels.first_child[n] + skip_children(levels, n, row) if tree else NONE
            first = levels.first_outcome[row]
            for o in range(first, first + levels.safe_count[row]):
                state = levels.target[o]
                if last or levels.action_count[state] == 0:
                    children[written] = END
                elif tree or numbers[state] < end:
                    nodes[count] = child if tree else levels.place[state]
                    children[written] = numbers[state] = count
                    count += 1
                    child += 1
                else:
                    children[written] = numbers[state]
                written += 1
        begin = end
    return count, written
