"""Pareto fronts over a layered graph: what deterministic policies can earn for how much risk.

The front of a node is the set of points (risk, reward) that history-dependent policies reach from
there, without those that another point beats. It is computed backwards: the points of an edge are

    (r + Σ_safe p x_target,  γ^t R̄ + Σ_safe p g_target)   over all choices of a point per target,

and the points of a node are those of all its edges together. Merged states share one front, and the
policies are still history-dependent, since each history that comes through may take another point.

What cannot matter is dropped. With k the price of failure of the dual bound and
V(n) = max of (reward - k risk) from node n on, a point falls short by V(n) - (g - k x) >= 0, and
shortfalls add up along a policy, weighted by the probability of being there. If some policy that
takes the point is to fall short by at most `slack` in all, then

    least_reach(n) · shortfall  <=  slack,

where least_reach is the smallest probability of any history that leads to the node.

A tip (a node without edges) has the one point that `rewards` and `risks` hold for it.

Points closer together in reward than `thinness`, or than it takes to have at most `most_points`,
are represented by the one of least risk; `error` says how much reward that can cost from a node on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from vulcan.kernels.codes import DONE, NEEDS_PARTS, NEEDS_POINTS, NEEDS_SCRATCH, PAUSED
from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.front_drafts import BINS, DRAFT, FIRST_DRAFTS, combine, reduce_drafts
from vulcan.kernels.layer_arrays import borrow_layers

__all__ = [
    "BINS",
    "CONTROL",
    "DRAFT",
    "FIRST_DRAFTS",
    "FRONT",
    "POINT",
    "Fronts",
    "extend",
    "find_least_reach",
]


POINT = np.dtype(
    [
        ("risk", "f8"),
        ("reward", "f8"),
        ("shortfall", "f8"),
        ("first_part", "i8"),
        ("edge", "i4"),
        ("by_shortfall", "i4"),
    ],
    align=True,
)
"""A point; `by_shortfall` belongs to its place: the k-th smallest shortfall of the front."""

FRONT = np.dtype([("first", "i8"), ("count", "i4"), ("error", "f8")], align=True)


CONTROL = np.dtype(
    [
        ("price", "f8"),
        ("slack", "f8"),
        ("thinness", "f8"),
        ("most_points", "i8"),
        ("rare_points", "i8"),  # the same where a node is hardly ever reached
        ("points_here", "i8"),  # of the present node
        ("next_node", "i8"),
        ("last_node", "i8"),
        ("points", "i8"),  # where the next one goes
        ("parts", "i8"),
        ("points_end", "i8"),  # where there is no more room for them
        ("parts_end", "i8"),
        ("work", "i8"),
        ("pause", "i8"),
        ("patience", "i8"),
        ("node_work", "i8"),
        ("dropped", "i8"),
        ("thinned", "i8"),
    ],
    align=True,
)


FREQUENT = 5.0
"""A node with the probability 1/5 may have as many points as any, others fewer."""


class Fronts(NamedTuple):
    """The arrays of a computation.

    Attributes
    ----------
    fronts
        One per node.
    points, parts
        All points; for each, the place in its front of the point that each target takes.
    drafts, kept, chosen, keys, bins
        Scratch: points in the making, those kept of an edge, their parts, numbers to sort, and
        the least risk in each bin of reward.
    control
        One record of parameters and counts.

    Where several threads compute the fronts of a level, each has scratch and a control of its own,
    and stretches of points and parts.
    """

    fronts: Any
    points: Any
    parts: Any
    drafts: Any
    kept: Any
    chosen: Any
    keys: Any
    bins: Any
    control: Any


@kernel
def find_least_reach(layers, values, price, slack, least_reach):
    """Fill the smallest probability of a history that leads to each node over edges that matter."""
    nodes, edges, targets = borrow_layers(layers)
    values, least_reach = borrow(values), borrow(least_reach)
    least_reach[:] = np.inf
    least_reach[0] = 1.0
    for n in range(len(nodes)):
        reach = least_reach[n]
        if reach == np.inf:
            continue
        node = nodes[n]
        for e in range(node.first_edge, node.first_edge + node.edge_count):
            if reach * (values[n] - value_edge(edges, targets, values, price, e)) > slack:
                continue
            edge = edges[e]
            for t in range(edge.first_target, edge.first_target + edge.target_count):
                target = targets[t]
                if target.node >= 0:
                    there = reach * target.probability
                    least_reach[target.node] = min(least_reach[target.node], there)


@part
def value_edge(edges, targets, values, price, e):
    """Return the largest reward - price · risk from an edge on."""
    edge = edges[e]
    value = edge.reward - price * edge.risk
    for t in range(edge.first_target, edge.first_target + edge.target_count):
        if targets[t].node >= 0:
            value += targets[t].probability * values[targets[t].node]
    return value


@kernel
def extend(layers, rewards, risks, values, least_reach, memory):
    """Compute fronts from `next_node` to `last_node`, until done or something is needed."""
    nodes, edges, targets = borrow_layers(layers)
    rewards, risks = borrow(rewards), borrow(risks)
    values, least_reach = borrow(values), borrow(least_reach)
    memory = Fronts(
        borrow(memory.fronts),
        borrow(memory.points),
        borrow(memory.parts),
        borrow(memory.drafts),
        borrow(memory.kept),
        borrow(memory.chosen),
        borrow(memory.keys),
        borrow(memory.bins),
        borrow(memory.control),
    )
    control = memory.control
    while control[0].next_node >= control[0].last_node:
        n = control[0].next_node
        memory.fronts[n].first = control[0].points
        memory.fronts[n].count = 0
        memory.fronts[n].error = 0.0
        control[0].node_work = 0
        if least_reach[n] < np.inf:
            share = min(1.0, FREQUENT * least_reach[n])
            control[0].points_here = max(
                control[0].rare_points, np.int64(share * control[0].most_points)
            )
            if nodes[n].edge_count == 0:
                status = fill_tip(memory, n, rewards[n], risks[n])
            else:
                limit = control[0].slack / least_reach[n]
                status = fill_node(nodes, edges, targets, values, limit, memory, n)
            if status != DONE:
                return status
        control[0].work += control[0].node_work
        control[0].next_node -= 1
        if control[0].work >= control[0].pause:
            return PAUSED
    return DONE


@part
def fill_tip(memory, n, reward, risk):
    """Give a node that was not expanded the point that is known of it."""
    control, points = memory.control, memory.points
    first = control[0].points
    if first == control[0].points_end:
        return NEEDS_POINTS
    point = points[first]
    point.risk, point.reward, point.shortfall = risk, reward, 0.0
    point.edge, point.first_part, point.by_shortfall = -1, 0, 0
    memory.fronts[n].count = 1
    control[0].points = first + 1
    return DONE


@part
def fill_node(nodes, edges, targets, values, limit, memory, n):
    """Compute the front of a node: the points of its edges, and what remains of them together.

    The drafts of all edges gather in `kept`, each with its edge (`left`) and where its parts are.
    """
    control = memory.control
    price = control[0].price
    node = nodes[n]
    gathered = 0
    error = 0.0
    for e in range(node.first_edge, node.first_edge + node.edge_count):
        short = values[n] - value_edge(edges, targets, values, price, e)
        if short > limit:
            control[0].dropped += 1
            continue
        status, count, lost = fill_edge(edges, targets, memory, limit, e, short, gathered)
        if status != DONE:
            return status
        gathered += count
        error = max(error, lost)
    return close_node(edges, memory, n, gathered, error)


@part
def fill_edge(edges, targets, memory, limit, e, short, begin):
    """Combine the fronts of an edge's targets; return status, number of points, lost reward.

    The drafts so far are kept[begin : begin + count], and chosen[...] holds their parts.
    """
    control, kept, chosen, fronts = memory.control, memory.kept, memory.chosen, memory.fronts
    edge = edges[e]
    if begin + 1 > len(kept):
        return NEEDS_SCRATCH, 0, 0.0
    kept[begin].risk, kept[begin].reward, kept[begin].shortfall = edge.risk, edge.reward, short
    kept[begin].left = e
    count = 1
    error = 0.0
    for k in range(edge.target_count):
        target = targets[edge.first_target + k]
        if target.node < 0:
            continue
        front = fronts[target.node]
        # What the representative of a dropped point falls short more must not drop it, too.
        allowed = limit + error + target.probability * front.error
        error += target.probability * front.error
        status, drafted = combine(memory, target.probability, front, begin, count, allowed)
        if status != DONE:
            return status, 0, 0.0
        left, lost = reduce_drafts(memory, drafted)
        error += lost
        if begin + count + left > len(kept):
            return NEEDS_SCRATCH, 0, 0.0
        # New drafts are written behind the old ones, whose parts they copy, and then moved down.
        for j in range(left):
            draft = memory.drafts[j]
            place = begin + count + j
            kept[place].risk, kept[place].reward = draft.risk, draft.reward
            kept[place].shortfall, kept[place].left = draft.shortfall, e
            for i in range(k):
                chosen[place, i] = chosen[begin + draft.left, i]
            chosen[place, k] = draft.right
        control[0].node_work += left * k
        for j in range(left):
            kept[begin + j] = kept[begin + count + j]
            for i in range(k + 1):
                chosen[begin + j, i] = chosen[begin + count + j, i]
        count = left
        if count == 0:
            break
    return DONE, count, error


@kernel
def rank_shortfalls(points, keys):
    """Fill the places of the points by their shortfall, which is in `keys`."""
    order = np.argsort(keys)
    for j in range(len(order)):
        points[j].by_shortfall = order[j]


@part
def close_node(edges, memory, n, gathered, error):
    """Turn the kept drafts of all edges into the front of a node."""
    control, drafts, kept, points = memory.control, memory.drafts, memory.kept, memory.points
    if gathered > len(drafts):
        return NEEDS_SCRATCH
    for j in range(gathered):
        drafts[j].risk, drafts[j].reward = kept[j].risk, kept[j].reward
        drafts[j].shortfall, drafts[j].left = kept[j].shortfall, j
    count, lost = reduce_drafts(memory, gathered)
    first, part_ = control[0].points, control[0].parts
    if first + count > control[0].points_end:
        return NEEDS_POINTS
    for j in range(count):
        draft = drafts[j]
        e = kept[draft.left].left
        width = edges[e].target_count
        if part_ + width > control[0].parts_end:
            return NEEDS_PARTS
        point = points[first + j]
        point.risk, point.reward, point.shortfall = draft.risk, draft.reward, draft.shortfall
        point.edge, point.first_part = e, part_
        for i in range(width):
            memory.parts[part_ + i] = memory.chosen[draft.left, i]
        part_ += width
        memory.keys[j] = draft.shortfall
    rank_shortfalls(points[first : first + count], memory.keys[:count])
    memory.fronts[n].count = count
    memory.fronts[n].error = error + lost
    control[0].points, control[0].parts = first + count, part_
    return DONE
