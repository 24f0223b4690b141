"""A plan written out as a policy, in preorder.

The top of the tree has actions of its own (`plan` of a node), and below it each history follows one
price (`lane`). Nodes outside of the tree, and their actions, are added to the rows of the graph as
the walk comes to them. Rows and entries are those of `vulcan.kernels.extraction`, and so is what
the policy is worth.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.kernels.codes import DONE, GO_ON, KNOWN, NEEDS_PLAN
from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.expansion import have_actions, have_outcomes
from vulcan.kernels.extraction import SUMMARY
from vulcan.kernels.plan_choices import prefer_sampled, rate
from vulcan.kernels.price_tree import borrow_prices
from vulcan.kernels.problem_arrays import borrow_problem
from vulcan.kernels.selection import expect
from vulcan.sentinels import END, NONE

__all__ = ["LEVEL", "SUMMARY", "WRITER", "Outline", "write_plan"]

LEVEL: Final = np.dtype(
    [
        ("node", "i4"),
        ("state", "i4"),
        ("lane", "i4"),
        ("row", "i4"),  # NONE until the action is chosen
        ("number", "i4"),
        ("entry", "i4"),  # where the history is noted as what comes after
        ("outcome", "i4"),
        ("reach", "f8"),
    ],
    align=True,
)
WRITER: Final = np.dtype([("begin", "i8"), ("depth", "i8"), ("state", "i8")], align=True)
"""The level where the plan begins, that of the present history, and a state to be asked."""


class Outline(NamedTuple):
    """The arrays that a plan is written into, and those of the walk."""

    levels: Any
    rows: Any
    firsts: Any
    below: Any
    summaries: Any
    writers: Any


@kernel
def write_plan(problem, tree, returns, outline):
    """Write the decisions until done, or something is needed."""
    problem, tree, returns = borrow_problem(problem), borrow_prices(tree), borrow(returns)
    levels, rows = borrow(outline.levels), borrow(outline.rows)
    firsts, below = borrow(outline.firsts), borrow(outline.below)
    summary, writer = outline.summaries[0], outline.writers[0]
    while writer.depth >= writer.begin:
        here = levels[writer.depth]
        if here.row == NONE:
            writer.state = here.state
            news = decide(problem, tree, returns, here, writer.depth)
            if news != KNOWN:
                return news
            if here.row == NONE:  # a safe terminal
                if here.entry != NONE:
                    below[here.entry] = END
                writer.depth -= 1
                continue
            if not enter(problem, here, writer.depth, rows, firsts, below, summary):
                here.row = NONE
                return NEEDS_PLAN
        news = go_on(problem, tree, levels, writer, here, firsts, below)
        if news != GO_ON:
            return news
    return DONE


@part
def decide(problem, tree, returns, here, depth):
    """Choose the action row of a history; NONE if it ends there."""
    news = have_actions(problem, here.state)
    if news != KNOWN:
        return news
    state = problem.states[here.state]
    if state.action_count == 0:
        return KNOWN
    last = depth + 1 == len(problem.discounts)
    chosen = NONE
    if here.node != NONE:
        node = tree.nodes[here.node]
        if here.lane == NONE and node.plan != NONE:
            chosen = node.plan
        elif not last:
            if here.lane == NONE:
                here.lane = node.lane
            chosen = prefer_sampled(problem, tree, here.node, here.lane)
            if chosen == NONE:
                here.node = NONE
    if chosen == NONE:
        if here.lane == NONE:
            here.lane = tree.nodes[here.node].lane
        chosen = prefer_promising(problem, tree, returns, here, depth, last)
    row = state.first_action + chosen
    if not last:
        news = have_outcomes(problem, here.state, row, True, depth)
        if news != KNOWN:
            return news
    here.row = row
    return KNOWN


@part
def prefer_promising(problem, tree, returns, here, depth, last):
    """Return the position of the action that promises most, where the tree knows nothing."""
    state = problem.states[here.state]
    price = np.float64(tree.prices[0, here.lane])
    to_go = 0.0 if last else expect(returns, depth)
    best, chosen = -np.inf, NONE
    for k in range(state.action_count):
        action = problem.actions[state.first_action + k]
        worth = rate(returns, depth, problem.weights[depth], price, to_go, action)
        if chosen == NONE or worth > best:
            best, chosen = worth, k
    return chosen


@part
def enter(problem, here, depth, rows, firsts, below, summary):
    """Write the next decision; False if there is no room for it."""
    action = problem.actions[here.row]
    here.number, here.outcome = summary.decisions, 0
    if here.number >= len(rows) or summary.entries + action.safe_count > len(below):
        return False
    rows[here.number] = here.row
    if here.entry != NONE:
        below[here.entry] = here.number
    summary.decisions += 1
    summary.entries += action.safe_count
    firsts[summary.decisions] = summary.entries
    summary.reward += problem.weights[depth] * here.reach * action.expected_reward
    summary.risk += here.reach * action.immediate_risk
    return True


@part
def go_on(problem, tree, levels, writer, here, firsts, below):
    """Go to the history after the next outcome, or back."""
    action = problem.actions[here.row]
    k = here.outcome
    if k == action.safe_count:
        writer.depth -= 1
        return GO_ON
    entry = firsts[here.number] + k
    here.outcome += 1
    if writer.depth + 1 == len(problem.discounts):
        below[entry] = END
        return GO_ON
    outcome = problem.outcomes[action.first_outcome + k]
    after = levels[writer.depth + 1]
    after.state, after.lane, after.row, after.entry = outcome.state, here.lane, NONE, entry
    after.reach, after.node = here.reach * outcome.probability, NONE
    if here.node != NONE:
        node = tree.nodes[here.node]
        position = here.row - problem.states[here.state].first_action
        first_child = tree.edges[node.first_edge + position].first_child
        if first_child != NONE:
            after.node = first_child + k
    writer.depth += 1
    return GO_ON
