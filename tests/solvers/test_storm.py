"""Storm, an independent model checker, finds the same best randomised values."""

from __future__ import annotations

import math
from random import Random
from types import ModuleType

import pytest

import vulcan
from tests.helpers.tables import REWARDS, Table, random_bound, random_table
from tests.helpers.unrolled import unroll_layers
from tests.oracles.storm import check_with_storm
from vulcan import Outcome
from vulcan.domains import Bandit

BOUNDS = [
    vulcan.Linear(0.002),
    vulcan.Linear(0.001, 0.0005),
    vulcan.Constant(0.004),
    vulcan.Constant(0.0),
    vulcan.PiecewiseLinear([(0, 0), (1, 0.002), (3, 0.003)]),
    vulcan.parse("0.004 * (1 - exp(-0.4*x))"),
]


@pytest.fixture
def stormpy() -> ModuleType:
    """Return stormpy, or skip the test."""
    return pytest.importorskip("stormpy")


def find_ours(problem: vulcan.Problem) -> float:
    """Return the best randomised value according to Vulcan; its bound from above meets it."""
    upper = vulcan.solve(problem, vulcan.Lagrangian()).upper_bound
    assert upper is not None
    return upper


@pytest.mark.usefixtures("stormpy")
@pytest.mark.parametrize("horizon", range(2, 7))
@pytest.mark.parametrize("bound", BOUNDS, ids=str)
def test_bandit(horizon: int, bound: vulcan.RiskBound) -> None:
    problem = vulcan.Problem(Bandit(horizon), bound)
    check = check_with_storm(problem)
    assert check.value == pytest.approx(find_ours(problem), abs=1e-6)
    assert check.states == len(unroll_layers(problem.model).nodes) + 2
    assert check.build_seconds > 0
    assert check.check_seconds > 0
    assert (check.queries == 1) == isinstance(bound, vulcan.Linear)


@pytest.mark.usefixtures("stormpy")
@pytest.mark.parametrize("seed", range(60))
def test_random_tables(seed: int) -> None:
    """Rewards of either sign, discounts, sure failures, and bounds of every kind."""
    random = Random(seed)
    problem = vulcan.Problem(random_table(random, REWARDS, True), random_bound(random))
    assert check_with_storm(problem).value == pytest.approx(find_ours(problem), abs=1e-6)


@pytest.mark.usefixtures("stormpy")
@pytest.mark.parametrize(
    ("level", "value"), [(0.0, 0.0), (0.1, 1.0), (1.0, 2.71), (-0.1, -math.inf)]
)
def test_ties_and_nothing_acceptable(level: float, value: float) -> None:
    table = {
        0: {"dare": [Outcome(0.9, 1.0, 0), Outcome.failure(0.1, 1.0)], "wait": [Outcome(1, 0, 0)]}
    }
    problem = vulcan.Problem(Table(table, horizon=3), vulcan.Constant(level))
    assert check_with_storm(problem).value == pytest.approx(value, abs=1e-8)
