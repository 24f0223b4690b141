"""Costs and events in arrays, tables, files, environments and models of model checkers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vulcan
from tests.helpers.mission_files import SMALL
from tests.oracles.several import RandomModel
from vulcan import Outcome
from vulcan.errors import ModelError, OptionError
from vulcan.formats import from_arrays, from_gymnasium, from_prism, from_table, open_model
from vulcan.model import ArrayModel, Start

ROWS: dict[str, Any] = {
    "state": [0, 0, 0, 0],
    "action": [0, 0, 0, 1],
    "target": [0, 0, -1, 0],
    "probability": [0.25, 0.5, 0.25, 1.0],
    "reward": [2.0, 2.0, 0.0, 1.0],
    "horizon": 2,
}


class Plain:
    """A model without arrays that answers as another one does."""

    def __init__(self, model: ArrayModel) -> None:
        self.horizon, self.discount = model.horizon, model.discount
        self.initial_state, self.actions = model.initial_state, model.actions
        self.outcomes, self.action_label = model.outcomes, model.action_label


def test_rows_have_costs_and_events() -> None:
    model = ArrayModel(
        **ROWS, costs={"fuel": [1, 3, 0.5, 0], "dose": 0.25}, events=["", "late", "crash", None]
    )
    assert model.outcomes(0, 0) == [
        Outcome(0.25, 2.0, 0, costs=(("dose", 0.25), ("fuel", 1.0))),
        Outcome(0.5, 2.0, 0, costs=(("dose", 0.25), ("fuel", 3.0)), event="late"),
        Outcome.failure(0.25, costs=(("dose", 0.25), ("fuel", 0.5)), event="crash"),
    ]
    assert model.outcomes(0, 1)[0].event is None


def test_rows_are_added_up_only_if_costs_and_events_agree() -> None:
    (both,) = ArrayModel(
        [0, 0], [0, 0], [1, 1], [0.5, 0.5], horizon=1, costs={"fuel": [2, 2]}, events=["a", "a"]
    ).outcomes(0, 0)
    assert both == Outcome(1.0, 0.0, 1, costs=(("fuel", 2.0),), event="a")
    for charges in ({"costs": {"fuel": [1, 2]}}, {"events": ["a", "b"]}):
        assert len(ArrayModel([0, 0], [0, 0], [1, 1], [0.5] * 2, horizon=1, **charges).target) == 2


def test_the_fingerprint_knows_costs_and_events() -> None:
    columns: list[dict[str, Any]] = [
        {},
        {"costs": {"fuel": 1.0}},
        {"costs": {"fuel": 2.0}},
        {"costs": {"gas": 1.0}},
        {"events": ["", "late", "", ""]},
        {"events": ["", "lost", "", ""]},
    ]
    assert len({ArrayModel(**ROWS, **charges).fingerprint for charges in columns}) == 6


@pytest.mark.parametrize(
    ("charges", "message"),
    [
        ({"costs": {"fuel": [1, 2]}}, "columns must be of one length .* cost fuel 2"),
        ({"costs": {"fuel": [1, 2, np.nan, 4]}}, "the cost fuel of failure must be .* not nan"),
        ({"costs": {"fuel": [1, np.inf, 3, 4]}}, r"cost fuel of next state 0 .* not inf \(state 0"),
        ({"costs": {"fuel": ["a", "b", "c", "d"]}}, "cost fuel must be numbers: not texts"),
        ({"costs": [1, 2, 3, 4]}, r"costs must be a dictionary of names and arrays, not \[1, 2"),
        ({"costs": {1: 2.0}}, "costs must be a dictionary of names"),
        ({"events": ["a"]}, "columns must be of one length .* event 1"),
        ({"events": [0, 1, 0, 0]}, 'events must be texts, "" for none, not'),
        ({"events": ["a", np.nan, "", ""]}, "events must be texts"),
    ],
)
def test_bad_columns_are_named(charges: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        ArrayModel(**ROWS, **charges)


def list_rows(model: RandomModel) -> ArrayModel:
    """Return a model with costs and events as arrays."""
    listed = [
        (state, number, outcome)
        for state in range(3)
        for number, action in enumerate(model.actions(state))
        for outcome in model.outcomes(state, action)
    ]
    states, actions, outcomes = zip(*listed, strict=True)
    return ArrayModel(
        states,
        actions,
        [-1 if o.fails else o.state for o in outcomes],
        [float(o.probability) for o in outcomes],
        [float(o.reward) for o in outcomes],
        horizon=model.horizon,
        discount=float(model.discount),
        costs={
            name: [float(dict(o.costs).get(name, 0)) for o in outcomes] for name in ("fuel", "dose")
        },
        events=[o.event for o in outcomes],
        start=[0.5, 0.5, 0.0],
    )


@pytest.mark.parametrize("seed", range(12))
def test_arrays_are_solved_as_the_same_outcomes_are(seed: int) -> None:
    """Also where the mission goes on after an event, and the state has to know of it."""
    arrays = list_rows(RandomModel(seed))
    assert isinstance(arrays.initial_state(), Start)
    limits = [["fuel <= 3"], ["risk(crash) <= 0.15", "dose <= 1"], ["risk(late) <= 0.3"]][seed % 3]
    limits = [*limits, *(["risk ahead <= 0.4"] if seed % 2 else [])]
    found = []
    for model in (arrays, Plain(arrays)):
        result = vulcan.solve(vulcan.Problem(model, "0.5", constraints=limits), gap=0)
        numbers = [result.upper_bound]
        if result.safe:
            numbers += [
                result.certificate.reward,
                *(x.value for x in result.certificate.constraints),
            ]
        found.append(numbers)
    assert found[0] == pytest.approx(found[1], abs=1e-9)


STEPS = np.array([[[0, 1.0, 0], [0, 1, 0], [0, 0, 1]], [[0, 0.75, 0.25], [0, 1, 0], [0, 0, 1]]])
# State 2 is failure.


@pytest.mark.parametrize(
    ("costs", "events", "expected"),
    [
        ({"fuel": 2.0}, ["", "there", "lost"], [(2.0, "there"), (2.0, "lost")]),
        ({"fuel": [3, 0, 0]}, ["", "", "lost"], [(3.0, None), (3.0, "lost")]),
        ({"fuel": [[1, 4], [0, 0], [0, 0]]}, None, [(4.0, None), (4.0, None)]),
        ({"fuel": np.arange(18).reshape(2, 3, 3)}, None, [(10.0, None), (11.0, None)]),
        ({}, np.where(np.arange(18).reshape(2, 3, 3) == 10, "ten", ""), [(0, "ten"), (0, None)]),
    ],
)
def test_arrays_of_any_form_have_costs_and_events(costs, events, expected):
    model = from_arrays(STEPS, horizon=2, failure=[2], terminal=[1], costs=costs, events=events)
    leaps = model.outcomes(0, 1)
    assert [(dict(o.costs).get("fuel", 0), o.event) for o in leaps] == expected


def test_rows_in_a_file_have_costs_events_and_constraints(tmp_path: Path) -> None:
    path = tmp_path / "steps.npz"
    rows = [[0, 0, 1, 1.0, 1], [0, 1, 1, 0.75, 4], [0, 1, -1, 0.25, 0]]
    arrays: dict[str, Any] = {
        "transitions": rows,
        "horizon": 1,
        "cost_fuel": [1, 2, 4],
        "events": ["", "there", "lost"],
        "bound": "0.5",
        "constraints": ["fuel <= 2", "risk(lost) <= 0.3"],
    }
    np.savez(path, **arrays)
    opened = open_model(str(path))
    assert opened == (opened.model, "0.5")
    assert opened.constraints == ("fuel <= 2.0", "risk(lost) <= 0.3")
    problem = vulcan.Problem(opened.model, opened.bound, constraints=opened.constraints)
    assert vulcan.solve(problem).certificate.reward == 1.0
    for name, wrong, message in (
        (
            "cost_fuel",
            [1, 2],
            r"costs\['fuel'\] must be one number, or an array \[3\], not .* \[2\]",
        ),
        ("cost_fuel", ["a", "b", "c"], r"costs\['fuel'\] must be numbers"),
        ("events", [["a"]], r"events must be an array \[3\], not of shape \[1, 1\]"),
        ("events", [1, 2, 3], "events must be texts"),
        ("constraints", ["fuel"], "constraints: a constraint is "),
        ("costs", [1, 2, 3], "has an array 'costs'; allowed are"),
    ):
        np.savez(path, **arrays | {name: wrong})
        with pytest.raises(OptionError, match=rf"steps\.npz: {message}"):
            open_model(str(path))


TABLE: dict[str, Any] = {
    "shore": {
        "swim": [
            [0.75, "island", 3, {"costs": {"fuel": 2}, "event": "late"}],
            [0.25, "FAILURE", 0, {"event": "lost"}],
        ],
        "wait": [[1, "shore", 0, {"costs": {"time": 1}}]],
    },
    "island": {},
}


def test_a_table_has_costs_and_events() -> None:
    model = from_table(TABLE, horizon=1)
    late, lost = model.outcomes("shore", "swim")
    assert (dict(late.costs), late.event) == ({"fuel": 2.0, "time": 0.0}, "late")
    assert (lost.fails, dict(lost.costs)["fuel"], lost.event) == (True, 0.0, "lost")
    (wait,) = model.outcomes("shore", "wait")
    assert (dict(wait.costs)["time"], wait.event) == (1.0, None)


@pytest.mark.parametrize(
    "charges",
    [
        "late",
        ["fuel", 2],
        {"cost": {"fuel": 2}},
        {"costs": 2},
        {"costs": {"fuel": "2"}},
        {"costs": {"fuel": float("nan")}},
        {"costs": {1: 2}},
    ],
)
def test_bad_charges_of_a_table_are_named(charges: Any) -> None:
    table = {"shore": {"swim": [[1, "shore", 0, charges]]}}
    with pytest.raises(
        ModelError, match=r"outcome 0 must end with .*, not .*'shore', action 'swim'"
    ):
        from_table(table, horizon=1)
    table["shore"]["swim"][0][3] = {"event": 7}
    with pytest.raises(ModelError, match="events must be texts"):
        from_table(table, horizon=1)


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ("fuel <= 5", "constraints must be a list"),
        (["fuel < 5"], "a constraint is .* not 'fuel < 5'"),
        ([5], "a constraint is .* not 5"),
        (["fuel <= y"], "unknown name 'y'"),
        (["fuel <= 5", "fuel <= 6"], "two constraints limit 'fuel'"),
    ],
)
def test_bad_constraints_of_a_file_are_named(tmp_path, constraints, message):
    table, mission = tmp_path / "lake.json", tmp_path / "mission.toml"
    table.write_text(json.dumps({"states": TABLE, "horizon": 1, "constraints": constraints}))
    mission.write_text(f"constraints = {json.dumps(constraints)}\n{SMALL}")
    for path in (table, mission):
        with pytest.raises(OptionError, match=rf"{path.name}: constraints: {message}"):
            open_model(str(path))


def test_a_mission_may_have_constraints(tmp_path: Path) -> None:
    path = tmp_path / "mission.toml"
    path.write_text(f'constraints = ["risk ahead <= 0.01"]\n{SMALL}')
    opened = open_model(str(path))
    assert (opened.bound, opened.constraints) == ("0.001*x", ("risk ahead <= 0.01",))


def test_steps_of_an_environment_have_costs_and_events() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    lake = gymnasium.make("FrozenLake-v1", desc=["SF", "HG"], is_slippery=True)
    model = from_gymnasium(
        lake,
        horizon=9,
        costs={"steps": lambda _: 1, "wins": [3], "idle": "reward <= 0"},
        events={"hole": [2], "back": lambda step: step.next_state < step.state},
    )
    found = {(o.state, o.event): dict(o.costs) for o in model.outcomes(1, 1)}
    assert found[0, "back"] == {"steps": 1.0, "wins": 0.0, "idle": 1.0}
    assert found[3, None] == {"steps": 1.0, "wins": 1.0, "idle": 0.0}
    holes = [o for o in model.outcomes(0, 0) if o.fails]
    assert [o.event for o in holes] == ["hole"]
    policy = vulcan.solve(vulcan.Problem(model, constraints=["steps <= 6"])).policy
    mission = policy.bind(model).start()
    mission.measure((1, 0.0, False))
    assert mission.state == 1
    for options, message in (
        ({"events": {"hole": [9]}}, "'hole' has 9; states are 0 to 3"),
        ({"costs": {"steps": "all"}}, "'steps' must be 'reward <= -50', a list of states"),
        ({"events": {"a": [1], "b": [1]}}, "an outcome has one event, not a and b"),
    ):
        with pytest.raises(OptionError, match=message):
            from_gymnasium(lake, horizon=9, **options)
    with pytest.raises(ModelError, match=r"the cost steps of .* must be .* not nan"):
        from_gymnasium(lake, horizon=9, costs={"steps": lambda _: np.nan})


ROVER = """mdp
module rover
    x : [0..3] init 0;
    late : bool init false;
    crashed : bool init false;
    [run]  !crashed & x < 3 -> 0.75 : (x' = x + 1) + 0.125 : (x' = x + 1) & (late' = true)
                             + 0.125 : (crashed' = true);
    [walk] !crashed & x < 3 -> (x' = x + 1);
    [rest] !crashed & x = 3 -> true;
endmodule
label "crash" = crashed;
label "late" = late;
label "far" = x = 3;
rewards "gold"
    [run] true : 4;
    [walk] true : 1;
endrewards
rewards "energy"
    x > 0 : 1;
    [run] true : 2;
endrewards
"""
OPTIONS: dict[str, Any] = {"horizon": 3, "failure": "crash", "reward": "gold"}


@pytest.fixture
def rover(tmp_path: Path) -> str:
    pytest.importorskip("stormpy")
    path = tmp_path / "rover.prism"
    path.write_text(ROVER)
    return str(path)


def test_reward_structures_are_costs_and_labels_events(rover: str) -> None:
    events = {"crash": "crash", "delay": "late & !crashed"}
    model = from_prism(rover, **OPTIONS, costs="energy, gold", events=events)
    start = model.initial_state()
    run = {o.event: dict(o.costs) for o in model.outcomes(start, "run")}
    assert run == {event: {"energy": 2.0, "gold": 4.0} for event in (None, "delay", "crash")}
    (after,) = (o.state for o in model.outcomes(start, "run") if o.event is None)
    assert dict(model.outcomes(after, "walk")[0].costs) == {"energy": 1.0, "gold": 1.0}
    there = after.replace("x=1", "x=3")
    assert model.actions(there) == ["rest"]  # it costs energy
    limits = ["energy <= 4", "risk(delay) <= 0.2", "risk(crash) <= 0.2"]
    result = vulcan.solve(vulcan.Problem(model, constraints=limits))
    energy, delay, crash = result.certificate.constraints
    assert result.safe
    assert 0 < delay.value <= 0.2
    assert crash.value == result.certificate.risk <= 0.2
    assert energy.value <= 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"costs": "enrgy"}, "no reward structure 'enrgy'; did you mean 'energy'"),
        ({"events": "lat"}, "event 'lat' is not a label .* did you mean 'late'"),
        ({"events": {"wet": "y > 1"}}, "event 'y > 1' is not a label"),
        ({"events": "late,far"}, "an outcome has one event; 'late' and 'far' are labels of one"),
        ({"reward": 1, "goal": "far", "costs": "fuel"}, "there is no reward structure 'fuel'"),
    ],
)
def test_costs_and_events_that_a_file_lacks_are_named(rover, options, message):
    with pytest.raises(OptionError, match=f"(?s)rover.prism: .*{message}"):
        from_prism(rover, **OPTIONS | options)


def test_reaching_a_goal_may_cost(rover: str) -> None:
    options = OPTIONS | {"reward": 1, "goal": "far"}
    model = from_prism(rover, **options, costs="energy", events="crash")
    assert dict(model.outcomes(model.initial_state(), "run")[0].costs) == {"energy": 2.0}
