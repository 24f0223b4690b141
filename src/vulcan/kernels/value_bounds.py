"""Upper bounds on E g - k er of any policy, for one price k of failure, that get ever tighter.

The largest value of a history, w being the weight of its step, is

    V(h) = max over a of  w R̄(s, a) - k r(s, a) + Σ_safe p(s') V(h').

**Best-first search over histories (AO*).** A history that was never opened has the model's bound
for V, an opened one

    U(h) = max over a of U(h, a),     U(h, a) = w R̄(s, a) - k r(s, a) + Σ_safe p(s') U(h').

Only an action of the largest U(h, a) has its outcomes stored, and only histories that such actions
reach are opened: others cannot matter before those have fallen. A history with one step left is
evaluated exactly at once, and so is one without actions. A compiled model may evaluate histories
with more steps left (`last_value`). Then an action after which that is so gets its exact value, and
what comes after it is not stored.

Each walk from the root, or from a history below it, opens one history: that of the largest
*promise*, the probability of reaching it times the fall of U per work that opening histories of its
level has brought so far. A promise of 0 means U(h) = V(h): all histories that the best actions
reach are final.

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
def bound_last(problem, record, level, price):
    """Return the value of a state that the model's own `last_value` evaluates; inf for nan."""
    source, weight = problem.source[0], problem.weights[level]
    if weight == 0.0:
        return 0.0
    function, step = source.last_value, np.int64(level)
    value = call_value_bound(function, source.parameters, record, step, price / weight)
    return np.inf if np.isnan(value) else weight * value


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
        ("start", "i8"),  # the history whose bound is wanted, and its level
        ("start_level", "i8"),
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
    """Open histories until the start is final, it is time to pause, or something is needed."""
    problem, bounds = borrow(problem), borrow(bounds)
    state = bounds.progress[0]
    while bounds.nodes[state.start].promise > 0.0:
        if state.opened >= state.pause:
            return codes.PAUSED
        depth, news = walk(problem, bounds, state)
        if news == codes.KNOWN:
            news = look_into(problem, bounds, state, bounds.path[depth].node, depth)
        if news == codes.FINALISED:
            renew(problem, bounds, bounds.path[depth].node)
        elif news != codes.KNOWN:
            return news
        state.opened += 1
        for level in range(depth - 1, state.start_level - 1, -1):
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
    depth, node = state.start_level, state.start
    while bounds.nodes[node].first_edge != NONE:
        s, first = bounds.nodes[node].state, bounds.nodes[node].first_edge
        e = find_best(problem, bounds, node)
        edge, row = bounds.edges[e], problem.states[s].first_action + e - first
        if edge.first_child == NONE and are_last(problem, depth + 1):
            bounds.path[depth].node = node
            return depth, finalise_edge(problem, bounds, state, s, row, depth, edge)
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
    if are_last(problem, level) or (level == last and source.outcomes != 0):
        value = decide_end(problem, bounds, state, node.state, level)
        if not np.isnan(value):
            work = 1.0 if are_last(problem, level) else WORK_OF_LAST
            return finalise(bounds, state, node, level, value, work)
        # An answer broke a rule: to open the state says which.
    news = have_actions(problem, node.state)
    if news != codes.KNOWN:
        state.node, state.level = number, level
        return news
    count = problem.states[node.state].action_count
    if count == 0 or level == last:
        value = decide_end(problem, bounds, state, node.state, level)
        return finalise(bounds, state, node, level, value, 1.0)
    if state.edges + count > len(bounds.edges):
        return codes.NEEDS_ROOM
    if source.outcomes == 0:
        news = limit_all(problem, bounds, state, number, level)
        if news != codes.KNOWN:
            return news
    return open_node(problem, bounds, state, number, level)


@part
def decide_end(problem, bounds, state, s, level):
    """Return the value of a state after which nothing is stored; nan if an answer breaks a rule."""
    source, known = problem.source[0], problem.states[s]
    if are_last(problem, level):
        return bound_last(problem, find_record(source, s), level, state.price)
    if level == len(problem.weights) - 1 and source.outcomes != 0:
        return decide_last(problem, bounds.scratch[0], s, level, state.price)
    value = -np.inf
    for a in range(known.first_action, known.first_action + known.action_count):
        value = max(value, weigh(problem, state, level, a))
    return value if known.action_count > 0 else 0.0


@part
def finalise(bounds, state, node, level, value, work):
    """Write the exact value of a history."""
    note_size(state, value)
    note_fall(bounds, level, max(0.0, node.upper - value), work)
    node.upper, node.promise = min(node.upper, value), 0.0
    return codes.KNOWN


@part
def are_last(problem, level):
    """Whether the model evaluates the states of a level exactly."""
    return len(problem.weights) - level <= problem.source[0].last_steps


@routine
def finalise_edge(problem, bounds, state, s, a, level, edge):
    """Write the exact value of an action, after which the model evaluates all states."""
    value = decide_edge(problem, state, s, a, level)
    note_fall(bounds, level + 1, max(0.0, edge.upper - value), 1.0)
    edge.upper, edge.promise = min(edge.upper, value), 0.0
    return codes.FINALISED


@part
def decide_edge(problem, state, s, a, level):
    """Return the exact value of an action, after which the model evaluates all states."""
    action, source = problem.actions[a], problem.source[0]
    value = weigh(problem, state, level, a)
    evaluate(source, s, action.number, source.following)
    for k in range(action.safe_count):
        place = source.following + np.uint64(k * source.state_size)
        to_go = bound_last(problem, place, level + 1, state.price)
        note_size(state, to_go)
        value += problem.answers[k].probability * to_go
    return value


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


VISIT: Final = np.dtype([("node", "i8"), ("level", "i8"), ("chance", "f8")], align=True)


@kernel
def find_value(problem, bounds, visits, price):
    """Return what the best actions below a final history are worth at another price.

    The last steps, of which no actions are stored, are decided anew. `visits` is scratch.
    """
    problem, bounds, visits = borrow(problem), borrow(bounds), borrow(visits)
    state = bounds.progress[0]
    own, state.price, total, count = state.price, price, 0.0, 1
    visits[0].node, visits[0].level, visits[0].chance = state.start, state.start_level, 1.0
    while count > 0:
        count -= 1
        number, level, chance = visits[count].node, visits[count].level, visits[count].chance
        s, first = bounds.nodes[number].state, bounds.nodes[number].first_edge
        if first == NONE:
            total += chance * decide_end(problem, bounds, state, s, level)
            continue
        e = find_best(problem, bounds, number)
        a, child = problem.states[s].first_action + e - first, bounds.edges[e].first_child
        action = problem.actions[a]
        if child == NONE:
            total += chance * decide_edge(problem, state, s, a, level)
            continue
        total += chance * weigh(problem, state, level, a)
        for k in range(action.safe_count):
            visits[count].node, visits[count].level = child + k, level + 1
            visits[count].chance = chance * problem.outcomes[action.first_outcome + k].probability
            count += 1
    state.price = own
    return total


@kernel
def reach_children(problem, bounds, number, level, k):
    """Make sure that the histories after an action of an opened history are stored, or say why not.

    DONE if the model evaluates them exactly.
    """
    problem, bounds = borrow(problem), borrow(bounds)
    state, node = bounds.progress[0], bounds.nodes[number]
    edge = bounds.edges[node.first_edge + k]
    if edge.first_child != NONE:
        return codes.KNOWN
    if are_last(problem, level + 1):
        return codes.DONE
    row = problem.states[node.state].first_action + k
    return store_children(problem, bounds, state, node.state, row, level, edge)
