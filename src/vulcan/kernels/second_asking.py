"""A compiled model that is asked again what rows say that it answered.

A checkpoint keeps the rows of a compiled model, but not the records of its states: the model's own
functions follow what is in a record, and believe it. So states are made again by asking, parents
before children, and what the rows say must be what the model says now.
"""

from __future__ import annotations

import numpy as np

from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.expansion import ask, call_bound, find_record, sum_up
from vulcan.kernels.problem_arrays import borrow_problem
from vulcan.sentinels import NONE

__all__ = ["ask_again"]


@kernel
def ask_again(problem, records, following, asked, levels, scratch):
    """Ask for all actions of states, and make the states after them; NONE, or who is contradicted.

    Parameters
    ----------
    problem
        Rows that lie within their arrays.
    records, following
        The records of all states, and those that the model writes to, as bytes.
    asked, levels
        The states that have actions or are terminal, parents before children; and their levels.
    scratch
        One row of an action.
    """
    problem, records, following = borrow_problem(problem), borrow(records), borrow(following)
    for i in range(len(asked)):
        if not repeat_state(problem, records, following, asked[i], levels[i], scratch[0]):
            return asked[i]
    return NONE


@part
def repeat_state(problem, records, following, s, level, said):
    """Ask for all actions of a state; False if the answers are not those of its rows."""
    state, source = problem.states[s], problem.source[0]
    met = 0
    for number in range(source.numbers):
        count = ask(source, s, number, source.following)
        if count == 0:
            continue
        if met == state.action_count or not sum_up(
            problem.answers, count, source.most_outcomes, said
        ):
            return False
        row = problem.actions[state.first_action + met]
        if row.number != number or not is_same(row, said):
            return False
        if row.first_outcome != NONE and not repeat_outcomes(
            problem, records, following, row, level
        ):
            return False
        met += 1
    return met == state.action_count


@part
def is_same(row, said):
    """Whether a row has the numbers that were just said."""
    return (
        row.expected_reward == said.expected_reward
        and row.credit == said.credit
        and row.immediate_risk == said.immediate_risk
        and row.safe_count == said.safe_count
        and row.outcome_count == said.outcome_count
        and row.open_count == said.open_count
    )


@part
def repeat_outcomes(problem, records, following, action, level):
    """Make the states after an action; False if its outcomes are not those of its rows."""
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
