"""The top of a tree as a layered graph, on which fronts are computed.

The top grows from the root, the most probable history first, until it has as many nodes as are
wanted; histories of the search's own top (`vulcan.kernels.price_root`) come before all others. A
history belongs to it if it was sampled often enough. Of its actions, the best for each
price do, and those that are close: reach · (V_λ - Q_λ) <= closeness for some price. What is left at
the bottom are *stubs*: a stub has an edge for each policy that is known from there on, without
targets (`vulcan.solvers.tree.plans`). A history with one step left has all its actions.

The graph is that of `vulcan.graphs.layered_graph`, but that `state` of a node is its history, a
node of the tree, and `action` of an edge the position of the action, or the price of a stub.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.kernels.codes import DONE, GO_ON, KNOWN, NEEDS_ROOM
from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.expansion import have_actions
from vulcan.kernels.price_tree import PRICES, borrow_prices
from vulcan.kernels.problem_arrays import borrow_problem
from vulcan.sentinels import END, NONE

__all__ = [
    "GROWTH",
    "PartLayers",
    "Top",
    "estimate_stubs",
    "grow_top",
    "merge_tops",
    "value_layers",
]

GROWTH: Final = np.dtype(
    [
        ("nodes", "i8"),
        ("edges", "i8"),
        ("targets", "i8"),
        ("waiting", "i8"),  # in the heap
        ("state", "i8"),  # to be asked
        ("most", "i8"),  # nodes
        ("fewest_visits", "i8"),
        ("closeness", "f8"),
    ],
    align=True,
)


class PartLayers(NamedTuple):
    """Layered graphs of parts, and which of their nodes belong to the search's own top."""

    nodes: Any
    edges: Any
    targets: Any
    own: Any


class Top(NamedTuple):
    """The arrays of a top.

    Attributes
    ----------
    nodes, edges, targets
        The layered graph.
    reach
        The probability of each node, given its actions.
    haste
        What is expanded first: the most probable, but nodes of the search's own top before others.
    heap
        Nodes that may be expanded.
    growth
        One record.
    """

    nodes: Any
    edges: Any
    targets: Any
    reach: Any
    haste: Any
    heap: Any
    growth: Any


@kernel
def grow_top(problem, tree, tops, judged, top):
    """Expand the top from its first node on: DONE, or what is needed for that."""
    problem, tree, judged = borrow_problem(problem), borrow_prices(tree), borrow(judged)
    top = Top(
        borrow(top.nodes),
        borrow(top.edges),
        borrow(top.targets),
        borrow(top.reach),
        borrow(top.haste),
        borrow(top.heap),
        borrow(top.growth),
    )
    growth = top.growth[0]
    while growth.waiting > 0 and growth.nodes < growth.most:
        n = top.heap[0]
        node = tree.nodes[top.nodes[n].state]
        last = node.level + 1 == len(problem.discounts)
        if last:
            growth.state = node.state
            news = have_actions(problem, node.state)
            if news != KNOWN:
                return news
        news = expand(problem, tree, tops, judged, top, growth, n, last)
        if news != GO_ON:
            return news
    return DONE


@part
def expand(problem, tree, tops, judged, top, growth, n, last):
    """Give the first node of the heap its edges, and take it from there."""
    number = top.nodes[n].state
    node = tree.nodes[number]
    state = problem.states[node.state]
    if growth.edges + state.action_count > len(top.edges):
        return NEEDS_ROOM
    edges, targets, nodes = growth.edges, growth.targets, growth.nodes
    for k in range(state.action_count):
        if not last and not belongs(tree, judged, node, number, top.reach[n], growth.closeness, k):
            continue
        action = problem.actions[state.first_action + k]
        edge = top.edges[edges]
        edge.reward = problem.weights[node.level] * action.expected_reward
        edge.risk, edge.action = action.immediate_risk, k
        edge.first_target, edge.target_count = targets, 0
        edges += 1
        first = NONE if last else tree.edges[node.first_edge + k].first_child
        if first == NONE:
            continue
        if targets + action.safe_count > len(top.targets):
            return NEEDS_ROOM
        if nodes + action.safe_count > len(top.nodes):
            return NEEDS_ROOM
        edge.target_count = action.safe_count
        for j in range(action.safe_count):
            target = top.targets[targets + j]
            target.probability = problem.outcomes[action.first_outcome + j].probability
            target.node = END
            if problem.states[tree.nodes[first + j].state].action_count != 0:
                target.node = nodes
                top.nodes[nodes].state, top.nodes[nodes].level = first + j, node.level + 1
                top.nodes[nodes].first_edge, top.nodes[nodes].edge_count = NONE, 0
                top.reach[nodes] = top.reach[n] * target.probability
                nodes += 1
        targets += action.safe_count
    take_first(top, growth)
    top.nodes[n].first_edge, top.nodes[n].edge_count = growth.edges, edges - growth.edges
    for m in range(growth.nodes, nodes):
        number = top.nodes[m].state
        top.haste[m] = top.reach[m]
        for k in range(len(tops)):
            if tops[k] == number:
                top.haste[m] += 1.0
        node = tree.nodes[number]
        if top.haste[m] > 1.0 or may_expand(problem, tree, node, growth.fewest_visits):
            put(top, growth, m)
    growth.edges, growth.targets, growth.nodes = edges, targets, nodes
    return GO_ON


@part
def may_expand(problem, tree, node, fewest):
    """Whether enough is known of a history for it to belong to the top."""
    if node.level + 1 == len(problem.discounts):
        return node.visits > 0
    return node.first_edge != NONE and (node.solved != 0 or node.visits > fewest)


@part
def belongs(tree, judged, node, number, reach, closeness, k):
    """Whether an action is the best for some price, or close to it."""
    e = node.first_edge + k
    if tree.edges[e].visits == 0:
        return False
    if node.level == 0:
        best = -np.inf
        for i in range(len(judged)):
            best = max(best, judged[i].reward)
        if judged[k].reward >= best - 4.0 * closeness:
            return True
    close = False
    for lane in range(PRICES):
        short = np.float64(tree.node_values[number, lane]) - tree.edge_values[e, lane]
        if short <= 0.0:
            return True
        close = close or (node.level > 0 and reach * short <= closeness)
    return close and is_sampled(tree, tree.edges[e])


@part
def is_sampled(tree, edge):
    """Whether all outcomes of an action were sampled: only then something is known of all."""
    for c in range(edge.first_child, edge.first_child + edge.children):
        if tree.nodes[c].visits == 0:
            return False
    return True


@part
def precedes(top, n, other):
    """Whether a node is expanded before another one; of equals, the one that came first."""
    if top.haste[n] != top.haste[other]:
        return top.haste[n] > top.haste[other]
    return n < other


@part
def put(top, growth, n):
    """Put a node into the heap."""
    i = growth.waiting
    growth.waiting += 1
    while i > 0 and precedes(top, n, top.heap[(i - 1) // 2]):
        top.heap[i] = top.heap[(i - 1) // 2]
        i = (i - 1) // 2
    top.heap[i] = n


@part
def take_first(top, growth):
    """Take the most probable node from the heap."""
    growth.waiting -= 1
    count, n = growth.waiting, top.heap[growth.waiting]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= count:
            break
        if child + 1 < count and precedes(top, top.heap[child + 1], top.heap[child]):
            child += 1
        if precedes(top, n, top.heap[child]):
            break
        top.heap[i] = top.heap[child]
        i = child
    top.heap[i] = n


@kernel
def merge_tops(layers, links, top):
    """Expand a top of nodes that were expanded before, in several parts, as if it were in one.

    Parameters
    ----------
    layers
        The parts' layered graphs, one after the other; that of the search's own top is the first.
    links
        For each node of these, the node that begins the part below it; itself if there is none.
    top
        To be filled. `state` of a node is its number in `layers`.
    """
    growth = top.growth[0]
    while growth.waiting > 0 and growth.nodes < growth.most:
        n = top.heap[0]
        source = layers.nodes[top.nodes[n].state]
        nodes, edges, targets = growth.nodes, growth.edges, growth.targets
        for e in range(source.first_edge, source.first_edge + source.edge_count):
            if edges >= len(top.edges):
                return NEEDS_ROOM
            edge = layers.edges[e]
            first, count = edge.first_target, edge.target_count
            if targets + count > len(top.targets) or nodes + count > len(top.nodes):
                return NEEDS_ROOM
            top.edges[edges] = edge
            top.edges[edges].first_target = targets
            for t in range(first, first + count):
                target = top.targets[targets]
                target.probability, target.node = layers.targets[t].probability, END
                if layers.targets[t].node >= 0:
                    link = links[layers.targets[t].node]
                    target.node = nodes
                    top.nodes[nodes].state, top.nodes[nodes].level = link, layers.nodes[link].level
                    top.nodes[nodes].first_edge, top.nodes[nodes].edge_count = NONE, 0
                    top.reach[nodes] = top.reach[n] * target.probability
                    nodes += 1
                targets += 1
            edges += 1
        take_first(top, growth)
        top.nodes[n].first_edge, top.nodes[n].edge_count = growth.edges, edges - growth.edges
        for m in range(growth.nodes, nodes):
            link = top.nodes[m].state
            top.haste[m] = top.reach[m] + (1.0 if layers.own[link] else 0.0)
            if layers.nodes[link].edge_count > 0:
                put(top, growth, m)
        growth.edges, growth.targets, growth.nodes = edges, targets, nodes
    return DONE


@kernel
def estimate_stubs(values, prices, nodes, edges, stubs):
    """Give stubs, which have room for an edge per price, what the tree believes of them.

    V is convex in the price, and its slope is the risk that the best policy takes:
    between two prices about (V_λ - V_λ') / (λ' - λ).
    """
    for n in stubs:
        first = nodes[n].first_edge
        nodes[n].edge_count = PRICES - 1
        least = np.inf
        for lane in range(PRICES - 1):
            low, high = np.float64(prices[0, lane]), np.float64(prices[0, lane + 1])
            one, other = np.float64(values[n, lane]), np.float64(values[n, lane + 1])
            risk = min(least, max(0.0, (one - other) / max(high - low, 1e-300)))
            least = risk
            edge = edges[first + lane]
            edge.risk, edge.reward = risk, min(one + low * risk, other + high * risk)
            edge.action, edge.first_target, edge.target_count = lane, 0, 0


@kernel
def value_layers(layers, price, values):
    """Fill the largest reward - price · risk from each node of a layered graph on."""
    nodes, edges, targets = layers.nodes, layers.edges, layers.targets
    for n in range(len(nodes) - 1, -1, -1):
        values[n] = -1e300 if nodes[n].edge_count == 0 else -np.inf
        for e in range(nodes[n].first_edge, nodes[n].first_edge + nodes[n].edge_count):
            edge = edges[e]
            value = edge.reward - price * edge.risk
            for t in range(edge.first_target, edge.first_target + edge.target_count):
                if targets[t].node >= 0:
                    value += targets[t].probability * values[targets[t].node]
            values[n] = max(values[n], value)
