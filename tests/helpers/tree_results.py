"""What LocalVulcan and forward search find, and that it is certified."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

import vulcan
from tests.helpers.constraints import constraint, sort_choice
from tests.helpers.tables import Table
from tests.oracles.brute_force import Plan, enumerate_plans, policy_choice
from vulcan import Result, RiskBound

ENOUGH = 100_000
"""Samples that solve every random problem; the search ends as soon as it is solved."""


SEEDS = st.integers(0, (1 << 64) - 1)


def solve_both(
    table: Table, bound: RiskBound, kind: str, merges: bool, **options: Any
) -> tuple[Result, Result]:
    """Return what LocalVulcan and what forward search say under the same constraint."""
    model = replace(table, merges=merges, calls={})
    problem = vulcan.Problem(model, bound)
    under = constraint(kind, model)
    default_policy = options.pop("default_policy", "random")
    exact = vulcan.solve(problem, vulcan.ForwardSearch(under))
    solver = vulcan.LocalVulcan(constraint=under, default_policy=default_policy)
    return vulcan.solve(problem, solver, **options), exact


def require_certified(result: Result, bound: RiskBound) -> None:
    """Require that a policy has a certificate that passes, and says whether it is complete."""
    certificate, policy = result.certificate, result.policy
    assert policy is not None
    assert certificate is not None
    again = vulcan.certify(result.problem, policy)
    assert again == certificate
    assert certificate.passes
    assert certificate.risk <= bound(float(certificate.reward)) + 1e-12
    assert certificate.complete == policy.complete
    assert result.safe == policy.complete
    assert (certificate.frontier > 0) == (not policy.complete)


def require_none_admitted(result: Result, bound: RiskBound) -> None:
    """Require that a result says that the constraint admits no policy.

    Where states merge, it may have one that is within the bound all the same.
    """
    assert "proved" in result.explanation
    if result.policy is None:
        assert result.status is vulcan.Status.INFEASIBLE
        assert result.certificate is None
    else:
        assert result.status is vulcan.Status.DONE
        assert "there is none that constraint" in result.explanation
        assert result.problem.model.merges
        require_certified(result, bound)
        assert result.safe


def find_plan(table: Table, result: Result) -> Plan:
    """Return the very policy of a result among all policies."""
    choice = sort_choice(policy_choice(result.policy), table)
    found = [plan for plan in enumerate_plans(table) if plan.choice == choice]
    assert len(found) == 1
    return found[0]
