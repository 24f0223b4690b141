"""The algorithm as printed in the paper."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.constraints import KINDS, constraint
from tests.helpers.tables import Table, bounds, one_action, tables
from tests.helpers.tree_results import SEEDS, find_plan, require_certified
from tests.oracles.brute_force import admits
from vulcan import Outcome, RiskBound, Status
from vulcan.domains import Bandit

LINEAR = vulcan.Linear(0.002)
UNDER_A = vulcan.SequenceConstraint()


@settings(max_examples=80)
@given(table=tables(), bound=bounds(), kind=st.sampled_from(KINDS), seed=SEEDS)
def test_as_printed_says_infeasible_only_where_it_is(
    table: Table, bound: RiskBound, kind: str, seed: int
) -> None:
    model = replace(table, calls={})
    problem = vulcan.Problem(model, bound)
    under = constraint(kind, model)
    exact = vulcan.solve(problem, vulcan.ForwardSearch(under))
    solver = vulcan.LocalVulcan(constraint=under, as_printed=True)
    result = vulcan.solve(problem, solver, samples=200, seed=seed)
    if result.status is Status.INFEASIBLE:
        assert exact.policy is None
    elif result.policy is not None:
        require_certified(result, bound)
    if result.safe:
        assert exact.policy is not None
        assert result.certificate.reward <= exact.certificate.reward + 1e-12
        assert admits(kind, bound, find_plan(table, result))


@settings(max_examples=80)
@given(table=tables(), bound=bounds(), seed=SEEDS)
def test_paper_never_claims_a_proof_of_the_best(table: Table, bound: RiskBound, seed: int) -> None:
    problem = vulcan.Problem(table, bound)
    result = vulcan.solve(problem, vulcan.LocalVulcan.paper(), samples=300, seed=seed)
    assert result.status in (Status.STOPPED, Status.INFEASIBLE)
    if result.status is Status.STOPPED:
        assert result.statistics.samples == 300
        assert "proved" not in result.explanation
        if result.policy is not None:
            require_certified(result, bound)


def test_as_printed_never_claims_a_proof_under_b_either() -> None:
    problem = vulcan.Problem(one_action(Outcome.failure(1.0)), vulcan.Constant(1.0))
    result = vulcan.solve(problem, vulcan.LocalVulcan(as_printed=True), samples=10)
    assert result.status is Status.STOPPED


def test_paper_has_its_own_constant_and_constraint() -> None:
    solver = vulcan.LocalVulcan.paper()
    assert (solver.exploration, solver.constraint) == (math.sqrt(2), UNDER_A)
    assert (solver.default_policy, solver.as_printed) == ("random", True)
    assert vulcan.LocalVulcan.paper(0.5) == vulcan.LocalVulcan(
        0.5, UNDER_A, "random", as_printed=True
    )
    with pytest.raises(vulcan.OptionError, match="bounded needs solved values"):
        vulcan.LocalVulcan(as_printed=True, bounded=True)


@pytest.mark.parametrize("seed", range(3))
def test_paper_converges_on_the_bandit(seed: int) -> None:
    problem = vulcan.Problem(Bandit(4), LINEAR)
    best = vulcan.solve(problem, vulcan.ForwardSearch(UNDER_A)).certificate.reward
    result = vulcan.solve(problem, vulcan.LocalVulcan.paper(), samples=200_000, seed=seed)
    assert result.status is Status.STOPPED
    assert result.safe
    assert 0.97 * best <= result.certificate.reward <= best + 1e-12
