"""The search tree: histories, their actions, and what is known of them.

    nodes     [N]  a history: state, first_edge (NONE until opened), visits, solved,
                   survival, credit, value
    edges     [E]  an action of an opened history: visits, mark, value, limit, first_child
    children  [C]  a node for each safe outcome of a tried action, NONE until sampled
                   (if counted, for each outcome; the failing ones come last)

The actions of an opened history are consecutive edges, in the order of its state's action rows.

Values are backed up with the probabilities, which are known, renormalised over the outcomes S' that
were sampled so far:

    Q(h, a) = R̄(s, a) + γ (1 - r) Σ_{S'} p(s') V(h') / Σ_{S'} p(s'),        V(h) = max_a Q(h, a).

Where the model is compiled and bounds what can still be earned, U(s'), the bounds are a baseline:
an outcome that was not sampled yet counts as its own bound, less what the sampled ones fell short
of theirs on average. So a sample that was lucky, in a state where much can be earned, says little
of its neighbours. With q = p / (1 - r),

    Q(h, a) = R̄(s, a) + γ (1 - r) [Σ q(s') U(s') + Σ_{S'} p(s') (V(h') - U(s')) / Σ_{S'} p(s')].

Once all outcomes were sampled both are the same, and U plays no part.

The algorithm as printed in the paper (`counted`) weighs by counts instead, failures included:

    Q(h, a) = Σ_{s'} N(h') / N(h, a) · (R(s, a, s') + γ V(h')).

A history is *solved* when all its remaining actions are, and an action when all its outcomes are.
Where the model offers upper bounds (`bounded`), `limit` is one on Q(h, a), and an action whose
limit is not above the value of a solved action of the same history is *closed*: it cannot win.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.kernels.codes import ADMITTED, KNOWN, REFUSED
from vulcan.kernels.compilation import borrow, part
from vulcan.kernels.constraints import add_credit, add_outcome_credit, hope, try_action
from vulcan.kernels.expansion import have_outcomes
from vulcan.sentinels import NONE

# How an edge is marked.
LIVE: Final = 0
SOLVED: Final = 1
DELETED: Final = 2
CLOSED: Final = 3

NODE: Final = np.dtype(
    [
        ("state", "i4"),
        ("first_edge", "i4"),
        ("visits", "i4"),
        ("solved", "i4"),
        ("survival", "f8"),
        ("credit", "f8"),
        ("value", "f8"),
    ],
    align=True,
)
EDGE: Final = np.dtype(
    [("visits", "i4"), ("mark", "i4"), ("value", "f8"), ("limit", "f8"), ("first_child", "i4")],
    align=True,
)
SIZE: Final = np.dtype(
    [("nodes", "i8"), ("edges", "i8"), ("children", "i8"), ("counted", "i8"), ("bounded", "i8")],
    align=True,
)


class Tree(NamedTuple):
    """The arrays of a search tree, and a record of how far they are filled."""

    nodes: Any
    edges: Any
    children: Any
    sizes: Any


@part
def borrow_tree(tree):
    """Return the same tree without counted references."""
    return Tree(borrow(tree.nodes), borrow(tree.edges), borrow(tree.children), borrow(tree.sizes))


@part
def action_row(problem, node, e):
    """Return the action row that an edge of a history stands for."""
    return problem.states[node.state].first_action + e - node.first_edge


@part
def count_outcomes(tree, action):
    """Return how many outcomes of an action are in the tree."""
    return action.outcome_count if tree.sizes[0].counted else action.safe_count


@part
def open_node(problem, tree, node):
    """Give a history its actions, unless it has them or there is no room."""
    if node.first_edge != NONE:
        return True
    size = tree.sizes[0]
    count = problem.states[node.state].action_count
    if size.edges + count > len(tree.edges):
        return False
    node.first_edge = size.edges
    for e in range(node.first_edge, node.first_edge + count):
        edge = tree.edges[e]
        edge.visits, edge.mark = 0, LIVE
        edge.value, edge.limit, edge.first_child = -np.inf, np.inf, NONE
    size.edges += count
    return True


@part
def open_edge(tree, action, edge):
    """Give an action a place for each outcome, unless it has them or there is no room."""
    if edge.first_child != NONE:
        return True
    size = tree.sizes[0]
    count = count_outcomes(tree, action)
    if size.children + count > len(tree.children):
        return False
    edge.first_child = size.children
    for k in range(edge.first_child, edge.first_child + count):
        tree.children[k] = NONE
    size.children += count
    return True


@part
def add_child(problem, tree, test, action, weight, node, edge, k):
    """Add the history after an outcome to the tree, and return its number."""
    size = tree.sizes[0]
    outcome = problem.outcomes[action.first_outcome + k]
    number = size.nodes
    size.nodes += 1
    tree.children[edge.first_child + k] = number
    child = tree.nodes[number]
    child.state, child.first_edge = outcome.state, NONE
    child.visits, child.solved, child.value = 0, 0, -np.inf
    child.survival = node.survival * (1.0 - action.immediate_risk)
    credit = add_credit(test, action, node.survival, node.credit, weight)
    child.credit = add_outcome_credit(test, outcome, node.credit, credit, weight)
    return number


@part
def foresee(problem, test, depth, node, action, edge):
    """Whether an action could lead to histories that pass, by the most that can still be earned.

    Asked when it is first tried. A risk above all that Δ ever allows is hopeless whatever is
    earned. Beyond that, a compiled model has a bound for each outcome, asked only while the history
    has taken more risk than it has earned credit for; others have one for the action, if they were
    asked for it when the history was opened (`bounded`).
    """
    survival = node.survival * (1.0 - action.immediate_risk)
    if not test.foresight or edge.visits > 0 or survival <= 0.0:
        return ADMITTED
    if not hope(test, problem.pieces, survival, 0.0, np.inf):
        return REFUSED
    weight = problem.weights[depth]
    credit = add_credit(test, action, node.survival, node.credit, weight)
    if problem.source[0].bound:
        for k in range(action.first_outcome, action.first_outcome + action.safe_count):
            outcome = problem.outcomes[k]
            so_far = add_outcome_credit(test, outcome, node.credit, credit, weight)
            more = weight * problem.discounts[depth] * outcome.outlook
            if (
                abs(outcome.outlook) < np.inf
                and not hope(test, problem.pieces, survival, so_far, 0.0)
                and not hope(test, problem.pieces, survival, so_far, more)
            ):
                return REFUSED
    elif edge.limit < np.inf and not test.by_outcome:
        more = weight * (edge.limit - action.expected_reward) / (1.0 - action.immediate_risk)
        if not hope(test, problem.pieces, survival, credit, max(0.0, more)):
            return REFUSED
    return ADMITTED


@part
def weigh_edge(problem, test, depth, last, node, row, edge):
    """Whether an action may be taken, its outcomes known if so; or what is needed to tell.

    If it is the last one, the histories after it are tested, and not followed.
    """
    if test.by_outcome:
        news = have_outcomes(problem, node.state, row, not last, depth)
        if news != KNOWN:
            return news
    action = problem.actions[row]
    ends = last or action.safe_count == 0
    weight = problem.weights[depth]
    verdict = try_action(problem, test, action, weight, ends, node.survival, node.credit)
    if verdict != ADMITTED:
        return verdict
    news = have_outcomes(problem, node.state, row, not last, depth)
    if news != KNOWN:
        return news
    return ADMITTED if ends else foresee(problem, test, depth, node, action, edge)


@part
def renew_edge(problem, tree, discount, node, e):
    """Renew the value and the mark of an action from the outcomes that were sampled."""
    edge = tree.edges[e]
    counted = tree.sizes[0].counted
    if edge.first_child == NONE:
        return
    action = problem.actions[action_row(problem, node, e)]
    total, mass, solved = 0.0, 0.0, not counted
    baseline, own, sampled = 0.0, 0.0, True
    for k in range(count_outcomes(tree, action)):
        number = tree.children[edge.first_child + k]
        outcome = problem.outcomes[action.first_outcome + k]
        baseline += outcome.probability * outcome.outlook
        if number == NONE or tree.nodes[number].visits == 0:
            solved = sampled = False
            continue
        child = tree.nodes[number]
        if counted:
            total += child.visits * (outcome.reward + discount * child.value)
            mass += child.visits
        else:
            total += outcome.probability * child.value
            mass += outcome.probability
            own += outcome.probability * outcome.outlook
            solved = solved and child.solved != 0
    if counted:
        edge.visits = mass
        if mass > 0.0:
            edge.value = total / mass
    elif mass > 0.0:
        survival = 1.0 - action.immediate_risk
        to_go = survival * total / mass
        if not sampled and abs(baseline) < np.inf:
            to_go += baseline - survival * own / mass
        edge.value = action.expected_reward + discount * to_go
    if solved:
        edge.mark = SOLVED


@part
def refresh(problem, tree, node):
    """Renew the visits, the value and the label of a history from its actions."""
    if tree.sizes[0].bounded:
        close_edges(problem, tree, node)
    visits, value, solved, left = 0, -np.inf, True, False
    for e in range(node.first_edge, node.first_edge + problem.states[node.state].action_count):
        edge = tree.edges[e]
        if edge.mark in (LIVE, SOLVED):
            left = True
            solved = solved and edge.mark == SOLVED
            if edge.visits > 0:
                visits += edge.visits
                value = max(value, edge.value)
    node.visits, node.value = visits, value
    node.solved = left and solved


@part
def close_edges(problem, tree, node):
    """Close the actions that cannot win against a solved one."""
    first, count = node.first_edge, problem.states[node.state].action_count
    best = -np.inf
    for e in range(first, first + count):
        if tree.edges[e].mark == SOLVED:
            best = max(best, tree.edges[e].value)
    for e in range(first, first + count):
        if tree.edges[e].mark == LIVE and tree.edges[e].limit <= best:
            tree.edges[e].mark = CLOSED


@part
def delete_edge(problem, tree, node, e):
    """Delete an action with its counts."""
    tree.edges[e].mark = DELETED
    refresh(problem, tree, node)
