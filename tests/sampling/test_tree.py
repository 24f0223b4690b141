"""Trees after a search: what is refused early, and that values are exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.local_tests import constraint
from tests.helpers.tables import Table, bounds, tables
from tests.oracles.priced_trees import Place, grow
from vulcan import Outcome
from vulcan.domains import Bandit
from vulcan.model.reader import ModelReader
from vulcan.numerics import NONE
from vulcan.sampling.price_search import PriceRun


def sample_tree(problem: vulcan.Problem, samples: int, seed: int = 0) -> PriceRun:
    """Return a tree after a number of samples, or when it is solved."""
    run = PriceRun(problem, ModelReader(problem.model), None, None, seed=seed, exploration=0.1)
    run.prepare()
    while run.can_sample(samples):
        run.advance(samples)
    return run


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
        (vulcan.Linear(0.001), True),  # the reward of the valley is unknown
        (vulcan.Constant(0.25), True),
    ],
)
@pytest.mark.parametrize("kind", ["A", "A received", "B"])
def test_more_risk_than_the_bound_ever_allows_is_refused_at_once(kind, bound, entered):
    # Nothing bounds what the valley earns; but no reward justifies the leap where Δ has a ceiling.
    model = Table(LEAP, 5, start="cliff", merges=False)
    solver = vulcan.LocalVulcan(local_test=constraint(kind, model))
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
def test_sampling_ends_with_exact_values(table, bound, merges, seed):
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
def test_moved_prices_leave_upper_bounds_of_what_is_solved(table, shares):
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
