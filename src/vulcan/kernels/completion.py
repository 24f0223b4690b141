"""Cleanup (algorithm 4 of the paper) and completion, as one kernel that can stop and go on.

Both walk the policy of a search tree from the root, an action a history: the best that was sampled,
else the one with the largest expected reward. They differ in what they do with an outcome that was
never sampled. Cleanup tests the local constraint on the history up to it, as if it ended there, and
leaves it at the frontier of an incomplete policy. Completion plans it to its end.

Where a history fails, its last action is deleted and the next best action of the same history takes
its place; actions further up stay, and the change in value is carried up, as in the paper. When a
history has no action left, the action that led to it is deleted in turn. With completion every
deletion is proved, so that a search may go on in the same tree.

    choice  [N]  the edge that a settled history takes; NONE at the frontier
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vulcan.kernels.codes import (
    ADMITTED,
    DONE,
    GO_ON,
    KNOWN,
    NEEDS_BOUND,
    NEEDS_ROOM,
    PAUSED,
    REFUSED,
    REJECT,
    SETTLED,
    UNDECIDED,
)
from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.constraints import finish
from vulcan.kernels.expansion import have_actions
from vulcan.kernels.last_step import choose_last_action
from vulcan.kernels.problem_arrays import borrow_problem
from vulcan.kernels.tree import (
    LIVE,
    SOLVED,
    action_row,
    add_child,
    borrow_tree,
    delete_edge,
    open_edge,
    open_node,
    refresh,
    renew_edge,
    weigh_edge,
)
from vulcan.sentinels import NONE

OPEN: Final = 0
NEXT_EDGE: Final = 1
NEXT_CHILD: Final = 2

PLACE: Final = np.dtype([("node", "i4"), ("outcome", "i4")], align=True)
WALK: Final = np.dtype(
    [
        ("depth", "i8"),
        ("phase", "i8"),
        ("complete", "i8"),  # plan what was not sampled, instead of leaving it
        ("visited", "i8"),  # histories walked so far
        ("budget", "i8"),  # pause after this many
        ("exhausted", "i8"),  # whether the root has no action left
    ],
    align=True,
)


@kernel
def settle(problem, tree, choice, places, tests, walks):
    """Settle an action for every history that the policy reaches."""
    problem, tree = borrow_problem(problem), borrow_tree(tree)
    choice, places = borrow(choice), borrow(places)
    test, walk = tests[0], walks[0]
    while True:
        if walk.phase == NEXT_CHILD:
            news = enter_child(problem, tree, choice, places, test, walk)
        elif walk.phase == OPEN:
            news = open_place(problem, tree, choice, places, test, walk)
        else:
            news = choose_edge(problem, tree, choice, places, test, walk)
        if news in (SETTLED, REJECT):
            if walk.depth == 0:
                walk.exhausted = news == REJECT
                return DONE
            walk.depth -= 1
            leave(problem, tree, choice, places, walk, news)
        elif news != GO_ON:
            return news


@part
def open_place(problem, tree, choice, places, test, walk):
    """Enter a history of the policy."""
    place = places[walk.depth]
    node = tree.nodes[place.node]
    choice[place.node] = NONE
    frontier = not walk.complete and node.visits == 0
    news = KNOWN if frontier else have_actions(problem, node.state)
    if news != KNOWN:
        return news
    if frontier or problem.states[node.state].action_count == 0:
        verdict = finish(test, problem.pieces, node.survival, node.credit)
        if verdict == UNDECIDED:
            return NEEDS_BOUND
        return SETTLED if verdict == ADMITTED else REJECT
    if walk.visited >= walk.budget:
        return PAUSED
    if not open_node(problem, tree, node):
        return NEEDS_ROOM
    walk.visited += 1
    if walk.depth + 1 == len(problem.discounts) and not tree.sizes[0].counted:
        return settle_last_step(problem, choice, place, node, test, problem.weights[walk.depth])
    walk.phase = NEXT_EDGE
    return GO_ON


@part
def settle_last_step(problem, choice, place, node, test, weight):
    """Choose for a history of which one step is left; nothing comes after, nothing is deleted."""
    news, chosen, _ = choose_last_action(
        problem, test, node.state, node.survival, node.credit, weight
    )
    if news != KNOWN:
        return news
    if chosen == NONE:
        return REJECT
    choice[place.node] = node.first_edge + chosen - problem.states[node.state].first_action
    return SETTLED


@part
def choose_edge(problem, tree, choice, places, test, walk):
    """Take the best action that is left, if it passes what can be tested at once."""
    depth = walk.depth
    place = places[depth]
    node = tree.nodes[place.node]
    e = prefer(problem, tree, node)
    if e == NONE:
        return REJECT
    row = action_row(problem, node, e)
    last = depth + 1 == len(problem.discounts)
    verdict = weigh_edge(problem, test, depth, last, node, row, tree.edges[e])
    if verdict == UNDECIDED:
        return NEEDS_BOUND
    if verdict == REFUSED:
        delete_edge(problem, tree, node, e)
        return GO_ON
    if verdict != ADMITTED:
        return verdict
    action = problem.actions[row]
    choice[place.node] = e
    if last or action.safe_count == 0:
        return SETTLED
    if not open_edge(tree, action, tree.edges[e]):
        return NEEDS_ROOM
    place.outcome = 0
    walk.phase = NEXT_CHILD
    return GO_ON


@part
def enter_child(problem, tree, choice, places, test, walk):
    """Go to the next outcome of the action that was taken."""
    depth = walk.depth
    place = places[depth]
    node = tree.nodes[place.node]
    e = choice[place.node]
    edge, action = tree.edges[e], problem.actions[action_row(problem, node, e)]
    if place.outcome == action.safe_count:
        return SETTLED
    child = tree.children[edge.first_child + place.outcome]
    if child == NONE:
        if tree.sizes[0].nodes >= min(len(tree.nodes), len(choice)):
            return NEEDS_ROOM
        child = add_child(
            problem, tree, test, action, problem.weights[depth], node, edge, place.outcome
        )
    places[depth + 1].node = child
    walk.depth = depth + 1
    walk.phase = OPEN
    return GO_ON


@part
def leave(problem, tree, choice, places, walk, news):
    """Return to the history before: to its next outcome, or to its next best action."""
    place = places[walk.depth]
    node = tree.nodes[place.node]
    e = choice[place.node]
    if news == REJECT:
        delete_edge(problem, tree, node, e)
        walk.phase = NEXT_EDGE
        return
    place.outcome += 1
    walk.phase = NEXT_CHILD
    if tree.edges[e].visits > 0:
        renew_edge(problem, tree, problem.discounts[walk.depth], node, e)
        refresh(problem, tree, node)


@part
def prefer(problem, tree, node):
    """Return the best action that is left: by value if sampled, else by expected reward."""
    sampled, untried = NONE, NONE
    best, most = -np.inf, -np.inf
    first = node.first_edge
    for e in range(first, first + problem.states[node.state].action_count):
        edge = tree.edges[e]
        if edge.mark not in (LIVE, SOLVED):
            continue
        if edge.visits > 0:
            if sampled == NONE or edge.value > best:
                best, sampled = edge.value, e
        else:
            reward = problem.actions[action_row(problem, node, e)].expected_reward
            if untried == NONE or reward > most:
                most, untried = reward, e
    return sampled if sampled != NONE else untried
