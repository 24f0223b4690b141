"""Models written by hand: dictionaries and JSON files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vulcan
from vulcan import Outcome
from vulcan.errors import ModelError, OptionError
from vulcan.formats import from_table, open_model
from vulcan.model import FAILURE

CROSSING: dict[Any, Any] = {
    "shore": {
        "bridge": [(0.5, "island", 0.0), (0.5, "shore")],
        "swim": [(0.75, "island", 1), (0.25, FAILURE, -1)],
    },
    "island": {"dig": [(1, "rich", 10), (0, "shore", 3)]},
    "rich": {},
}


def test_states_and_actions_are_what_the_table_calls_them() -> None:
    model = from_table(CROSSING, horizon=2)
    assert model.initial_state() == "shore"
    assert model.actions("shore") == ["bridge", "swim"]
    assert model.actions("island") == ["dig"]
    assert model.actions("rich") == []
    swim = [Outcome(0.75, 1.0, "island"), Outcome.failure(0.25, -1.0)]
    assert model.outcomes("shore", "swim") == swim
    assert model.outcomes("island", "dig") == [Outcome(1.0, 10.0, "rich")]
    result = vulcan.solve(vulcan.Problem(model, 0.3))
    assert result.certificate.reward == pytest.approx(0.75 * 11 - 0.25)
    run = result.policy.start()
    assert run.action == "swim"
    run.observe("island")
    assert run.action == "dig"


def test_names_may_be_anything_hashable() -> None:
    model = from_table(
        {(0, 0): {1: [(1.0, (0, 1))]}, (0, 1): {}}, horizon=1, start={(0, 0): 0.5, (0, 1): 0.5}
    )
    assert model.outcomes((0, 0), 1) == [Outcome(1.0, 0.0, (0, 1))]
    assert model.action_label(1) == "1"
    assert len(model.initial_state().choices["start"]) == 2


def change(state: str, action: str, *outcomes: Any) -> dict[Any, Any]:
    return CROSSING | {state: {**CROSSING[state], action: list(outcomes)}}


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ([], {}, r"a table is a dictionary of states, not \[\]"),
        ({"rich": {}}, {}, "the table has no decisions"),
        ({"shore": ["swim"]}, {}, r"a state has a dictionary of actions.*\(state 'shore'\)"),
        ({"FAILURE": {}}, {}, "'FAILURE' stands for failure"),
        (change("shore", "swim"), {}, r"list of outcomes, not \[\] \(state 'shore', action 'swim'"),
        (change("shore", "swim", (0, "island")), {}, "probabilities sum to 0, not to 1"),
        (change("shore", "swim", (1, "island", 10**400)), {}, "reward must be numbers"),
        (change("shore", "swim", (1,)), {}, r"outcome 0 must be \(probability, next state\)"),
        (change("shore", "swim", "island"), {}, "outcome 0 must be .*not 'island'"),
        (
            change("shore", "swim", (2, "island")),
            {},
            "of next state 'island' must be from 0 to 1",
        ),
        (change("shore", "swim", ("1", "island")), {}, "outcome 0 must be .*not .'1', 'island'"),
        (
            change("shore", "swim", (1, "island", "x")),
            {},
            "outcome 0 .*not .1, 'island', 'x'",
        ),
        (change("shore", "swim", (1, "iland")), {}, "'iland', which .*did you mean 'island'"),
        (change("shore", "swim", (1, 17)), {}, "leads to 17, .*states are .*'rich'.*and FAILURE"),
        (change("shore", "swim", (1, ["x"])), {}, r"leads to \['x'\], which is no state"),
        (change("shore", "swim", (1, np.arange(2))), {}, r"leads to array\(.*which is no state"),
        (
            change("shore", "swim", (0.5, "island"), (0.25, FAILURE)),
            {},
            r"probabilities sum to 0.75, not to 1 \(state 'shore', action 'swim'\)",
        ),
        (CROSSING, {"start": "shoer"}, "start is 'shoer', .*did you mean 'shore'"),
        (CROSSING, {"start": {"shore": 0.5}}, "start sums to 0.5, not to 1"),
        (CROSSING, {"start": {"shore": "x"}}, r"start\['shore'\] must be a probability, not 'x'"),
    ],
)
def test_what_is_wrong_is_named(table: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ModelError, OptionError), match=message):
        from_table(table, horizon=2, **options)


TEXT = """
{"horizon": 2,
 "bound": "0.3",
 "states": {"shore": {"bridge": [[1, "island", 0]],
                      "swim": [[0.75, "island", 3], [0.25, "FAILURE"]]},
            "island": {}}}
"""


def test_a_file_is_a_model(tmp_path: Path) -> None:
    path = tmp_path / "crossing.json"
    path.write_text(TEXT)
    model, bound = open_model(str(path))
    assert bound == "0.3"
    assert model.outcomes("shore", "swim")[1] == Outcome.failure(0.25)
    assert open_model(str(path), ["horizon=7", "discount=0.5", "start=island"]).model.horizon == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT.replace('"island", 3]', '"island" 3]'), "not JSON: .* line 5 column 48"),
        (TEXT.replace('"island": {}', '"shore": {}'), "crossing.json: 'shore' is given twice"),
        (TEXT.replace('"island", 3', '"iland", 3'), "crossing.json: .*'iland'.*'island'"),
        (TEXT.replace('"horizon"', '"horizn"'), "has a key 'horizn'.*did you mean 'horizon'"),
        (TEXT.replace('"states"', '"start"'), "has no key 'states'"),
        (TEXT.replace('"0.3"', "0.3"), "bound must be a string"),
        (TEXT.replace("0.75,", "NaN,"), "'island' must be from 0 to 1, not nan"),
        ("[1, 2]", "must be an object with states, horizon"),
        ('{"states": {"a": {"go": [[1, "a"]]}}}', "needs --set horizon=..."),
    ],
)
def test_files_with_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "crossing.json"
    path.write_text(text)
    with pytest.raises(OptionError, match=message) as caught:
        open_model(str(path))
    assert "crossing.json" in str(caught.value)


def test_the_outcomes_of_a_file_are_those_of_a_dictionary(tmp_path: Path) -> None:
    path = tmp_path / "crossing.json"
    content = json.loads(TEXT)
    path.write_text(json.dumps(content))
    read = open_model(str(path)).model
    assert read.fingerprint == from_table(content["states"], horizon=2).fingerprint
