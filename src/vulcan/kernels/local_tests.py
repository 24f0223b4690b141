"""Tests of the local tests on one history.

A history h carries two numbers: its survival Π (1 - r_t) and its credit f(h). The mathematics is at
the head of `vulcan.solvers.local_tests`, which declares each form; `vulcan.bounds.table` describes
the table of the risk bound Δ. Only these four functions distinguish the forms:

    add_credit   the credit of a history after an action (add_outcome_credit: after its outcome)
    finish       whether a finished history passes
    fail         whether the histories on which an action fails leave the constraint sound
    could_pass   whether continuations of a history can still pass, by an upper bound on reward

A test returns ADMITTED, REFUSED, or UNDECIDED: then the table must be refined at `test.refine_at`
before the test is repeated.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vulcan.kernels import codes
from vulcan.kernels.compilation import part
from vulcan.kernels.expand import have_outcomes
from vulcan.numerics import NONE, TOLERANCE

TEST: Final = np.dtype(
    [
        ("form", "i8"),
        ("by_outcome", "i8"),  # whether credits depend on the outcomes of actions
        ("low", "f8"),  # credits from low to high are in the table
        ("high", "f8"),
        ("least", "f8"),  # smallest and largest credit tested so far
        ("largest", "f8"),
        ("top", "f8"),  # above high, Δ is at most top + beyond (credit - high)
        ("beyond", "f8"),
        ("ceiling", "f8"),  # Δ is nowhere above this
        ("refine_at", "f8"),  # the credit at which the table must be refined
        ("foresight", "i8"),  # whether to refuse histories by an upper bound on their reward
    ],
    align=True,
)


@part
def try_action(problem, test, action, weight, ends, survival, credit):
    """Whether an action passes: its failing histories, and its finished ones if it `ends` all."""
    survival_after = survival * (1.0 - action.immediate_risk)
    credit_after = add_credit(test, action, survival, credit, weight)
    pieces, outcomes = problem.pieces, problem.outcomes
    if ends and not test.by_outcome:  # an end that passes implies that its failures do
        return finish(test, pieces, survival_after, credit_after)
    verdict = fail(test, pieces, action, outcomes, credit, credit_after, weight)
    if verdict != codes.ADMITTED or not ends:
        return verdict
    for k in range(action.first_outcome, action.first_outcome + action.safe_count):
        credit_of_end = add_outcome_credit(test, outcomes[k], credit, credit_after, weight)
        verdict = finish(test, pieces, survival_after, credit_of_end)
        if verdict != codes.ADMITTED:
            return verdict
    return verdict


@part
def choose_last_action(problem, test, s, survival, credit, weight):
    """Choose the action of largest expected reward among those that pass, at the last step.

    All histories that end after one action share their survival, and under most constraints their
    credit, so that one test per action suffices. Returns KNOWN or a need, the action row (NONE if
    none passes), and the number of histories: this one and those after it.
    """
    state = problem.states[s]
    best, chosen, histories = -np.inf, NONE, 1
    for a in range(state.first_action, state.first_action + state.action_count):
        if test.by_outcome:
            status = have_outcomes(problem, s, a, False, 0)
            if status != codes.KNOWN:
                return status, NONE, 0
        action = problem.actions[a]
        histories += action.open_count
        verdict = try_action(problem, test, action, weight, True, survival, credit)
        if verdict == codes.UNDECIDED:
            return codes.NEEDS_BOUND, NONE, 0
        if verdict == codes.ADMITTED and action.expected_reward > best:
            best, chosen = action.expected_reward, a
    return codes.KNOWN, chosen, histories


@part
def add_credit(test, action, survival, credit, weight):
    """Return the credit of a history after an action, if it does not depend on the outcome."""
    if test.form == codes.SURVIVAL:
        return credit + weight * survival * action.credit
    return credit + weight * action.credit


@part
def add_outcome_credit(test, outcome, credit, credit_after, weight):
    """Return the credit of a history after an action and its outcome."""
    return credit + weight * outcome.reward if test.by_outcome else credit_after


@part
def finish(test, pieces, survival, credit):
    """Whether a finished history passes the local test."""
    if test.form == codes.UNCONSTRAINED:
        return codes.ADMITTED
    risk = 1.0 - survival
    if test.form != codes.SURVIVAL:
        if survival <= 0.0:
            return codes.REFUSED
        risk /= survival
    return compare(test, pieces, risk, credit)


@part
def fail(test, pieces, action, outcomes, credit_before, credit_after, weight):
    """Whether the histories on which an action fails leave constraint A sound.

    Its proof needs 0 <= Δ(f) on them, which fails only where Δ is negative. Constraint B has no
    such condition.
    """
    if test.form in (codes.SURVIVAL, codes.UNCONSTRAINED) or action.immediate_risk == 0.0:
        return codes.ADMITTED
    if action.immediate_risk >= 1.0:
        return codes.REFUSED
    if test.form != codes.SEQUENCE_BY_OUTCOME:
        return compare(test, pieces, 0.0, credit_after)
    first = action.first_outcome
    for k in range(first + action.safe_count, first + action.outcome_count):
        credit = add_outcome_credit(test, outcomes[k], credit_before, credit_after, weight)
        verdict = compare(test, pieces, 0.0, credit)
        if verdict != codes.ADMITTED:
            return verdict
    return codes.ADMITTED


@part
def could_pass(test, pieces, survival, credit, more):
    """Whether continuations of a history could pass if they add `more` credit on average.

    Under an admissible policy every finished history passes. Their mean credit is at most the
    credit so far plus `more` (an upper bound, before survival; inf if unknown), and Δ is concave
    and nondecreasing. So the risk so far must be at most Δ of that. The theorem is in
    docs/theory/proofs.md.
    """
    if test.form == codes.SURVIVAL:
        risk, most = 1.0 - survival, credit + survival * more
    else:
        risk, most = (1.0 - survival) / survival, credit + more
    return risk <= allow_at_most(test, pieces, most) + TOLERANCE


@part
def allow_at_most(test, pieces, credit):
    """Return an upper bound on Δ(credit) from the table as it is, without refining it."""
    if test.low > test.high:
        return np.inf
    if credit == np.inf:
        return test.ceiling
    if credit > test.high:
        return test.top + test.beyond * (credit - test.high)
    piece = find_piece(pieces, max(credit, test.low))
    return piece.value + piece.slope * (max(credit, test.low) - piece.start) + piece.error


@part
def compare(test, pieces, risk, credit):
    """Whether risk <= Δ(credit), up to the tolerance; records the range of tested credits."""
    test.least = min(test.least, credit)
    test.largest = max(test.largest, credit)
    if credit < test.low or credit > test.high:
        test.refine_at = credit
        return codes.UNDECIDED
    piece = find_piece(pieces, credit)
    allowed = piece.value + piece.slope * (credit - piece.start) + TOLERANCE
    if risk <= allowed:
        return codes.ADMITTED
    if piece.error > 0 and risk <= allowed + piece.error:
        test.refine_at = credit
        return codes.UNDECIDED
    return codes.REFUSED


@part
def find_piece(pieces, credit):
    """Return the piece of the table that contains a credit."""
    first, last = 0, len(pieces) - 1
    while first < last:
        middle = (first + last + 1) // 2
        if pieces[middle].start <= credit:
            first = middle
        else:
            last = middle - 1
    return pieces[first]
