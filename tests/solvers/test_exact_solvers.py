"""Exact solvers against all policies of small random problems, and against each other."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.tables import Table, bounds, tables
from tests.oracles.best_policies import check_best
from tests.oracles.brute_force import enumerate_plans
from vulcan import Status
from vulcan.domains import Bandit

EXACT = {"pareto": vulcan.Pareto(), "automatic": vulcan.Automatic(), "rao": vulcan.RAOStar()}


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=60)
@given(table=tables(), bound=bounds(), merges=st.booleans())
def test_the_best_history_dependent_policy(
    name: str, table: Table, bound: vulcan.RiskBound, merges: bool
) -> None:
    plans = enumerate_plans(table)
    problem = vulcan.Problem(replace(table, merges=merges, calls={}), bound)
    # By default a small gap would do.
    proof = {"gap": 0.0} if name == "automatic" else {}
    check_best(vulcan.solve(problem, EXACT[name], **proof), plans, bound)


@settings(max_examples=100)
@given(table=tables(), bound=bounds())
def test_orders_between_solvers(table: Table, bound: vulcan.RiskBound) -> None:
    problem = vulcan.Problem(table, bound)

    def earn(solver: object) -> float:
        result = vulcan.solve(problem, solver, bound=True)
        reward = -math.inf if result.certificate is None else float(result.certificate.reward)
        if result.policy is not None:
            assert result.safe
        assert result.upper_bound is not None
        assert result.upper_bound >= reward - 1e-9
        uppers.append(result.upper_bound)
        return reward

    uppers: list[float] = []
    exact = earn(vulcan.Pareto())
    survival = earn(vulcan.ForwardSearch())
    sequence = earn(vulcan.ForwardSearch(vulcan.SequenceConstraint()))
    lagrangian = earn(vulcan.Lagrangian())
    penalty = earn(vulcan.Penalty())
    assert exact >= survival - 1e-9
    assert survival >= sequence - 1e-9
    assert exact >= lagrangian - 1e-9
    assert exact >= penalty - 1e-9
    assert min(uppers) >= exact - 1e-9


# The bandit of the paper.

OPTIMUM = {2: 0.9906, 3: 1.5280, 4: 2.0627, 5: 2.6068, 6: 3.1518}
PAPER = {7: 3.7006, 8: 4.2526}


@pytest.mark.parametrize(("horizon", "reward"), OPTIMUM.items())
@pytest.mark.parametrize("solver", [vulcan.Pareto(), vulcan.RAOStar()], ids=["pareto", "rao"])
def test_optimum_of_the_paper(horizon: int, reward: float, solver: object) -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(horizon), vulcan.Linear(0.002)), solver)
    assert result.certificate.reward == pytest.approx(reward, abs=5e-5)
    assert result.status is Status.SOLVED


@pytest.mark.parametrize(
    ("horizon", "exact"),
    [
        (7, 3.7009878),
        (8, 4.2527818),
        pytest.param(9, 4.8066179, marks=pytest.mark.slow),
        pytest.param(10, 5.3618047, marks=pytest.mark.slow),
    ],
)
def test_longer_horizons_are_exact(horizon: int, exact: float) -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(horizon), vulcan.Linear(0.002)), vulcan.Pareto())
    assert result.status is Status.SOLVED
    assert result.gap <= 1e-9
    assert result.safe
    assert result.certificate.reward == pytest.approx(exact, abs=1e-7)
    assert result.certificate.reward >= PAPER.get(horizon, 0.0)


@pytest.mark.parametrize(
    ("horizon", "bound", "reward"),
    [
        (8, vulcan.Linear(0.002), 4.2529),
        (10, vulcan.Linear(0.002), 5.3618),
        (10, vulcan.Constant(0.0125), 5.43485),
    ],
)
def test_randomised_optimum_that_storm_confirms(
    horizon: int, bound: vulcan.RiskBound, reward: float
) -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(horizon), bound), vulcan.Lagrangian())
    assert result.upper_bound == pytest.approx(reward, abs=5e-5)
    assert result.safe
    assert result.gap < 1e-4


def test_unmerged_and_merged_states_have_the_same_optimum() -> None:
    bound = vulcan.Linear(0.002)
    rewards = [
        vulcan.solve(vulcan.Problem(Bandit(5, merges=merges), bound), vulcan.Pareto())
        for merges in (True, False)
    ]
    first, second = (float(result.certificate.reward) for result in rewards)
    assert first == pytest.approx(second, abs=1e-12)
