"""Exact Pareto fronts over a layered graph: the best reward for each risk.

The front of a node is the set of non-dominated points (risk, reward) that deterministic,
history-dependent policies reach from there. It is computed backwards: the points of an edge are

    (r + Σ_safe p x_target,  γ^t R̄ + Σ_safe p g_target)   over all choices of a point per target,

and the points of a node are those of all its edges together. Merged states share one front, and the
policies are still history-dependent, since each history through the node may take another point.
A tip (a node without edges) has one point, given by `rewards` and `risks`.

Points that cannot matter are dropped. With k the price of failure of the dual bound and
V(n) = max of (reward - k risk) from node n on, a point has the dual gap V(n) - (g - k x) >= 0. Dual
gaps add up along a policy, weighted by the probability of being there (docs/theory/proofs.md). If
some policy that takes the point is to have a dual gap of at most `slack`, then

    least_reach(n) · dual_gap  <=  slack,

where least_reach is the smallest probability of any history that leads to the node.

Points whose risk exceeds a cap on the risk ahead are dropped, so that every history keeps it. A
representative keeps it where what it represents does.

Points closer together in reward than `thinness`, or than it takes to have at most `most_points`,
are represented by the point of least risk; `error` bounds the reward lost from a node on.

The targets of an edge are added one after the other: candidates are all pairs of a candidate so far
and a point of the next target. Most pairs are dominated. Where there are many, they are first
counted into bins of reward, so that few are ever sorted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from vulcan.kernels import codes
from vulcan.kernels.compilation import borrow, find_bin, kernel, part, routine, scale_bins

NUMBERS = [("risk", "f8"), ("reward", "f8"), ("dual_gap", "f8")]

POINT = np.dtype(
    [*NUMBERS, ("first_part", "i8"), ("edge", "i4"), ("by_dual_gap", "i4")], align=True
)
"""A point; `by_dual_gap` of the k-th point is the place of the k-th smallest dual gap."""

CANDIDATE = np.dtype([*NUMBERS, ("left", "i4"), ("right", "i4")], align=True)
"""A candidate point: a candidate of the targets before (`left`), and a point of the next one."""

FRONT = np.dtype([("first", "i8"), ("count", "i4"), ("error", "f8")], align=True)

CONTROL = np.dtype(
    [
        ("price", "f8"),
        ("slack", "f8"),
        ("cap", "f8"),  # points of a larger risk are dropped
        ("thinness", "f8"),
        ("most_points", "i8"),
        ("rare_points", "i8"),  # most points of nodes that are rarely reached
        ("points_here", "i8"),  # of the present node
        ("next_node", "i8"),
        ("points", "i8"),  # the place of the next point
        ("parts", "i8"),
        ("work", "i8"),
        ("pause", "i8"),
        ("work_limit", "i8"),  # of one node
        ("node_work", "i8"),
        ("dropped", "i8"),
        ("thinned", "i8"),
    ],
    align=True,
)

FREQUENT = 5.0
"""A node of probability 1/5 or more may have `most_points`, others proportionally fewer."""

MANY_PAIRS = 512
BINS = 1024

FIRST_CANDIDATES = 1 << 14
"""After this many candidates dominated ones are removed; the limit doubles if most remain. It
decides which of equal points is kept, so it does not depend on the size of the arrays."""


class Fronts(NamedTuple):
    """The arrays of a computation."""

    fronts: Any  # one per node
    points: Any  # of all fronts
    parts: Any  # of each point, the place in its front of the point that each target takes
    candidates: Any  # scratch
    kept: Any  # scratch: the candidates kept of the edges so far
    chosen: Any  # scratch: the parts of the kept candidates
    keys: Any  # scratch: numbers to sort
    bins: Any  # scratch: the least risk in each bin of reward
    control: Any  # one record of parameters and counts


@kernel
def find_least_reach(layers, values, price, slack, least_reach):
    """Fill the smallest probability of a history to each node, over edges within the slack."""
    nodes, edges, targets = borrow(layers)
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
    """Compute fronts from `next_node` down to the root, until done or something is needed."""
    nodes, edges, targets = borrow(layers)
    rewards, risks, memory = borrow(rewards), borrow(risks), borrow(memory)
    values, least_reach = borrow(values), borrow(least_reach)
    control = memory.control
    while control[0].next_node >= 0:
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
            if status != codes.DONE:
                return status
        control[0].work += control[0].node_work
        control[0].next_node -= 1
        if control[0].work >= control[0].pause:
            return codes.PAUSED
    return codes.DONE


@part
def fill_tip(memory, n, reward, risk):
    """Fill the front of a tip: its one given point."""
    control, points = memory.control, memory.points
    first = control[0].points
    if first == len(points):
        return codes.NEEDS_POINTS
    point = points[first]
    point.risk, point.reward, point.dual_gap = risk, reward, 0.0
    point.edge, point.first_part, point.by_dual_gap = -1, 0, 0
    memory.fronts[n].count = 1
    control[0].points = first + 1
    return codes.DONE


@part
def fill_node(nodes, edges, targets, values, limit, memory, n):
    """Compute the front of a node from the points of its edges.

    The candidates of all edges are gathered in `kept`, each with its edge (`left`).
    """
    control = memory.control
    price = control[0].price
    node = nodes[n]
    gathered = 0
    error = 0.0
    for e in range(node.first_edge, node.first_edge + node.edge_count):
        dual_gap = values[n] - value_edge(edges, targets, values, price, e)
        if dual_gap > limit:
            control[0].dropped += 1
            continue
        status, count, lost = fill_edge(edges, targets, memory, limit, e, dual_gap, gathered)
        if status != codes.DONE:
            return status
        gathered += count
        error = max(error, lost)
    return close_node(edges, memory, n, gathered, error)


@part
def fill_edge(edges, targets, memory, limit, e, dual_gap, begin):
    """Combine the fronts of an edge's targets; return status, number of points, lost reward.

    The candidates so far are kept[begin : begin + count], and chosen[...] holds their parts.
    """
    control, kept, chosen, fronts = memory.control, memory.kept, memory.chosen, memory.fronts
    edge = edges[e]
    if begin + 1 > len(kept):
        return codes.NEEDS_SCRATCH, 0, 0.0
    kept[begin].risk, kept[begin].reward, kept[begin].dual_gap = edge.risk, edge.reward, dual_gap
    kept[begin].left = e
    count = 1
    error = 0.0
    for k in range(edge.target_count):
        target = targets[edge.first_target + k]
        if target.node < 0:
            continue
        front = fronts[target.node]
        # A representative may have a larger dual gap than the point that it replaces.
        allowed = limit + error + target.probability * front.error
        error += target.probability * front.error
        status, written = combine(memory, target.probability, front, begin, count, allowed)
        if status != codes.DONE:
            return status, 0, 0.0
        left, lost = reduce_candidates(memory, written)
        error += lost
        if begin + count + left > len(kept):
            return codes.NEEDS_SCRATCH, 0, 0.0
        # New candidates are written behind the old ones, whose parts they copy, then moved down.
        for j in range(left):
            candidate = memory.candidates[j]
            place = begin + count + j
            kept[place].risk, kept[place].reward = candidate.risk, candidate.reward
            kept[place].dual_gap, kept[place].left = candidate.dual_gap, e
            for i in range(k):
                chosen[place, i] = chosen[begin + candidate.left, i]
            chosen[place, k] = candidate.right
        control[0].node_work += left * k
        for j in range(left):
            kept[begin + j] = kept[begin + count + j]
            for i in range(k + 1):
                chosen[begin + j, i] = chosen[begin + count + j, i]
        count = left
        if count == 0:
            break
    return codes.DONE, count, error


@part
def combine(memory, probability, front, begin, count, limit):
    """Write the candidates: pairs of a kept candidate and a point of the next target.

    Where there are many pairs, a first pass finds the least risk in each bin of reward, and the
    second writes only pairs that no bin of larger reward dominates.
    """
    control, candidates, kept = memory.control, memory.candidates, memory.kept
    points, bins = memory.points, memory.bins
    low, scale = find_bins(kept, points, bins, probability, front, begin, count)
    last = len(bins) - 2
    written, most = 0, FIRST_CANDIDATES
    for writing in range(0 if scale > 0 else 1, 2):
        for a in range(count):
            if control[0].node_work > control[0].work_limit:
                return codes.NODE_LIMIT, 0
            control[0].node_work += front.count
            before = kept[begin + a]
            for j in range(front.count):
                place = points[front.first + j].by_dual_gap
                point = points[front.first + place]
                dual_gap = before.dual_gap + probability * point.dual_gap
                if dual_gap > limit:
                    control[0].dropped += 1
                    break  # all others have a larger dual gap
                risk = before.risk + probability * point.risk
                reward = before.reward + probability * point.reward
                b = find_bin((reward - low) * scale, last)
                if writing == 0:
                    bins[b] = min(bins[b], risk)
                    continue
                if risk >= bins[b + 1]:
                    continue
                if written == most:
                    written = sort_candidates(candidates, memory.keys, written, 0.0)
                    if 2 * written > most:
                        most *= 2
                    if most > len(candidates):
                        return codes.NEEDS_SCRATCH, 0
                candidate = candidates[written]
                candidate.risk = risk
                candidate.reward = reward
                candidate.dual_gap = dual_gap
                candidate.left = a
                candidate.right = place
                written += 1
        for b in range(last, -1, -1):
            bins[b] = min(bins[b], bins[b + 1])
    return codes.DONE, written


@part
def find_bins(kept, points, bins, probability, front, begin, count):
    """Empty the bins; return their lower end and their number per unit of reward, 0 for none."""
    bins[:] = np.inf
    if count * front.count <= MANY_PAIRS:
        return 0.0, 0.0
    low = high = kept[begin].reward
    for a in range(count):
        low = min(low, kept[begin + a].reward)
        high = max(high, kept[begin + a].reward)
    low += probability * points[front.first].reward
    high += probability * points[front.first + front.count - 1].reward
    return low, scale_bins(low, high, len(bins) - 1)


@part
def reduce_candidates(memory, written):
    """Remove dominated and represented candidates; return their number and the lost reward."""
    thinness, most = memory.control[0].thinness, memory.control[0].points_here
    candidates, keys = memory.candidates, memory.keys
    left = sort_candidates(candidates, keys, written, thinness)
    if left <= most:
        return left, thinness
    memory.control[0].thinned += 1
    span = candidates[left - 1].reward - candidates[0].reward
    return sort_candidates(candidates, keys, left, span / most), thinness + span / most


@routine
def sort_candidates(candidates, keys, written, thinness):
    """Sort candidates by risk; drop those with at most `thinness` more reward than the last."""
    for j in range(written):
        keys[j] = candidates[j].risk
    order = rank(keys[:written])
    moved = candidates[:written].copy()
    count = 0
    for j in order:
        candidate = moved[j]
        if count > 0:
            last = candidates[count - 1]
            if candidate.reward <= last.reward + thinness:
                continue
            if candidate.risk == last.risk:
                count -= 1
        candidates[count] = candidate
        count += 1
    return count


@part
def close_node(edges, memory, n, gathered, error):
    """Turn the kept candidates of all edges into the front of a node."""
    control, kept, points = memory.control, memory.kept, memory.points
    candidates = memory.candidates
    if gathered > len(candidates):
        return codes.NEEDS_SCRATCH
    for j in range(gathered):
        candidates[j].risk, candidates[j].reward = kept[j].risk, kept[j].reward
        candidates[j].dual_gap, candidates[j].left = kept[j].dual_gap, j
    count, lost = reduce_candidates(memory, gathered)
    while count > 0 and candidates[count - 1].risk > control[0].cap:
        count -= 1
    first, part_ = control[0].points, control[0].parts
    if first + count > len(points):
        return codes.NEEDS_POINTS
    for j in range(count):
        candidate = candidates[j]
        e = kept[candidate.left].left
        width = edges[e].target_count
        if part_ + width > len(memory.parts):
            return codes.NEEDS_PARTS
        point = points[first + j]
        point.risk, point.reward = candidate.risk, candidate.reward
        point.dual_gap, point.edge, point.first_part = candidate.dual_gap, e, part_
        for i in range(width):
            memory.parts[part_ + i] = memory.chosen[candidate.left, i]
        part_ += width
        memory.keys[j] = candidate.dual_gap
    order = rank(memory.keys[:count])
    for j in range(count):
        points[first + j].by_dual_gap = order[j]
    memory.fronts[n].count = count
    memory.fronts[n].error = error + lost
    control[0].points, control[0].parts = first + count, part_
    return codes.DONE


@routine  # `np.argsort` takes a second to compile
def rank(keys):
    """Return the places of numbers in ascending order, equal ones as they come (merge sort)."""
    count, width = len(keys), 1
    order, merged = np.arange(count), np.empty(count, np.int64)
    while width < count:
        for low in range(0, count, 2 * width):
            middle, high = min(low + width, count), min(low + 2 * width, count)
            left, right = low, middle
            for place in range(low, high):
                if right == high or (left < middle and keys[order[left]] <= keys[order[right]]):
                    merged[place] = order[left]
                    left += 1
                else:
                    merged[place] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order
