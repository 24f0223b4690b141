"""Upper bounds on E g - k er of any policy, for one price k of failure, that get ever tighter.

The largest value of a history, w being the weight of its step, is

    V(h) = max over a of  w R̄(s, a) - k r(s, a) + Σ_safe p(s') V(h').

**Best-first search over histories (AO*).** A history that was never opened has the model's bound
for V, an opened one

    U(h) = max over a of U(h, a),     U(h, a) = w R̄(s, a) - k r(s, a) + Σ_safe p(s') U(h').

Only an action of the largest U(h, a) has its outcomes stored, and only histories that such actions
reach are opened: others cannot matter before those have fallen. A history with one step left is
evaluated exactly at once, and so is one without actions.

Each walk from the root opens one history: that of the largest *promise*, the probability of
reaching it times the fall of U per work that opening histories of its level has brought so far. A
promise of 0 means U(h) = V(h): all histories that the best actions reach are final.

    nodes  [N]  a history: state, first_edge (NONE until opened), upper, promise
    edges  [E]  an action of an opened history: first_child (NONE until stored), upper, promise

The actions of a history are consecutive edges, and the histories after an action are consecutive
nodes. Nothing is sampled, and no walk depends on the clock: the same work gives the same bound.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.kernels import codes
from vulcan.kernels.compilation import borrow, kernel, part, routine
from vulcan.kernels.expand import (
    call_bound,
    call_value_bound,
    evaluate,
    find_record,
    have_actions,
    have_outcomes,
    sum_up,
)
from vulcan.numerics import NONE

WORK_OF_LAST: Final = 0.15  # the work of a last step, where no state after it needs a bound


@part
def bound_value(problem, record, level, price):
    """Return the model's upper bound on the value from a state on; inf if it has none.

    Here alone a leaf gets its bound. Weights are those of the whole mission, and the model's own
    bound begins at its state, so that the price of failure there is price / weight.
    """
    source, weight, step = problem.source[0], problem.weights[level], np.int64(level)
    if weight == 0.0:
        return 0.0
    to_go = np.inf
    if source.value_bound:
        function = source.value_bound
        to_go = call_value_bound(function, source.parameters, record, step, price / weight)
    elif source.bound:
        to_go = call_bound(source.bound, source.parameters, record, step)
    return np.inf if np.isnan(to_go) else weight * to_go


@part
def decide_last(problem, action, s, level, price):
    """Return the value of a state with one step left; nan if an answer breaks a rule."""
    source = problem.source[0]
    best, any_action = -np.inf, False
    for number in range(source.numbers):
        count = evaluate(source, s, number, source.following)
        if count == 0:
            continue
        if not sum_up(problem.answers, count, source.most_outcomes, action):
            return np.nan
        any_action = True
        worth = problem.weights[level] * action.expected_reward - price * action.immediate_risk
        best = max(best, worth)
    return best if any_action else 0.0


NODE: Final = np.dtype(
    [("state", "i4"), ("first_edge", "i4"), ("upper", "f8"), ("promise", "f8")], align=True
)
EDGE: Final = np.dtype([("upper", "f8"), ("promise", "f8"), ("first_child", "i4")], align=True)
STEP: Final = np.dtype([("node", "i4"), ("edge", "i4")], align=True)
FALL: Final = np.dtype([("total", "f8"), ("work", "f8")], align=True)
PROGRESS: Final = np.dtype(
    [
        ("price", "f8"),
        ("nodes", "i8"),  # how many rows are filled
        ("edges", "i8"),
        ("opened", "i8"),  # histories so far
        ("pause", "i8"),  # look at the clock after this many
        ("node", "i8"),  # what Python has to evaluate: a history,
        ("level", "i8"),  # its level,
        ("children", "i8"),  # and the first and last of the histories after it
        ("last_child", "i8"),
        ("limited", "i8"),  # whether these have their bounds
        ("largest", "f8"),  # the largest size of a summand
    ],
    align=True,
)

SMALLEST_FALL: Final = 1e-100  # only final histories have no promise


class Bounds(NamedTuple):
    """The arrays of a search: see the head of this module."""

    nodes: Any
    edges: Any
    path: Any  # the walk that is being made
    falls: Any  # by level, how far bounds of histories fell, and the work that it took
    scratch: Any  # one action
    progress: Any  # one record


@kernel
def tighten(problem, bounds):
    """Open histories until the root is final, it is time to pause, or something is needed."""
    problem, bounds = borrow(problem), borrow(bounds)
    state = bounds.progress[0]
    while bounds.nodes[0].promise > 0.0:
        if state.opened >= state.pause:
            return codes.PAUSED
        depth, news = walk(problem, bounds, state)
        if news != codes.KNOWN:
            return news
        news = look_into(problem, bounds, state, bounds.path[depth].node, depth)
        if news != codes.KNOWN:
            return news
        state.opened += 1
        for level in range(depth - 1, -1, -1):
            step = bounds.path[level]
            node = bounds.nodes[step.node]
            a = problem.states[node.state].first_action + step.edge - node.first_edge
            sum_edge(problem, bounds, state, level, a, bounds.edges[step.edge])
            renew(problem, bounds, step.node)
    return codes.DONE


@part
def walk(problem, bounds, state):
    """Go to the most promising history that is not opened; return its level and KNOWN, or a need.

    An action on the way that has become the best one of its history has its outcomes stored.
    """
    depth, node = 0, 0
    while bounds.nodes[node].first_edge != NONE:
        s, first = bounds.nodes[node].state, bounds.nodes[node].first_edge
        e = find_best(problem, bounds, node)
        edge, row = bounds.edges[e], problem.states[s].first_action + e - first
        if edge.first_child == NONE:
            news = store_children(problem, bounds, state, s, row, depth, edge)
            if news != codes.KNOWN:
                return depth, news
        action = problem.actions[row]
        bounds.path[depth].node, bounds.path[depth].edge = node, e
        node, most = edge.first_child, -np.inf
        for k in range(action.safe_count):
            chance = problem.outcomes[action.first_outcome + k].probability
            promise = expect_share(chance, bounds.nodes[edge.first_child + k].promise)
            if promise > most:
                most, node = promise, edge.first_child + k
        depth += 1
    bounds.path[depth].node = node
    return depth, codes.KNOWN


@part
def find_best(problem, bounds, node):
    """Return the action of the largest bound; among equals, of the least promise."""
    first = bounds.nodes[node].first_edge
    best = first
    for e in range(first + 1, first + problem.states[bounds.nodes[node].state].action_count):
        edge, other = bounds.edges[e], bounds.edges[best]
        if edge.upper > other.upper or (edge.upper == other.upper and edge.promise < other.promise):
            best = e
    return best


@part
def expect_fall(bounds, level):
    """Return how far work on histories of a level lets their bounds fall."""
    fall = bounds.falls[level]
    return max(SMALLEST_FALL, fall.total / fall.work)


@part
def expect_share(chance, promise):
    """Return the promise of an outcome before it happens: above 0 unless the outcome is final."""
    return max(SMALLEST_FALL, chance * promise) if chance > 0.0 and promise > 0.0 else 0.0


@part
def note_fall(bounds, level, fall, work):
    """Note how far the bound of a history fell, and for how much work."""
    if fall < np.inf:  # not where it had no bound before
        bounds.falls[level].total += fall
        bounds.falls[level].work += work


@part
def look_into(problem, bounds, state, number, level):
    """Open a history, or evaluate it: KNOWN, or what is needed for that."""
    node, source = bounds.nodes[number], problem.source[0]
    last = len(problem.weights) - 1
    if level == last and source.outcomes != 0:
        value = decide_last(problem, bounds.scratch[0], node.state, level, state.price)
        if not np.isnan(value):
            return finalise(bounds, state, node, level, value, WORK_OF_LAST)
        # An answer broke a rule: to open the state says which.
    news = have_actions(problem, node.state)
    if news != codes.KNOWN:
        state.node, state.level = number, level
        return news
    count = problem.states[node.state].action_count
    if count == 0:
        return finalise(bounds, state, node, level, 0.0, 1.0)
    if level == last:
        value, first = -np.inf, problem.states[node.state].first_action
        for a in range(first, first + count):
            value = max(value, weigh(problem, state, level, a))
        return finalise(bounds, state, node, level, value, 1.0)
    if state.edges + count > len(bounds.edges):
        return codes.NEEDS_ROOM
    if source.outcomes == 0:
        news = limit_all(problem, bounds, state, number, level)
        if news != codes.KNOWN:
            return news
    return open_node(problem, bounds, state, number, level)


@part
def finalise(bounds, state, node, level, value, work):
    """Write the exact value of a history."""
    note_size(state, value)
    note_fall(bounds, level, max(0.0, node.upper - value), work)
    node.upper, node.promise = min(node.upper, value), 0.0
    return codes.KNOWN


@part
def note_size(state, number):
    """Note the size of a number, for the rounding of sums."""
    if abs(number) < np.inf:
        state.largest = max(state.largest, abs(number))


@part
def weigh(problem, state, level, a):
    """Return the value of an action by itself."""
    action = problem.actions[a]
    earned = problem.weights[level] * action.expected_reward
    note_size(state, earned)
    return earned - state.price * action.immediate_risk


@part
def open_node(problem, bounds, state, number, level):
    """Add the actions of a history, with their bounds."""
    node = bounds.nodes[number]
    first, count = problem.states[node.state].first_action, 0
    node.first_edge = state.edges
    for a in range(first, first + problem.states[node.state].action_count):
        edge = bounds.edges[state.edges]
        state.edges += 1
        edge.first_child = NONE
        if problem.source[0].outcomes == 0:
            edge.first_child = state.nodes + count
            count += problem.actions[a].safe_count
    state.nodes += count
    state.limited = 0
    before = node.upper
    for e in range(node.first_edge, state.edges):
        edge, a = bounds.edges[e], first + e - node.first_edge
        if edge.first_child == NONE:
            edge.upper, chance = limit_edge(problem, state, node.state, a, level)
            edge.promise = expect_share(chance, expect_fall(bounds, level + 1))
        else:
            edge.upper = np.inf
            sum_edge(problem, bounds, state, level, a, edge)
    renew(problem, bounds, number)
    note_fall(bounds, level, before - node.upper, 1.0)
    return codes.KNOWN


@routine
def limit_edge(problem, state, s, a, level):
    """Return an upper bound on the value of an action, and its mean safe probability."""
    action, source = problem.actions[a], problem.source[0]
    upper, safe = weigh(problem, state, level, a), 0.0
    evaluate(source, s, action.number, source.following)
    for k in range(action.safe_count):
        place = source.following + np.uint64(k * source.state_size)
        to_go = bound_value(problem, place, level + 1, state.price)
        note_size(state, to_go)
        upper += problem.answers[k].probability * to_go
        safe += problem.answers[k].probability
    return upper, safe / max(1, action.safe_count)


@routine
def store_children(problem, bounds, state, s, a, level, edge):
    """Store the histories after an action of a compiled model."""
    safe = problem.actions[a].safe_count
    if state.nodes + safe > len(bounds.nodes):
        return codes.NEEDS_ROOM
    news = have_outcomes(problem, s, a, True, level)
    if news != codes.KNOWN:
        return news
    edge.first_child = state.nodes
    for k in range(safe):
        reached = problem.outcomes[problem.actions[a].first_outcome + k].state
        upper = bound_value(
            problem, find_record(problem.source[0], reached), level + 1, state.price
        )
        add_node(bounds, state.nodes + k, reached, level + 1, upper)
    state.nodes += safe
    return codes.KNOWN


@part
def add_node(bounds, number, s, level, upper):
    """Write a history that is not opened."""
    node = bounds.nodes[number]
    node.state, node.first_edge, node.upper = s, NONE, upper
    node.promise = expect_fall(bounds, level)


@part
def limit_all(problem, bounds, state, number, level):
    """Have Python bound all histories after one, which are written behind the filled rows."""
    if state.limited:
        return codes.KNOWN
    s, count = bounds.nodes[number].state, 0
    first = problem.states[s].first_action
    for a in range(first, first + problem.states[s].action_count):
        count += problem.actions[a].safe_count
    if state.nodes + count > len(bounds.nodes):
        return codes.NEEDS_ROOM
    place = state.nodes
    for a in range(first, first + problem.states[s].action_count):
        action = problem.actions[a]
        for k in range(action.first_outcome, action.first_outcome + action.safe_count):
            add_node(bounds, place, problem.outcomes[k].state, level + 1, np.inf)
            place += 1
    state.node, state.level = number, level
    state.children, state.last_child = state.nodes, place
    return codes.NEEDS_LIMITS


@part
def sum_edge(problem, bounds, state, level, a, edge):
    """Renew the bound and the promise of an action from the histories after it."""
    action = problem.actions[a]
    upper, promise = weigh(problem, state, level, a), 0.0
    for k in range(action.safe_count):
        child = bounds.nodes[edge.first_child + k]
        chance = problem.outcomes[action.first_outcome + k].probability
        note_size(state, child.upper)
        upper += chance * child.upper
        promise = max(promise, expect_share(chance, child.promise))
    edge.upper, edge.promise = min(edge.upper, upper), promise


@part
def renew(problem, bounds, number):
    """Renew the bound and the promise of an opened history from its best action."""
    node, edge = bounds.nodes[number], bounds.edges[find_best(problem, bounds, number)]
    node.upper, node.promise = min(node.upper, edge.upper), edge.promise
