"""The exact value of a history of which few steps are left, in a compiled model.

    V(h) = max over a of  w R̄(s, a) - k r(s, a) + Σ_safe p(s') V(h'),

where w is the weight of the step and k the price of failure. This is depth-first branch and bound:
of each history on the way it knows what its actions can be worth at most, by the model's bounds on
the states after them, and it looks into the actions that promise most first. With `best` the value
of the best action so far, an action is given up as soon as its outcomes, the known ones with their
value V and the others with their bound U, sum up to no more. So an outcome need not be known any
better than that it is worth no more than

    floor = U - (upper - best) / p,

and that is what `best` begins with below it. Nothing is stored but one history per step.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.kernels.compilation import borrow, part, routine
from vulcan.kernels.expansion import call_bound, call_outcomes, call_value_bound, sum_up
from vulcan.sentinels import NONE

FRAME: Final = np.dtype(
    [
        ("branch", "i8"),  # the action that is looked into, NONE between two of them
        ("outcome", "i8"),  # and its outcome
        ("best", "f8"),
        ("upper", "f8"),  # of that action
    ],
    align=True,
)
LEAF: Final = np.dtype([("probability", "f8"), ("upper", "f8")], align=True)

WORK_OF_LAST: Final = 0.15  # what a last step takes, where no state after it needs a bound


class Scratch(NamedTuple):
    """Where a depth-first walk keeps what it knows: for each step, all that comes after one state.

    Attributes
    ----------
    frames
        A frame per step.
    actions, uppers
        A row for each number of an action, and what it is worth at most (-inf: not to be had).
    leaves, records
        For each of them, its outcomes, and the bytes of the states after them.
    work
        One number: how many states were looked into.
    """

    frames: Any
    actions: Any
    uppers: Any
    leaves: Any
    records: Any
    work: Any


@part
def borrow_scratch(scratch):
    """Return the same arrays without counted references."""
    return Scratch(
        borrow(scratch.frames),
        borrow(scratch.actions),
        borrow(scratch.uppers),
        borrow(scratch.leaves),
        borrow(scratch.records),
        borrow(scratch.work),
    )


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
def decide_last(problem, scratch, record, level, price):
    """Return the value of a state with one step left; nan if an answer breaks a rule."""
    source = problem.source[0]
    scratch.work[0] += WORK_OF_LAST
    action, best, any_action = scratch.actions[0], -np.inf, False
    for number in range(source.numbers):
        count = call_outcomes(
            source.outcomes,
            source.parameters,
            record,
            np.int64(number),
            source.answers,
            source.following,
        )
        if count == 0:
            continue
        if not sum_up(problem.answers, count, source.most_outcomes, action):
            return np.nan
        any_action = True
        worth = problem.weights[level] * action.expected_reward - price * action.immediate_risk
        best = max(best, worth)
    return best if any_action else 0.0


@part
def find_place(problem, scratch, slot):
    """Return the address of the state after an outcome."""
    address = np.uint64(scratch.records.ctypes.data)
    return address + np.uint64(slot * problem.source[0].state_size)


@part
def spread(problem, scratch, depth, record, level, price):
    """Bound all actions of a state; return how many there are, or NONE if one breaks a rule."""
    source = problem.source[0]
    scratch.work[0] += 1.0
    most, available = source.most_outcomes, 0
    for number in range(source.numbers):
        row = 1 + depth * source.numbers + number
        scratch.uppers[row] = -np.inf
        count = call_outcomes(
            source.outcomes,
            source.parameters,
            record,
            np.int64(number),
            source.answers,
            find_place(problem, scratch, row * most),
        )
        if count == 0:
            continue
        action = scratch.actions[row]
        if not sum_up(problem.answers, count, most, action):
            return NONE
        available += 1
        upper = problem.weights[level] * action.expected_reward - price * action.immediate_risk
        for k in range(action.safe_count):
            leaf = scratch.leaves[row * most + k]
            leaf.probability = problem.answers[k].probability
            place = find_place(problem, scratch, row * most + k)
            leaf.upper = bound_value(problem, place, level + 1, price)
            upper += leaf.probability * leaf.upper
        scratch.uppers[row] = upper
    return available


@part
def enter(problem, scratch, depth, record, level, price, floor):
    """Begin with a history; return how many actions it has, or NONE if one breaks a rule."""
    frame = scratch.frames[depth]
    frame.branch, frame.outcome, frame.best, frame.upper = NONE, 0, floor, np.inf
    return spread(problem, scratch, depth, record, level, price)


@part
def next_branch(problem, scratch, depth):
    """Turn to the most promising action that may beat the best one; False if there is none."""
    frame, source = scratch.frames[depth], problem.source[0]
    upper = frame.best
    for number in range(source.numbers):
        row = 1 + depth * source.numbers + number
        if scratch.uppers[row] > upper:
            upper, frame.branch = scratch.uppers[row], row
    if frame.branch == NONE:
        return False
    frame.outcome, frame.upper = 0, upper
    scratch.uppers[frame.branch] = -np.inf
    return True


@part
def take_value(problem, scratch, depth, value):
    """Put the value of an outcome in the place of its bound."""
    frame = scratch.frames[depth]
    leaf = scratch.leaves[find_leaf(problem, frame)]
    if leaf.upper < np.inf or np.isnan(value):
        frame.upper += leaf.probability * (value - leaf.upper)
    leaf.upper = value
    frame.outcome += 1


@routine
def find_value(problem, scratch, record, level, price):
    """Return the exact value of a state at a level; nan if an answer breaks a rule."""
    last = len(problem.weights) - 1
    if level == last:
        return decide_last(problem, scratch, record, level, price)
    actions = enter(problem, scratch, 0, record, level, price, -np.inf)
    if actions <= 0:
        return np.nan if actions == NONE else 0.0
    depth = 0
    while True:
        frame = scratch.frames[depth]
        if frame.branch == NONE and not next_branch(problem, scratch, depth):
            if depth == 0:
                return frame.best
            value, depth = frame.best, depth - 1
            take_value(problem, scratch, depth, value)
        elif frame.upper <= frame.best:
            frame.branch = NONE  # given up
        elif frame.outcome == scratch.actions[frame.branch].safe_count:
            value = total(problem, scratch, depth, level, price)
            frame.best, frame.branch = max(frame.best, value), NONE
        elif level + depth + 1 == last:
            place = find_place(problem, scratch, find_leaf(problem, frame))
            value = decide_last(problem, scratch, place, last, price)
            take_value(problem, scratch, depth, value)
        else:
            actions = descend(problem, scratch, depth, level + depth + 1, price)
            if actions > 0:
                depth += 1
            else:
                take_value(problem, scratch, depth, np.nan if actions == NONE else 0.0)
        if np.isnan(scratch.frames[depth].upper):
            return np.nan


@part
def find_leaf(problem, frame):
    """Return the row of the outcome that is looked into."""
    return frame.branch * problem.source[0].most_outcomes + frame.outcome


@part
def descend(problem, scratch, depth, level, price):
    """Begin with the history after the outcome that is looked into."""
    frame = scratch.frames[depth]
    row = find_leaf(problem, frame)
    leaf = scratch.leaves[row]
    floor = leaf.upper - (frame.upper - frame.best) / leaf.probability
    if np.isnan(floor):
        floor = -np.inf  # there is no bound
    place = find_place(problem, scratch, row)
    return enter(problem, scratch, depth + 1, place, level, price, floor)


@part
def total(problem, scratch, depth, level, price):
    """Return the value of an action all of whose outcomes are known."""
    frame = scratch.frames[depth]
    action, most = scratch.actions[frame.branch], problem.source[0].most_outcomes
    weight = problem.weights[level + depth]
    value = weight * action.expected_reward - price * action.immediate_risk
    for k in range(action.safe_count):
        leaf = scratch.leaves[frame.branch * most + k]
        value += leaf.probability * leaf.upper
    return value
