"""Budgets that no mission exceeds."""

from __future__ import annotations

import copy
import random
from fractions import Fraction
from typing import Any

import pytest

import vulcan
from vulcan import Outcome
from vulcan.errors import OptionError
from vulcan.model.capped import Capped


class Trip:
    """Fly far or near for random amounts of fuel, or land."""

    def __init__(self, horizon: int = 5, seed: int = 0) -> None:
        self.horizon = horizon
        stream = random.Random(seed)
        self._costs = {a: [stream.choice((0.1, 0.2, 0.7)) for _ in range(2)] for a in "ab"}

    def initial_state(self) -> str:
        return "air"

    def actions(self, state: str) -> list[str]:
        return ["a", "b"] if state == "air" else []

    def outcomes(self, state: str, action: str) -> list[Outcome]:
        less, more = self._costs[action]
        return [
            Outcome(0.5, 1.0, "air", "calm", costs={"fuel": less}),
            Outcome(0.4, 2.0, "air", "windy", costs={"fuel": more}),
            Outcome(0.1, 0.0, "ground", "lands"),
        ]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("end", [None, "dock"])
def test_no_mission_exceeds_the_budget(seed: int, end: str | None) -> None:
    trip = Trip(seed=seed)
    result = vulcan.solve(vulcan.Problem(Capped(trip, "fuel", 1, end=end), 1.0))
    assert result.policy is not None
    stack: list[tuple[Any, Fraction]] = [(result.policy.start(), Fraction(0))]
    while stack:
        run, spent = stack.pop()
        if run.finished:
            continue
        if run.action in ("a", "b"):
            for outcome in trip.outcomes("air", run.action):
                after = copy.copy(run)
                after.observe(outcome.label)
                cost = Fraction(repr(dict(outcome.costs).get("fuel", 0.0)))
                assert spent + cost <= 1
                stack.append((after, spent + cost))
        else:
            assert run.action == ("out of fuel" if end is None else end)


def test_where_nothing_fits_the_mission_fails_or_ends_as_declared() -> None:
    for end, risk in ((None, 1.0), ("dock", 0.0)):
        result = vulcan.solve(vulcan.Problem(Capped(Trip(), "fuel", 0.05, end=end), 1.0))
        assert float(result.certificate.risk) == risk
        assert float(result.certificate.reward) == 0.0


def test_equal_amounts_are_equal_states_in_any_order() -> None:
    capped = Capped(Trip(seed=3), "fuel", 2)
    states = {capped.initial_state()}
    for _ in range(2):
        states = {
            o.state
            for s in states
            for a in capped.actions(s)
            for o in capped.outcomes(s, a)
            if o.state.state == "air"
        }
    amounts = {float(state.left) for state in states}
    assert len(amounts) == len(states)


def test_a_limit_that_is_no_amount() -> None:
    with pytest.raises(OptionError, match="from 0 on"):
        Capped(Trip(), "fuel", -1)
