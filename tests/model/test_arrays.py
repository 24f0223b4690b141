"""Models given as arrays: worth what the model is that they were made of; errors name rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.tables import Table, bounds, tables
from vulcan import Outcome
from vulcan.domains import Grid
from vulcan.errors import ModelError
from vulcan.graph.states import ArrayGraph, open_graph
from vulcan.model import ArrayModel
from vulcan.model.reader import ModelReader


def to_rows(model: Any, states: list[Any], actions: list[str]) -> list[tuple[float, ...]]:
    """Return the rows of a model, its states numbered in a given order."""
    rows = []
    for number, state in enumerate(states):
        for action in model.actions(state):
            for outcome in model.outcomes(state, action):
                target = -1 if outcome.fails else states.index(outcome.state)
                place = (number, actions.index(str(action)), target)
                rows.append((*place, outcome.probability, outcome.reward))
    return rows


def make(rows: list[tuple[Any, ...]], **options: Any) -> ArrayModel:
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return ArrayModel(*columns, **({"horizon": 3} | options))


def strip_labels(model: Table) -> Table:
    table = {
        state: {
            name: [Outcome(o.probability, o.reward, o.state) for o in outcomes]
            for name, outcomes in actions.items()
        }
        for state, actions in model.table.items()
    }
    return Table(table, model.horizon, model.discount)


@given(tables(), bounds())
@settings(max_examples=40, deadline=None)
def test_arrays_are_worth_what_the_table_is(model: Table, bound: vulcan.RiskBound) -> None:
    model = strip_labels(model)
    states = sorted(model.table)
    rows = to_rows(model, states, ["a", "b", "c"])
    if not rows:
        return
    order = [states[-1], *states[:-1]]  # the start is not row 0
    rows = to_rows(model, order, ["a", "b", "c"])
    arrays = make(
        rows,
        horizon=model.horizon,
        discount=model.discount,
        start=order.index(0),
        action_labels=["a", "b", "c"],
    )
    plain, given_ = (
        vulcan.solve(vulcan.Problem(m, bound), vulcan.Pareto()) for m in (model, arrays)
    )
    assert plain.status is given_.status
    if plain.certificate is not None:
        assert given_.certificate.reward == pytest.approx(plain.certificate.reward, abs=1e-12)
        assert given_.certificate.risk <= float(given_.certificate.allowed) + 1e-12


def test_names_stand_for_numbers() -> None:
    rows = [(0, 0, 1, 0.5, 1.0), (0, 0, -1, 0.5, 0.0), (1, 1, 0, 1.0, 0.0)]
    model = make(rows, state_names=["sea", (1, 2)], action_names=["go", 7], start=[0, 1])
    assert model.initial_state() == (1, 2)
    assert model.actions((1, 2)) == [7]
    assert model.outcomes("sea", "go") == [Outcome(0.5, 1.0, (1, 2)), Outcome.failure(0.5)]
    graph = open_graph(ModelReader(model))
    assert [graph.state_object(state) for state in (0, 1)] == [(1, 2), "sea"]
    assert graph.action_labels(0) == ["7"]
    other = make(rows, state_names=["sea", "air"], action_names=["go", 7], start=[0, 1])
    assert other.fingerprint != model.fingerprint


def test_nothing_is_evaluated_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = Grid(horizon=20)
    reader = ModelReader(grid)
    graph = open_graph(reader)
    states = [grid.initial_state()]
    for state in states:
        for action in grid.actions(state):
            reached = [o.state for o in grid.outcomes(state, action) if not o.fails]
            states += [s for s in dict.fromkeys(reached) if s not in states]
    names = [str(action) for action in grid.actions(states[0])]
    model = make(to_rows(grid, states, names), horizon=20, action_labels=names)
    assert isinstance(open_graph(ModelReader(model)), ArrayGraph)
    assert not isinstance(graph, ArrayGraph)
    monkeypatch.setattr(vulcan.graph.states.StateGraph, "expand_all", None)
    arrays = vulcan.solve(vulcan.Problem(model, 0.05), vulcan.Lagrangian())
    monkeypatch.undo()
    plain = vulcan.solve(vulcan.Problem(grid, 0.05), vulcan.Lagrangian())
    assert arrays.upper_bound == pytest.approx(plain.upper_bound, rel=1e-12)
    assert arrays.safe
    assert arrays.policy.labels[arrays.policy.action[0]] in names


def test_rows_that_look_the_same_are_added_up() -> None:
    rows = [(0, 0, 1, 0.25, 1.0), (0, 0, 1, 0.25, 1.0), (0, 0, 1, 0.25, 2.0), (0, 0, -1, 0.25, 0.0)]
    model = make(rows)
    assert model.outcomes(0, 0) == [
        Outcome(0.5, 1.0, 1),
        Outcome(0.25, 2.0, 1),
        Outcome.failure(0.25),
    ]
    assert model.actions(1) == []


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([(0, 0, 1, 0.5, 0.0)], {}, r"probabilities sum to 0.5, not to 1 \(state 0, action 0\)"),
        ([(0, 0, 1, 1.5, 0.0)], {}, "probability of next state 1 must be from 0 to 1, not 1.5"),
        ([(0, 0, -2, 1.0, 0.0)], {}, "target of row 0 must be at least -1, not -2"),
        ([(0, 0, 1, 1.0, np.inf)], {}, "reward of next state 1 must be at most"),
        ([(0, 0, 1, 1.0, 0.0)], {"start": -1}, "start must be the number of a state, not -1"),
        ([(0, 0, 1, 1.0, 0.0)], {"start": 0.5}, "start must be the number of a state, not 0.5"),
        ([(0, 0, 1, 1.0, 0.0)], {"start": [0.5, 0.25]}, "start sums to 0.75, not to 1"),
        ([(0, 0, 1, 1.0, 0.0)], {"start": [2.0, -1.0]}, "not 2.0 for state 0"),
        ([(0, 0, 1, 1.0, 0.0)], {"start": [[1.0]]}, "a state, or a probability for each"),
        ([(0, 0, 1, 1.0, 0.0)], {"state_names": ["a", "a"]}, "state_names must be 2 different"),
        ([(0, 0, 1, 1.0, 0.0)], {"action_names": []}, "action_names must be 1 different"),
        (
            [(0, 1, 1, 1.0, 0.0)],
            {"action_labels": ["go"]},
            "action_labels must be 2 different names",
        ),
    ],
)
def test_what_breaks_a_rule_is_named(rows, options, message):
    with pytest.raises(ModelError, match=message):
        make(rows, **options)


def test_sums_of_a_little_more_than_one_are_certified() -> None:
    model = make([(0, 0, -1, 0.5, 1.0), (0, 0, -1, 0.5000000000001, 1.0)], horizon=1)
    assert vulcan.solve(vulcan.Problem(model, 1.0)).safe


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ModelError, match="columns must be of one length above 0, not state 2"):
        ArrayModel([0, 0], [0], [1], [1.0], horizon=1)
    with pytest.raises(ModelError, match="state must be a flat array of whole numbers"):
        ArrayModel([0.5], [0], [1], [1.0], horizon=1)


def test_a_model_keeps_its_rows_when_the_given_arrays_change() -> None:
    columns = [np.array(c) for c in ([0, 0], [0, 0], [1, 2], [0.5, 0.5], [1.0, 2.0])]
    model = ArrayModel(*columns, horizon=1)
    before = model.outcomes(0, 0)
    for column in columns:
        column[:] = 0
    assert model.outcomes(0, 0) == before
