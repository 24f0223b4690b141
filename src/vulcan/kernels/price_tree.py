"""A search tree that knows the value of every history for several prices of failure at once.

For a price λ let V_λ(h) be the largest E g - λ er from a history h on, and Q_λ(h, a) the same after
an action a. Rewards are weighed as seen from the start, γ^t, so that one price means the same on
every level. Values are vectors, an entry for each price:

    Q_λ(h, a) = γ^t R̄(s, a) - λ r(s, a) + Σ_safe p(s') V_λ(h'),        V_λ(h) = max_a Q_λ(h, a).

Where only some outcomes S' were sampled, the others are taken to be like these; where the model
bounds what can still be earned, U(s'), they are taken to fall short of their bound as these do:

    Σ_safe p V  ≈  Σ_safe p U  +  (1 - r) Σ_{S'} p (V - U) / Σ_{S'} p.

    nodes        [N]     a history: state, level, edges (none until opened), visits, solved; and of
                         the outcome that led there its chance, reward γ^t g and outlook U
    edges        [E]     an action of an opened history: visits, solved, reward γ^t R̄, risk r,
                         and the nodes after its safe outcomes, consecutive
    node_values  [N, K]  V, in single precision: they are estimates. What a plan is worth is
    edge_values  [E, K]  computed anew, in double precision.                               Q

A history is solved when all that can follow was sampled: then it is so for every price.

There are always eight prices. Values of a row are handled as a tuple of eight, which the compiler
keeps in one register.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.sentinels import NONE

PRICES: Final = 8

NODE: Final = np.dtype(
    [
        ("state", "i4"),
        ("first_edge", "i4"),
        ("edge_count", "i4"),
        ("visits", "i4"),
        ("level", "i4"),
        ("chance", "f4"),
        ("reward", "f4"),
        ("outlook", "f4"),
        ("plan", "i4"),  # what the current plan does: the position of an action, or NONE
        ("lane", "i2"),  # or below its top: which price it follows, or NONE
        ("solved", "i2"),
    ],
    align=True,
)
EDGE: Final = np.dtype(
    [
        ("visits", "i4"),
        ("first_child", "i4"),
        ("children", "i4"),
        ("solved", "i4"),
        ("reward", "f4"),
        ("risk", "f4"),
    ],
    align=True,
)
SIZE: Final = np.dtype([("nodes", "i8"), ("edges", "i8")], align=True)

LOWEST: Final = np.float32(-3e38)


class PriceTree(NamedTuple):
    """The arrays of a tree, the prices, and a record of how far they are filled."""

    nodes: Any
    edges: Any
    node_values: Any
    edge_values: Any
    prices: Any
    sizes: Any


@part
def borrow_prices(tree):
    """Return the same tree without counted references."""
    return PriceTree(
        borrow(tree.nodes),
        borrow(tree.edges),
        borrow(tree.node_values),
        borrow(tree.edge_values),
        borrow(tree.prices),
        borrow(tree.sizes),
    )


@part
def load(values, n):
    """Return a row as a tuple."""
    v = values
    return v[n, 0], v[n, 1], v[n, 2], v[n, 3], v[n, 4], v[n, 5], v[n, 6], v[n, 7]


@part
def store(values, n, row):
    """Write a row."""
    values[n, 0], values[n, 1], values[n, 2], values[n, 3] = row[0], row[1], row[2], row[3]
    values[n, 4], values[n, 5], values[n, 6], values[n, 7] = row[4], row[5], row[6], row[7]


@part
def fill(value):
    """Return a row of the same value."""
    return value, value, value, value, value, value, value, value


@part
def add_scaled(row, more, scale):
    """Return a row plus a multiple of another."""
    return (
        row[0] + scale * more[0],
        row[1] + scale * more[1],
        row[2] + scale * more[2],
        row[3] + scale * more[3],
        row[4] + scale * more[4],
        row[5] + scale * more[5],
        row[6] + scale * more[6],
        row[7] + scale * more[7],
    )


@part
def pick(one, other):
    """Return the larger of two numbers, none of which is nan."""
    return one if one > other else other


@part
def take_larger(row, other):
    """Return the larger entries of two rows."""
    return (
        pick(row[0], other[0]),
        pick(row[1], other[1]),
        pick(row[2], other[2]),
        pick(row[3], other[3]),
        pick(row[4], other[4]),
        pick(row[5], other[5]),
        pick(row[6], other[6]),
        pick(row[7], other[7]),
    )


@part
def price_action(tree, reward, risk):
    """Return what an action is worth by itself, for each price."""
    return add_scaled(fill(reward), load(tree.prices, 0), -risk)


@part
def open_node(problem, tree, node):
    """Give a history, whose actions are known, an edge for each; False if there is no room."""
    size = tree.sizes[0]
    state = problem.states[node.state]
    if size.edges + state.action_count > len(tree.edges):
        return False
    node.first_edge, node.edge_count = size.edges, state.action_count
    weight = problem.weights[node.level]
    for k in range(state.action_count):
        action, edge = problem.actions[state.first_action + k], tree.edges[size.edges + k]
        edge.visits, edge.solved, edge.first_child, edge.children = 0, 0, NONE, 0
        edge.reward, edge.risk = weight * action.expected_reward, action.immediate_risk
        store(tree.edge_values, size.edges + k, fill(LOWEST))
    size.edges += state.action_count
    return True


@part
def add_children(problem, tree, node, action, edge):
    """Give an action, whose outcomes are known, a node for each safe one; False without room."""
    size = tree.sizes[0]
    if size.nodes + action.safe_count > len(tree.nodes):
        return False
    edge.first_child, edge.children = size.nodes, action.safe_count
    weight, later = problem.weights[node.level], 0.0
    if node.level + 1 < len(problem.weights):
        later = problem.weights[node.level + 1]
    for k in range(action.safe_count):
        outcome, child = problem.outcomes[action.first_outcome + k], tree.nodes[size.nodes + k]
        child.state, child.first_edge, child.visits = outcome.state, NONE, 0
        child.level, child.solved = node.level + 1, 0
        child.chance, child.reward = outcome.probability, weight * outcome.reward
        child.outlook = later * outcome.outlook
        child.plan, child.lane = NONE, NONE
    size.nodes += action.safe_count
    return True


@part
def renew_edge(tree, e):
    """Renew the values and the label of an action from the outcomes that were sampled."""
    edge = tree.edges[e]
    nothing = np.float32(0.0)
    total, mass, own, baseline = fill(nothing), nothing, nothing, nothing
    solved, sampled = True, True
    for c in range(edge.first_child, edge.first_child + edge.children):
        child = tree.nodes[c]
        baseline += child.chance * child.outlook
        if child.visits == 0:
            sampled = solved = False
            continue
        total = add_scaled(total, load(tree.node_values, c), child.chance)
        mass += child.chance
        own += child.chance * child.outlook
        solved = solved and child.solved != 0
    if mass > nothing:
        value = price_action(tree, edge.reward, edge.risk)
        scale = (np.float32(1.0) - edge.risk) / mass if not sampled else np.float32(1.0)
        value = add_scaled(value, total, scale)
        if not sampled and abs(baseline) < np.inf:
            value = add_scaled(value, fill(baseline - scale * own), np.float32(1.0))
        store(tree.edge_values, e, value)
    edge.solved = solved


@part
def refresh(tree, node, number):
    """Renew the values and the label of an opened history from its actions."""
    best, solved = fill(LOWEST), True
    for e in range(node.first_edge, node.first_edge + node.edge_count):
        edge = tree.edges[e]
        solved = solved and edge.solved != 0
        if edge.visits > 0:
            best = take_larger(best, load(tree.edge_values, e))
    store(tree.node_values, number, best)
    node.solved = solved


@kernel
def move_values(tree, histories, left, share):
    """Go over to other prices, each a share of the way from a former one, `left`, to the next.

    The values of leaves are put between those known. Of all other histories they are computed from
    those that follow, which are done before.
    """
    tree = borrow_prices(tree)
    for number in histories:
        node = tree.nodes[number]
        if node.visits == 0:
            continue
        if node.first_edge == NONE:
            move_row(tree.node_values, number, left, share)
            continue
        for e in range(node.first_edge, node.first_edge + node.edge_count):
            edge = tree.edges[e]
            if edge.visits > 0 and edge.first_child != NONE:
                renew_edge(tree, e)
            elif edge.visits > 0:
                store(tree.edge_values, e, price_action(tree, edge.reward, edge.risk))
        refresh(tree, node, number)


@part
def move_row(values, number, left, share):
    """Put the values of a row between those known."""
    row = load(values, number)
    for k in range(PRICES):
        below = row[left[k]]
        values[number, k] = below + share[k] * (row[left[k] + 1] - below)
