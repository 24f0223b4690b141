"""How kernels evaluate a compiled model and fill the rows of the state graph.

A state is *opened* when all its actions are evaluated. Their rows hold R̄(s, a), r(s, a) and the
counts of outcomes. Outcome rows, and the states after them, are *stored* only for an action that is
tried, which evaluates it a second time: most actions are never tried, and memory limits a long
search.

Kernels know a compiled model by addresses (`vulcan.graph.states.SOURCE`), so that they are compiled
once for all models. A Python model has the address 0: a kernel that reaches an unknown state of it
returns NEEDS_STATE.

A checkpoint keeps the rows of a compiled model, but not the records of its states, which the
model's own functions trust. `replay_states` computes the records again, parents before children,
and checks that the model still agrees with the rows.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vulcan.kernels.codes import BROKEN, KNOWN, NEEDS_ROWS, NEEDS_STATE, NO_ACTION
from vulcan.kernels.compilation import borrow, kernel, part, routine
from vulcan.numerics import (
    FAILURE_STATE,
    LARGEST_REWARD,
    NO_STATE,
    NONE,
    SMALLEST_PROBABILITY,
    SUM_TOLERANCE,
)

__all__ = ["ProblemArrays", "borrow_problem", "replay_states"]

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


borrow_problem = borrow


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
        return KNOWN
    if source.outcomes == 0:
        return NEEDS_STATE
    if source.actions + source.numbers > len(problem.actions):
        return NEEDS_ROWS
    first = source.actions
    for number in range(source.numbers):
        count = evaluate(source, s, number, source.following)
        if count == 0:
            continue
        action = problem.actions[source.actions]
        if not sum_up(problem.answers, count, source.most_outcomes, action):
            source.state, source.action = s, number
            source.actions = first
            return BROKEN
        action.first_outcome, action.number = NONE, number
        source.actions += 1
    source.evaluations += source.actions - first
    state.first_action, state.action_count = first, source.actions - first
    return KNOWN


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
        return NEEDS_ROWS
    count = evaluate(source, s, number, source.following)
    if count == 0:
        return NO_ACTION
    action = problem.actions[source.actions]
    if not sum_up(problem.answers, count, most, action):
        source.state, source.action = s, number
        return BROKEN
    action.first_outcome, action.number = source.outcome_rows, number
    for k in range(count):
        answer, outcome = problem.answers[k], problem.outcomes[source.outcome_rows + k]
        outcome.probability, outcome.reward = answer.probability, answer.reward
    return KNOWN


@routine
def store_outcomes(problem, s, a, reached, step):
    """Store the outcomes of an action and, if `reached`, the next states with their bounds."""
    action, source = problem.actions[a], problem.source[0]
    most = source.most_outcomes
    if source.outcome_rows + most > len(problem.outcomes) or source.states + most > len(
        problem.states
    ):
        return NEEDS_ROWS
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
                    return BROKEN
            state = problem.states[source.states + k]
            state.first_action, state.action_count = 0, -1
    source.outcome_rows += action.outcome_count
    if reached:
        source.states += action.safe_count
    return KNOWN


@part
def have_actions(problem, s):
    """Make sure that the actions of a state are known: KNOWN, or a need."""
    return KNOWN if problem.states[s].action_count >= 0 else open_state(problem, s)


@part
def have_outcomes(problem, s, a, reached, step):
    """Make sure that the outcomes of an action are stored: KNOWN, or a need."""
    if problem.actions[a].first_outcome != NONE:
        return KNOWN
    return store_outcomes(problem, s, a, reached, step)


@routine
def limit_action(problem, s, a, step, discount):
    """Return an upper bound on Q(s, a), from the model's bound on the reward to go."""
    action, source = problem.actions[a], problem.source[0]
    evaluate(source, s, action.number, source.following)
    limit = action.expected_reward
    for k in range(action.safe_count):
        record = source.following + np.uint64(k * source.state_size)
        to_go = call_bound(source.bound, source.parameters, record, np.int64(step + 1))
        if np.isnan(to_go):
            return np.inf  # reported when the outcome is stored
        limit += discount * problem.answers[k].probability * to_go
    return limit


@kernel
def replay_states(problem, records, following, known, levels, scratch):
    """Compute the records of states again; return the first state whose rows differ, or NONE.

    Parameters
    ----------
    problem
        Rows that lie within their arrays.
    records, following
        The records of all states, and those that the model writes to, as bytes.
    known, levels
        The states that have actions or are terminal, parents before children; and their levels.
    scratch
        One row of an action.
    """
    problem, records, following = borrow(problem), borrow(records), borrow(following)
    for i in range(len(known)):
        if not replay_state(problem, records, following, known[i], levels[i], scratch[0]):
            return known[i]
    return NONE


@part
def replay_state(problem, records, following, s, level, evaluated):
    """Evaluate all actions of a state; False if the result differs from its rows."""
    state, source = problem.states[s], problem.source[0]
    found = 0
    for number in range(source.numbers):
        count = evaluate(source, s, number, source.following)
        if count == 0:
            continue
        if found == state.action_count or not sum_up(
            problem.answers, count, source.most_outcomes, evaluated
        ):
            return False
        row = problem.actions[state.first_action + found]
        if row.number != number or not is_same(row, evaluated):
            return False
        if row.first_outcome != NONE and not replay_outcomes(
            problem, records, following, row, level
        ):
            return False
        found += 1
    return found == state.action_count


@part
def is_same(row, other):
    """Whether two action rows have the same numbers."""
    return (
        row.expected_reward == other.expected_reward
        and row.credit == other.credit
        and row.immediate_risk == other.immediate_risk
        and row.safe_count == other.safe_count
        and row.outcome_count == other.outcome_count
        and row.open_count == other.open_count
    )


@part
def replay_outcomes(problem, records, following, action, level):
    """Compute the states after an action; False if its outcomes differ from its rows."""
    source = problem.source[0]
    for k in range(action.outcome_count):
        outcome, answer = problem.outcomes[action.first_outcome + k], problem.answers[k]
        if outcome.probability != answer.probability or outcome.reward != answer.reward:
            return False
        outlook = 0.0
        if outcome.state >= 0:
            for place in range(records.shape[1]):
                records[outcome.state, place] = following[k, place]
            if source.bound:
                record = find_record(source, outcome.state)
                outlook = call_bound(source.bound, source.parameters, record, np.int64(level + 1))
        if outcome.outlook != outlook:
            return False
    return True
