"""Random problems, small enough for their optimum to be known, the same ones on every machine.

Problem k comes from `random.Random(k)` alone:

- horizon 2 to 4; 3 to 5 states; 2 or 3 actions in each; 1 to 3 safe outcomes of an action, whose
  probabilities are like 1 to 20; in one problem of five a discount of 0.9;
- an action has a risk of up to 0.2, two of five have none; a failure earns nothing;
- rewards from 0 to 3 in problems 0, 3, 6, ..., from -2 to 2 in 1, 4, 7, ..., and in 2, 5, 8, ...
  from 0 to 3 with the more the riskier: reward and risk of an action grow together there;
- states merge if k is even, and are whole histories if it is odd;
- the bound is, in turn, constant, linear, exponential, and piecewise linear, on a scale of 0.02
  to 0.3 at rewards that can be had. Some are so tight that no policy is within them.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

import vulcan
from tests.helpers.tables import Table
from vulcan import Outcome

__all__ = ["COUNT", "make_problem", "make_problems"]

COUNT: Final = 500

LARGEST_RISK: Final = 0.2
SAFE_SHARE: Final = 0.4

ONE_SIGN, BOTH_SIGNS, PAID_RISK = range(3)


def make_problems(count: int = COUNT) -> Iterator[vulcan.Problem]:
    """Yield the first problems."""
    return map(make_problem, range(count))


def make_problem(number: int) -> vulcan.Problem:
    """Return the problem of a number."""
    random = Random(number)
    kind = number % 3
    horizon = random.choice([2, 3, 4])
    states = random.choice([3, 4, 5])
    table = {
        state: {
            name: _make_outcomes(random, states, kind) for name in "abc"[: random.choice([2, 3])]
        }
        for state in range(states)
    }
    discount = 0.9 if random.random() < 0.2 else 1.0
    model = Table(table, horizon, discount, merges=number % 2 == 0)
    return vulcan.Problem(model, _make_bound(random, number // 6 % 4, horizon))


def _make_outcomes(random: Random, states: int, kind: int) -> list[Outcome]:
    """Return the outcomes of an action."""
    risk = 0.0 if random.random() < SAFE_SHARE else random.uniform(0.0, LARGEST_RISK)
    low, high = (-2.0, 2.0) if kind == BOTH_SIGNS else (0.0, 3.0)
    if kind == PAID_RISK:
        low, high = 1.5 * risk / LARGEST_RISK, 1.5 + 1.5 * risk / LARGEST_RISK
    count = random.choice([1, 2, 3])
    weights = [random.randint(1, 20) for _ in range(count)]
    outcomes = [
        Outcome(
            (1.0 - risk) * weight / sum(weights),
            round(random.uniform(low, high), 2),
            random.randrange(states),
            f"outcome {k}",
        )
        for k, weight in enumerate(weights)
    ]
    return [*outcomes, Outcome.failure(risk)] if risk else outcomes


def _make_bound(random: Random, kind: int, horizon: int) -> vulcan.RiskBound:
    """Return a bound whose level is between 0.02 and 0.3 at rewards that can be had."""
    level = random.uniform(0.02, 0.3)
    typical = 1.5 * horizon
    if kind == 0:
        return vulcan.Constant(level)
    if kind == 1:
        return vulcan.Linear(level / typical, random.choice([0.0, 0.05]))
    if kind == 2:
        return vulcan.parse(f"{level} * (1 - exp({-random.uniform(1.0, 4.0) / typical} * x))")
    middle = random.uniform(0.3, 0.7) * typical
    return vulcan.PiecewiseLinear(
        [(-typical, -0.5 * level), (middle, 0.8 * level), (typical, level)]
    )
