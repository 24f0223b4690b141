"""An upper bound on what any policy that the constraint admits can still earn, from the tree.

    U(h) = V(h)                                          if h is solved
    U(h) = max over the actions that are not deleted     otherwise
           min(limit(h, a),  R̄(s, a) + γ Σ_safe p(s') U(h'))

where limit(h, a) comes from the model's own `reward_to_go_bound`, and stands alone for an action
some of whose outcomes were never opened. Deleted actions are proved to be inadmissible.
"""

from __future__ import annotations

import numpy as np

from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.problem_arrays import borrow_problem
from vulcan.kernels.tree import DELETED, SOLVED, action_row, borrow_tree
from vulcan.sentinels import NONE


@kernel
def bound_root(problem, tree, uppers):
    """Return U(root); `uppers` has room for a number per history."""
    problem, tree, uppers = borrow_problem(problem), borrow_tree(tree), borrow(uppers)
    last = len(problem.discounts) - 1
    # A history is younger than the one before it, so that this meets children first.
    for number in range(tree.sizes[0].nodes - 1, -1, -1):
        node = tree.nodes[number]
        if node.solved:
            uppers[number] = node.value
        elif node.first_edge == NONE:
            uppers[number] = np.inf
        else:
            # After an initial action nothing is discounted; all other steps are alike.
            discount = problem.discounts[0 if number == 0 else last]
            end = node.first_edge + problem.states[node.state].action_count
            best = -np.inf
            for e in range(node.first_edge, end):
                if tree.edges[e].mark != DELETED:
                    best = max(best, bound_edge(problem, tree, uppers, discount, node, e))
            uppers[number] = best
    return uppers[0]


@part
def bound_edge(problem, tree, uppers, discount, node, e):
    """Return an upper bound on the value of an action."""
    edge = tree.edges[e]
    if edge.mark == SOLVED:
        return edge.value
    if edge.first_child == NONE:
        return edge.limit
    action = problem.actions[action_row(problem, node, e)]
    total = 0.0
    for k in range(action.safe_count):
        child = tree.children[edge.first_child + k]
        if child == NONE or uppers[child] == np.inf:
            return edge.limit
        total += problem.outcomes[action.first_outcome + k].probability * uppers[child]
    return min(edge.limit, action.expected_reward + discount * total)
