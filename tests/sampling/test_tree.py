"""Trees after a search: true deletions, exact values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.constraints import KINDS, constraint
from tests.helpers.tables import Table, bounds, tables
from tests.helpers.trees import (
    TINY,
    TINY_BOUND,
    Node,
    sample,
    start,
    unfold,
    walk,
)
from tests.oracles.brute_force import admits, enumerate_plans
from tests.oracles.priced_trees import Place, grow
from vulcan import Constant, Outcome, RiskBound
from vulcan.domains import Bandit
from vulcan.kernels.paper_tree import DELETED, LIVE, SHARE, SOLVED
from vulcan.model.reader import ModelReader
from vulcan.numerics import NONE
from vulcan.sampling.price_search import PriceRun


@dataclass
class Oracle:
    """Forward search in plain recursion: the value of the best admissible way on."""

    table: Table
    bound: RiskBound
    kind: str
    own: Any = None

    def passes(self, survival: float, credit: float) -> bool:
        risk = 1 - survival
        if self.kind != "B":
            if survival <= 0:
                return False
            risk /= survival
        return risk <= self.bound(credit) + 1e-12

    def value(self, state: Any, level: int, survival: float, credit: float) -> float:
        actions = self.table.table.get(state, {})
        if level == self.table.horizon or not actions:
            return 0.0 if self.passes(survival, credit) else -math.inf
        return max(self.action_value(state, a, level, survival, credit) for a in actions)

    def action_value(
        self, state: Any, action: str, level: int, survival: float, credit: float
    ) -> float:
        outcomes = self.table.table[state][action]
        weight = self.table.discount**level
        safe = [o for o in outcomes if not o.fails]
        failing = [o for o in outcomes if o.fails]
        risk = math.fsum(o.probability for o in failing) if safe else 1.0
        mean = math.fsum(o.probability * o.reward for o in outcomes)
        after = survival * (1 - risk)

        def claim(outcome: Outcome | None) -> float:
            if self.kind == "B":
                return credit + weight * survival * mean
            if self.kind == "A":
                return credit + weight * mean
            if self.kind == "A own":
                return credit + weight * self.own(state, action)
            return credit + weight * outcome.reward

        if self.kind != "B":
            if not safe or any(self.bound(claim(o)) < -1e-12 for o in failing):
                return -math.inf
        elif not safe:
            return mean if self.passes(0.0, claim(None)) else -math.inf
        values = [self.value(o.state, level + 1, after, claim(o)) for o in safe]
        if -math.inf in values:
            return -math.inf
        return mean + self.table.discount * math.fsum(
            o.probability * value for o, value in zip(safe, values, strict=True)
        )


def sample_tree(problem: vulcan.Problem, samples: int, seed: int = 0) -> PriceRun:
    """Return a tree after so many samples, or when it is solved."""
    run = PriceRun(problem, ModelReader(problem.model), None, None, seed=seed, exploration=0.1)
    run.prepare()
    while run.can_sample(samples):
        run.advance(samples)
    return run


# Facts about any tree.


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
        assert run._finalise_tree(True, lambda: False)
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
@settings(max_examples=60)
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
    candidate = run.plan(True, lambda: False)
    assert (candidate is None) == (not rewards)
    if candidate is not None:
        assert candidate.reward == pytest.approx(root.value, abs=1e-12)
        assert candidate.judgement.complete
    assert all(edge.mark == LIVE for edge in unfold(run, kind).edges)


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


def require_kept(node: Node | None, choice: Any) -> None:
    """No action of a policy is deleted, as far as the tree has its histories."""
    if node is None or choice is None or not node.edges:
        return
    label, after = choice
    edge = next(edge for edge in node.edges if edge.label == label)
    assert edge.mark != DELETED
    for child, rest in zip(edge.children, after, strict=True):
        require_kept(child, rest)


CEILINGS = st.sampled_from([0.0, 0.01, 0.05, 0.2, 0.5]).map(vulcan.Constant)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(
    table=tables(),
    bound=bounds() | CEILINGS,
    merges=st.booleans(),
    completed=st.booleans(),
    samples=st.integers(1, 40),
    seed=st.integers(0, 1 << 40),
)
def test_no_admissible_policy_is_ever_refused(
    kind: str,
    table: Table,
    bound: RiskBound,
    merges: bool,
    completed: bool,
    samples: int,
    seed: int,
) -> None:
    # Early refusal included: under a constant bound the risk alone may be too large.
    model = replace(table, merges=merges, calls={})
    plans = [plan for plan in enumerate_plans(table) if admits(kind, bound, plan)]
    run = start(model, bound, constraint(kind, model), seed=seed)
    sample(run, samples)
    if completed and not run.exhausted:
        assert run._finalise_tree(True, lambda: False)
    root = unfold(run, kind)
    for plan in plans:
        require_kept(root, plan.choice)
    # To its end, the search finds the best policy, or that there is none.
    sample(run, 10_000)
    assert (run.solved, run.exhausted) == (bool(plans), not plans)
    if plans:
        best = max(plan.reward for plan in plans)
        assert unfold(run, kind).value == pytest.approx(best, abs=1e-9)


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
    assert result.status is vulcan.planning.Status.SOLVED
    assert result.safe
    assert any("valley" in state for state, _ in model.calls) == entered


def test_the_algorithm_as_printed_refuses_nothing_early() -> None:
    model = Table(LEAP, 5, start="cliff", merges=False)
    problem = vulcan.Problem(model, vulcan.Constant(0.15))
    vulcan.solve(problem, vulcan.LocalVulcan.paper(), samples=50)
    assert any("valley" in state for state, _ in model.calls)


ENOUGH = 100_000
HALF = vulcan.Constant(0.5)


def find_close(price: float, value: float) -> object:
    """Return what a value in single precision may be."""
    return pytest.approx(value, abs=2e-5 * (1 + abs(value) + price))


def require_exact(run: PriceRun, number: int, place: Place) -> None:
    """Require that the values of a history, and of all that follow, are those of the definition."""
    for price, value in zip(run.prices[0].tolist(), run.node_values[number], strict=True):
        assert float(value) == find_close(price, place.value(price))
    first = int(run.nodes["first_edge"][number])
    if first == NONE:  # it has one step left, or none
        return
    for k, action in enumerate(place.actions.values()):
        for price, value in zip(run.prices[0].tolist(), run.edge_values[first + k], strict=True):
            assert float(value) == find_close(price, action.value(price))
        child = int(run.edges["first_child"][first + k])
        for j, (_, after) in enumerate(action.after if child != NONE else ()):
            require_exact(run, child + j, after)


@settings(max_examples=60)
@given(table=tables(), bound=bounds(), merges=st.booleans(), seed=st.integers(0, 99))
def test_sampling_ends_with_exact_values(
    table: Table, bound: vulcan.RiskBound, merges: bool, seed: int
) -> None:
    model = replace(table, merges=merges, calls={})
    run = sample_tree(vulcan.Problem(model, bound), ENOUGH, seed)
    assert run.solved
    assert run.samples < ENOUGH
    require_exact(run, 0, grow(table))


@pytest.mark.parametrize("samples", [1, 30, 300, 3000])
def test_values_are_convex_and_fall_with_the_price(samples: int) -> None:
    run = sample_tree(vulcan.Problem(Bandit(7), HALF), samples)
    assert not run.solved
    known = run.node_values[: run.histories][run.nodes["visits"][: run.histories] > 0]
    slopes = np.diff(known.astype(float), axis=1) / np.diff(run.prices[0].astype(float))
    size = 1e-4 * (1 + np.abs(known).max())
    assert (slopes <= size).all()
    assert (np.diff(slopes, axis=1) >= -size).all()


def require_consistent(run: PriceRun) -> None:
    """Require that every value follows from those below it."""
    prices = run.prices[0].astype(float)
    for number in range(run.histories):
        node = run.nodes[number]
        if node["visits"] == 0 or node["first_edge"] == NONE:
            continue
        count = int(run.graph.states.array["action_count"][node["state"]])
        here = slice(int(node["first_edge"]), int(node["first_edge"]) + count)
        tried = run.edges["visits"][here] > 0
        best = run.edge_values[here][tried].max(axis=0)
        assert run.node_values[number].tolist() == best.tolist()
        for edge, values in zip(run.edges[here], run.edge_values[here], strict=True):
            below = slice(int(edge["first_child"]), int(edge["first_child"] + edge["children"]))
            if edge["visits"] == 0 or (run.nodes["visits"][below] == 0).any():
                continue
            worth = float(edge["reward"]) - prices * float(edge["risk"])
            if edge["first_child"] != NONE:
                worth = worth + run.nodes["chance"][below].astype(float) @ run.node_values[below]
            assert values == pytest.approx(worth, rel=1e-4, abs=1e-4 * (1 + prices.max()))


@pytest.mark.parametrize("samples", [30, 3000])
def test_moved_prices_leave_values_that_agree(samples: int) -> None:
    run = sample_tree(vulcan.Problem(Bandit(6), vulcan.Linear(0.002)), samples)
    require_consistent(run)
    before = run.node_values[: run.histories].copy()
    old = run.prices[0].astype(float)
    run.move_prices(old[1] * np.linspace(0.5, 3.0, len(old)))
    assert not np.allclose(before, run.node_values[: run.histories])
    require_consistent(run)
    moved = run.node_values[: run.histories].copy()
    run.move_prices(run.prices[0].astype(float))
    assert run.node_values[: run.histories] == pytest.approx(moved, rel=1e-5, abs=1e-5)


@settings(max_examples=60)
@given(table=tables(), shares=st.lists(st.floats(0, 1), min_size=8, max_size=8))
def test_moved_prices_leave_upper_bounds_of_what_is_solved(
    table: Table, shares: list[float]
) -> None:
    run = sample_tree(vulcan.Problem(table, HALF), ENOUGH)
    old, root = run.prices[0].astype(float), grow(table)
    run.move_prices(old[0] + np.array(sorted(shares)) * (old[-1] - old[0]))
    for price, value in zip(run.prices[0].tolist(), run.node_values[0].tolist(), strict=True):
        exact = root.value(price)
        left = int(np.clip(np.searchsorted(old, price, side="right") - 1, 0, len(old) - 2))
        low, high = old[left], old[left + 1]
        share = (price - low) / (high - low)
        chord = (1 - share) * root.value(low) + share * root.value(high)
        room = 2e-5 * (1 + abs(exact) + price)
        assert exact - room <= value <= chord + room
