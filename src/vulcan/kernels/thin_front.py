"""Thin fronts: a few points (risk, reward) for each node, a state–step pair.

A point of a node is the risk and reward from there on of a deterministic, history-dependent policy.
The points of an action are the sums over its outcomes

    risk = r + Σ_safe p risk_j,    reward = γ^t R̄ + Σ_safe p reward_j,

with any point of each next node; the points of a node are those of all its actions. There are far
too many, so few are kept: the range of risks is divided into bins, and each bin keeps the point
closest to V_k(n) = max (reward - k risk), with k the price of failure. Points are never
interpolated: between two distant policies lie those that follow one or the other depending on the
outcome. Outcomes are added one after the other, with bins in between.

Points further than `slack` below V_k(n) are dropped, and so are actions without other points and
nodes that no remaining action leads to (`mark`). The last node, the root, keeps no front: of all
its sums, `best` is the one of largest reward with risk <= Δ(reward).

Points are stored without their origin. `trace` follows the points of the plan level by level and
computes the nodes of the plan again: the same sums in the same order, now with links. A link
says which point of an outcome was added to which link of the outcomes before. The result is a
policy as decisions, each a point of a node that some history of the policy reaches. Decisions are
numbered level by level, the root first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from vulcan.kernels import codes
from vulcan.kernels.compilation import borrow, find_bin, kernel, part, scale_bins
from vulcan.kernels.dp import find_level, find_next, put_in_place
from vulcan.numerics import END

CANDIDATE = np.dtype(
    [
        ("value", "f8"),  # reward - price · risk
        ("risk", "f8"),
        ("reward", "f8"),
        ("link", "i4"),  # of the outcomes before; -1 for an empty bin
        ("right", "i4"),  # the point of the last outcome
        ("action", "i4"),
    ],
    align=True,
)
"""A candidate point."""

LINK = np.dtype([("before", "i4"), ("right", "i4")], align=True)

CONTROL = np.dtype(
    [
        ("price", "f8"),
        ("slack", "f8"),
        ("low", "f8"),  # allowed[i] is Δ at the reward low + i · step
        ("step", "f8"),
        ("node", "i8"),  # the next node
        ("points", "i8"),  # stored so far
        ("work", "i8"),  # pairs combined so far
        ("pause", "i8"),
        ("decisions", "i8"),  # of the plan so far
        ("children", "i8"),
        ("links", "i8"),
    ],
    align=True,
)


class ThinFronts(NamedTuple):
    """The arrays of a computation."""

    first: Any  # of each node, its first point and their number
    count: Any
    bins: Any  # the number of bins of each level
    risks: Any  # the points
    rewards: Any
    number: Any  # of each point, its decision in the plan, or UNUSED or WANTED
    allowed: Any  # Δ at evenly spaced rewards
    kept: Any  # scratch: the points of the outcomes so far
    sums: Any  # scratch: the points with one more outcome, in bins
    links: Any  # scratch: the origin of points
    offered: Any  # scratch: for each action of a node its value, or -inf
    points: Any  # scratch: the bins of a node
    best: Any  # the best acceptable point of the root
    rows: Any  # the plan: the action row of each decision
    children: Any  # per safe outcome of each decision, the next decision or END; at first its point
    starts: Any  # the first decision of each level, and the number of decisions at the end
    control: Any  # one record of parameters and counts


UNUSED = -1
WANTED = -2

WORK_OF_A_NODE = 64  # approximate work of a node beside its pairs of points, in pairs


@kernel
def mark(levels, values, price, slack, marked, sizes):
    """Mark the nodes that are reached by actions within the slack, and count them by level."""
    levels = borrow(levels)
    values, marked, sizes = borrow(values), borrow(marked), borrow(sizes)
    marked[:] = 0
    marked[0] = 1
    for t in range(len(levels.first) - 1):
        sizes[t] = 0
        if t + 2 < len(levels.first):
            put_in_place(levels, t + 1)
        for n in range(levels.first[t], levels.first[t + 1]):
            if marked[n] == 0:
                continue
            sizes[t] += 1
            state = levels.state[n]
            first = levels.first_action[state]
            for a in range(first, first + levels.action_count[state]):
                if value_action(levels, values, price, t, a) < values[n] - slack:
                    continue
                begin = levels.first_outcome[a]
                for o in range(begin, begin + levels.safe_count[a]):
                    following = find_next(levels, t, o)
                    if following >= 0:
                        marked[following] = 1


@part
def value_action(levels, values, price, t, a):
    """Return the largest reward - price · risk from an action on."""
    value = levels.weights[t] * levels.expected_reward[a] - price * levels.immediate_risk[a]
    begin = levels.first_outcome[a]
    for o in range(begin, begin + levels.safe_count[a]):
        n = find_next(levels, t, o)
        if n >= 0:
            value += levels.probability[o] * values[n]
    return value


@kernel
def extend(levels, values, marked, fronts):
    """Fill the fronts of marked nodes from `node` down to the root, until done or PAUSED."""
    levels, fronts = borrow(levels), borrow(fronts)
    values, marked = borrow(values), borrow(marked)
    control = fronts.control
    t = find_level(levels, control[0].node)
    while control[0].node >= 0:
        n = control[0].node
        if n < levels.first[t]:
            t -= 1
        if n + 1 == levels.first[t + 1] and t + 2 < len(levels.first):
            put_in_place(levels, t + 1)
        fronts.first[n], fronts.count[n] = control[0].points, 0
        if marked[n]:
            control[0].work += WORK_OF_A_NODE
            store_points(fronts, n, fill_node(levels, values, fronts, t, n))
        control[0].node -= 1
        if control[0].work >= control[0].pause:
            return codes.PAUSED
    return codes.DONE


@part
def store_points(fronts, n, bins):
    """Store the points in the bins of a node, without dominated ones."""
    at = fronts.control[0].points
    best = -np.inf
    for b in range(bins):
        point = fronts.points[b]
        if point.link >= 0 and point.reward > best:
            best = point.reward
            fronts.risks[at], fronts.rewards[at] = point.risk, point.reward
            fronts.number[at] = UNUSED
            at += 1
    fronts.count[n] = at - fronts.control[0].points
    fronts.control[0].points = at


@part
def fill_node(levels, values, fronts, t, n):
    """Fill the bins of a node with the points of its actions; return the number of bins."""
    control, points = fronts.control, fronts.points
    price = control[0].price
    state = levels.state[n]
    first_action, actions = levels.first_action[state], levels.action_count[state]
    least_value = values[n] - control[0].slack
    low, high = np.inf, -np.inf
    for k in range(actions):
        a = first_action + k
        value = value_action(levels, values, price, t, a)
        least, most = np.inf, -np.inf
        if value >= least_value:
            least, most = find_span(levels, fronts, t, a)
            low, high = min(low, least), max(high, most)
        fronts.offered[k] = value if least <= most else -np.inf
    bins = fronts.bins[t]
    scale = scale_bins(low, high, bins - 1)
    for b in range(bins + 1):
        points[b].value, points[b].link = least_value, -1
    control[0].links = 0
    for k in range(actions):
        if fronts.offered[k] > -np.inf:
            fill_action(levels, fronts, t, n, first_action + k, low, scale, bins)
    return bins + 1


@part
def find_span(levels, fronts, t, a):
    """Return the least and the largest risk of an action's points; inf and -inf without points."""
    least = most = levels.immediate_risk[a]
    begin = levels.first_outcome[a]
    for o in range(begin, begin + levels.safe_count[a]):
        n = find_next(levels, t, o)
        if n >= 0:
            if fronts.count[n] == 0:
                return np.inf, -np.inf
            probability, first = levels.probability[o], fronts.first[n]
            least += probability * fronts.risks[first]
            most += probability * fronts.risks[first + fronts.count[n] - 1]
    return least, most


@part
def fill_action(levels, fronts, t, n, a, low, scale, bins):
    """Add the outcomes of an action one after the other, the last one into the node's bins."""
    control, kept = fronts.control, fronts.kept
    begin, last = levels.first_outcome[a], -1
    for o in range(begin, begin + levels.safe_count[a]):
        if find_next(levels, t, o) >= 0:
            last = o
    kept[0].risk = levels.immediate_risk[a]
    kept[0].reward = levels.weights[t] * levels.expected_reward[a]
    kept[0].link = add_link(fronts, -1, -1)
    count = 1
    for o in range(begin, last):
        following = find_next(levels, t, o)
        if following >= 0:
            probability = levels.probability[o]
            control[0].work += count * fronts.count[following]
            count = add_outcome(fronts, t, following, probability, count)
    first, width, probability = 0, 1, 0.0
    if last >= 0:
        following = find_next(levels, t, last)
        first, width = fronts.first[following], fronts.count[following]
        probability = levels.probability[last]
    control[0].work += count * width
    if n == 0:
        choose_root(fronts, a, count, first, width, probability)
        return
    points, price = fronts.points, control[0].price
    for i in range(count):
        before = kept[i]
        for j in range(width):
            risk, reward = before.risk, before.reward
            if last >= 0:
                risk += probability * fronts.risks[first + j]
                reward += probability * fronts.rewards[first + j]
            b = 1 + find_bin((risk - low) * scale, bins - 1) if risk > low else 0
            value = reward - price * risk
            if value > points[b].value:
                point = points[b]
                point.value, point.risk, point.reward = value, risk, reward
                point.link, point.right, point.action = before.link, j, a


@part
def add_outcome(fronts, t, following, probability, count):
    """Add one outcome to the points so far; return the number of points."""
    control, kept, sums = fronts.control, fronts.kept, fronts.sums
    risks, rewards = fronts.risks, fronts.rewards
    first, width = fronts.first[following], fronts.count[following]
    bins = 2 * fronts.bins[t] if t > 0 else 4 * fronts.bins[0]
    direct = count == 1 or width == 1  # then the sums are in order, and few
    low = kept[0].risk + probability * risks[first]
    high = kept[count - 1].risk + probability * risks[first + width - 1]
    scale = scale_bins(low, high, bins - 1)
    used = count * width if direct else bins + 1
    for b in range(used):
        sums[b].value, sums[b].link = -np.inf, -1
    for i in range(count):
        before = kept[i]
        for j in range(width):
            risk = before.risk + probability * risks[first + j]
            reward = before.reward + probability * rewards[first + j]
            b = i + j
            if not direct:
                b = 1 + find_bin((risk - low) * scale, bins - 1) if risk > low else 0
            value = reward - control[0].price * risk
            if value > sums[b].value:
                candidate = sums[b]
                candidate.value, candidate.risk, candidate.reward = value, risk, reward
                candidate.link, candidate.right = before.link, j
    left = 0
    best = -np.inf
    for b in range(used):
        candidate = sums[b]
        if candidate.link >= 0 and candidate.reward > best:
            best = candidate.reward
            kept[left].risk, kept[left].reward = candidate.risk, candidate.reward
            kept[left].link = add_link(fronts, candidate.link, candidate.right)
            left += 1
    return left


@part
def add_link(fronts, before, right):
    """Record the origin of a point; return the number of the link."""
    number = fronts.control[0].links
    fronts.links[number].before, fronts.links[number].right = before, right
    fronts.control[0].links = number + 1
    return number


@part
def choose_root(fronts, a, count, first, width, probability):
    """Keep the acceptable point of the root of largest reward; ties go to the least risk."""
    best, kept = fronts.best, fronts.kept
    for i in range(count):
        for j in range(width):
            risk, reward = kept[i].risk, kept[i].reward
            if probability > 0.0:
                risk += probability * fronts.risks[first + j]
                reward += probability * fronts.rewards[first + j]
            if reward < best[0].reward or (reward == best[0].reward and risk >= best[0].risk):
                continue
            if risk <= allow(fronts, reward):
                best[0].risk, best[0].reward = risk, reward
                best[0].link, best[0].right, best[0].action = kept[i].link, j, a


@part
def allow(fronts, reward):
    """Return a lower bound on Δ(reward): a chord between two evaluated rewards (Δ is concave)."""
    allowed, control = fronts.allowed, fronts.control
    place = (reward - control[0].low) / control[0].step
    if not place >= 0.0:
        return -np.inf
    k = find_bin(place, len(allowed) - 2)
    return allowed[k] + min(1.0, place - k) * (allowed[k + 1] - allowed[k])


@kernel
def trace(levels, values, fronts):
    """Write the decisions of the root's best point, until done, PAUSED or out of room."""
    levels, fronts, values = borrow(levels), borrow(fronts), borrow(values)
    control = fronts.control
    t = find_level(levels, control[0].node)
    while control[0].node < len(levels.state):
        n = control[0].node
        if n == levels.first[t + 1]:
            t += 1
        if n == levels.first[t]:
            fronts.starts[t] = control[0].decisions
            if t + 2 < len(levels.first):
                put_in_place(levels, t + 1)
        wanted = n == 0  # or the plan reaches the node
        for p in range(fronts.first[n], fronts.first[n] + fronts.count[n]):
            wanted = wanted or fronts.number[p] == WANTED
        if wanted:
            if not has_room(levels, fronts, n):
                return codes.NEEDS_PLAN
            if n == 0:
                fronts.best[0].reward = -np.inf
            bins = fill_node(levels, values, fronts, t, n)
            if n == 0:
                write(levels, fronts, t, fronts.best[0])
            else:
                write_wanted(levels, fronts, t, n, bins)
        control[0].node += 1
        if control[0].work >= control[0].pause:
            return codes.PAUSED
    fronts.starts[len(levels.first) - 1] = control[0].decisions
    return codes.DONE


@part
def has_room(levels, fronts, n):
    """Whether there is room for all points of a node."""
    first, width = levels.first_action[levels.state[n]], 0
    for a in range(first, first + levels.action_count[levels.state[n]]):
        width = max(width, levels.safe_count[a])
    most = max(1, fronts.count[n])
    control = fronts.control[0]
    rows, children = control.decisions + most, control.children + most * width
    return rows <= len(fronts.rows) and children <= len(fronts.children)


@part
def write_wanted(levels, fronts, t, n, bins):
    """Write the points of a node that the plan reaches; its bins hold them in order."""
    p = fronts.first[n]
    best = -np.inf
    for b in range(bins):
        point = fronts.points[b]
        if point.link >= 0 and point.reward > best:
            best = point.reward
            if fronts.number[p] == WANTED:
                fronts.number[p] = fronts.control[0].decisions
                write(levels, fronts, t, point)
            p += 1


@part
def write(levels, fronts, t, point):
    """Write one decision: the action of a point, and the points after it."""
    control = fronts.control
    fronts.rows[control[0].decisions] = point.action
    control[0].decisions += 1
    begin, count = levels.first_outcome[point.action], levels.safe_count[point.action]
    link, right = point.link, point.right
    # Links lead from the last outcome to the first.
    for k in range(count - 1, -1, -1):
        n = find_next(levels, t, begin + k)
        child = END
        if n >= 0:
            child = fronts.first[n] + right
            if fronts.number[child] == UNUSED:
                fronts.number[child] = WANTED
            right, link = fronts.links[link].right, fronts.links[link].before
        fronts.children[control[0].children + k] = child
    control[0].children += count


@kernel
def close(levels, fronts, rewards, risks):
    """Replace points by their decisions; fill the reward and risk of each, computed again."""
    levels, fronts = borrow(levels), borrow(fronts)
    rewards, risks = borrow(rewards), borrow(risks)
    starts, children = fronts.starts, fronts.children
    at = fronts.control[0].children
    for t in range(len(starts) - 2, -1, -1):
        for d in range(starts[t + 1] - 1, starts[t] - 1, -1):
            row = fronts.rows[d]
            reward = levels.weights[t] * levels.expected_reward[row]
            risk = levels.immediate_risk[row]
            at -= levels.safe_count[row]
            for k in range(levels.safe_count[row]):
                if children[at + k] == END:
                    continue
                child = fronts.number[children[at + k]]
                children[at + k] = child
                probability = levels.probability[levels.first_outcome[row] + k]
                reward += probability * rewards[child]
                risk += probability * risks[child]
            rewards[d], risks[d] = reward, risk
