"""Upper bounds from the tree, and a target gap as a limit."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.tables import Table, bounds, tables
from tests.oracles.brute_force import admits, enumerate_plans
from vulcan import Status
from vulcan.domains import Bandit
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.tree.sampling import TreeRun

LINEAR = vulcan.Linear(0.002)


class Bounded(Table):
    """A table that knows that no step pays more than 3."""

    def reward_to_go_bound(self, state: Any, step: int) -> float:
        return 3.0 * (self.horizon - step)


@settings(max_examples=80)
@given(table=tables(), bound=bounds(), samples=st.integers(1, 30), seed=st.integers(0, 99))
def test_no_admissible_policy_is_above_the_bound(
    table: Table, bound: vulcan.RiskBound, samples: int, seed: int
) -> None:
    model = Bounded(table.table, table.horizon, table.discount)
    run = TreeRun(
        vulcan.Problem(model, bound), ModelReader(model), vulcan.SurvivalConstraint(), None
    )
    run.prepare(seed=seed, exploration=1.0, default_policy="random", as_printed=False, bounded=True)
    run.sample(Monitor(Limits()), samples, 0.0, lambda: pytest.fail("too early"), lambda: None)
    rewards = [plan.reward for plan in enumerate_plans(table) if admits("B", bound, plan)]
    upper = run.bound_reward()
    assert upper >= max(rewards, default=-math.inf) - 1e-9
    if run.solved:
        assert upper == pytest.approx(max(rewards), abs=1e-9)


def test_target_gap_ends_the_search() -> None:
    problem = vulcan.Problem(Bandit(7), LINEAR)
    best = vulcan.solve(problem).certificate.reward
    for gap in (0.3, 0.2):
        result = vulcan.solve(problem, vulcan.LocalVulcan(bounded=True), gap=gap, samples=10**6)
        assert result.stopped_by == "target gap"
        assert result.status is Status.STOPPED
        assert result.certificate.reward >= best * (1 - gap)
        assert result.statistics.samples < 10**6


def test_target_gap_needs_bounds() -> None:
    with pytest.raises(vulcan.OptionError, match="bounded=True"):
        vulcan.solve(vulcan.Problem(Bandit(3), LINEAR), vulcan.LocalVulcan(), gap=0.1)
    problem = vulcan.Problem(Table({0: {}}, 1), LINEAR)
    with pytest.raises(vulcan.OptionError, match="reward_to_go_bound"):
        vulcan.solve(problem, vulcan.LocalVulcan(bounded=True), gap=0.1)
    with pytest.raises(vulcan.OptionError, match="no limit 'gap'"):
        vulcan.solve(vulcan.Problem(Bandit(3), LINEAR), vulcan.ForwardSearch(), gap=0.1)
