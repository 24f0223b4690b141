"""Forward search against all policies of small problems."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.constraints import KINDS, constraint, sort_choice
from tests.helpers.plain_models import PlainBandit
from tests.helpers.tables import Table, bounds, one_action, tables
from tests.oracles.brute_force import admits, enumerate_plans, policy_choice
from vulcan import Outcome, Status
from vulcan.domains import Bandit
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import Options
from vulcan.solvers.tree.forward_run import ForwardSearchRun


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100)
@given(table=tables(), bound=bounds(), cut_short=st.booleans(), merges=st.booleans())
def test_returns_the_best_admissible_policy(
    kind: str, table: Table, bound: vulcan.RiskBound, cut_short: bool, merges: bool
) -> None:
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


@settings(max_examples=100)
@given(table=tables(), bound=bounds())
def test_merging_and_cutting_short_change_nothing_but_time(
    table: Table, bound: vulcan.RiskBound
) -> None:
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


@settings(max_examples=100)
@given(table=tables())
def test_asks_the_model_once_and_the_certificate_once_more(table: Table) -> None:
    problem = vulcan.Problem(table, vulcan.Constant(0.5))
    result = vulcan.solve(problem, vulcan.ForwardSearch())
    assert result.statistics.evaluations <= len(table.calls)
    assert max(table.calls.values()) <= 2
    if result.certificate is None:
        return
    # Everything but the root's actions, which the fingerprint covers, is asked again only where
    # the policy goes.
    again = [pair for pair, count in table.calls.items() if count == 2 and pair[0] != table.start]
    assert len(again) <= result.certificate.evaluations


def test_counts_evaluations_of_the_bandit_exactly() -> None:
    calls: Counter[Any] = Counter()

    class CountingBandit(Bandit):
        def outcomes(self, state: Any, action: Any) -> list[Outcome]:
            calls[state, action] += 1
            return super().outcomes(state, action)

    problem = vulcan.Problem(CountingBandit(horizon=5), vulcan.Linear(0.002))
    solver = vulcan.ForwardSearch(cut_short=False)
    finding = solver.search(problem, ModelReader(problem.model), Monitor(Limits()), Options())
    # States with fewer than five plays, four actions each.
    assert len(calls) == math.comb(4 + 6, 6) * 4 == finding.statistics.evaluations
    assert set(calls.values()) == {1}


def test_memory_stays_flat_where_nothing_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vulcan.solvers.tree.forward_run.FEWEST_ROWS_TO_RELEASE", 64)

    model = PlainBandit(horizon=5, merges=False)
    problem = vulcan.Problem(model, vulcan.Linear(0.002))
    run = ForwardSearchRun(problem, ModelReader(model), vulcan.ForwardSearch(cut_short=False))
    largest = 0
    expand = run.graph.expand

    def watch(state: int) -> None:
        nonlocal largest
        expand(state)
        largest = max(largest, run.graph.outcomes.count)

    monkeypatch.setattr(run.graph, "expand", watch)
    assert run.advance(Monitor(Limits()))
    assert run.graph.evaluations > 6000
    # The policy has 31 nodes of 3 outcomes, a path 5 states of 10; each at most a few times over.
    assert largest < 1000
    policy = run.build_policy(stopped=False)
    merged = vulcan.solve(
        vulcan.Problem(Bandit(horizon=5), vulcan.Linear(0.002)), vulcan.ForwardSearch()
    ).policy
    assert policy == merged


def test_terminal_root_needs_no_decision() -> None:
    result = vulcan.solve(
        vulcan.Problem(Table({0: {}}, 3), vulcan.Constant(0.0)), vulcan.ForwardSearch()
    )
    assert result.status is Status.SOLVED
    assert len(result.policy) == 0
    assert result.certificate.reward == 0
    assert result.safe
    result = vulcan.solve(
        vulcan.Problem(Table({0: {}}, 3), vulcan.Constant(-0.1)), vulcan.ForwardSearch()
    )
    assert result.status is Status.INFEASIBLE


def test_immediate_risk_of_one() -> None:
    doomed = one_action(Outcome.failure(1.0, 5.0))
    for bound, expected in (
        (vulcan.Constant(1.0), Status.SOLVED),
        (vulcan.Constant(0.99), Status.INFEASIBLE),
    ):
        assert (
            vulcan.solve(vulcan.Problem(doomed, bound), vulcan.ForwardSearch()).status is expected
        )
        under_a = vulcan.ForwardSearch(vulcan.SequenceConstraint())
        assert vulcan.solve(vulcan.Problem(doomed, bound), under_a).status is Status.INFEASIBLE
    result = vulcan.solve(vulcan.Problem(doomed, vulcan.Constant(1.0)), vulcan.ForwardSearch())
    assert (result.certificate.reward, result.certificate.risk) == (5.0, 1.0)


def test_long_horizon_without_branching() -> None:
    table = Table({0: {"go": [Outcome(0.999, 1.0, 0), Outcome.failure(0.001)]}}, horizon=2000)
    result = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0.9)), vulcan.ForwardSearch())
    assert len(result.policy) == 2000
    assert result.certificate.risk == pytest.approx(1 - 0.999**2000, abs=1e-12)
    assert result.certificate.evaluations == 1


def test_discount_and_start() -> None:
    class Drawn(Table):
        def initial_state(self) -> Any:
            return vulcan.Start(
                {
                    "calm": [Outcome(0.5, 0.0, 0), Outcome(0.5, 1.0, 1)],
                    "bold": [Outcome(0.8, 4.0, 1), Outcome.failure(0.2, 1.0)],
                }
            )

    table = Drawn({s: {"go": [Outcome(1.0, 2.0, s)]} for s in (0, 1)}, horizon=2, discount=0.5)
    # The initial action uses no step and no discount: two steps follow, worth 2 + 0.5 * 2.
    calm = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0.1)), vulcan.ForwardSearch())
    assert calm.certificate.reward == pytest.approx(0.5 + 3.0)
    bold = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0.2)), vulcan.ForwardSearch())
    assert bold.certificate.reward == pytest.approx(0.8 * (4 + 3) + 0.2)
    assert bold.certificate.risk == pytest.approx(0.2)
    run = bold.policy.start()
    assert run.action == "bold"
    assert len(bold.policy) == 3


def test_ties_go_to_the_first_action() -> None:
    same = {name: [Outcome(1.0, 1.0, 0)] for name in ("first", "second")}
    policy = vulcan.solve(
        vulcan.Problem(Table({0: same}, horizon=2), vulcan.Constant(0)), vulcan.ForwardSearch()
    ).policy
    assert [policy.labels[k] for k in policy.action] == ["first", "first"]
