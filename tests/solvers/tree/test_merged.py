"""Vulcan where states merge: plans over all pairs of a state and a step, within an allowance."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.merging import Treasure, Treatment
from tests.helpers.tables import Table, bounds, tables
from tests.helpers.tree_results import SEEDS
from tests.oracles.brute_force import enumerate_plans
from vulcan import Outcome, RiskBound
from vulcan.domains import Bandit
from vulcan.model.reader import ModelReader
from vulcan.solvers.base import describe_origin
from vulcan.solvers.tree.allowance import Allowance
from vulcan.solvers.tree.merged import MergedPlan, plan_merged
from vulcan.solvers.tree.price_run import PriceRun


def begin(model: Any, bound: RiskBound, memory: int | None = None) -> PriceRun:
    """Return a search that has taken no sample."""
    problem = vulcan.Problem(model, bound)
    run = PriceRun(problem, ModelReader(model), memory, None, seed=0, exploration=0.1)
    run.prepare()
    return run


def plan(run: PriceRun, places: float = math.inf, questions: float = math.inf) -> MergedPlan | None:
    """Return the plan of such a search."""
    return plan_merged(run, vulcan.Vulcan(), Allowance(places, questions, math.inf))


def certify(run: PriceRun, merged: MergedPlan | None) -> vulcan.Certificate:
    """Certify a draft; its own numbers must be those of the certificate."""
    assert merged is not None
    draft = merged.draft
    assert draft is not None
    about = describe_origin(run.problem, run.reader, vulcan.Vulcan())
    certificate = vulcan.certify(run.problem, draft.write_out(run.graph, about))
    assert certificate.complete
    assert draft.reward == pytest.approx(float(certificate.reward), abs=1e-9)
    assert draft.risk == pytest.approx(float(certificate.risk), abs=1e-9)
    assert draft.allowed == pytest.approx(float(certificate.allowed), abs=1e-9)
    return certificate


@pytest.mark.parametrize("horizon", [8, 12, 20])
def test_what_is_found_is_close_to_the_upper_bound(horizon: int) -> None:
    run = begin(Treasure(horizon), vulcan.Constant(0.15))
    merged = plan(run)
    certificate = certify(run, merged)
    assert certificate.safe
    assert float(certificate.reward) <= merged.upper + 1e-9
    assert float(certificate.reward) > 0.97 * merged.upper


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_no_policy_is_beyond_the_upper_bound(table: Table, bound: RiskBound) -> None:
    run = begin(table, bound)
    merged = plan(run)
    plans = enumerate_plans(table)
    safe = [found.reward for found in plans if found.risk <= bound(found.reward) + 1e-13]
    if merged is None:  # the mission is over before it begins
        assert not run.count_actions(run.nodes["state"][:1])[0]
        return
    assert max(safe, default=-math.inf) <= merged.upper + 1e-9
    if merged.draft is not None:
        assert certify(run, merged).safe
        assert merged.draft.reward <= max(safe) + 1e-9


def test_all_of_the_risk_is_spent_where_histories_differ() -> None:
    # A coin is tossed ten times. Then all is one state: only memory can tell the histories apart.
    tosses = {k: {"toss": [Outcome(0.5, 0.0, k + 1, label=f) for f in "ht"]} for k in range(10)}
    leap = [Outcome(0.9, 1.0, "end"), Outcome.failure(0.1, 1.0)]
    end = {10: {"leap": leap, "stay": [Outcome(1.0, 0.0, "end")]}}
    run = begin(Table({**tosses, **end}, 11), vulcan.Constant(0.0333))
    merged = plan(run)
    certificate = certify(run, merged)
    assert float(certificate.reward) == pytest.approx(math.floor(0.333 * 1024) / 1024)
    assert merged.upper == pytest.approx(0.333)


@pytest.mark.parametrize("limits", [{"places": 3}, {"questions": 3}])
def test_more_than_allowed_is_not_taken(limits: dict[str, int]) -> None:
    run = begin(Treatment(), vulcan.Constant(0.12))
    before = len(run.state_graph.expanded)
    assert plan(run, **limits) is None
    assert len(run.state_graph.expanded) <= before + limits.get("questions", math.inf)
    assert plan(run, questions=1000) is not None


def test_without_room_there_is_no_plan() -> None:
    enough = begin(Treasure(20), vulcan.Constant(0.15))
    assert plan(enough) is not None
    short = begin(Treasure(20), vulcan.Constant(0.15), memory=enough.memory)
    assert plan(short) is None
    assert short.memory <= enough.memory


@pytest.mark.parametrize("samples", [1, 100, 5000])
def test_treatment_is_complete_and_small(samples: int) -> None:
    problem = vulcan.Problem(Treatment(), vulcan.Constant(0.12))
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=samples)
    assert result.safe
    assert result.statistics.memory < 20_000_000
    assert len(result.policy) < 500
    assert result.upper_bound is not None
    assert result.certificate.reward > 0.9995 * result.upper_bound


def test_more_samples_do_not_earn_less() -> None:
    # With a sample or two, a plan of histories is found at once, and is a poor one.
    problem = vulcan.Problem(Bandit(9), vulcan.Linear(0.002))
    rewards = [
        vulcan.solve(problem, vulcan.Vulcan(), samples=samples).certificate.reward
        for samples in (0, 1, 10, 100, 1000, 2000)
    ]
    assert rewards == sorted(rewards)


def test_no_policy_within_the_bound_is_proved() -> None:
    problem = vulcan.Problem(Treatment(), vulcan.Constant(0.01))
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=10)
    assert result.status is vulcan.Status.INFEASIBLE
    assert result.policy is None
    assert vulcan.solve(problem, vulcan.Pareto()).status is vulcan.Status.INFEASIBLE


@pytest.mark.parametrize(
    ("model", "bound"),
    [(Bandit(9), 0.5), (Bandit(9), 0.0), (Bandit(9), "0.002*x")],
    ids=["without regard to risk", "no risk", "fronts"],
)
def test_sampling_ends_when_pairs_have_proved_the_best_policy(
    model: Any, bound: float | str
) -> None:
    problem = vulcan.Problem(model, bound)
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=100_000)
    assert result.status is vulcan.Status.SOLVED
    assert result.explanation.startswith("best deterministic policy, proved")
    assert result.statistics.samples == 1024
    assert result.upper_bound >= result.certificate.reward
    assert result.gap <= 1e-9
    best = vulcan.solve(problem, vulcan.Pareto())
    assert result.certificate.reward == pytest.approx(best.certificate.reward, rel=1e-9)


def test_sampling_ends_when_pairs_have_proved_that_there_is_no_policy() -> None:
    problem = vulcan.Problem(Treatment(), vulcan.Constant(0.01))
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=100_000)
    assert result.status is vulcan.Status.INFEASIBLE
    assert result.statistics.samples == 1024


@settings(max_examples=10, deadline=None)
@given(samples=st.integers(1, 1500), seed=SEEDS)
def test_same_seed_same_policy(samples: int, seed: int) -> None:
    problem = vulcan.Problem(Treasure(9), vulcan.parse("0.1*x"))
    one, other = (
        vulcan.solve(problem, vulcan.Vulcan(), samples=samples, seed=seed) for _ in range(2)
    )
    assert one.policy == other.policy
    assert one.statistics.evaluations == other.statistics.evaluations
