"""The policy of a point of thin fronts, as decisions (see `vulcan.kernels.thin_fronts`).

A decision is a point of a node that some history of the policy comes to. Decisions are numbered
level by level, the root first, and have an action row and a child for each safe outcome of it: the
number of another decision, or END.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from vulcan.kernels.codes import DONE, NEEDS_PLAN, PAUSED
from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.level_arrays import borrow_levels, find_next, put_in_place
from vulcan.kernels.thin_fronts import UNUSED, WANTED, borrow_fronts, fill_node
from vulcan.sentinels import END

__all__ = ["Decisions", "close", "trace"]


class Decisions(NamedTuple):
    """A policy in the making.

    Attributes
    ----------
    rows
        The action row of each decision.
    children
        For each safe outcome of each decision in turn, the decision after it or END; while tracing,
        its point.
    starts
        The first decision of each level, and the number of all at the end.
    """

    rows: Any
    children: Any
    starts: Any


@part
def borrow_decisions(plan):
    """Return the arrays of decisions without counted references."""
    return Decisions(borrow(plan.rows), borrow(plan.children), borrow(plan.starts))


@kernel
def trace(levels, values, plan, fronts):
    """Write the decisions of the root's best point, until done, PAUSED or out of room."""
    levels, fronts, plan = borrow_levels(levels), borrow_fronts(fronts), borrow_decisions(plan)
    values = borrow(values)
    control = fronts.control
    t = np.searchsorted(levels.first, control[0].node, side="right") - 1
    while control[0].node < len(levels.state):
        n = control[0].node
        if n == levels.first[t + 1]:
            t += 1
        if n == levels.first[t]:
            plan.starts[t] = control[0].decisions
            if t + 2 < len(levels.first):
                put_in_place(levels, t + 1)
        if n == 0 or is_wanted(fronts, n):
            if not has_room(levels, fronts, plan, n):
                return NEEDS_PLAN
            if n == 0:
                fronts.best[0].reward = -np.inf
            bins = fill_node(levels, values, fronts, t, n)
            if n == 0:
                write(levels, fronts, plan, t, fronts.best[0])
            else:
                write_wanted(levels, fronts, plan, t, n, bins)
        control[0].node += 1
        if control[0].work >= control[0].pause:
            return PAUSED
    plan.starts[len(levels.first) - 1] = control[0].decisions
    return DONE


@part
def is_wanted(fronts, n):
    """Whether the plan comes to a node."""
    for p in range(fronts.first[n], fronts.first[n] + fronts.count[n]):
        if fronts.number[p] == WANTED:
            return True
    return False


@part
def has_room(levels, fronts, plan, n):
    """Whether all points of a node could be written."""
    first, width = levels.first_action[levels.state[n]], 0
    for a in range(first, first + levels.action_count[levels.state[n]]):
        width = max(width, levels.safe_count[a])
    most = max(1, fronts.count[n])
    control = fronts.control[0]
    rows, children = control.decisions + most, control.children + most * width
    return rows <= len(plan.rows) and children <= len(plan.children)


@part
def write_wanted(levels, fronts, plan, t, n, bins):
    """Write the points of a node that the plan comes to; they are in its bins in their order."""
    p = fronts.first[n]
    best = -np.inf
    for b in range(bins):
        point = fronts.points[b]
        if point.link >= 0 and point.reward > best:
            best = point.reward
            if fronts.number[p] == WANTED:
                fronts.number[p] = fronts.control[0].decisions
                write(levels, fronts, plan, t, point)
            p += 1


@part
def write(levels, fronts, plan, t, point):
    """Write one decision: the action of a point, and the points after it."""
    control = fronts.control
    plan.rows[control[0].decisions] = point.action
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
        plan.children[control[0].children + k] = child
    control[0].children += count


@kernel
def close(levels, fronts, plan, rewards, risks):
    """Replace points by their decisions; fill what each decision earns and risks, computed anew."""
    levels, fronts, plan = borrow_levels(levels), borrow_fronts(fronts), borrow_decisions(plan)
    rewards, risks = borrow(rewards), borrow(risks)
    at = fronts.control[0].children
    for t in range(len(plan.starts) - 2, -1, -1):
        for d in range(plan.starts[t + 1] - 1, plan.starts[t] - 1, -1):
            row = plan.rows[d]
            reward = levels.weights[t] * levels.expected_reward[row]
            risk = levels.immediate_risk[row]
            at -= levels.safe_count[row]
            for k in range(levels.safe_count[row]):
                if plan.children[at + k] == END:
                    continue
                child = fronts.number[plan.children[at + k]]
                plan.children[at + k] = child
                probability = levels.probability[levels.first_outcome[row] + k]
                reward += probability * rewards[child]
                risk += probability * risks[child]
            rewards[d], risks[d] = reward, risk
