"""State–step pairs: what sweeps over them find is what policies are worth."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.tables import Table, tables
from tests.helpers.unrolled import unroll_layers, unroll_levels
from vulcan.baselines.programs import unfold
from vulcan.domains import Bandit
from vulcan.exact.sweeps import Sweeps
from vulcan.model.reader import ModelReader
from vulcan.solvers.base import describe_origin

FREE = vulcan.Constant(1.0)


@given(tables(), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_a_sweep_is_worth_what_its_policy_is(model: Table, price: int) -> None:
    levels = unroll_levels(model)
    if not len(levels):
        return
    sweeps = Sweeps(levels)
    best = sweeps.find_best(1.0, price / 100)
    rewards, risks = sweeps.follow(1.0, price / 100)
    assert (rewards[0], risks[0]) == (best.reward, best.risk)
    problem = vulcan.Problem(model, FREE)
    decisions = best.decide()
    about = describe_origin(problem, ModelReader(model), None)
    policy = levels.graph.policy(decisions.rows, decisions.children, about)
    certificate = vulcan.certify(problem, policy)
    assert float(certificate.reward) == pytest.approx(best.reward, abs=1e-12)
    assert float(certificate.risk) == pytest.approx(best.risk, abs=1e-12)


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


def test_layers_of_the_bandit_count_states_and_histories() -> None:
    for horizon in (2, 3, 4):
        merged = unroll_layers(Bandit(horizon))
        tree = unfold(merged, lambda _: True)
        assert tree is not None
        # State–step pairs before the horizon, and histories that have not stopped.
        assert len(merged.nodes) == math.comb(horizon - 1 + 6, 6)
        assert len(tree.layers.nodes) == sum(6**k for k in range(horizon))
        for layers in (merged, tree.layers):
            nodes, edges, targets = layers
            owners = [k for k, count in enumerate(nodes["edge_count"]) for _ in range(count)]
            for edge in range(len(edges)):
                assert all(after == -1 or after > owners[edge] for after in layers.follow(edge))
            sums = [
                sum(targets["probability"][f : f + c])
                for f, c in edges[["first_target", "target_count"]].tolist()
            ]
            assert sums == pytest.approx(list(1 - edges["risk"]))
