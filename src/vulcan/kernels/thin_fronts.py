"""Thin fronts: for each node a few points of (risk, reward), each of a deterministic policy.

A point of a node is what some deterministic policy, which may depend on the history, risks and
earns from there on. An action's points are the sums over its outcomes

    risk = r + Σ_safe p risk_j,    reward = γ^t R̄ + Σ_safe p reward_j,

with any point of each node that follows; a node's points are those of all its actions. There are
far too many, so few are kept: the risks from the least to the largest are cut into bins, and each
bin keeps the point that falls short least of V_k(n) = max (reward - k risk), with k the price of
failure. Nothing is ever put between points: where two policies are far apart, what lies between
them are policies that let the outcomes decide which of the two to follow. Outcomes are added one
after the other, with bins in between.

Points that fall short by more than `slack` are dropped, and so are actions without any other, and
nodes that no other action leads to (`mark`). The last node, the root, keeps nothing: of all its
sums, the one of largest reward with risk <= Δ(reward) is noted.

Points are stored without where they come from. `trace` follows those of the plan level by level,
and computes again the nodes that it reaches: the same sums in the same order, now with their links.
A link says which point of one outcome was added to which link of the outcomes before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from vulcan.kernels.codes import DONE, PAUSED
from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.level_arrays import borrow_levels, find_next, put_in_place

__all__ = ["CONTROL", "DRAFT", "LINK", "ThinFronts", "extend", "mark", "prepare"]


DRAFT = np.dtype(
    [
        ("value", "f8"),  # reward - price · risk
        ("risk", "f8"),
        ("reward", "f8"),
        ("link", "i4"),  # of the outcomes before
        ("right", "i4"),  # the point of one more
        ("action", "i4"),
    ],
    align=True,
)
"""A point in the making."""

LINK = np.dtype([("before", "i4"), ("right", "i4")], align=True)

CONTROL = np.dtype(
    [
        ("price", "f8"),
        ("slack", "f8"),
        ("low", "f8"),  # allowed[i] is Δ at the reward low + i · step
        ("step", "f8"),
        ("node", "i8"),  # to go on with
        ("last", "i8"),  # to end with
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
    """The arrays of a computation.

    Attributes
    ----------
    first, count
        Where the points of each node are, and how many.
    bins
        For each level, how many bins there are.
    risks, rewards
        The points.
    number
        Of each point, which decision of the plan it is: UNUSED, WANTED or that number.
    allowed
        Δ at evenly spaced rewards.
    kept, sums, links, offered
        Scratch: the points of the outcomes so far, those with one more, where they come from, and
        for each action of a node its value, or -inf.
    points
        Scratch: the bins of a node.
    best
        The best acceptable point of the root.
    control
        One record of parameters and counts.

    Where several threads fill the fronts of a level, each has scratch and a control of its own, and
    stores its points where there is room for those of its nodes.
    """

    first: Any
    count: Any
    bins: Any
    risks: Any
    rewards: Any
    number: Any
    allowed: Any
    kept: Any
    sums: Any
    links: Any
    offered: Any
    points: Any
    best: Any
    control: Any


UNUSED = -1
WANTED = -2

WORK_OF_A_NODE = 64
"""In pairs of points, about."""


@part
def borrow_fronts(fronts):
    """Return the arrays of fronts without counted references."""
    return ThinFronts(
        borrow(fronts.first),
        borrow(fronts.count),
        borrow(fronts.bins),
        borrow(fronts.risks),
        borrow(fronts.rewards),
        borrow(fronts.number),
        borrow(fronts.allowed),
        borrow(fronts.kept),
        borrow(fronts.sums),
        borrow(fronts.links),
        borrow(fronts.offered),
        borrow(fronts.points),
        borrow(fronts.best),
        borrow(fronts.control),
    )


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
def mark(levels, values, price, slack, marked, sizes):
    """Mark the nodes that are reached by actions within the slack, and count them by level."""
    levels = borrow_levels(levels)
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


@kernel
def prepare(levels, n):
    """Note where the nodes are that follow those of a level, given by one of its nodes."""
    levels = borrow_levels(levels)
    t = np.searchsorted(levels.first, n, side="right") - 1
    if t + 2 < len(levels.first):
        put_in_place(levels, t + 1)


@kernel
def extend(levels, values, marked, fronts):
    """Fill the fronts of marked nodes from one to the last to be filled, until done or PAUSED.

    A part of a level must have been prepared; whole levels are prepared here.
    """
    levels, fronts = borrow_levels(levels), borrow_fronts(fronts)
    values, marked = borrow(values), borrow(marked)
    control = fronts.control
    t = np.searchsorted(levels.first, control[0].node, side="right") - 1
    while control[0].node >= control[0].last:
        n = control[0].node
        if n < levels.first[t]:
            t -= 1
        whole = n + 1 == levels.first[t + 1] and control[0].last <= levels.first[t]
        if whole and t + 2 < len(levels.first):
            put_in_place(levels, t + 1)
        fronts.first[n], fronts.count[n] = control[0].points, 0
        if marked[n]:
            control[0].work += WORK_OF_A_NODE
            store_points(fronts, n, fill_node(levels, values, fronts, t, n))
        control[0].node -= 1
        if control[0].work >= control[0].pause:
            return PAUSED
    return DONE


@part
def store_points(fronts, n, bins):
    """Store what is in the bins of a node, without what earns no more at a larger risk."""
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
    """Fill the bins of a node with the points of its actions; return how many bins there are."""
    control, points = fronts.control, fronts.points
    price = control[0].price
    state = levels.state[n]
    first_action, actions = levels.first_action[state], levels.action_count[state]
    floor = values[n] - control[0].slack
    low, high = np.inf, -np.inf
    for k in range(actions):
        a = first_action + k
        value = value_action(levels, values, price, t, a)
        fronts.offered[k] = value if value >= floor else -np.inf
        if value >= floor:
            least, most = find_span(levels, fronts, t, a)
            low, high = min(low, least), max(high, most)
    bins = fronts.bins[t]
    scale = (bins - 1) / (high - low) if high > low else 0.0
    for b in range(bins + 1):
        points[b].value, points[b].link = floor, -1
    control[0].links = 0
    for k in range(actions):
        if fronts.offered[k] > -np.inf:
            fill_action(levels, fronts, t, n, first_action + k, low, scale)
    return bins + 1


@part
def find_span(levels, fronts, t, a):
    """Return least and largest risk of the points of an action."""
    least = most = levels.immediate_risk[a]
    begin = levels.first_outcome[a]
    for o in range(begin, begin + levels.safe_count[a]):
        n = find_next(levels, t, o)
        if n >= 0:
            probability, first = levels.probability[o], fronts.first[n]
            least += probability * fronts.risks[first]
            most += probability * fronts.risks[first + fronts.count[n] - 1]
    return least, most


@part
def fill_action(levels, fronts, t, n, a, low, scale):
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
            b = 1 + int((risk - low) * scale) if risk > low else 0
            value = reward - price * risk
            if value > points[b].value:
                point = points[b]
                point.value, point.risk, point.reward = value, risk, reward
                point.link, point.right, point.action = before.link, j, a


@part
def add_outcome(fronts, t, following, probability, count):
    """Add one outcome to the points so far; return how many points there are now."""
    control, kept, sums = fronts.control, fronts.kept, fronts.sums
    risks, rewards = fronts.risks, fronts.rewards
    first, width = fronts.first[following], fronts.count[following]
    bins = 2 * fronts.bins[t] if t > 0 else 4 * fronts.bins[0]
    direct = count == 1 or width == 1  # then they are in order, and few
    low = kept[0].risk + probability * risks[first]
    high = kept[count - 1].risk + probability * risks[first + width - 1]
    scale = (bins - 1) / (high - low) if high > low else 0.0
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
                b = 1 + int((risk - low) * scale) if risk > low else 0
            value = reward - control[0].price * risk
            if value > sums[b].value:
                draft = sums[b]
                draft.value, draft.risk, draft.reward = value, risk, reward
                draft.link, draft.right = before.link, j
    left = 0
    best = -np.inf
    for b in range(used):
        draft = sums[b]
        if draft.link >= 0 and draft.reward > best:
            best = draft.reward
            kept[left].risk, kept[left].reward = draft.risk, draft.reward
            kept[left].link = add_link(fronts, draft.link, draft.right)
            left += 1
    return left


@part
def add_link(fronts, before, right):
    """Note where a point comes from; return the number of the link."""
    number = fronts.control[0].links
    fronts.links[number].before, fronts.links[number].right = before, right
    fronts.control[0].links = number + 1
    return number


@part
def choose_root(fronts, a, count, first, width, probability):
    """Note the acceptable point of the root that earns most; among equals that of least risk."""
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
    """Return the risk allowed for a reward, on the chord between two that were evaluated.

    A chord of a concave bound lies below it.
    """
    allowed, control = fronts.allowed, fronts.control
    place = (reward - control[0].low) / control[0].step
    if place < 0.0:
        return -np.inf
    k = min(int(place), len(allowed) - 2)
    return allowed[k] + min(1.0, place - k) * (allowed[k + 1] - allowed[k])
