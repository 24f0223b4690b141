"""The theory of local constraints: lemmas, theorems, figures and what they lose."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.tables import Table, bounds, one_action, tables
from tests.oracles.brute_force import Plan, admits, enumerate_plans
from tests.oracles.hulls import find_hull
from vulcan import Outcome, Status

UNDER_A = vulcan.ForwardSearch(vulcan.SequenceConstraint())
UNDER_A_RECEIVED = vulcan.ForwardSearch(vulcan.SequenceConstraint("received"))


@settings(max_examples=60)
@given(table=tables(sure_failure=False))
def test_lemma_1_safe_histories_divided_by_survival_sum_to_one(table: Table) -> None:
    for plan in enumerate_plans(table)[:50]:
        safe = [h for h in plan.histories if not h.failed]
        assert math.fsum(h.probability / h.survival for h in safe) == pytest.approx(1, abs=1e-9)


@settings(max_examples=60)
@given(table=tables(sure_failure=False))
def test_lemma_2_execution_risk_is_expected_sequence_execution_risk(table: Table) -> None:
    for plan in enumerate_plans(table)[:50]:
        safe = [h for h in plan.histories if not h.failed]
        expected = math.fsum(h.probability * (1 - h.survival) / h.survival for h in safe)
        assert plan.risk == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", ["A", "A received", "A own", "B"])
@settings(max_examples=100)
@given(table=tables(), bound=bounds())
def test_theorems_every_admissible_policy_satisfies_the_bound(
    kind: str, table: Table, bound: vulcan.RiskBound
) -> None:
    for plan in enumerate_plans(table):
        if admits(kind, bound, plan):
            assert plan.risk <= bound(plan.reward) + 1e-11


def fit_least_bound(kind: str, plan: Plan) -> vulcan.RiskBound:
    """Return the least concave and nondecreasing function under which A admits a policy."""
    needed = [
        (
            0.0 if h.failed else (1 - h.survival) / h.survival,
            h.credit if kind == "A" else h.credit_own,
        )
        for h in plan.histories
    ]
    # Credits that differ by rounding alone would make it steep: it begins a little to the left.
    points = [(credit - 1e-9, risk) for risk, credit in find_hull(needed)]
    return vulcan.PiecewiseLinear(points) if len(points) > 1 else vulcan.Constant(points[0][1])


@pytest.mark.parametrize("kind", ["A", "A own"])
@settings(max_examples=60)
@given(table=tables(sure_failure=False))
def test_b_admits_whatever_a_with_f1_or_less_admits(kind: str, table: Table) -> None:
    # If it does so under the least bound, it does so under every other.
    for plan in enumerate_plans(table)[:300]:
        bound = fit_least_bound(kind, plan)
        assert admits(kind, bound, plan)
        assert admits("B", bound, plan)


def test_b_does_not_admit_whatever_a_with_received_rewards_admits() -> None:
    # After 10 a risk of 0.1 is taken, after 0 none: A counts the 10, and B the 5 of the draw.
    table = Table(
        {
            0: {"draw": [Outcome(0.5, 10.0, "rich"), Outcome(0.5, 0.0, "poor")]},
            "rich": {"dare": [Outcome(0.9, 0.0, "end"), Outcome.failure(0.1)]},
        },
        horizon=2,
    )
    (plan,) = enumerate_plans(table)
    bound = vulcan.Linear(0.0112)
    assert admits("A received", bound, plan)
    assert not admits("A", bound, plan)
    assert not admits("B", bound, plan)
    assert plan.risk <= bound(plan.reward)


@settings(max_examples=100)
@given(table=tables(), bound=bounds())
def test_the_same_of_what_the_searches_return(table: Table, bound: vulcan.RiskBound) -> None:
    problem = vulcan.Problem(table, bound)
    under_a, under_b = (
        vulcan.solve(problem, UNDER_A),
        vulcan.solve(problem, vulcan.ForwardSearch()),
    )
    if under_a.policy is not None:
        assert under_b.certificate.reward >= under_a.certificate.reward - 1e-12


def test_a_needs_its_check_on_failing_histories() -> None:
    # Without it: ser = 1 <= Δ(10) = 1 on the only safe history, yet er = 0.5 > Δ(4) = 0.4.
    table = Table(
        {
            0: {"risk": [Outcome(0.5, -2.0, 1), Outcome.failure(0.5, -2.0)]},
            1: {"earn": [Outcome(1.0, 12.0, 1)]},
        },
        horizon=2,
    )
    problem = vulcan.Problem(table, vulcan.Linear(0.1))
    for solver in (UNDER_A, UNDER_A_RECEIVED, vulcan.ForwardSearch()):
        assert vulcan.solve(problem, solver).status is Status.INFEASIBLE


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
        result = vulcan.solve(vulcan.Problem(table, vulcan.Constant(level)), UNDER_A)
        assert result.status is expected
    # Constraint B charges 1 - survival instead, and the policy's true risk is smaller still.
    for level, expected in (
        (1 - survival, Status.SOLVED),
        (1 - survival - 1e-9, Status.INFEASIBLE),
    ):
        result = vulcan.solve(vulcan.Problem(table, vulcan.Constant(level)), vulcan.ForwardSearch())
        assert result.status is expected
    certified = vulcan.solve(
        vulcan.Problem(table, vulcan.Constant(0.3)), vulcan.ForwardSearch()
    ).certificate
    assert certified.risk == pytest.approx(p3 + 0.4 * p6, abs=1e-12)


def test_figure_of_an_unlikely_poor_outcome() -> None:
    # Two likely rich outcomes and an unlikely poor one: f = g lets the poor one forbid the action.
    table = one_action(
        Outcome(0.49, 10.0, 1), Outcome(0.49, 9.0, 2), Outcome(0.01, 0.1, 3), Outcome.failure(0.01)
    )
    problem = vulcan.Problem(table, vulcan.Linear(0.002))
    assert vulcan.solve(problem, UNDER_A_RECEIVED).status is Status.INFEASIBLE
    result = vulcan.solve(problem, UNDER_A)
    assert result.certificate.reward == pytest.approx(0.49 * 10 + 0.49 * 9 + 0.01 * 0.1)
    assert result.safe


def test_example_that_no_penalty_solves() -> None:
    # The paper's three actions: a2 is best within Δ(x) = 0.004 x, though no penalty selects it.
    table = Table(
        {
            0: {
                name: [Outcome(1 - risk, reward, name), Outcome.failure(risk, reward)]
                for name, reward, risk in (("a1", 5, 0.01), ("a2", 6, 0.02), ("a3", 10, 0.05))
            }
        }
    )
    problem = vulcan.Problem(table, vulcan.Linear(0.004))
    for solver in (UNDER_A, vulcan.ForwardSearch()):
        result = vulcan.solve(problem, solver)
        assert result.policy.start().action == "a2"
        assert result.certificate.reward == pytest.approx(6)


def test_own_credit_must_not_exceed_the_expected_reward() -> None:
    table = one_action(Outcome(1.0, 2.0, 1))
    for credit in (2.1, math.nan, math.inf, -math.inf):
        solver = vulcan.ForwardSearch(vulcan.SequenceConstraint(lambda s, a, c=credit: c))
        with pytest.raises(vulcan.ConstraintError, match=r"state 0, action 'go'.*2\.0"):
            vulcan.solve(vulcan.Problem(table, vulcan.Constant(0)), solver)
    with pytest.raises(vulcan.OptionError, match="'expected', 'received' or a function"):
        vulcan.SequenceConstraint("g")
