"""Levels: what sweeps over them find is what the policies written out of them are worth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.tables import Table, tables
from tests.helpers.unrolled import unroll_levels
from vulcan import Outcome
from vulcan.domains import Bandit, Grid
from vulcan.graphs.layered_graph import count_bytes, write_layers
from vulcan.model.reader import ModelReader
from vulcan.sentinels import END
from vulcan.solvers.base import describe_origin
from vulcan.solvers.baselines.links import judge
from vulcan.solvers.layered.sweeps import Sweeps

FREE = vulcan.Constant(1.0)


@given(tables(), st.booleans(), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_a_sweep_is_worth_what_its_policy_is(model: Table, tree: bool, price: int) -> None:
    levels = unroll_levels(model, tree=tree)
    if not len(levels):
        return
    sweeps = Sweeps(levels)
    corner = sweeps.find_best(1.0, price / 100)
    choice = corner.plan.choice
    followed = sweeps.follow_weights(1.0, price / 100)
    assert (followed.rewards[0], followed.risks[0]) == (corner.reward, corner.risk)
    layers = write_layers(levels)
    assert judge(layers, layers.find_edges(levels, choice)) == (corner.reward, corner.risk)
    problem = vulcan.Problem(model, FREE)
    decisions = corner.plan.decide()
    about = describe_origin(problem, ModelReader(model), None)
    policy = levels.graph.policy(decisions.rows, decisions.children, about)
    certificate = vulcan.certify(problem, policy)
    assert float(certificate.reward) == pytest.approx(corner.reward, abs=1e-12)
    assert float(certificate.risk) == pytest.approx(corner.risk, abs=1e-12)


@given(tables())
@settings(max_examples=40, deadline=None)
def test_levels_are_the_pairs_that_some_policy_can_be_in(model: Table) -> None:
    levels = unroll_levels(model)
    expected, here = [], {model.initial_state()}
    for _ in range(model.horizon):
        here = {state for state in here if model.actions(state)}
        expected.append(here)
        here = {
            outcome.state
            for state in here
            for action in model.actions(state)
            for outcome in model.outcomes(state, action)
            if not outcome.fails and outcome.probability
        }
    first, state = levels.arrays.first, levels.arrays.state
    found = [
        {levels.graph.state_object(int(k)) for k in state[first[t] : first[t + 1]]}
        for t in range(len(first) - 1)
    ]
    assert found == [states for states in expected if states]


def test_levels_that_repeat_are_those_that_would_be_found() -> None:
    """On a chessboard every other level is the same, and nothing is looked for again."""
    line = {
        k: {
            "left": [Outcome(1.0, 0.0, max(0, k - 1))],
            "right": [Outcome(1.0, 1.0, min(5, k + 1))],
        }
        for k in range(6)
    }
    ring = {
        k: {"on": [Outcome(1.0, 1.0, (k + 1) % 4)], "back": [Outcome(1.0, 0.0, (k + 3) % 4)]}
        for k in range(4)
    }
    for table, sizes in ((line, [1, 2, 3, 4, 5, 6, 6, 6, 6]), (ring, [1, 2, 2, 2, 2, 2, 2])):
        levels = unroll_levels(Table(table, horizon=len(sizes)))
        assert np.diff(levels.arrays.first).tolist() == sizes
        assert Sweeps(levels).find_best(1.0, 0.0).reward == len(sizes)


def test_following_a_node_finds_the_nodes_of_the_next_level() -> None:
    levels = unroll_levels(Grid(horizon=8))
    layers = write_layers(levels)
    for node in range(0, len(levels), 7):
        first, count = layers.arrays.nodes[["first_edge", "edge_count"]][node].item()
        for edge in range(first, first + count):
            row = int(layers.arrays.edges["action"][edge])
            assert levels.follow(node, row) == layers.follow(edge)
    last = len(levels) - 1
    assert set(levels.follow(last, int(levels.arrays.first_action[levels.arrays.state[last]]))) == {
        END
    }


def test_the_layered_graph_takes_the_bytes_that_were_foretold() -> None:
    levels = unroll_levels(Bandit(5))
    assert count_bytes(levels) == sum(array.nbytes for array in write_layers(levels).arrays)
