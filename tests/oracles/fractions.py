"""What a policy earns and risks, in fractions: plain recursion over its histories.

It shares nothing with the library. A policy is as in `tests.oracles.brute_force`; with a factor,
every immediate risk is multiplied by it, and the safe outcomes share what is left.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from tests.helpers.tables import Table


class Worth(NamedTuple):
    """Expected reward and probability of failure."""

    reward: Fraction
    risk: Fraction


def find_worth(table: Table, choice: Any, factor: Fraction = Fraction(1), state: Any = 0) -> Worth:
    """Return what a choice in a state earns and risks."""
    if choice is None:
        return Worth(Fraction(0), Fraction(0))
    name, below = choice
    outcomes = table.table[state][name]
    fails = sum((Fraction(o.probability) for o in outcomes if o.fails), Fraction(0))
    scaled = min(Fraction(1), factor * fails) if factor != 1 else fails
    after = iter(below)
    reward = risk = Fraction(0)
    for outcome in sorted(outcomes, key=lambda outcome: outcome.fails):
        if outcome.fails:
            likely = Fraction(outcome.probability) * scaled / fails
            reward += likely * Fraction(outcome.reward)
            risk += likely
        else:
            share = (1 - scaled) / (1 - fails) if fails < 1 else Fraction(0)
            likely = Fraction(outcome.probability) * share
            ahead = find_worth(table, next(after), factor, outcome.state)
            reward += likely * (Fraction(outcome.reward) + Fraction(table.discount) * ahead.reward)
            risk += likely * ahead.risk
    return Worth(reward, risk)
