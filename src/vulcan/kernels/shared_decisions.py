"""Completion where states merge: decisions shared by all histories in one state at one level.

The search tree decides at the *top*: in every history all of whose remaining actions were tried
often enough. What comes after it are *frontier* points, each a pair (state, level) with the
probability of reaching it. All pairs that can follow are unrolled level by level, and a dynamic
program from the last level to the first finds, for weights w of reward and k of risk,

    V(s, t) = max over a of   w γ^t R̄(s, a) - k r(s, a) + Σ_safe p(s') V(s', t + 1),

the decisions that attain it, and what they earn and risk from each pair on. A pair is known by its
number; those of a level are consecutive, and no edge between pairs is stored:

    state   [N]      the state of each pair; none of them is terminal
    first   [n + 1]  where the pairs of each of the n levels begin
    place   [S]      scratch: the number of a state in the level at hand, NONE elsewhere

Several sets of decisions, `choice[v]`, may be written out side by side: a frontier point follows
one of them to the end.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.problem_arrays import borrow_problem
from vulcan.kernels.tree import LIVE, SOLVED, action_row, borrow_tree
from vulcan.sentinels import END, NONE

DECISION: Final = np.dtype(
    [("node", "i4"), ("level", "i4"), ("row", "i4"), ("first", "i4"), ("reach", "f8")], align=True
)
FRONTIER: Final = np.dtype(
    [("state", "i4"), ("level", "i4"), ("entry", "i4"), ("reach", "f8")], align=True
)
TOP: Final = np.dtype(
    [
        ("decisions", "i8"),
        ("entries", "i8"),
        ("frontier", "i8"),
        ("reward", "f8"),
        ("risk", "f8"),
    ],
    align=True,
)
TIE: Final = 1e-13
"""Values that differ by less, relative to their size, are alike."""


@kernel
def write_top(problem, tree, least, decisions, below, frontier, tops):
    """Write the decisions of the tree, in the order of their levels; False without room for them.

    It decides where each action that remains was tried at least so often (`least`).
    What comes after an outcome is a decision, END, or NONE - 1 - k at frontier point k.
    """
    problem, tree = borrow_problem(problem), borrow_tree(tree)
    decisions, below, frontier = borrow(decisions), borrow(below), borrow(frontier)
    top = tops[0]
    top.decisions, top.entries, top.frontier = 0, 0, 0
    top.reward, top.risk = 0.0, 0.0
    add_place(problem, tree, least, 0, 0, 0, 1.0, decisions, frontier, top)
    k = 0
    while k < top.decisions:
        here = decisions[k]
        k += 1
        node = tree.nodes[here.node]
        e = choose_tried(problem, tree, least, node)
        here.row, here.first = action_row(problem, node, e), top.entries
        action = problem.actions[here.row]
        top.reward += problem.weights[here.level] * here.reach * action.expected_reward
        top.risk += here.reach * action.immediate_risk
        room = min(len(decisions) - top.decisions, len(frontier) - top.frontier)
        if action.safe_count > min(room, len(below) - top.entries):
            return False
        for j in range(action.safe_count):
            outcome = problem.outcomes[action.first_outcome + j]
            child = tree.children[tree.edges[e].first_child + j]
            reach = here.reach * outcome.probability
            level = here.level + 1
            below[top.entries] = END
            if level < len(problem.discounts) and problem.states[outcome.state].action_count != 0:
                below[top.entries] = add_place(
                    problem,
                    tree,
                    least,
                    child,
                    outcome.state,
                    level,
                    reach,
                    decisions,
                    frontier,
                    top,
                )
            top.entries += 1
    return True


@part
def add_place(problem, tree, least, child, state, level, reach, decisions, frontier, top):
    """Add a history to the decisions if the tree decides there, else to the frontier."""
    decided = child != NONE and choose_tried(problem, tree, least, tree.nodes[child]) != NONE
    if decided:
        here = decisions[top.decisions]
        here.node, here.level, here.reach = child, level, reach
        top.decisions += 1
        return top.decisions - 1
    point = frontier[top.frontier]
    point.state, point.level, point.entry, point.reach = state, level, top.entries, reach
    top.frontier += 1
    return NONE - top.frontier


@part
def choose_tried(problem, tree, least, node):
    """Return the best action of a history, if all that remain were tried so often; else NONE."""
    best, chosen = -np.inf, NONE
    if node.first_edge == NONE:
        return NONE
    for e in range(node.first_edge, node.first_edge + problem.states[node.state].action_count):
        edge = tree.edges[e]
        if edge.mark in (LIVE, SOLVED):
            if edge.visits < least:
                return NONE
            if chosen == NONE or edge.value > best:
                best, chosen = edge.value, e
    return chosen


@kernel
def reach_level(problem, before, seeds, place, found):
    """Write the states that can follow some states, and some more, once each; return how many."""
    problem, before, seeds = borrow_problem(problem), borrow(before), borrow(seeds)
    place, found = borrow(place), borrow(found)
    count = 0
    for state in seeds:
        count = note(place, found, count, state)
    for state in before:
        row = problem.states[state]
        for a in range(row.first_action, row.first_action + row.action_count):
            action = problem.actions[a]
            for k in range(action.first_outcome, action.first_outcome + action.safe_count):
                count = note(place, found, count, problem.outcomes[k].state)
    for k in range(count):
        place[found[k]] = NONE
    return count


@part
def note(place, found, count, state):
    """Write a state that was not met yet; return how many were."""
    if place[state] != NONE:
        return count
    place[state] = count
    found[count] = state
    return count + 1


@part
def set_places(place, first, states, level, filled):
    """Fill in the numbers of a level, or take them out again."""
    if level + 1 < len(first):
        for n in range(first[level], first[level + 1]):
            place[states[n]] = n if filled else NONE


@kernel
def sweep_levels(problem, first, states, place, weight, price, rewards, risks, choice):
    """Find the decisions of all pairs that earn most, at a weight of reward and a price of risk."""
    problem, first, states = borrow_problem(problem), borrow(first), borrow(states)
    place, rewards, risks, choice = borrow(place), borrow(rewards), borrow(risks), borrow(choice)
    for level in range(len(first) - 2, -1, -1):
        set_places(place, first, states, level + 1, True)
        for n in range(first[level], first[level + 1]):
            row = problem.states[states[n]]
            best = -np.inf
            for a in range(row.first_action, row.first_action + row.action_count):
                action = problem.actions[a]
                reward = problem.weights[level] * action.expected_reward
                risk = action.immediate_risk
                for k in range(action.first_outcome, action.first_outcome + action.safe_count):
                    outcome = problem.outcomes[k]
                    after = place[outcome.state]
                    if after != NONE:
                        reward += outcome.probability * rewards[after]
                        risk += outcome.probability * risks[after]
                value = weight * reward - price * risk
                margin = TIE * max(1.0, abs(value))
                better = value > best + margin
                if not better and value >= best - margin:
                    # Of what is alike, the rest decides: risk, unless it was all that counted.
                    better = reward > rewards[n] if weight == 0.0 else risk < risks[n]
                if better:
                    best = value
                    rewards[n], risks[n], choice[n] = reward, risk, a
        set_places(place, first, states, level + 1, False)


@kernel
def number_shared(problem, first, states, place, choice, numbers, start):
    """Give decisions that are reached from marked ones (not NONE) numbers from `start` on.

    Returns how many decisions and entries there are.
    """
    problem, first, states = borrow_problem(problem), borrow(first), borrow(states)
    place, choice, numbers = borrow(place), borrow(choice), borrow(numbers)
    count, entries = 0, 0
    for level in range(len(first) - 1):
        set_places(place, first, states, level + 1, True)
        for n in range(first[level], first[level + 1]):
            for v in range(len(choice)):
                if numbers[v, n] == NONE:
                    continue
                numbers[v, n] = start + count
                action = problem.actions[choice[v, n]]
                count += 1
                entries += action.safe_count
                for k in range(action.first_outcome, action.first_outcome + action.safe_count):
                    after = place[problem.outcomes[k].state]
                    if after != NONE:
                        numbers[v, after] = 0
        set_places(place, first, states, level + 1, False)
    return count, entries


@kernel
def write_shared(problem, first, states, place, choice, numbers, decisions, rows, firsts, below):
    """Write the numbered decisions into arrays that begin with those of the top."""
    problem, first, states = borrow_problem(problem), borrow(first), borrow(states)
    place, choice, numbers = borrow(place), borrow(choice), borrow(numbers)
    rows, firsts, below = borrow(rows), borrow(firsts), borrow(below)
    entry = firsts[decisions]
    for level in range(len(first) - 1):
        set_places(place, first, states, level + 1, True)
        for n in range(first[level], first[level + 1]):
            for v in range(len(choice)):
                if numbers[v, n] == NONE:
                    continue
                row = choice[v, n]
                action = problem.actions[row]
                rows[numbers[v, n]] = row
                for k in range(action.first_outcome, action.first_outcome + action.safe_count):
                    after = place[problem.outcomes[k].state]
                    below[entry] = END if after == NONE else numbers[v, after]
                    entry += 1
                firsts[numbers[v, n] + 1] = entry
        set_places(place, first, states, level + 1, False)
