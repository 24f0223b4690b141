"""Which action a sample tries next: ends only where they win, and a share for every action."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.tables import Table
from tests.helpers.trees import TINY, TINY_BOUND, Node, sample, start, unfold, walk
from vulcan import Constant, Outcome
from vulcan.kernels.selection import SHARE
from vulcan.kernels.tree import LIVE

HORIZON = 6


def make_chain(reward: float, paid: float, merges: bool) -> Table:
    """Return a mission that goes on for a reward a step, or ends for pay for all steps left."""
    table: dict = {"over": {}}
    for step in range(HORIZON):
        rows = {"end": [Outcome(1.0, paid * (HORIZON - step), "over")]}
        for name in ("left", "right"):
            rows[name] = [Outcome(0.5, reward, (step + 1, k)) for k in range(2)]
        for k in range(2):
            table[step, k] = rows
    return Table(table, horizon=HORIZON, start=(0, 0), merges=merges)


def list_first_tries(root: Node, later_than: int) -> Iterator[str]:
    """List the actions taken in histories that were sampled once, but not in the first ones."""
    for node in walk(root):
        if node.visits == 1 and node.edges and node.number > later_than:
            yield from (edge.label for edge in node.edges if edge.visits)


@pytest.mark.parametrize("merges", [False, True])
@pytest.mark.parametrize(
    ("reward", "paid", "ends"),
    [(0.5, 0.25, False), (0.2, 0.25, True), (-1.0, 0.0, True), (-1.0, -2.0, False)],
)
def test_greedy_ends_only_where_going_on_earned_less(
    reward: float, paid: float, ends: bool, merges: bool
) -> None:
    run = start(
        make_chain(reward, paid, merges), Constant(0.0), default_policy="greedy", exploration=0.1
    )
    sample(run, 60)
    early = run.histories // 2
    tried = set(list_first_tries(unfold(run), early))
    assert tried == ({"end"} if ends else {"left"})


@pytest.mark.parametrize("default_policy", ["random", "greedy"])
def test_every_action_gets_its_share(default_policy: str) -> None:
    for printed in (False, True):
        run = start(
            Table(TINY.table, horizon=6, start=TINY.start),
            TINY_BOUND,
            exploration=0.0,
            default_policy=default_policy,
            as_printed=printed,
        )
        sample(run, 3000)
        short = [
            edge
            for node in walk(unfold(run))
            for edge in node.edges
            if edge.mark == LIVE and edge.visits + 1 < SHARE * node.visits / len(node.edges)
        ]
        assert bool(short) == printed
