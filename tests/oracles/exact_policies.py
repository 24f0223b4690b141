"""All deterministic policies of a small model in fractions, and what a bound accepts of them.

Nothing here is rounded, and nothing is shared with the library but the model's numbers and the
bound, which is evaluated in fractions as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import vulcan
from tests.helpers.tables import Table

TOLERANCE = Fraction(1e-12)

Worth = tuple[Fraction, Fraction]
"""Reward and risk."""


def enumerate_exactly(table: Table, most: int = 3000) -> set[Worth] | None:
    """Return reward and risk of every policy that may depend on the history.

    None if there are more than `most` from some state on.
    """
    discount = Fraction(table.discount)

    @cache
    def follow(state: Any, step: int) -> frozenset[Worth]:
        actions = table.table.get(state, {}) if step < table.horizon else {}
        if not actions:
            return frozenset([(Fraction(0), Fraction(0))])
        found: set[Worth] = set()
        for outcomes in actions.values():
            reward = sum(Fraction(o.probability) * Fraction(o.reward) for o in outcomes)
            reward *= discount**step
            risk = sum((Fraction(o.probability) for o in outcomes if o.fails), Fraction(0))
            safe = [o for o in outcomes if not o.fails]
            parts = [follow(o.state, step + 1) for o in safe]
            if math.prod(map(len, parts)) > most:
                raise OverflowError
            for choice in product(*parts):
                shares = [Fraction(o.probability) for o in safe]
                pairs = list(zip(shares, choice, strict=True))
                earned = reward + sum(p * after[0] for p, after in pairs)
                risked = risk + sum(p * after[1] for p, after in pairs)
                found.add((earned, risked))
        return frozenset(found)

    try:
        return set(follow(table.start, 0))
    except OverflowError:
        return None


def accepts_exactly(bound: vulcan.RiskBound, worth: Worth) -> bool:
    """Whether a bound accepts a policy, with the tolerance of certificates."""
    reward, risk = worth
    return risk <= bound.exact(reward) + TOLERANCE


def best_exactly(bound: vulcan.RiskBound, worths: Iterable[Worth]) -> Fraction | None:
    """Return the largest acceptable reward; None if none is acceptable."""
    return max((worth[0] for worth in worths if accepts_exactly(bound, worth)), default=None)


def best_mixture_exactly(bound: vulcan.RiskBound, worths: set[Worth]) -> Fraction | None:
    """Return the largest reward of an acceptable mixture of two, or a trifle less.

    Where neither of two policies is acceptable, mixtures of them are not looked for.
    """
    best = best_exactly(bound, worths)
    for safe in worths:
        if not accepts_exactly(bound, safe):
            continue
        for daring in worths:
            if best is not None and daring[0] <= best:
                continue
            best = max(best or safe[0], _mix(bound, safe, daring))
    return best


def _mix(bound: vulcan.RiskBound, safe: Worth, daring: Worth) -> Fraction:
    """Return the reward of the most daring acceptable mixture, by bisection."""

    def mix(weight: Fraction) -> Worth:
        reward, risk = (a + weight * (b - a) for a, b in zip(safe, daring, strict=True))
        return reward, risk

    low, high = Fraction(0), Fraction(1)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if accepts_exactly(bound, mix(middle)) else (low, middle)
    return mix(low)[0]
