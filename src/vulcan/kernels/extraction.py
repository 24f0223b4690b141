"""The policy that was settled in a search tree, written out in preorder, and what it is worth.

    rows    [n]     the action row of each decision
    firsts  [n + 1] where the entries of a decision begin in
    below   [m]     what comes after each safe outcome: a decision, or END or UNPLANNED

Reward and risk are summed over all decisions with the probability of reaching them: exact, but for
rounding.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.problem_arrays import borrow_problem
from vulcan.kernels.tree import action_row, borrow_tree
from vulcan.sentinels import END, UNPLANNED

LEVEL: Final = np.dtype(
    [("node", "i4"), ("row", "i4"), ("number", "i4"), ("outcome", "i4"), ("reach", "f8")],
    align=True,
)
SUMMARY: Final = np.dtype(
    [
        ("decisions", "i8"),
        ("entries", "i8"),
        ("reward", "f8"),
        ("risk", "f8"),
        ("frontier", "f8"),  # probability of reaching a history that is not planned
    ],
    align=True,
)


@kernel
def write_outline(problem, tree, choice, levels, rows, firsts, below, summaries):
    """Write the policy; False if the arrays are too short."""
    problem, tree, choice = borrow_problem(problem), borrow_tree(tree), borrow(choice)
    levels, rows, firsts, below = borrow(levels), borrow(rows), borrow(firsts), borrow(below)
    summary = summaries[0]
    summary.decisions, summary.entries = 0, 0
    summary.reward, summary.risk, summary.frontier = 0.0, 0.0, 0.0
    firsts[0] = 0
    if choice[0] < 0:
        return True
    levels[0].node, levels[0].reach = 0, 1.0
    depth = 0
    if not enter(problem, tree, choice, levels[0], 0, rows, firsts, below, summary):
        return False
    while depth >= 0:
        here = levels[depth]
        action = problem.actions[here.row]
        k = here.outcome
        if k == action.safe_count:
            depth -= 1
            continue
        here.outcome += 1
        entry = firsts[here.number] + k
        below[entry] = END
        if depth + 1 == len(problem.discounts):
            continue
        outcome = problem.outcomes[action.first_outcome + k]
        if problem.states[outcome.state].action_count == 0:
            continue
        child = tree.children[tree.edges[choice[here.node]].first_child + k]
        reach = here.reach * outcome.probability
        if choice[child] < 0:
            below[entry] = UNPLANNED
            summary.frontier += reach
            continue
        below[entry] = summary.decisions
        depth += 1
        levels[depth].node, levels[depth].reach = child, reach
        if not enter(problem, tree, choice, levels[depth], depth, rows, firsts, below, summary):
            return False
    return True


@part
def enter(problem, tree, choice, here, depth, rows, firsts, below, summary):
    """Write the next decision; False if there is no room for it."""
    here.row = action_row(problem, tree.nodes[here.node], choice[here.node])
    here.number, here.outcome = summary.decisions, 0
    action = problem.actions[here.row]
    if here.number >= len(rows) or summary.entries + action.safe_count > len(below):
        return False
    rows[here.number] = here.row
    summary.decisions += 1
    summary.entries += action.safe_count
    firsts[summary.decisions] = summary.entries
    summary.reward += problem.weights[depth] * here.reach * action.expected_reward
    summary.risk += here.reach * action.immediate_risk
    return True
