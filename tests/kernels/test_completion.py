"""What is deleted, solved and completed in a tree is true."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.constraints import KINDS, constraint
from tests.helpers.tables import Table, bounds, tables
from tests.helpers.trees import chosen_action, sample, start, unfold, walk
from tests.oracles.admissible_values import Oracle
from tests.oracles.brute_force import admits, enumerate_plans
from vulcan import RiskBound
from vulcan.kernels.tree import DELETED, LIVE, SOLVED


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize("completed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50)
@given(
    table=tables(),
    bound=bounds(),
    samples=st.integers(1, 60),
    seed=st.integers(0, 1 << 40),
)
def test_deletions_and_solved_values_are_true(
    kind: str,
    completed: bool,
    printed: bool,
    table: Table,
    bound: RiskBound,
    samples: int,
    seed: int,
) -> None:
    under = constraint(kind, table)
    run = start(table, bound, under, seed=seed, as_printed=printed)
    sample(run, samples)
    if completed and not run.exhausted:
        assert run._settle_tree(True, lambda: False)
    oracle = Oracle(table, bound, kind, getattr(under, "own_credit", None))
    root = unfold(run, kind)
    best = oracle.value(table.start, 0, 1.0, 0.0)
    assert run.exhausted <= (best == -math.inf)
    for node in walk(root):
        if node.state == "failed":
            continue
        place = (node.state, node.level, *node.expected)
        if node.solved and not printed:
            assert node.value == pytest.approx(oracle.value(*place), abs=1e-9)
        for edge in node.edges:
            value = oracle.action_value(node.state, edge.label, *place[1:])
            if edge.mark == DELETED:
                assert value == -math.inf
            elif edge.mark == SOLVED:
                assert edge.value == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100)
@given(table=tables(), bound=bounds(), seed=st.integers(0, 1 << 40))
def test_one_step_is_worth_the_best_action_that_passes(
    kind: str, table: Table, bound: RiskBound, seed: int
) -> None:
    table = replace(table, horizon=1, calls={})
    run = start(table, bound, constraint(kind, table), seed=seed)
    sample(run, 100)
    rewards = [plan.reward for plan in enumerate_plans(table) if admits(kind, bound, plan)]
    assert (run.solved, run.exhausted) == (bool(rewards), not rewards)
    assert (run.samples, run.histories) == (len(rewards) > 0, 1)
    root = unfold(run, kind)
    assert root.value == pytest.approx(max(rewards, default=-math.inf), abs=1e-12)
    assert root.edges == ()
    assert all(calls == 1 for calls in table.calls.values())
    draft = run.plan(True, lambda: False)
    assert (draft is None) == (not rewards)
    if draft is not None:
        assert draft.reward == pytest.approx(root.value, abs=1e-12)
        assert draft.judgement.complete
    assert all(edge.mark == LIVE for edge in unfold(run, kind).edges)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100)
@given(
    table=tables(),
    bound=bounds(),
    samples=st.integers(1, 20),
    seed=st.integers(0, 1 << 40),
)
def test_policies_end_with_the_best_action_that_passes(
    kind: str, table: Table, bound: RiskBound, samples: int, seed: int
) -> None:
    under = constraint(kind, table)
    oracle = Oracle(table, bound, kind, getattr(under, "own_credit", None))
    run = start(table, bound, under, seed=seed)
    sample(run, samples)
    if run.exhausted:
        return
    assert run._settle_tree(True, lambda: False)
    if run.exhausted:
        return
    reached = [unfold(run, kind)]
    for node in reached:
        place = (node.state, node.level, *node.expected)
        taken = chosen_action(run, node)
        if taken is None:  # it has ended
            assert not table.table[node.state]
            assert oracle.value(*place) == 0
        elif node.level + 1 < table.horizon:
            reached.extend(taken.children)
        else:
            value = oracle.action_value(node.state, taken.label, *place[1:])
            assert value == taken.expected_reward == pytest.approx(oracle.value(*place))
            assert all(edge.mark == LIVE for edge in node.edges)
