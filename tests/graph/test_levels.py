"""State–step pairs: those that some policy can be in."""

from __future__ import annotations

from hypothesis import given, settings

from tests.helpers.tables import Table, tables
from tests.helpers.unrolled import unroll_levels


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
