"""Exact solvers against all policies of small random problems, and against each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.brute_force import Plan, enumerate_plans
from tests.tables import REWARDS, Table, bounds, tables
from vulcan import Status
from vulcan.domains import Bandit

TOLERANCE = 1e-12
NONNEGATIVE = [reward for reward in REWARDS if reward >= 0]


@dataclass
class Guided(Table):
    """A table with heuristics: the true values, or looser by some amounts."""

    loose: float = 0.0
    timid: float = 1.0

    def reward_to_go_bound(self, state: object, step: int) -> float:
        return self._best_reward(self._last(state), step) + self.loose

    def risk_to_go_bound(self, state: object, action: str, step: int) -> float:
        return self.timid * self._least_risk(self._last(state), action, step)

    def _best_reward(self, state: object, step: int) -> float:
        actions = self.table.get(state, {}) if step < self.horizon else {}
        values = [
            sum(
                o.probability
                * (
                    o.reward
                    + (0 if o.fails else self.discount * self._best_reward(o.state, step + 1))
                )
                for o in outcomes
            )
            for outcomes in actions.values()
        ]
        return max(values, default=0.0)

    def _least_risk(self, state: object, action: str, step: int) -> float:
        if step == self.horizon:
            return 0.0
        total = 0.0
        for o in self.table[state][action]:
            actions = {} if o.fails or step + 1 == self.horizon else self.table.get(o.state, {})
            after = [self._least_risk(o.state, name, step + 1) for name in actions]
            total += o.probability * (1.0 if o.fails else min(after, default=0.0))
        return min(1.0, total)


def acceptable(plans: Sequence[Plan], bound: vulcan.RiskBound, slack: float = 0.0) -> list[Plan]:
    return [plan for plan in plans if plan.risk <= bound(plan.reward) + TOLERANCE + slack]


def best_mixture(plans: Sequence[Plan], bound: vulcan.RiskBound) -> float:
    """Return the largest reward of a mixture of two plans, by a scan of each pair."""
    points = sorted({(plan.reward, plan.risk) for plan in plans})
    # Only plans that none beats can matter.
    front = [p for p in points if not any(q[0] >= p[0] and q[1] <= p[1] and q != p for q in points)]
    best = max((g for g, x in front if x <= bound(g) + TOLERANCE), default=-math.inf)
    for (g0, x0), (g1, x1) in combinations(front, 2):
        best = max(best, _scan(bound, g0, x0, g1, x1))
    return best


def _scan(bound: vulcan.RiskBound, g0: float, x0: float, g1: float, x1: float) -> float:
    def passes(weight: float) -> bool:
        return x0 + weight * (x1 - x0) <= bound(g0 + weight * (g1 - g0)) + TOLERANCE

    grid = [k / 64 for k in range(65)]
    held = [weight for weight in grid if passes(weight)]
    if not held:
        return -math.inf
    low, high = max(held), min(1.0, max(held) + 1 / 64)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return g0 + low * (g1 - g0)


EXACT = {"pareto": vulcan.Pareto(), "automatic": vulcan.Automatic(), "rao": vulcan.RAOStar()}


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=120)
@given(table=tables(), bound=bounds(), merges=st.booleans())
def test_the_best_history_dependent_policy(
    name: str, table: Table, bound: vulcan.RiskBound, merges: bool
) -> None:
    plans = enumerate_plans(table)
    result = vulcan.solve(
        vulcan.Problem(replace(table, merges=merges, calls={}), bound), EXACT[name]
    )
    _check_best(result, plans, bound)


def _check_best(result: vulcan.Result, plans: list[Plan], bound: vulcan.RiskBound) -> None:
    # Plans that pass or fail by a rounding may be seen either way.
    surely, maybe = acceptable(plans, bound, -1e-11), acceptable(plans, bound, 1e-11)
    if not maybe:
        assert result.status is Status.INFEASIBLE
        assert result.policy is None
        assert result.upper_bound == -math.inf
    if surely:
        best = max(plan.reward for plan in surely)
        assert result.status is Status.SOLVED
        assert result.safe
        assert result.certificate is not None
        assert result.certificate.reward >= best - 1e-9
        assert result.certificate.reward <= max(plan.reward for plan in maybe) + 1e-9
        assert result.upper_bound >= best - 1e-12
        assert result.gap <= 1e-9


@settings(max_examples=150)
@given(
    table=tables(),
    bound=bounds(),
    loose=st.sampled_from([0.0, 0.1, 2.0]),
    timid=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_rao_star_with_heuristics(
    table: Table, bound: vulcan.RiskBound, loose: float, timid: float
) -> None:
    plans = enumerate_plans(table)
    model = Guided(table.table, table.horizon, table.discount, loose=loose, timid=timid)
    result = vulcan.solve(vulcan.Problem(model, bound), vulcan.RAOStar())
    _check_best(result, plans, bound)


@settings(max_examples=120)
@given(table=tables(), bound=bounds())
def test_the_dual_bound_is_the_best_randomised_policy(
    table: Table, bound: vulcan.RiskBound
) -> None:
    plans = enumerate_plans(table)
    best = best_mixture(plans, bound)
    result = vulcan.solve(vulcan.Problem(table, bound), vulcan.Lagrangian())
    upper = result.upper_bound
    assert upper is not None
    assert upper >= best - 1e-9  # the scan uses up the tolerance of risk, and a bound rounds it off
    # A mixture that only just passes may be missed by the scan.
    if best > -math.inf:
        assert upper <= best_mixture(plans, _Raised(bound, 1e-9)) + 1e-6
    elif best_mixture(plans, _Raised(bound, 1e-9)) == -math.inf:
        assert upper == -math.inf
        assert result.status is Status.INFEASIBLE
    if result.policy is not None:
        assert result.safe
        rewards = [plan.reward for plan in acceptable(plans, bound, 1e-11)]
        assert result.certificate.reward <= max(rewards) + 1e-9


class _Raised:
    """A bound that allows a little more, for the scan only."""

    def __init__(self, bound: vulcan.RiskBound, more: float) -> None:
        self._bound, self._more = bound, more

    def __call__(self, reward: float) -> float:
        return self._bound(reward) + self._more


@settings(max_examples=100)
@given(table=tables(NONNEGATIVE), bound=bounds())
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


@settings(max_examples=100)
@given(table=tables(), bound=bounds())
def test_best_corners_are_among_the_penalties(table: Table, bound: vulcan.RiskBound) -> None:
    plans = enumerate_plans(table)
    prices = (0.0, 0.3, 2.0, 50.0)
    result = vulcan.solve(vulcan.Problem(table, bound), vulcan.Penalty(prices))
    assert [trial.multiplier for trial in result.trials] == list(prices)
    for trial in result.trials:
        best = max(plan.reward - trial.multiplier * plan.risk for plan in plans)
        assert trial.reward - trial.multiplier * trial.risk == pytest.approx(best, abs=1e-9)
        assert trial.allowed == bound(trial.reward)
        assert trial.passes == (trial.risk <= trial.allowed + 5e-13)
    passing = [trial.reward for trial in result.trials if trial.passes]
    assert (result.policy is None) == (not passing)
    if passing:
        assert result.certificate.reward == pytest.approx(max(passing), abs=1e-12)


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
    [(7, 3.7009878), (8, 4.2527818), (9, 4.8066179), (10, 5.3618047)],
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
