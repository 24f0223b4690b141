"""How kernels evaluate a compiled model and fill the rows of the state graph.

A state is *opened* when all its actions are evaluated. Their rows hold R̄(s, a), r(s, a) and the
counts of outcomes. Outcome rows, and the states after them, are *stored* only for an action that is
tried, which evaluates it a second time: most actions are never tried, and memory limits a long
search.

Kernels know a compiled model by addresses (`vulcan.graph.states.SOURCE`), so that they are compiled
once for all models. A Python model has the address 0: a kernel that reaches an unknown state of it
returns NEEDS_STATE.

A checkpoint keeps the rows of a compiled model, but not the records of its states, which the
model's own functions trust. `replay_states` computes the records again, parents before children:
every row that the first state leads to must lie within its array and be what the model answers now,
and no state may follow two others, so there are no cycles.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vulcan.kernels import codes
from vulcan.kernels.compilation import borrow, kernel, part, routine
from vulcan.numerics import (
    FAILURE_STATE,
    LARGEST_REWARD,
    NO_STATE,
    NONE,
    SMALLEST_PROBABILITY,
    SUM_TOLERANCE,
    UNEVALUATED,
)

BOUND: Final = -1  # in source.action: the model's bound violates a rule


class ProblemArrays(NamedTuple):
    """The arrays that describe a problem; kernels add rows only for a compiled model."""

    states: Any  # the rows of the state graph; see `vulcan.graph.states`
    actions: Any
    outcomes: Any
    pieces: Any  # the risk bound; see `vulcan.bounds.table`
    discounts: Any  # γ and γ^t of each level; see `vulcan.model.reader`
    weights: Any
    source: Any  # the compiled model, if there is one
    answers: Any  # where it writes outcomes


@intrinsic
def call_outcomes(
    context: Any,
    address: Any,
    parameters: Any,
    state: Any,
    action: Any,
    answers: Any,
    following: Any,
) -> Any:
    """Call the compiled function at an address; see `vulcan.model.compiled`."""
    word = types.uint64
    signature = types.int64(word, word, word, types.int64, word, word)
    return signature, _call(ir.IntType(64), 5)


@intrinsic
def call_bound(context: Any, address: Any, parameters: Any, state: Any, step: Any) -> Any:
    """Call the compiled function at an address; see `vulcan.model.compiled`."""
    word = types.uint64
    return types.float64(word, word, word, types.int64), _call(ir.DoubleType(), 3)


@intrinsic
def call_value_bound(
    context: Any, address: Any, parameters: Any, state: Any, step: Any, price: Any
) -> Any:
    """Call the compiled function at an address; see `vulcan.model.compiled`."""
    word = types.uint64
    signature = types.float64(word, word, word, types.int64, types.float64)
    return signature, _call(ir.DoubleType(), 3, ir.DoubleType())


def _call(result: Any, count: int, *others: Any) -> Any:
    """Return a code generator for a call; pointers are passed as integers of their size."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(result, [*[ir.IntType(64)] * count, *others])
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

    return generate


@part
def find_record(source, s):
    """Return the address of the record of a state."""
    return source.records + np.uint64(s * source.state_size)


@part
def evaluate(source, s, number, following):
    """Let the model write the outcomes of an action; return their number, 0 if there is none."""
    record = find_record(source, s)
    return call_outcomes(
        source.outcomes, source.parameters, record, np.int64(number), source.answers, following
    )


@routine
def open_state(problem, s):
    """Evaluate the actions of a state, unless they are known."""
    state, source = problem.states[s], problem.source[0]
    if state.action_count >= 0:
        return codes.KNOWN
    if source.outcomes == 0:
        return codes.NEEDS_STATE
    if source.actions + source.numbers > len(problem.actions):
        return codes.NEEDS_ROWS
    first = source.actions
    for number in range(source.numbers):
        count = evaluate(source, s, number, source.following)
        if count == 0:
            continue
        action = problem.actions[source.actions]
        if not sum_up(problem.answers, count, source.most_outcomes, action):
            source.state, source.action = s, number
            source.actions = first
            return codes.BROKEN
        action.first_outcome, action.number = NONE, number
        source.actions += 1
    source.evaluations += source.actions - first
    state.first_action, state.action_count = first, source.actions - first
    return codes.KNOWN


@part
def sum_up(answers, count, most, action):
    """Fill the row of an action from its outcomes; False if they violate a rule."""
    if count < 0 or count > most:
        return False
    total, safe, reward, risk, sound = 0.0, 0, 0.0, 0.0, True
    for k in range(count):
        answer = answers[k]
        chance = answer.probability
        # These comparisons fail for NaN.
        sound = sound and SMALLEST_PROBABILITY <= chance <= 1.0
        sound = sound and abs(answer.reward) <= LARGEST_REWARD
        total += chance
        reward += chance * answer.reward
        if answer.fails:
            risk += chance
        else:
            sound = sound and safe == k  # safe outcomes come first
            safe += 1
    action.expected_reward, action.credit = reward, reward
    action.immediate_risk = risk if safe else 1.0
    action.safe_count, action.outcome_count, action.open_count = safe, count, safe
    return sound and abs(total - 1.0) <= SUM_TOLERANCE


@routine
def peek(problem, s, number):
    """Write an action and its outcomes into the next free rows, without reserving them.

    This is for the last step of a history, whose actions are compared once and never again.
    """
    source = problem.source[0]
    most = source.most_outcomes
    if source.actions >= len(problem.actions) or source.outcome_rows + most > len(problem.outcomes):
        return codes.NEEDS_ROWS
    count = evaluate(source, s, number, source.following)
    if count == 0:
        return codes.NO_ACTION
    action = problem.actions[source.actions]
    if not sum_up(problem.answers, count, most, action):
        source.state, source.action = s, number
        return codes.BROKEN
    action.first_outcome, action.number = source.outcome_rows, number
    for k in range(count):
        answer, outcome = problem.answers[k], problem.outcomes[source.outcome_rows + k]
        outcome.probability, outcome.reward = answer.probability, answer.reward
    return codes.KNOWN


@routine
def store_outcomes(problem, s, a, reached, step):
    """Store the outcomes of an action and, if `reached`, the next states with their bounds."""
    action, source = problem.actions[a], problem.source[0]
    most = source.most_outcomes
    if source.outcome_rows + most > len(problem.outcomes) or source.states + most > len(
        problem.states
    ):
        return codes.NEEDS_ROWS
    following = find_record(source, source.states) if reached else source.following
    evaluate(source, s, action.number, following)
    action.first_outcome = source.outcome_rows
    for k in range(action.outcome_count):
        answer, outcome = problem.answers[k], problem.outcomes[source.outcome_rows + k]
        outcome.probability, outcome.reward = answer.probability, answer.reward
        outcome.state = FAILURE_STATE if answer.fails else NO_STATE
        outcome.outlook = 0.0
        if reached and not answer.fails:
            outcome.state = source.states + k
            if source.bound:
                record = find_record(source, outcome.state)
                outcome.outlook = call_bound(
                    source.bound, source.parameters, record, np.int64(step + 1)
                )
                if np.isnan(outcome.outlook):
                    source.state, source.action = source.states + k, BOUND
                    return codes.BROKEN
            state = problem.states[source.states + k]
            state.first_action, state.action_count = 0, -1
    source.outcome_rows += action.outcome_count
    if reached:
        source.states += action.safe_count
    return codes.KNOWN


@part
def have_actions(problem, s):
    """Make sure that the actions of a state are known: KNOWN, or a need."""
    return codes.KNOWN if problem.states[s].action_count >= 0 else open_state(problem, s)


@part
def have_outcomes(problem, s, a, reached, step):
    """Make sure that the outcomes of an action are stored: KNOWN, or a need."""
    if problem.actions[a].first_outcome != NONE:
        return codes.KNOWN
    return store_outcomes(problem, s, a, reached, step)


@kernel
def replay_states(problem, records, following, queue, levels, scratch):
    """Compute the records of all states again; return whether the model answers as in the rows.

    `problem` has rows from a file, which nothing has checked. `records` of all states and those
    that the model writes to, `following`, are bytes. `queue` and `levels` have room for the states
    to evaluate, parents before children, and the level of each, -1 for those that were not reached.
    `scratch` is one row of an action.
    """
    problem, records, following = borrow(problem), borrow(records), borrow(following)
    queue, levels = borrow(queue), borrow(levels)
    queue[0], levels[0] = 0, 0
    done, found = 0, 1
    while done < found:
        found = replay_state(problem, records, following, queue, levels, found, done, scratch[0])
        done += 1
    return found >= 0


@part
def replay_state(problem, records, following, queue, levels, found, place, evaluated):
    """Evaluate a state; return the length of the queue, -1 if the result differs from its rows."""
    s = queue[place]
    state, source = problem.states[s], problem.source[0]
    if state.action_count == UNEVALUATED:
        return found
    matched = 0
    for number in range(source.numbers):
        count = evaluate(source, s, number, source.following)
        if count == 0:
            continue
        a = state.first_action + matched
        if matched >= state.action_count or a < 0 or a >= source.actions:
            return -1
        row = problem.actions[a]
        sound = sum_up(problem.answers, count, source.most_outcomes, evaluated)
        same = (
            row.expected_reward == evaluated.expected_reward
            and row.credit == evaluated.credit
            and row.immediate_risk == evaluated.immediate_risk
            and row.safe_count == evaluated.safe_count
            and row.outcome_count == evaluated.outcome_count
            and row.open_count == evaluated.open_count
        )
        if not sound or row.number != number or not same:
            return -1
        if row.first_outcome != NONE:
            found = replay_outcomes(problem, records, following, queue, levels, found, row, s)
            if found < 0:
                return -1
        matched += 1
    return found if matched == state.action_count else -1


@part
def replay_outcomes(problem, records, following, queue, levels, found, action, s):
    """Queue the states after an action; return the new length, -1 if its rows are wrong."""
    source, begin = problem.source[0], action.first_outcome
    if begin < 0 or begin + action.outcome_count > source.outcome_rows:
        return -1
    first = np.int64(problem.outcomes[begin].state)
    stored = action.safe_count > 0 and first != NO_STATE
    if stored and (first < 0 or first + action.safe_count > source.states):
        return -1
    for k in range(action.outcome_count):
        outcome, answer = problem.outcomes[begin + k], problem.answers[k]
        reached, outlook = FAILURE_STATE if k >= action.safe_count else NO_STATE, 0.0
        if stored and k < action.safe_count:
            reached = first + k
            if levels[reached] >= 0:
                return -1
            levels[reached], queue[found] = levels[s] + 1, reached
            found += 1
            for place in range(records.shape[1]):
                records[reached, place] = following[k, place]
            if source.bound:
                record = find_record(source, reached)
                outlook = call_bound(source.bound, source.parameters, record, levels[reached])
        if outcome.state != reached:
            return -1
        same = outcome.probability == answer.probability and outcome.reward == answer.reward
        if not same or outcome.outlook != outlook:
            return -1
    return found
