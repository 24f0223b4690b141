"""Numbers that all rooms share: markers in arrays, tolerances, and directed rounding.

Markers are negative where a row number is expected, so that none of them is ever a row.

`TOLERANCE` is the only slack in a comparison of risk with allowed risk: a history passes its local
constraint, and a policy its bound, when risk <= allowed + TOLERANCE. It covers ties that are exact
on paper (an action of risk 0.01 under the constant bound 0.01). By the theorems
(docs/theory/proofs.md) a local slack adds the same amount to the policy's slack, and no more where
probabilities sum to 1 exactly; `find_sum_cost` bounds the cost where they do not. It is relative to
1, the largest probability. Certificates bound the rounding of rewards separately
(`vulcan.certificate.sums`), and hold the true numbers to this tolerance.

`SUM_TOLERANCE` is the largest distance from 1 of the sum of the probabilities of one action's
outcomes: the rounding of correct numbers. They are used as given, never rescaled. Over n steps the
mass of all histories may then differ from 1 by (1 + SUM_TOLERANCE)^n - 1, about n · 1e-12, and so
may the risk of a policy from what theorems A and B say of it. Certificates evaluate the given
numbers, so their comparison with the bound needs no more than `TOLERANCE`.

`AGREEMENT` is the largest difference between two computations of the same number, relative to the
sizes that were added up: search and certificate, or the compiled and the plain form of a model.

`EXACT_GAP` is the fraction of an upper bound within which a policy is called optimal. There is no
absolute tolerance on rewards, whose unit is the user's: where rewards cancel, the rounding of the
rewards that occur remains (`vulcan.exact.acceptance`).

`LARGEST_REWARD` is the largest size of a reward: sums of larger ones could leave the range of
floating point.

`SMALLEST_PROBABILITY` is the smallest probability of an outcome, other than 0: times a number down
to 1e-7, or as the divisor of a count up to 1e8, it still gives a float of full precision. Smaller
ones are refused, never rounded to 0: only the author of a model can say that an outcome does not
matter.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

# After an outcome, instead of the number of a decision.
END: Final = -1  # the history ends
FAILED: Final = -2  # the mission failed
UNPLANNED: Final = -3  # not planned yet: the frontier of an incomplete policy

# What is claimed of whatever follows the frontier of an incomplete policy.
ANY: Final = "any continuation"  # nothing but the least reward of an outcome: it may fail surely
DEFAULT: Final = "default action"  # the model's `default_bounds`, if its default action is followed

# For a state, instead of its number of actions.
UNEVALUATED: Final = -1  # not expanded yet
RELEASED: Final = -2  # expanded, and dropped since

# For an outcome, instead of the number of the next state.
FAILURE_STATE: Final = -1  # failure
NO_STATE: Final = -2  # a state that is not needed

NONE: Final = -1  # no row: nothing chosen, opened or stored

TOLERANCE: Final = 1e-12
SUM_TOLERANCE: Final = 1e-12
AGREEMENT: Final = 1e-9
EXACT_GAP: Final = 1e-9
LARGEST_REWARD: Final = 1e100
SMALLEST_PROBABILITY: Final = 1e-300

Number = float | Fraction


def find_sum_cost(steps: int) -> float:
    """Return the most risk that sums of probabilities within `SUM_TOLERANCE` of 1 can add.

    `steps` is the number of actions of a history, an initial one included.
    """
    return math.expm1(steps * math.log1p(SUM_TOLERANCE))


def is_infinite(number: Number) -> bool:
    """Whether a number is infinite; fractions are not, however large."""
    return number in (math.inf, -math.inf)


def to_float(number: Number) -> float:
    """Return the float next to a number, to show it: infinite beyond all floats."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def round_down(number: Number) -> float:
    """Return the largest float that is not above a number."""
    if not isinstance(number, Fraction):
        return float(number)
    try:
        nearest = float(number)
    except OverflowError:  # beyond all floats
        return math.nextafter(math.inf, 0.0) if number > 0 else -math.inf
    return math.nextafter(nearest, -math.inf) if Fraction(nearest) > number else nearest


def round_up(number: Number) -> float:
    """Return the smallest float that is not below a number."""
    return -round_down(-number) + 0.0  # never -0.0
