"""UCT: the same search without a constraint."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.tables import Table, tables
from tests.helpers.tree_results import ENOUGH, SEEDS
from tests.oracles.brute_force import enumerate_plans
from vulcan import Status
from vulcan.domains import Bandit

LINEAR = vulcan.Linear(0.002)


@settings(max_examples=80)
@given(table=tables(), merges=st.booleans(), seed=SEEDS)
def test_uct_finds_the_best_of_all_policies(table: Table, merges: bool, seed: int) -> None:
    best = max(plan.reward for plan in enumerate_plans(table))
    model = replace(table, merges=merges, calls={})
    problem = vulcan.Problem(model, vulcan.Constant(0.1))
    result = vulcan.solve(problem, vulcan.UCT(), samples=ENOUGH, seed=seed)
    assert result.status is Status.SOLVED
    assert "proved" in result.explanation
    assert "without regard to risk" in result.explanation
    assert result.certificate.reward == pytest.approx(best, abs=1e-12)
    assert result.certificate.complete
    # The certificate judges it by the bound, which the search never looked at.
    assert result.safe == (result.certificate.risk <= 0.1 + 1e-12)


def test_uct_at_every_bound() -> None:
    rewards = {
        vulcan.solve(vulcan.Problem(Bandit(4), bound), vulcan.UCT(), samples=ENOUGH)
        .certificate.reward
        for bound in (LINEAR, vulcan.Constant(-1.0), vulcan.Constant(1.0))
    }  # fmt: skip
    assert len(rewards) == 1
    assert (
        rewards.pop()
        > vulcan.solve(vulcan.Problem(Bandit(4), LINEAR), vulcan.ForwardSearch()).certificate.reward
    )
