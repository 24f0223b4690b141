"""What tree search leaves in the tree: by hand, as plain Python does, and facts about any tree."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.constraints import KINDS, constraint
from tests.helpers.tables import Table, bounds, tables
from tests.helpers.trees import (
    TINY,
    TINY_BOUND,
    Edge,
    Node,
    as_document,
    chosen_action,
    sample,
    start,
    unfold,
    walk,
)
from tests.oracles.admissible_values import Oracle
from tests.oracles.plain_search import PlainSearch
from vulcan import Outcome, RiskBound
from vulcan.kernels.tree import DELETED, LIVE, SOLVED


@pytest.mark.parametrize("poor", [False, True])
def test_golden_tree_by_hand(poor: bool) -> None:
    # Under B with Δ = 0.05 x. "safe" then anything risky: risk 0.2 against
    # Δ(1.5 + 2.8) = 0.215 in state 1, Δ(1.5 + 0.8) = 0.115 in state 2: only the first passes.
    # "risky" first (credit 3.0, survival 0.9): then "safe" has risk 0.1 against
    # Δ(3.0 + 0.9 * 0.75) = 0.18 and Δ(3.0 + 0.9 * 1.5) = 0.2175, both pass; then "risky" has risk
    # 0.28 against Δ(3.0 + 0.9 * 2.8) = 0.276 and Δ(3.0 + 0.9 * 0.8) = 0.186, both refused.
    #
    # "safe" earns 0.75 in state 1, so that "risky" with 2.8 is best wherever it passes. In state 2
    # it earns 1.5, more than "risky" with 0.8; if poor, 0.075, and "risky" is refused all the same:
    # Δ(3.0 + 0.9 * 0.075) = 0.153 still lets "safe" pass.
    table = {state: dict(actions) for state, actions in TINY.table.items()}
    if poor:
        table[2]["safe"] = [Outcome(0.25, 0.0, 0), Outcome(0.75, 0.1, 0)]
    rest = 0.075 if poor else 1.5
    run = start(replace(TINY, table=table), TINY_BOUND, seed=7)
    sample(run, 1000)
    assert run.solved
    assert run.samples == 4  # one for each history of one step
    root = unfold(run)
    safe, risky = root.edges
    for edge, values in ((safe, [2.8, rest]), (risky, [0.75, rest])):
        assert (edge.mark, edge.visits) == (SOLVED, 2)
        assert [child.value for child in edge.children] == pytest.approx(values)
        for child in edge.children:
            assert (child.solved, child.visits, child.edges) == (True, 1, ())
    assert safe.value == pytest.approx(1.5 + 0.5 * 2.8 + 0.5 * rest)
    assert risky.value == pytest.approx(3.0 + 0.6 * 0.75 + 0.3 * rest)
    assert root.value == risky.value
    assert root.solved

    # A policy gives the histories that it reaches their actions, and takes the best that passes.
    assert run._settle_tree(True, lambda: False)
    settled = unfold(run)
    safe, risky = settled.edges
    assert chosen_action(run, settled) is risky
    for child in risky.children:
        assert chosen_action(run, child).label == "safe"
        assert [edge.mark for edge in child.edges] == [LIVE, LIVE]
        assert (child.solved, child.visits) == (True, 1)
    assert all(not child.edges for child in safe.children)


@pytest.mark.parametrize("horizon", [2, 3, 4])
def test_plain_search_finds_the_same_trees(horizon: int) -> None:
    table = replace(TINY, horizon=horizon, discount=1.0 if horizon < 4 else 0.9)
    solved = deleted = running = 0
    for seed in range(40):
        run = start(table, TINY_BOUND, seed=seed)
        plain = PlainSearch(table, TINY_BOUND, seed)
        for samples in (1, 2, 3, 5, 10, 20, 40):
            sample(run, samples)
            plain.take(samples)
            root = unfold(run)
            assert as_document(root) == as_document(plain.root)
            assert run.samples == plain.samples
            solved += run.solved
            running += not run.solved
            deleted += any(e.mark == DELETED for node in walk(root) for e in node.edges)
    assert running
    assert (solved > 0) == (horizon < 4)
    assert (deleted > 0) == (horizon > 2)


# Facts about any tree.


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(
    table=tables(),
    bound=bounds(),
    merges=st.booleans(),
    samples=st.integers(1, 60),
    seed=st.integers(0, 1 << 40),
)
def test_every_tree_adds_up(
    kind: str,
    printed: bool,
    table: Table,
    bound: RiskBound,
    merges: bool,
    samples: int,
    seed: int,
) -> None:
    model = replace(table, merges=merges, calls={})
    under = constraint(kind, model)
    oracle = Oracle(table, bound, kind, getattr(constraint(kind, table), "own_credit", None))
    run = start(model, bound, under, seed=seed, as_printed=printed)
    sample(run, samples)
    root = unfold(run, kind)
    assert len(list(walk(root))) == run.histories
    if not run.exhausted and not run.solved:
        assert run.samples == samples
    for node in walk(root):
        if not printed and node.level + 1 == table.horizon:
            require_last_step(node, oracle, merges)
        else:
            require_sums(node)
        if node.state == "failed":
            continue
        survival, credit = node.expected
        assert node.survival == pytest.approx(survival, abs=1e-12)
        assert node.credit == pytest.approx(credit, abs=1e-12)
        for edge in node.edges:
            require_backup(edge, table, printed)


def require_last_step(node: Node, oracle: Oracle, merges: bool) -> None:
    """A history of one step is solved when it is met, without actions in the tree, or refused."""
    best = oracle.value(node.state if merges else node.state[-1], node.level, *node.expected)
    assert node.edges == ()
    assert node.solved == (best > -math.inf)
    assert node.visits == node.solved
    assert node.value == pytest.approx(best, abs=1e-12)


def require_sums(node: Node) -> None:
    """A history is the sum, the maximum and the conjunction of its remaining actions."""
    if not node.edges:
        assert node.value in (0.0, -math.inf)
        return
    left = [edge for edge in node.edges if edge.mark != DELETED]
    assert node.visits == sum(edge.visits for edge in left)
    tried = [edge.value for edge in left if edge.visits]
    assert node.value == max(tried, default=-math.inf)
    assert node.solved == (bool(left) and all(edge.mark == SOLVED for edge in left))


def require_backup(edge: Edge, table: Table, printed: bool) -> None:
    """The value of an action follows from the histories after it."""
    if edge.mark == DELETED or not edge.visits:
        return
    seen = [k for k, child in enumerate(edge.children) if child is not None and child.visits]
    if not seen:  # its histories end with it, and were tested at once
        assert edge.mark == (LIVE if printed else SOLVED)
        assert edge.value == edge.expected_reward
        return
    if printed:
        counts = [edge.children[k].visits for k in seen]
        assert edge.visits == sum(counts)
        total = math.fsum(
            count * (edge.rewards[k] + table.discount * edge.children[k].value)
            for k, count in zip(seen, counts, strict=True)
        )
        assert edge.value == pytest.approx(total / sum(counts), abs=1e-9)
        assert edge.mark == LIVE
        return
    mass = math.fsum(edge.probabilities[k] for k in seen)
    mean = math.fsum(edge.probabilities[k] * edge.children[k].value for k in seen) / mass
    expected = edge.expected_reward + table.discount * (1 - edge.risk) * mean
    assert edge.value == pytest.approx(expected, abs=1e-9)
    whole = len(seen) == len(edge.children) and all(edge.children[k].solved for k in seen)
    assert (edge.mark == SOLVED) == whole
