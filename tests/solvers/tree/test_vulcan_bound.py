"""What Vulcan proves that no policy can earn more than, and how far it gets in practice."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.missions import BOUND
from tests.helpers.tables import Table, bounds, tables
from tests.oracles.best_policies import acceptable
from tests.oracles.brute_force import enumerate_plans
from vulcan.domains import Bandit, Exploration


@settings(max_examples=100)
@given(
    table=tables(),
    bound=bounds(),
    merges=st.booleans(),
    samples=st.sampled_from([0, 1, 3, 10, 30]),
    seed=st.integers(0, 99),
)
def test_no_policy_earns_more(
    table: Table, bound: vulcan.RiskBound, merges: bool, samples: int, seed: int
) -> None:
    problem = vulcan.Problem(replace(table, merges=merges, calls={}), bound)
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=samples, seed=seed)
    plans = enumerate_plans(table)
    best = max((p.reward for p in acceptable(plans, bound, -1e-11)), default=-math.inf)
    if result.upper_bound is not None:
        assert result.upper_bound >= best - 1e-9
    if result.policy is not None:
        assert result.safe
        most = max((p.reward for p in acceptable(plans, bound, 1e-11)), default=-math.inf)
        assert result.certificate.reward <= most + 1e-9


def test_a_target_gap_ends_the_search() -> None:
    problem = vulcan.Problem(Exploration(5), vulcan.parse(BOUND))
    result = vulcan.solve(problem, vulcan.Vulcan(), gap=0.01, samples=10**6)
    assert result.stopped_by == "target gap"
    assert result.gap <= 0.01
    assert result.statistics.samples < 10**6
    assert result.safe
    longer = vulcan.solve(problem, vulcan.Vulcan(), samples=20_000)
    assert result.upper_bound >= longer.certificate.reward - 1e-9


BEST = 2.7942161605594187
"""What the best policy of this bandit earns, by Pareto."""


@pytest.mark.parametrize("seed", range(6))
def test_no_seed_is_fooled(seed: int) -> None:
    problem = vulcan.Problem(Bandit(6, merges=False), vulcan.Constant(0.004))
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=4000, seed=seed)
    assert 0.995 * BEST <= result.certificate.reward <= BEST + 1e-9
