"""Early refusal: what can still be earned speaks against a risk that nothing could justify."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.constraints import KINDS, constraint
from tests.helpers.tables import REWARDS, Table, bounds, random_bound, random_table, tables
from tests.helpers.trees import Node, sample, start, unfold, walk
from tests.oracles.admissible_values import Oracle
from tests.oracles.brute_force import Plan, admits, enumerate_plans
from vulcan import Outcome, RiskBound
from vulcan.kernels.tree import DELETED
from vulcan.solvers.tree.sampling import TreeRun

FORESEEN = ["A", "A own", "B"]  # constraints that refuse early


class Seer(Table):
    """A table that knows exactly the most that can still be earned."""

    def reward_to_go_bound(self, state: Any, step: int) -> float:
        return self.most(self._last(state), step)

    def most(self, state: Any, step: int) -> float:
        """Return the largest expected sum of rewards."""
        actions = self.table.get(state, {})
        if step == self.horizon or not actions:
            return 0.0
        return max(self.most_of(outcomes, step) for outcomes in actions.values())

    def most_of(self, outcomes: list[Outcome], step: int) -> float:
        mean = math.fsum(o.probability * o.reward for o in outcomes)
        return mean + self.discount * math.fsum(
            o.probability * self.most(o.state, step + 1) for o in outcomes if not o.fails
        )


def see(table: Table) -> Seer:
    """Return a table as one that knows what can be earned."""
    return Seer(table.table, table.horizon, table.discount, table.start, table.merges)


def begin(
    model: Table, bound: RiskBound, kind: str, seed: int = 0, foresight: bool = True
) -> TreeRun:
    """Return a bounded search that refuses early, or one that differs in nothing else."""
    run = start(model, bound, constraint(kind, model), seed=seed, bounded=True)
    assert run.test["foresight"][0]
    if not foresight:
        run.test["foresight"] = 0
    return run


def require_kept(node: Node | None, choice: Any) -> None:
    """No action of a policy is deleted, as far as the tree has its histories."""
    if node is None or choice is None or not node.edges:
        return
    label, after = choice
    edge = next(edge for edge in node.edges if edge.label == label)
    assert edge.mark != DELETED
    for child, rest in zip(edge.children, after, strict=True):
        require_kept(child, rest)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(
    table=tables(),
    bound=bounds(),
    merges=st.booleans(),
    completed=st.booleans(),
    samples=st.integers(1, 40),
    seed=st.integers(0, 1 << 40),
)
def test_no_admissible_action_is_ever_deleted(
    kind: str,
    table: Table,
    bound: RiskBound,
    merges: bool,
    completed: bool,
    samples: int,
    seed: int,
) -> None:
    model = see(replace(table, merges=merges))
    oracle = Oracle(table, bound, kind, getattr(constraint(kind, table), "own_credit", None))
    plans = [plan for plan in enumerate_plans(table) if admits(kind, bound, plan)]
    run = begin(model, bound, kind, seed)
    sample(run, samples)
    if completed and not run.exhausted:
        assert run._settle_tree(True, lambda: False)
    root = unfold(run, kind)
    for plan in plans:
        require_kept(root, plan.choice)
    for node in walk(root):
        state = node.state if merges else node.state[-1]
        for edge in node.edges:
            if edge.mark == DELETED:
                # Nor one that a policy could take which errs elsewhere.
                place = (state, edge.label, node.level, *node.expected)
                assert oracle.action_value(*place) == -math.inf
    # To its end, the search finds the best policy, or that there is none.
    sample(run, 10_000)
    assert (run.solved, run.exhausted) == (bool(plans), not plans)
    if plans:
        best = max(plan.reward for plan in plans)
        assert unfold(run, kind).value == pytest.approx(best, abs=1e-9)


def fit_bound(kind: str, plan: Plan) -> RiskBound | None:
    """Return the smallest linear bound under which a policy passes; None if there is none."""
    slopes = [0.0]
    for h in plan.histories:
        if h.failed:
            continue
        credit = {"A": h.credit, "A own": h.credit_own, "B": h.credit_survival}[kind]
        risk = 1 - h.survival if kind == "B" else (1 - h.survival) / h.survival
        if risk > 0 and credit < 1e-3:
            return None
        slopes.append(risk / credit if risk > 0 else 0.0)
    bound = vulcan.Linear(max(slopes) * (1 + 1e-9))
    return bound if admits(kind, bound, plan) else None


@pytest.mark.parametrize("kind", FORESEEN)
@settings(max_examples=60)
@given(
    table=tables([0.0, 0.1, 0.5, 1.0, 3.0], sure_failure=False),
    which=st.integers(0, 1 << 30),
    seed=st.integers(0, 1 << 40),
)
def test_a_policy_that_only_just_passes_is_not_refused(
    kind: str, table: Table, which: int, seed: int
) -> None:
    plans = enumerate_plans(table)
    # Policies that take most risk have most to fear.
    plans.sort(key=lambda plan: plan.risk)
    plan = plans[-1 - which % min(3, len(plans))]
    bound = fit_bound(kind, plan)
    if bound is None:
        return
    run = begin(see(table), bound, kind, seed)
    sample(run, 10_000)
    assert run.solved
    root = unfold(run, kind)
    require_kept(root, plan.choice)
    best = max(plan.reward for plan in plans if admits(kind, bound, plan))
    assert root.value == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("kind", FORESEEN)
def test_some_actions_are_refused_early(kind: str) -> None:
    fewer, histories, calls = 0, [0, 0], [0, 0]
    for seed in range(400):
        random = Random(seed)
        table, bound = random_table(random, REWARDS, True), random_bound(random)
        runs = []
        for foresight in (False, True):
            model = replace(see(table), merges=False, calls={})
            run = begin(model, bound, kind, foresight=foresight)
            sample(run, 10_000)
            assert run.solved or run.exhausted
            histories[foresight] += run.histories
            calls[foresight] += len(model.calls)
            runs.append(run)
        without, run = runs
        assert (run.solved, run.exhausted) == (without.solved, without.exhausted)
        if run.solved:
            assert unfold(run, kind).value == pytest.approx(unfold(without, kind).value, abs=1e-9)
        fewer += run.histories < without.histories
    assert fewer > 10
    assert histories[True] < histories[False]
    assert calls[True] < calls[False]


@pytest.mark.parametrize("kind", ["A", "B"])
def test_a_valley_that_is_never_entered(kind: str) -> None:
    # A leap of risk 0.2 needs a credit of 4 under 0.05 x, of 5 under A; the valley has 0.4 at most.
    # Its 2 ** 4 ways are all refused at their ends, unless the leap is refused at once. It earns
    # more than to walk, so that no other bound keeps the search from it.
    table = {
        "cliff": {
            "leap": [Outcome(0.8, 0.0, "valley"), Outcome.failure(0.2)],
            "walk": [Outcome(1.0, 0.01, "cliff")],
        },
        "valley": {
            "left": [Outcome(1.0, 0.1, "valley")],
            "right": [Outcome(1.0, 0.05, "valley")],
        },
    }
    found = []
    for foresight in (True, False):
        model = Seer(table, 5, start="cliff", merges=False)
        under = vulcan.SequenceConstraint() if kind == "A" else vulcan.SurvivalConstraint()
        solver = vulcan.LocalVulcan(constraint=under, bounded=foresight)
        result = vulcan.solve(vulcan.Problem(model, vulcan.Linear(0.05)), solver)
        assert result.status is vulcan.Status.SOLVED
        assert result.certificate.reward == pytest.approx(0.05)
        assert any("valley" in state for state, _ in model.calls) == (not foresight)
        found.append(result.statistics)
    early, late = found
    assert (early.evaluations, early.histories) == (2 * 5, 5)
    assert late.evaluations > 3 * early.evaluations
    assert late.histories > 3 * early.histories


LEAP = {
    "cliff": {
        "leap": [Outcome(0.8, 5.0, "valley"), Outcome.failure(0.2)],
        "walk": [Outcome(1.0, 0.01, "cliff")],
    },
    "valley": {
        "left": [Outcome(1.0, 0.1, "valley")],
        "right": [Outcome(1.0, 0.05, "valley")],
    },
}


@pytest.mark.parametrize(
    ("bound", "entered"),
    [
        (vulcan.Constant(0.15), False),
        (vulcan.PiecewiseLinear([(0, 0), (1, 0.1), (3, 0.15)]), False),
        (vulcan.Linear(0.001), True),  # nobody knows what the valley earns
        (vulcan.Constant(0.25), True),
    ],
)
@pytest.mark.parametrize("kind", ["A", "A received", "B"])
def test_more_risk_than_the_bound_ever_allows_is_refused_at_once(
    kind: str, bound: RiskBound, entered: bool
) -> None:
    # Nothing bounds what the valley earns; but no reward justifies the leap where Δ has a ceiling.
    model = Table(LEAP, 5, start="cliff", merges=False)
    solver = vulcan.LocalVulcan(constraint=constraint(kind, model))
    result = vulcan.solve(vulcan.Problem(model, bound), solver)
    assert result.status is vulcan.Status.SOLVED
    assert result.safe
    assert any("valley" in state for state, _ in model.calls) == entered


def test_the_algorithm_as_printed_refuses_nothing_early() -> None:
    model = Table(LEAP, 5, start="cliff", merges=False)
    problem = vulcan.Problem(model, vulcan.Constant(0.15))
    vulcan.solve(problem, vulcan.LocalVulcan.paper(), samples=50)
    assert any("valley" in state for state, _ in model.calls)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=80)
@given(table=tables(), level=st.sampled_from([0.0, 0.01, 0.05, 0.2, 0.5]), seed=st.integers(0, 999))
def test_what_is_refused_for_its_risk_alone_was_never_admissible(
    kind: str, table: Table, level: float, seed: int
) -> None:
    bound = vulcan.Constant(level)
    plans = [plan for plan in enumerate_plans(table) if admits(kind, bound, plan)]
    run = start(table, bound, constraint(kind, table), seed=seed)
    sample(run, 10_000)
    assert (run.solved, run.exhausted) == (bool(plans), not plans)
    root = unfold(run, kind)
    for plan in plans:
        require_kept(root, plan.choice)
    if plans:
        best = max(plan.reward for plan in plans)
        assert root.value == pytest.approx(best, abs=1e-9)
