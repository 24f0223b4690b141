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

from vulcan.constraint import SEQUENCE_BY_OUTCOME
from vulcan.kernels.ask import KNOWN, have_actions, have_outcomes
from vulcan.kernels.compile import borrow, kernel, part
from vulcan.kernels.local import ADMITTED, REFUSED, UNDECIDED, finish
from vulcan.kernels.tree import (
    LIVE,
    NONE,
    SOLVED,
    action_row,
    add_child,
    borrow_tree,
    delete_edge,
    open_edge,
    open_node,
    refresh,
    renew_edge,
    try_action,
    weigh_edge,
)
from vulcan.kernels.tree_search import DONE, NEEDS_BOUND, NEEDS_ROOM
from vulcan.kernels.world import borrow_world

PAUSED: Final = 4  # the budget of histories is used up

OPEN: Final = 0
NEXT_EDGE: Final = 1
NEXT_CHILD: Final = 2

# What a step of the kernel has to say beside what it wants.
GO_ON: Final = 10
SETTLED: Final = 11
REJECT: Final = 12

PLACE: Final = np.dtype([("node", "i4"), ("outcome", "i4")], align=True)
WALK: Final = np.dtype(
    [
        ("depth", "i8"),
        ("phase", "i8"),
        ("complete", "i8"),  # plan what was not sampled, instead of leaving it
        ("visited", "i8"),  # histories walked so far
        ("budget", "i8"),  # pause after so many
        ("exhausted", "i8"),  # whether the root has no action left
    ],
    align=True,
)


@kernel
def settle(world, tree, choice, places, tests, walks):
    """Settle an action for every history that the policy reaches."""
    world, tree = borrow_world(world), borrow_tree(tree)
    choice, places = borrow(choice), borrow(places)
    test, walk = tests[0], walks[0]
    while True:
        if walk.phase == NEXT_CHILD:
            news = enter_child(world, tree, choice, places, test, walk)
        elif walk.phase == OPEN:
            news = open_place(world, tree, choice, places, test, walk)
        else:
            news = choose_edge(world, tree, choice, places, test, walk)
        if news in (SETTLED, REJECT):
            if walk.depth == 0:
                walk.exhausted = news == REJECT
                return DONE
            walk.depth -= 1
            leave(world, tree, choice, places, walk, news)
        elif news != GO_ON:
            return news


@part
def open_place(world, tree, choice, places, test, walk):
    """Enter a history of the policy."""
    place = places[walk.depth]
    node = tree.nodes[place.node]
    choice[place.node] = NONE
    frontier = not walk.complete and node.visits == 0
    news = KNOWN if frontier else have_actions(world, node.state)
    if news != KNOWN:
        return news
    if frontier or world.states[node.state].action_count == 0:
        verdict = finish(test, world.pieces, node.survival, node.credit)
        if verdict == UNDECIDED:
            return NEEDS_BOUND
        return SETTLED if verdict == ADMITTED else REJECT
    if walk.visited >= walk.budget:
        return PAUSED
    if not open_node(world, tree, node):
        return NEEDS_ROOM
    walk.visited += 1
    if walk.depth + 1 == len(world.discounts) and not tree.sizes[0].counted:
        return settle_last_step(world, tree, choice, place.node, test, world.weights[walk.depth])
    walk.phase = NEXT_EDGE
    return GO_ON


@part
def settle_last_step(world, tree, choice, number, test, weight):
    """Choose for a history of which one step is left; nothing comes after, nothing is deleted."""
    node = tree.nodes[number]
    best, chosen = -np.inf, NONE
    for e in range(node.first_edge, node.first_edge + world.states[node.state].action_count):
        row = action_row(world, node, e)
        if test.form == SEQUENCE_BY_OUTCOME:
            news = have_outcomes(world, node.state, row, False, 0)
            if news != KNOWN:
                return news
        action = world.actions[row]
        verdict = try_action(world, test, action, weight, True, node)
        if verdict == UNDECIDED:
            return NEEDS_BOUND
        if verdict == ADMITTED and (chosen == NONE or action.expected_reward > best):
            best, chosen = action.expected_reward, e
    choice[number] = chosen
    return REJECT if chosen == NONE else SETTLED


@part
def choose_edge(world, tree, choice, places, test, walk):
    """Take the best action that is left, if it passes what can be tested at once."""
    depth = walk.depth
    place = places[depth]
    node = tree.nodes[place.node]
    e = prefer(world, tree, node)
    if e == NONE:
        return REJECT
    row = action_row(world, node, e)
    last = depth + 1 == len(world.discounts)
    verdict = weigh_edge(world, test, depth, last, node, row, tree.edges[e])
    if verdict == UNDECIDED:
        return NEEDS_BOUND
    if verdict == REFUSED:
        delete_edge(world, tree, node, e)
        return GO_ON
    if verdict != ADMITTED:
        return verdict
    action = world.actions[row]
    choice[place.node] = e
    if last or action.safe_count == 0:
        return SETTLED
    if not open_edge(tree, action, tree.edges[e]):
        return NEEDS_ROOM
    place.outcome = 0
    walk.phase = NEXT_CHILD
    return GO_ON


@part
def enter_child(world, tree, choice, places, test, walk):
    """Go to the next outcome of the action that was taken."""
    depth = walk.depth
    place = places[depth]
    node = tree.nodes[place.node]
    e = choice[place.node]
    edge, action = tree.edges[e], world.actions[action_row(world, node, e)]
    if place.outcome == action.safe_count:
        return SETTLED
    child = tree.children[edge.first_child + place.outcome]
    if child == NONE:
        if tree.sizes[0].nodes >= min(len(tree.nodes), len(choice)):
            return NEEDS_ROOM
        child = add_child(
            world, tree, test, action, world.weights[depth], node, edge, place.outcome
        )
    places[depth + 1].node = child
    walk.depth = depth + 1
    walk.phase = OPEN
    return GO_ON


@part
def leave(world, tree, choice, places, walk, news):
    """Return to the history before: to its next outcome, or to its next best action."""
    place = places[walk.depth]
    node = tree.nodes[place.node]
    e = choice[place.node]
    if news == REJECT:
        delete_edge(world, tree, node, e)
        walk.phase = NEXT_EDGE
        return
    place.outcome += 1
    walk.phase = NEXT_CHILD
    if tree.edges[e].visits > 0:
        renew_edge(world, tree, world.discounts[walk.depth], node, e)
        refresh(world, tree, node)


@part
def prefer(world, tree, node):
    """Return the best action that is left: by value if sampled, else by expected reward."""
    sampled, untried = NONE, NONE
    best, most = -np.inf, -np.inf
    first = node.first_edge
    for e in range(first, first + world.states[node.state].action_count):
        edge = tree.edges[e]
        if edge.mark not in (LIVE, SOLVED):
            continue
        if edge.visits > 0:
            if sampled == NONE or edge.value > best:
                best, sampled = edge.value, e
        else:
            reward = world.actions[action_row(world, node, e)].expected_reward
            if untried == NONE or reward > most:
                most, untried = reward, e
    return sampled if sampled != NONE else untried
