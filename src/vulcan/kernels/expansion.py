"""How a kernel asks a compiled model, and fills the rows of the state graph with its answers.

A state is *opened* when all its actions are asked. Their rows have all that can be said without
naming outcomes: expected reward, immediate risk, counts. Outcome rows, and the states after them,
are *stored* only for an action that is tried, for which it is asked again: most actions never are,
and memory is what ends a long search.

Kernels know a compiled model by addresses (`vulcan.graphs.rows.SOURCE`). So they are compiled once,
and serve every model. A Python model has the address 0, and a kernel that meets one of its states
returns to have it asked.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from vulcan.kernels.codes import BROKEN, KNOWN, NEEDS_ROWS, NEEDS_STATE, NO_ACTION
from vulcan.kernels.compilation import part, routine
from vulcan.sentinels import FAILURE_STATE, NO_STATE, NONE
from vulcan.tolerance import LARGEST_REWARD, SUM_TOLERANCE

BOUND: Final = -1  # in source.action: it was the bound that was broken


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
    """Call the function at an address; see `vulcan.model.compiled`."""
    word = types.uint64
    signature = types.int64(word, word, word, types.int64, word, word)
    return signature, _call(ir.IntType(64), 5)


@intrinsic
def call_bound(context: Any, address: Any, parameters: Any, state: Any, step: Any) -> Any:
    """Call the function at an address; see `vulcan.model.compiled`."""
    word = types.uint64
    return types.float64(word, word, word, types.int64), _call(ir.DoubleType(), 3)


@intrinsic
def call_value_bound(
    context: Any, address: Any, parameters: Any, state: Any, step: Any, price: Any
) -> Any:
    """Call the function at an address; see `vulcan.model.compiled`."""
    word = types.uint64
    signature = types.float64(word, word, word, types.int64, types.float64)
    return signature, _call(ir.DoubleType(), 3, ir.DoubleType())


def _call(result: Any, count: int, *others: Any) -> Any:
    """Return what generates a call: pointers are passed like integers of their size."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(result, [*[ir.IntType(64)] * count, *others])
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

    return generate


@part
def find_record(source, s):
    """Return the address of the record of a state."""
    return source.records + np.uint64(s * source.state_size)


@part
def ask(source, s, number, following):
    """Have the outcomes of an action written, and return how many there are."""
    record = find_record(source, s)
    return call_outcomes(
        source.outcomes, source.parameters, record, np.int64(number), source.answers, following
    )


@routine
def open_state(problem, s):
    """Ask for the actions of a state, unless they are known."""
    state, source = problem.states[s], problem.source[0]
    if state.action_count >= 0:
        return KNOWN
    if source.outcomes == 0:
        return NEEDS_STATE
    if source.actions + source.numbers > len(problem.actions):
        return NEEDS_ROWS
    first = source.actions
    for number in range(source.numbers):
        count = ask(source, s, number, source.following)
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
    """Fill the row of an action from its outcomes; False if they break a rule."""
    if count < 0 or count > most:
        return False
    total, safe, reward, risk, sound = 0.0, 0, 0.0, 0.0, True
    for k in range(count):
        answer = answers[k]
        chance = answer.probability
        # Written so that anything that is not a number fails.
        sound = sound and 0.0 < chance <= 1.0 and abs(answer.reward) <= LARGEST_REWARD
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
    """Write an action and its outcomes into the next free rows, and leave these free.

    For the last step of a history, whose actions are weighed once and never again.
    """
    source = problem.source[0]
    most = source.most_outcomes
    if source.actions >= len(problem.actions) or source.outcome_rows + most > len(problem.outcomes):
        return NEEDS_ROWS
    count = ask(source, s, number, source.following)
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
    """Store the outcomes of an action, and the states reached, with their bounds, if wanted."""
    action, source = problem.actions[a], problem.source[0]
    most = source.most_outcomes
    if source.outcome_rows + most > len(problem.outcomes) or source.states + most > len(
        problem.states
    ):
        return NEEDS_ROWS
    following = find_record(source, source.states) if reached else source.following
    ask(source, s, action.number, following)
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
    """Have the actions of a state asked: KNOWN, or what is needed for that."""
    return KNOWN if problem.states[s].action_count >= 0 else open_state(problem, s)


@part
def have_outcomes(problem, s, a, reached, step):
    """Have the outcomes of an action, and the states reached: KNOWN, or what is needed for that."""
    if problem.actions[a].first_outcome != NONE:
        return KNOWN
    return store_outcomes(problem, s, a, reached, step)


@routine
def limit_action(problem, s, a, step, discount):
    """Return an upper bound on the value of an action: what it earns, and what can come after."""
    action, source = problem.actions[a], problem.source[0]
    ask(source, s, action.number, source.following)
    limit = action.expected_reward
    for k in range(action.safe_count):
        record = source.following + np.uint64(k * source.state_size)
        to_go = call_bound(source.bound, source.parameters, record, np.int64(step + 1))
        if np.isnan(to_go):
            return np.inf  # found out when the outcome is stored
        limit += discount * problem.answers[k].probability * to_go
    return limit
