"""Storm, an independent model checker, finds the same best randomised values."""

from __future__ import annotations

import math
import sys
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import vulcan
from tests.helpers.tables import REWARDS, Table, random_bound, random_table
from tests.helpers.unrolled import unroll_layers
from tests.oracles import storm
from tests.oracles.storm import build_storm_model, check_with_storm
from vulcan import BoundError, OptionError, Outcome
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
    assert check.states == len(unroll_layers(problem.model)) + 2
    assert check.build_seconds > 0
    assert check.check_seconds > 0
    assert (check.queries == 1) == isinstance(bound, vulcan.Linear)


@pytest.mark.usefixtures("stormpy")
def test_known_value() -> None:
    problem = vulcan.Problem(Bandit(8), vulcan.Linear(0.002))
    value = check_with_storm(problem, unroll_layers(problem.model)).value
    assert value == pytest.approx(4.2529, abs=5e-5)
    assert value == pytest.approx(find_ours(problem), abs=1e-6)


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


@pytest.mark.usefixtures("stormpy")
@pytest.mark.parametrize(("level", "value"), [(0.0, 0.0), (-0.1, -math.inf)])
def test_nothing_to_decide(level: float, value: float) -> None:
    problem = vulcan.Problem(Table({0: {}}, horizon=2), vulcan.Constant(level))
    assert check_with_storm(problem).value == pytest.approx(value, abs=1e-8)


def test_model(stormpy: Any) -> None:
    """Outcomes that lead to one node are one transition, and each end has its sink."""
    go = [
        Outcome(0.3, 1, 1, "a"),
        Outcome(0.4, 2, 1, "b"),
        Outcome(0.2, 0, 2),
        Outcome.failure(0.1),
    ]
    layers = unroll_layers(
        Table({0: {"go": go, "fail": [Outcome.failure(1.0)]}, 1: {"go": go}}, horizon=2)
    )
    model = build_storm_model(layers)
    assert (model.nr_states, model.nr_choices) == (4, 5)
    assert model.labeling.get_labels() == {"init", "ended", "failed"}
    rows = [
        {entry.column: entry.value for entry in action.transitions}
        for state in model.states
        for action in state.actions
    ]
    go_on, stop, fail = {1: 0.7, 2: 0.2, 3: 0.1}, {2: 0.9, 3: 0.1}, {3: 1.0}
    assert rows == [pytest.approx(row) for row in (go_on, fail, stop, {2: 1.0}, {3: 1.0})]
    edges = layers.arrays.edges
    for name in ("reward", "risk"):
        rewards = model.reward_models[name].state_action_rewards
        assert rewards == pytest.approx([*edges[name], 0, 0])


@pytest.mark.parametrize("direction", ["min", "max"])
def test_risk_is_the_probability_of_the_label(stormpy: Any, direction: str) -> None:
    model = build_storm_model(unroll_layers(Bandit(5)))
    queries = (f'P{direction}=? [F "failed"]', f'R{{"risk"}}{direction}=? [C]')
    probability, total = (
        stormpy.model_checking(model, stormpy.parse_properties(query)[0]).get_value(0)
        for query in queries
    )
    assert probability == pytest.approx(total, abs=1e-12)
    assert probability == pytest.approx(0 if direction == "min" else 1 - 0.9985**5, abs=1e-12)


@pytest.mark.usefixtures("stormpy")
def test_refused() -> None:
    problem = vulcan.Problem(Bandit(3), vulcan.Linear(0.002))
    closed = unroll_layers(
        problem.model, opens=lambda states, level: np.full(len(states), level < 1)
    )
    with pytest.raises(OptionError, match="expanded"):
        build_storm_model(closed)
    for precision in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(OptionError, match="precision"):
            check_with_storm(problem, precision=precision)
    convex = vulcan.Problem(Bandit(4), vulcan.Concave(lambda x: 0.0005 * x * x))
    with pytest.raises(BoundError, match="concave"):
        check_with_storm(convex)


@pytest.mark.usefixtures("stormpy")
def test_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = vulcan.Problem(Bandit(4), vulcan.parse("0.004 * (1 - exp(-0.4*x))"))
    with monkeypatch.context() as patch:
        patch.setattr(storm, "MOST_TANGENTS", 1)
        with pytest.raises(OptionError, match="1 tangents"):
            check_with_storm(problem)
    monkeypatch.setattr(storm, "MOST_STEPS", 3)
    with pytest.raises(OptionError, match="in 3 steps"):
        check_with_storm(problem)


@pytest.mark.parametrize("installed", [None, ModuleType("stormpy")], ids=["missing", "old"])
def test_without_storm(monkeypatch: pytest.MonkeyPatch, installed: ModuleType | None) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "stormpy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "stormpy", installed)
    problem = vulcan.Problem(Bandit(2), vulcan.Linear(0.002))
    for ask in (
        lambda: check_with_storm(problem),
        lambda: build_storm_model(unroll_layers(Bandit(2))),
    ):
        with pytest.raises(OptionError, match=r"pip install 'vulcan-planner\[storm\]'"):
            ask()
