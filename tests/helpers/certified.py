"""Small policies, each with something that rounds, cancels, vanishes or decides."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import vulcan
from tests.helpers.plans import build_merged
from tests.helpers.tables import Table, one_action
from vulcan import Outcome
from vulcan.policy.policy import AnyPolicy, RandomisedPolicy


class Certified(NamedTuple):
    """A policy, and what it is judged by."""

    problem: vulcan.Problem
    policy: AnyPolicy


COIN = [Outcome(0.3, 1.7, 0), Outcome(0.65, -0.2, 1), Outcome.failure(0.05, 0.3)]
DOUBLE = [Outcome(0.1, 2.3, 0), Outcome(0.2, 0.7, 1), Outcome(0.69, 1.1, 2)]
DOUBLE += [Outcome.failure(0.007, label="lost"), Outcome.failure(0.003, -1.0, "broken")]
REST = [Outcome(1.0, 0.1, 2)]
TRIP = Table({0: {"go": COIN}, 1: {"go": DOUBLE}, 2: {"go": COIN, "rest": REST}}, horizon=5)
FADING = replace(TRIP, discount=0.9)
HALF = [Outcome(0.5, 1.0, 1), Outcome.failure(0.5)]

# Without the failure in 1, more risk would be more reward up to some factor only.
PAYING = Table(
    {
        0: {"go": [Outcome(0.3, -1.0, 0), Outcome(0.6, 2.0, 1), Outcome.failure(0.1, 5.0)]},
        1: {"go": [Outcome(0.98, 1.0, 0), Outcome.failure(0.02, -3.0)]},
    },
    horizon=6,
)
# Products too small to count: of probabilities alone, with rewards, and with discounts.
FAINT = [Outcome(1e-120, 0.0, 0), Outcome(1.0, 0.0, 1)]
VANISHING = Table(
    {
        0: {"go": FAINT},
        1: {"go": [Outcome(1.0, 0.0, 3)]},
        3: {"go": [Outcome(1e-90, 1e-130, 3), Outcome(1.0, 0.0, 4)]},
    },
    horizon=4,
)
BURIED = Table(
    {
        0: {"go": FAINT},
        1: {"go": [Outcome(1e-90, 1e-130, 5), Outcome(1.0, 0.0, 6)]},
        5: {"go": [Outcome(0.75, 1e100, 7), Outcome.failure(0.25, -1e99)]},
    },
    horizon=4,
)
BURIED.table[7] = {"go": [Outcome(0.5, 3.0, 7), Outcome.failure(0.5)]}
CANCELLING = one_action(
    *(Outcome(0.3, r, k + 1) for k, r in enumerate([88180747.6, -20541439.5, -67639307.76666667])),
    Outcome.failure(0.1),
)
# Every third step fails at one half of the places, for sure at one of them.
FORKED = Table(
    {
        0: {"a": [Outcome(0.5, 0.1, 1), Outcome(0.5, 0.2, 2)]},
        1: {"a": [Outcome(0.999, 3.0, 0), Outcome.failure(0.001, 10.0)]},
        2: {"a": [Outcome(0.001, -3.0, 3), Outcome(0.999, 0.7, 0)]},
        3: {"a": [Outcome.failure(0.6, 4.0), Outcome.failure(0.4, -6.0)]},
    },
    horizon=7,
    discount=0.7,
)


def _rest_sometimes(level: int, state: Any, names: list[str]) -> str:
    return names[-1] if level % 2 else names[0]


def _stop_early(level: int, state: Any, names: list[str]) -> str | None:
    return None if level == 3 and state == 1 else names[0]


def _list_cases() -> dict[str, Certified]:
    cases: dict[str, Certified] = {}

    def add(name: str, model: Any, bound: Any, policy: AnyPolicy | None = None) -> None:
        problem = vulcan.Problem(model, bound)
        cases[name] = Certified(problem, policy or build_merged(model))

    resting = build_merged(TRIP, _rest_sometimes)
    mixed = RandomisedPolicy([build_merged(TRIP), resting, build_merged(TRIP)], [0.1, 0.7, 0.2])
    incomplete = build_merged(TRIP, _stop_early)
    drawn = replace(FADING, start=vulcan.Start.draw([Outcome(0.3, 0.0, 0), Outcome(0.7, 0.0, 1)]))
    add("linear", TRIP, vulcan.Linear(0.04))
    add("linear-refused", TRIP, vulcan.Linear(0.01, 0.02))
    add("linear-hopeless", TRIP, vulcan.Linear(0.01, -0.2))
    add("constant", TRIP, vulcan.Constant(0.2))
    add("constant-1", TRIP, vulcan.Constant(1.0))
    add("pieces", TRIP, vulcan.PiecewiseLinear([(0.0, -0.1), (2.0, 0.1), (3.0, 0.16)]))
    add("pieces-refused", TRIP, vulcan.PiecewiseLinear([(0.0, 0.05), (9.0, 0.1)]))
    add("function", TRIP, vulcan.parse("0.1*sqrt(1 + x)"))
    add("function-refused", TRIP, vulcan.parse("0.02*sqrt(1 + x)"))
    add("function-ends", PAYING, vulcan.parse("0.5 + 0.01*sqrt(x - 4)"))
    add("discount", FADING, vulcan.Linear(0.05))
    add("drawn", drawn, vulcan.Linear(0.05))
    add("randomised", TRIP, vulcan.Linear(0.1), mixed)
    add("randomised-refused", TRIP, vulcan.Linear(0.02), mixed)
    add("incomplete", TRIP, vulcan.Linear(0.04), incomplete)
    add("histories", replace(TRIP, horizon=3, merges=False), vulcan.Linear(0.04))
    add("paying", PAYING, vulcan.parse("0.3 + 0.001*x"))
    add("paying-steep", PAYING, vulcan.Linear(0.3, -1.0))
    add("paying-refused", PAYING, vulcan.Linear(0.01))
    add("forked", FORKED, vulcan.Linear(0.001, 0.01))
    add("forked-refused", FORKED, vulcan.Constant(0.001))
    add("cancelling", CANCELLING, vulcan.Linear(1.0))
    add("cancelling-gently", CANCELLING, vulcan.Linear(0.1, 0.09))
    add("cancelling-widely", CANCELLING, vulcan.Constant(0.9))
    add("steep", TRIP, vulcan.Linear(1e12, -3e12))
    add("steep-refused", TRIP, vulcan.Linear(1e12, -4e12))
    add("vanishing", VANISHING, vulcan.Linear(1.0))
    add("vanishing-discount", replace(VANISHING, discount=1e-110), vulcan.Constant(0.0))
    add("buried", BURIED, vulcan.Linear(0.5))
    add("buried-discount", replace(BURIED, discount=0.0), vulcan.Linear(0.5, 0.1))
    add("certain", one_action(Outcome.failure(0.25, 2.0), Outcome.failure(0.75, 1.0)), 1.0)
    add("edge", one_action(*HALF), vulcan.Constant(0.5 - 1e-12))
    add("edge-refused", one_action(*HALF), vulcan.Constant(0.5 - 1.001e-12))
    add("edge-function", one_action(*HALF), vulcan.Concave(lambda x: 0.5 - 1e-12))
    add("rare", one_action(Outcome(1.0, 1.0, 1), Outcome.failure(1e-13)), vulcan.Linear(0.3))
    add("rarest", one_action(Outcome(1.0, 1.0, 1), Outcome.failure(1e-300)), vulcan.Linear(0.3))
    add("safe", one_action(Outcome(1.0, 1.0, 1)), vulcan.Constant(0.0))
    add("safe-refused", one_action(Outcome(1.0, 1.0, 1)), vulcan.Linear(1.0, -2.0))
    third = Fraction(1, 3)
    add("fractions", one_action(Outcome(1 - third, 1, 1), Outcome.failure(third)), 0.4)
    add("empty", Table({}), vulcan.Constant(0.0))
    add("empty-refused", Table({}), vulcan.Constant(-1.0))
    return cases


CERTIFIED = _list_cases()
