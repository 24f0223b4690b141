"""Forward search against all policies of small problems, and the theory of its constraints."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.local_tests import KINDS, constraint, sort_choice
from tests.helpers.tables import Table, bounds, one_action, tables
from tests.oracles.brute_force import admits, enumerate_plans, policy_choice
from vulcan import Outcome
from vulcan.planning import Status

UNDER_A = vulcan.ForwardSearch(vulcan.solvers.SequenceConstraint())
UNDER_B = vulcan.ForwardSearch()
UNDER_A_RECEIVED = vulcan.ForwardSearch(vulcan.solvers.SequenceConstraint("received"))


def search(model: Table, bound: Any, solver: Any = UNDER_B) -> vulcan.Result:
    return vulcan.solve(vulcan.Problem(model, bound), solver)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(table=tables(), bound=bounds(), cut_short=st.booleans(), merges=st.booleans())
def test_returns_the_best_admissible_policy(kind, table, bound, cut_short, merges):
    admissible = [plan for plan in enumerate_plans(table) if admits(kind, bound, plan)]
    model = replace(table, merges=merges, calls={})
    solver = vulcan.ForwardSearch(constraint(kind, model), cut_short)
    result = vulcan.solve(vulcan.Problem(model, bound), solver)
    if not admissible:
        assert result.status is Status.INFEASIBLE
        assert result.policy is None
        assert not result.safe
        assert kind[0] in result.explanation
        return
    assert result.status is Status.SOLVED
    assert result.policy is not None
    assert result.certificate is not None
    best = max(plan.reward for plan in admissible)
    assert result.certificate.reward == pytest.approx(best, abs=1e-12)
    assert result.certificate.complete
    assert result.safe
    assert result.certificate.risk <= bound(best) + 2e-12
    # The returned policy itself is one of the admissible ones, and is certified as it is.
    choice = sort_choice(policy_choice(result.policy), table)
    own = [plan for plan in admissible if plan.choice == choice]
    assert len(own) == 1
    assert result.certificate.reward == pytest.approx(own[0].reward, abs=1e-12)
    assert result.certificate.risk == pytest.approx(own[0].risk, abs=1e-12)


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_merging_and_cutting_short_change_nothing_but_time(table, bound):
    results = [
        vulcan.solve(
            vulcan.Problem(replace(table, merges=merges, calls={}), bound),
            vulcan.ForwardSearch(cut_short=cut_short),
        )
        for merges in (True, False)
        for cut_short in (True, False)
    ]
    first = results[0]
    for other in results[1:]:
        assert other.status is first.status
        assert other.policy == first.policy
    if all(table.table.values()):  # histories that end in a terminal count only until it is known
        assert results[0].statistics.histories <= results[1].statistics.histories


@settings(max_examples=60)
@given(table=tables())
def test_every_answer_is_evaluated_once_by_the_search(table: Table) -> None:
    problem = vulcan.Problem(table, vulcan.Constant(0.5))
    result = vulcan.solve(problem, vulcan.ForwardSearch())
    assert result.statistics.evaluations <= len(table.calls)
    # Once by the search, once by the certificate, and twice where answers are queried again.
    assert max(table.calls.values()) <= 4


def test_terminal_root_needs_no_decision() -> None:
    result = search(Table({0: {}}, 3), vulcan.Constant(0.0))
    assert result.status is Status.SOLVED
    assert len(result.policy) == 0
    assert result.certificate.reward == 0
    assert result.safe
    assert search(Table({0: {}}, 3), vulcan.Constant(-0.1)).status is Status.INFEASIBLE


def test_immediate_risk_of_one() -> None:
    doomed = one_action(Outcome.failure(1.0, 5.0))
    for bound, expected in ((1.0, Status.SOLVED), (0.99, Status.INFEASIBLE)):
        assert search(doomed, bound).status is expected
        assert search(doomed, bound, UNDER_A).status is Status.INFEASIBLE
    result = search(doomed, 1.0)
    assert (result.certificate.reward, result.certificate.risk) == (5.0, 1.0)


def test_long_horizon_without_branching() -> None:
    table = Table({0: {"go": [Outcome(0.999, 1.0, 0), Outcome.failure(0.001)]}}, horizon=2000)
    result = search(table, 0.9)
    assert len(result.policy) == 2000
    assert result.certificate.risk == pytest.approx(1 - 0.999**2000, abs=1e-12)
    assert result.certificate.evaluations == 1


def test_discount_and_start() -> None:
    start = vulcan.Start(
        {
            "calm": [Outcome(0.5, 0.0, 0), Outcome(0.5, 1.0, 1)],
            "bold": [Outcome(0.8, 4.0, 1), Outcome.failure(0.2, 1.0)],
        }
    )
    table = Table({s: {"go": [Outcome(1.0, 2.0, s)]} for s in (0, 1)}, 2, 0.5, start)
    # The initial action uses no step and no discount: two steps follow, worth 2 + 0.5 * 2.
    calm = search(table, 0.1)
    assert calm.certificate.reward == pytest.approx(0.5 + 3.0)
    bold = search(table, 0.2)
    assert bold.certificate.reward == pytest.approx(0.8 * (4 + 3) + 0.2)
    assert bold.certificate.risk == pytest.approx(0.2)
    run = bold.policy.start()
    assert run.action == "bold"
    assert len(bold.policy) == 3


def test_ties_go_to_the_first_action() -> None:
    same = {name: [Outcome(1.0, 1.0, 0)] for name in ("first", "second")}
    policy = search(Table({0: same}, horizon=2), 0.0).policy
    assert [policy.labels[k] for k in policy.action] == ["first", "first"]


def test_a_needs_its_check_on_failing_histories() -> None:
    # Without it: ser = 1 <= Δ(10) = 1 on the only safe history, yet er = 0.5 > Δ(4) = 0.4.
    table = Table(
        {
            0: {"risk": [Outcome(0.5, -2.0, 1), Outcome.failure(0.5, -2.0)]},
            1: {"earn": [Outcome(1.0, 12.0, 1)]},
        },
        horizon=2,
    )
    for solver in (UNDER_A, UNDER_A_RECEIVED, UNDER_B):
        assert search(table, vulcan.Linear(0.1), solver).status is Status.INFEASIBLE


def test_figure_of_sequence_execution_risk() -> None:
    # Two actions fail with p3 and p6: ser is that of a chain with only these two failures.
    p3, p6 = 0.1, 0.2
    table = Table(
        {
            "s0": {"a": [Outcome(0.5, 0, "s1"), Outcome(0.4, 0, "s2"), Outcome.failure(p3)]},
            "s2": {"b": [Outcome(0.3, 0, "s7"), Outcome(0.5, 0, "s8"), Outcome.failure(p6)]},
        },
        horizon=2,
        start="s0",
    )
    survival = (1 - p3) * (1 - p6)
    ser = (1 - survival) / survival
    for level, expected in ((ser, Status.SOLVED), (ser - 1e-9, Status.INFEASIBLE)):
        assert search(table, vulcan.Constant(level), UNDER_A).status is expected
    # Constraint B charges 1 - survival instead, and the policy's true risk is smaller still.
    assert search(table, vulcan.Constant(1 - survival)).status is Status.SOLVED
    assert search(table, vulcan.Constant(1 - survival - 1e-9)).status is Status.INFEASIBLE
    assert search(table, 0.3).certificate.risk == pytest.approx(p3 + 0.4 * p6, abs=1e-12)


def test_own_credit_must_not_exceed_the_expected_reward() -> None:
    table = one_action(Outcome(1.0, 2.0, 1))
    for credit in (2.1, math.nan, math.inf, -math.inf):
        solver = vulcan.ForwardSearch(vulcan.solvers.SequenceConstraint(lambda s, a, c=credit: c))
        with pytest.raises(vulcan.errors.OptionError, match=r"state 0, action 'go'.*2\.0"):
            vulcan.solve(vulcan.Problem(table, vulcan.Constant(0)), solver)
    with pytest.raises(vulcan.errors.OptionError, match="'expected', 'received' or a function"):
        vulcan.solvers.SequenceConstraint("g")
