"""The tree of RAO*: expansion, update, and bounds on risk (`vulcan.baselines.rao_star`).

A node is a history, an edge an action of it that was not rejected. `order` of the first nodes lists
the best policy, parents before children and level by level.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vulcan.kernels import codes
from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.numerics import NONE

# The status of a node.
OPEN: Final = 0
EXPANDED: Final = 1
ENDED: Final = 2
DEAD: Final = 3

FLOATS: Final = [(name, "f8") for name in ("value", "risk", "allowed")]
ROWS: Final = ("state", "level", "parent", "first_edge", "edge_count", "best", "order")
FLAGS: Final = [(name, "i1") for name in ("status", "changed")]

NODE: Final = np.dtype([*FLOATS, *((name, "i4") for name in ROWS), *FLAGS], align=True)
EDGE: Final = np.dtype([("row", "i4"), ("first_child", "i4")], align=True)

OUTLOOK: Final = np.dtype(
    [("value", "f8"), ("risk", "f8"), ("ends", "i1"), ("known", "i1"), ("explored", "i1")],
    align=True,
)
"""Heuristics of a state at a level, and whether those after it are known, too."""

CONTROL: Final = np.dtype(
    [
        *((name, "i8") for name in ("nodes", "edges", "length", "most", "work", "pause")),
        ("cap", "f8"),
        ("slack", "f8"),  # by which risks may exceed bounds: roundings
        ("closes_with_heuristic", "i1"),
    ],
    align=True,
)
"""Filled nodes and edges, nodes of the policy, and the most that one expansion may add."""


@kernel
def search(tree, control):
    """Expand the open nodes of the best policy, and update it, until it has none.

    The tree is a tuple: states, actions, outcomes and discounts of the state graph; heuristics
    [levels, states], or [1, states] where every state has one level; nodes, and edges.
    """
    tree, c = borrow(tree), borrow(control)[0]
    _, _, _, _, _, nodes, _ = tree
    while c.work < c.pause:
        opened, explored = hand_down_bounds(tree, c)
        if opened == 0:
            return codes.DONE
        if explored < opened:
            return codes.NEEDS_STATE
        if max(c.nodes, c.edges) + opened * c.most > len(nodes):
            return codes.NEEDS_ROOM
        for k in range(c.length - 1, -1, -1):
            n = nodes[k].order
            if nodes[n].status == OPEN:
                expand(tree, c, n)
            if nodes[n].changed:
                update(tree, c, n)
                if nodes[n].parent != NONE:
                    nodes[nodes[n].parent].changed = 1
        c.work += c.length
    return codes.PAUSED


@part
def hand_down_bounds(tree, c):
    """List the best policy, give each node its bound, and count the open and explored ones."""
    _, actions, outcomes, _, outlook, nodes, edges = tree
    nodes[0].order, c.length = 0, 1
    k, opened, explored = 0, 0, 0
    while k < c.length:
        node = nodes[nodes[k].order]
        k += 1
        if node.status == OPEN:
            opened += 1
            explored += look_up(outlook, node.state, node.level).explored
        if node.best == NONE:
            continue
        action, child = actions[edges[node.best].row], edges[node.best].first_child
        begin, spare = action.first_outcome, node.allowed - node.risk
        for i in range(action.safe_count):
            # The same as Δ_i; a chosen action keeps to Δ, so that only rounding makes spare < 0.
            bound = nodes[child + i].risk + max(0.0, spare) / outcomes[begin + i].probability
            nodes[child + i].allowed = max(nodes[child + i].risk, min(1.0, c.cap, bound))
            nodes[c.length].order = child + i
            c.length += 1
    return opened, explored


@part
def look_up(outlook, state, level):
    """Return the heuristics of a state at a level."""
    return outlook[min(level, len(outlook) - 1), state]


@part
def expand(tree, c, n):
    """Add the actions of a node that are not rejected, with a new node for each safe outcome."""
    states, actions, outcomes, _, outlook, nodes, edges = tree
    node = nodes[n]
    level, state = node.level + 1, states[node.state]
    node.status, node.changed, node.first_edge, node.edge_count = EXPANDED, 1, c.edges, 0
    for row in range(state.first_action, state.first_action + state.action_count):
        begin = actions[row].first_outcome
        end = begin + actions[row].safe_count
        risk, worst = actions[row].immediate_risk, 0.0
        for o in range(begin, end):
            after = look_up(outlook, outcomes[o].state, level)
            risk, worst = risk + outcomes[o].probability * after.risk, max(worst, after.risk)
        if risk > node.allowed + c.slack or worst > c.cap + c.slack:
            continue
        edges[c.edges].row, edges[c.edges].first_child = row, c.nodes
        c.edges, node.edge_count = c.edges + 1, node.edge_count + 1
        for o in range(begin, end):
            after, child = look_up(outlook, outcomes[o].state, level), nodes[c.nodes]
            child.value, child.risk, child.allowed = after.value, after.risk, 0.0
            child.state, child.level, child.parent = outcomes[o].state, level, n
            child.best, child.edge_count, child.changed = NONE, 0, 0
            child.status = ENDED if after.ends else OPEN
            c.nodes += 1


@part
def update(tree, c, n):
    """Choose the best action of a node within its bound; the first of equal ones."""
    _, actions, outcomes, discounts, heuristics, nodes, edges = tree
    node = nodes[n]
    node.changed, node.best = 0, NONE
    best_value, best_risk = -np.inf, 1.0
    for e in range(node.first_edge, node.first_edge + node.edge_count):
        action, child = actions[edges[e].row], edges[e].first_child
        later, risk, worst = 0.0, action.immediate_risk, 0.0
        for i in range(action.safe_count):
            p, after = outcomes[action.first_outcome + i].probability, nodes[child + i]
            later, risk = later + p * after.value, risk + p * after.risk
            worst = max(worst, after.risk)
        value = action.expected_reward + discounts[node.level] * later
        within = risk <= node.allowed + c.slack and worst <= c.cap + c.slack
        if within and value > best_value:
            node.best, best_value, best_risk = e, value, risk
    if node.best == NONE:
        node.status, node.edge_count = DEAD, 0
        if c.closes_with_heuristic:
            outlook = look_up(heuristics, node.state, node.level)
            best_value, best_risk = outlook.value, outlook.risk
    node.value, node.risk = best_value, best_risk
