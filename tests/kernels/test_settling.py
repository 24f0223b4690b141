"""How a policy is settled where nothing was sampled, and what that takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

import vulcan
from tests.helpers.small_cases import MERGED
from tests.helpers.trees import (
    SHORT,
    TINY_BOUND,
    as_document,
    chosen_action,
    sample,
    start,
    unfold,
    walk,
)
from vulcan.kernels.tree import DELETED


def test_what_was_never_sampled_follows_expected_rewards() -> None:
    run = start(SHORT, vulcan.Constant(1.0))
    assert run._settle_tree(True, lambda: False)
    # "risky" earns more than "safe", but for state 2: 3.0 and 1.5, 2.8 and 0.75, 0.8 and 1.5.
    best = {0: "risky", 1: "risky", 2: "safe"}
    reached = [unfold(run)]
    for node in reached:
        taken = chosen_action(run, node)
        assert taken.label == best[node.state]
        if node.level < 2:
            reached.extend(taken.children)
    assert run.walked == len(reached) == 1 + 2 + 4
    assert len(list(walk(reached[0]))) == 7  # and nothing else was looked at


def test_settling_takes_what_was_sampled_first() -> None:
    run = start(SHORT, vulcan.Constant(1.0), seed=3)
    sample(run, 1)
    (tried,) = [edge for edge in unfold(run).edges if edge.visits]
    assert run._settle_tree(True, lambda: False)
    assert chosen_action(run, unfold(run)).label == tried.label


@pytest.mark.parametrize("merges", [False, True])
def test_a_settled_tree_adds_up(merges: bool) -> None:
    changed = 0
    for seed in range(10):
        run = start(replace(MERGED, merges=merges), TINY_BOUND, seed=seed)
        sample(run, 6)
        before = as_document(unfold(run))
        assert run._settle_tree(True, lambda: False)
        root = unfold(run)
        changed += before != as_document(root)
        for node in walk(root):
            tried = [edge for edge in node.edges if edge.mark != DELETED and edge.visits]
            if tried:
                assert node.value == max(edge.value for edge in tried)
                assert node.visits == sum(edge.visits for edge in tried)
    assert changed
