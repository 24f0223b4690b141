"""The integer program as published: nothing of ours helps it."""

from __future__ import annotations

import math
from typing import Any

import pytest

import vulcan
from tests.helpers.tables import Table, one_action


class Steps:
    """A safe action and a risky one in every step; only what is safe is within a bound of 0."""

    horizon = 4

    def initial_state(self) -> int:
        return 0

    def actions(self, state: int) -> list[str]:
        return ["stay", "leap"]

    def outcomes(self, state: int, action: str) -> list[vulcan.Outcome]:
        if action == "stay":
            return [vulcan.Outcome(1.0, 0.23, 0)]
        return [vulcan.Outcome(0.3, -3.0, 1), vulcan.Outcome.failure(0.7, 0.5)]


class One(Steps):
    """A single action: there is nothing to choose."""

    def actions(self, state: int) -> list[str]:
        return ["stay"]


class Rare(Steps):
    """Histories that are hardly ever met, and some whose probability is no float."""

    def __init__(self, chance: float) -> None:
        self.chance = chance

    def outcomes(self, state: int, action: str) -> list[vulcan.Outcome]:
        if action == "leap":
            return [vulcan.Outcome.failure(1.0)]
        rare = vulcan.Outcome(self.chance, 1.0, 1, "rare")
        return [vulcan.Outcome(1.0 - self.chance, 0.23, 0, "usual"), rare]


class Faint(Steps):
    """A good action whose risk is far below what HiGHS tells from 0."""

    horizon = 1

    def actions(self, state: int) -> list[str]:
        return ["go", "leap", "stay"]

    def outcomes(self, state: int, action: str) -> list[vulcan.Outcome]:
        if action == "go":
            return [vulcan.Outcome(0.9999999999999999, 4.0, 1), vulcan.Outcome.failure(1e-16)]
        return [vulcan.Outcome(1.0, 0.0, 1) if action == "stay" else vulcan.Outcome.failure(1.0)]


class Fainter(One):
    """A risk beside which all that a bound allows is infinite."""

    def outcomes(self, state: int, action: str) -> list[vulcan.Outcome]:
        return [vulcan.Outcome(1.0, 0.0, 0), vulcan.Outcome.failure(2e-100)]


@pytest.mark.parametrize("on", ["tree", "graph"])
@pytest.mark.parametrize(
    ("model", "bound"),
    [
        (Fainter(), vulcan.Constant(-0.01)),
        (Faint(), vulcan.Linear(9e-17)),
        (Steps(), vulcan.Constant(0.0)),
        # It has no value, or another shape, beyond what any policy earns.
        (
            Steps(),
            vulcan.Concave(lambda g: 0.05 * math.sqrt(2 * g - g * g) if g > 0 else -math.inf),
        ),
        (Steps(), vulcan.Concave(lambda g: 0.01 * g + 0.01 if g <= 2 else 0.0)),
        (Steps(), vulcan.Concave(lambda g: g - 2 if g >= 1 else -math.inf)),
        (One(), vulcan.Constant(0.1)),
        (Rare(1e-14), vulcan.Constant(0.0)),
        (Rare(1e-200), vulcan.Constant(0.0)),
    ],
    ids=[
        "fainter",
        "faint",
        "no risk",
        "root",
        "bend",
        "nothing",
        "no choice",
        "rare",
        "underflow",
    ],
)
def test_it_agrees_with_ours_where_numbers_are_awkward(
    on: Any, model: Any, bound: vulcan.RiskBound
) -> None:
    problem = vulcan.Problem(model, bound)
    ours = vulcan.solve(problem, vulcan.Pareto())
    found = vulcan.solve(problem, vulcan.baselines.IntegerProgram(on, reduced=False))
    assert found.safe == ours.safe
    if ours.certificate is not None:
        assert found.certificate.reward == pytest.approx(ours.certificate.reward, abs=1e-9)
    if on == "tree":
        assert (found.status, found.upper_bound) == (ours.status, pytest.approx(ours.upper_bound))


@pytest.mark.parametrize("reduced", [True, False])
def test_solutions_that_presolve_invents_rule_nothing_out(reduced: bool) -> None:
    """A campaign found it: HiGHS 1.15 drops a node with a solution that only presolve believes."""
    leap = [vulcan.Outcome(0.0909, 0.5, 1), vulcan.Outcome.failure(0.9091)]
    fall = [vulcan.Outcome.failure(1.0)]
    table = {
        0: {"a": [vulcan.Outcome(1.0, -2.0, 0)], "b": leap},
        1: {"a": [vulcan.Outcome(1.0, -0.3, 1)], "b": fall},
    }
    start = vulcan.Start({"x": [vulcan.Outcome(1.0, 0.1, 0)], "y": fall})
    model = Table(table, horizon=2, discount=0.001, start=start)
    bound = vulcan.parse("1.1 - 0.0238545 * max(0, 2.19291 - x) ** 2")
    result = vulcan.solve(
        vulcan.Problem(model, bound), vulcan.baselines.IntegerProgram(reduced=reduced)
    )
    best = 0.1 + 0.0909 * (0.5 - 0.3 * 0.001)
    assert result.safe
    assert result.certificate.reward == pytest.approx(best, abs=1e-12)
    assert result.upper_bound >= best


@pytest.mark.filterwarnings("ignore::vulcan.errors.BoundWarning")
def test_slopes_beyond_all_floats() -> None:
    model = one_action(vulcan.Outcome(0.9, 1e20, 1), vulcan.Outcome.failure(0.1))
    problem = vulcan.Problem(model, vulcan.Linear(1e300))
    result = vulcan.solve(problem, vulcan.baselines.IntegerProgram(reduced=False))
    assert result.status is vulcan.planning.Status.SOLVED
    assert result.certificate.reward == pytest.approx(9e19)


def test_rewards_that_highs_does_not_tell_from_nothing_are_not_called_proved() -> None:
    go = [vulcan.Outcome(0.99999996, 1e-300, 0), vulcan.Outcome.failure(4e-8)]
    model = Table({0: {"a": go, "b": [vulcan.Outcome(1.0, 0.0, 1)]}}, horizon=2)
    problem = vulcan.Problem(model, vulcan.Constant(6e-8))
    result = vulcan.solve(problem, vulcan.baselines.IntegerProgram())
    assert result.upper_bound >= 0.99999996e-300
    assert result.status is not vulcan.planning.Status.SOLVED or result.certificate.reward > 0
