"""Local constraints on one history, as kernels test them.

A history carries two numbers: its survival Π (1 - r_i) and its credit. The mathematics is at the
head of `vulcan.solvers.constraints`, where each form is declared; the table of the risk bound is
described in `vulcan.bounds.table`. A form is what these four functions do for it, and nothing else
in the kernels knows one form from another:

    add_credit   the credit of a history after an action (and add_outcome_credit, after its outcome)
    finish       whether a finished history passes
    fail         whether the histories on which an action fails leave the constraint sound
    hope         whether histories that go on could still pass, by the most that they can earn

A test has three answers. UNDECIDED means that the table must be made finer at `test.asked` before
the question can be put again.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vulcan.kernels.codes import ADMITTED, REFUSED, UNDECIDED
from vulcan.kernels.compilation import part
from vulcan.tolerance import TOLERANCE

# The forms.
SURVIVAL: Final = 0
SEQUENCE: Final = 1
SEQUENCE_BY_OUTCOME: Final = 2
UNCONSTRAINED: Final = 3

TEST: Final = np.dtype(
    [
        ("form", "i8"),  # of the local constraint
        ("by_outcome", "i8"),  # whether credits depend on the outcomes of actions
        ("ends_suffice", "i8"),  # whether an end that passes implies that its failures do
        ("low", "f8"),  # credits from low to high are in the table
        ("high", "f8"),
        ("least", "f8"),  # smallest and largest credit met so far
        ("largest", "f8"),
        ("top", "f8"),  # above high, Δ is at most top + beyond (credit - high)
        ("beyond", "f8"),
        ("ceiling", "f8"),  # Δ is nowhere above this
        ("asked", "f8"),  # the credit at which the table must be made finer
        ("foresight", "i8"),  # whether what can still be earned may speak against a history
    ],
    align=True,
)


@part
def compare(test, pieces, risk, credit):
    """Whether risk <= Δ(credit) for the credit of a history, which is noted."""
    test.least = min(test.least, credit)
    test.largest = max(test.largest, credit)
    return decide(test, pieces, risk, credit)


@part
def decide(test, pieces, risk, credit):
    """Whether risk <= Δ(credit), up to the tolerance."""
    if credit < test.low or credit > test.high:
        test.asked = credit
        return UNDECIDED
    piece = find_piece(pieces, credit)
    allowed = piece.value + piece.slope * (credit - piece.start) + TOLERANCE
    if risk <= allowed:
        return ADMITTED
    if piece.error > 0 and risk <= allowed + piece.error:
        test.asked = credit
        return UNDECIDED
    return REFUSED


@part
def find_piece(pieces, credit):
    """Return the piece of the table that a credit is on."""
    first, last = 0, len(pieces) - 1
    while first < last:
        middle = (first + last + 1) // 2
        if pieces[middle].start <= credit:
            first = middle
        else:
            last = middle - 1
    return pieces[first]


@part
def finish(test, pieces, survival, credit):
    """Whether a finished history passes the local constraint."""
    if test.form == UNCONSTRAINED:
        return ADMITTED
    risk = 1.0 - survival
    if test.form != SURVIVAL:
        if survival <= 0.0:
            return REFUSED
        risk /= survival
    return compare(test, pieces, risk, credit)


@part
def hope(test, pieces, survival, credit, more):
    """Whether histories that go on from one could pass, if they earn this much more on average.

    Under an admissible policy every finished history passes. Their credits are, on average, at most
    what is earned already and what can still be earned, and Δ is concave and nondecreasing. So the
    risk taken already must be within what that allows. The theorem is in docs/theory/proofs.md.

    Parameters
    ----------
    survival, credit
        Of the history.
    more
        An upper bound on what an average history adds to the credit, before survival; inf if
        nobody knows one.
    """
    if test.form == SURVIVAL:
        risk, most = 1.0 - survival, credit + survival * more
    else:
        risk, most = (1.0 - survival) / survival, credit + more
    return risk <= allow_at_most(test, pieces, most) + TOLERANCE


@part
def allow_at_most(test, pieces, credit):
    """Return an upper bound on Δ(credit); unlike a comparison, it has nothing evaluated there."""
    if test.low > test.high:
        return np.inf
    if credit == np.inf:
        return test.ceiling
    if credit > test.high:
        return test.top + test.beyond * (credit - test.high)
    piece = find_piece(pieces, max(credit, test.low))
    return piece.value + piece.slope * (max(credit, test.low) - piece.start) + piece.error


@part
def add_credit(test, action, survival, credit, weight):
    """Return the credit of a history after an action, where outcomes make no difference."""
    if test.form == SURVIVAL:
        return credit + weight * survival * action.credit
    return credit + weight * action.credit


@part
def add_outcome_credit(test, outcome, credit, credit_after, weight):
    """Return the credit of a history after an action and its outcome."""
    return credit + weight * outcome.reward if test.by_outcome else credit_after


@part
def fail(test, pieces, action, outcomes, credit_before, credit_after, weight):
    """Whether the histories on which an action fails leave constraint A sound.

    Its proof needs 0 <= Δ(f) on them. They can only break it where Δ is negative; constraint B has
    no such condition.
    """
    if test.form in (SURVIVAL, UNCONSTRAINED) or action.immediate_risk == 0.0:
        return ADMITTED
    if action.immediate_risk >= 1.0:
        return REFUSED
    if test.form != SEQUENCE_BY_OUTCOME:
        return compare(test, pieces, 0.0, credit_after)
    first = action.first_outcome
    for k in range(first + action.safe_count, first + action.outcome_count):
        credit = add_outcome_credit(test, outcomes[k], credit_before, credit_after, weight)
        verdict = compare(test, pieces, 0.0, credit)
        if verdict != ADMITTED:
            return verdict
    return ADMITTED


@part
def try_action(problem, test, action, weight, ends, survival, credit):
    """Whether an action may be taken: what its failures, and its ends if it ends all, say."""
    survival_after = survival * (1.0 - action.immediate_risk)
    credit_after = add_credit(test, action, survival, credit, weight)
    pieces, outcomes = problem.pieces, problem.outcomes
    if ends and test.ends_suffice:
        return finish(test, pieces, survival_after, credit_after)
    verdict = fail(test, pieces, action, outcomes, credit, credit_after, weight)
    if verdict != ADMITTED or not ends:
        return verdict
    if not test.by_outcome:
        return finish(test, pieces, survival_after, credit_after)
    for k in range(action.first_outcome, action.first_outcome + action.safe_count):
        credit_of_end = add_outcome_credit(test, outcomes[k], credit, credit_after, weight)
        verdict = finish(test, pieces, survival_after, credit_of_end)
        if verdict != ADMITTED:
            return verdict
    return verdict
