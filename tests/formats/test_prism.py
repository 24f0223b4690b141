"""PRISM, JANI and DRN files as models."""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import vulcan
from tests.helpers.prism_files import COURIER, WALK
from tests.oracles.storm_files import ask_storm
from vulcan import Outcome
from vulcan.errors import OptionError
from vulcan.formats import from_prism, open_model
from vulcan.testing import check_model

CHAIN = "dtmc\nmodule m\n x : [0..2] init 0;\n [] x=0 -> 0.5:(x'=1) + 0.5:(x'=2);\nendmodule\n"


@pytest.fixture
def stormpy() -> Any:
    """Return stormpy, or skip the test."""
    return pytest.importorskip("stormpy")


@pytest.fixture
def walk(stormpy: Any, tmp_path: Path) -> Path:
    return write(tmp_path, WALK)


def write(folder: Path, text: str, name: str = "walk.prism") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_states_actions_and_rewards(walk: Path) -> None:
    model = from_prism(walk, horizon=5, failure="fell", reward="haste", goal="arrived", length=3)
    assert check_model(model).ok
    here, next_one, goal = (f"fell=false, x={x}" for x in (0, 1, 3))
    names = [model.action_label(action) for action in model.actions(next_one)]
    assert sorted(names) == ["run", "walk", "walker", "walker 2"]
    by_name = dict(zip(names, model.actions(next_one), strict=True))
    assert model.outcomes(next_one, by_name["run"]) == [
        Outcome(0.9, 2.5, goal),
        Outcome.failure(0.1, 2.5),
    ]
    loops = [model.outcomes(next_one, by_name[name])[0] for name in ("walker", "walker 2")]
    assert {outcome.state for outcome in loops} == {here, next_one}
    assert all(outcome.reward == 0.5 for outcome in loops)
    assert model.actions(goal) == []
    assert repr(model) == "walk.prism (7 states, 13 rows, horizon=5)"
    assert model.initial_state() == here


def test_weights_of_several_reward_structures(walk: Path) -> None:
    values = []
    for reward in ("haste", "steps", {"haste": 2, "steps": -1}):
        model = from_prism(walk, horizon=3, failure="fell", reward=reward, length=9)
        state = model.initial_state()
        values.append([model.outcomes(state, action)[0].reward for action in model.actions(state)])
    haste, steps, both = map(np.array, values)
    assert haste.any()
    assert steps.any()
    assert both == pytest.approx(2 * haste - steps)


def test_what_reaching_the_goal_earns(walk: Path) -> None:
    model = from_prism(walk, horizon=2, failure="fell", goal="x=length", reward=7, length=2)
    result = vulcan.solve(vulcan.Problem(model, vulcan.Constant(0.05)), vulcan.Lagrangian())
    assert (result.certificate.reward, result.certificate.risk) == (7, 0)


@pytest.mark.parametrize("bound", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("horizon", [7, 40])
def test_storm_finds_the_same_value(stormpy: Any, horizon: int, bound: float) -> None:
    model = from_prism(COURIER, horizon=horizon, danger=0.01)
    problem = vulcan.Problem(model, vulcan.Constant(bound))
    best = vulcan.solve(problem, vulcan.Lagrangian(randomised=True)).certificate
    theirs = ask_storm(
        COURIER,
        f'R{{"letters"}}max=? [C<={horizon}]',
        f'P<={bound} [F<={horizon} "failed"]',
        {"danger": 0.01},
    )
    assert best.reward == pytest.approx(theirs, abs=2e-7)


def test_jani_is_the_same_model(stormpy: Any, tmp_path: Path) -> None:
    path = tmp_path / "courier.jani"
    program = stormpy.parse_prism_program(COURIER)
    stormpy.io.export_jani_to_file(path, program.to_jani([])[0])
    values = []
    for file in (COURIER, path):
        model = from_prism(file, horizon=12, danger=0.02)
        problem = vulcan.Problem(model, vulcan.Constant(0.05))
        values.append(vulcan.solve(problem, vulcan.Lagrangian(randomised=True)).upper_bound)
        assert {"wait", "open", "coast", "sail"} <= set(model.action_labels)
    assert values[0] == pytest.approx(values[1], abs=1e-12)


def test_a_chain_without_choices(stormpy: Any, tmp_path: Path) -> None:
    model = from_prism(write(tmp_path, CHAIN), horizon=3, failure="x=2", goal="x=1", reward=4)
    result = vulcan.solve(vulcan.Problem(model, vulcan.Constant(0.5)))
    assert (result.certificate.reward, result.certificate.risk) == (2, 0.5)


def test_settings(walk: Path) -> None:
    settings = ["horizon=4", "failure=fell", "length=3", "reward={'haste': 1}", "discount=0.5"]
    model = open_model(str(walk), settings).model
    assert (model.horizon, model.discount) == (4, 0.5)


def test_a_constant_with_the_name_of_a_parameter(stormpy: Any, tmp_path: Path) -> None:
    path = write(tmp_path, WALK.replace("length", "horizon"))
    model = open_model(
        str(path), ["horizon=4", "const_horizon=2", "failure=fell", "reward=haste"]
    ).model
    assert (model.horizon, model.states) == (4, 5)


GOOD = {"horizon": 4, "failure": "fell", "reward": "haste", "length": 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"failure": "failed"},
            "'failed' is not .*labels are arrived.*variables are fell, x",
        ),
        ({"failure": "fel"}, "failure 'fel' is not a label or an expression.*did you mean 'fell'"),
        ({"failure": '"arived" | fell'}, "failure '\"arived\" | fell' is not"),
        ({"failure": "P=? [F fell]"}, "min"),
        ({"failure": "x=0"}, "starts in a state of failure 'x=0'"),
        ({"goal": "x=0"}, "starts in a state of goal 'x=0'"),
        ({"goal": "y=0"}, "goal 'y=0' is not a label"),
        ({"reward": "hast"}, "no reward structure 'hast'; did you mean 'haste'.*'haste', 'steps'"),
        ({"reward": None}, "give reward; .*'haste', 'steps'"),
        ({"reward": {"haste": 1, "x": 2}}, "no reward structure 'x'"),
        ({"reward": 3}, "for reaching a goal"),
        ({"lenght": 2}, "no open constant 'lenght'; did you mean 'length'"),
        ({"length": 2.5}, "constant length is a whole number, not 2.5"),
        ({"slip": 0.2}, "no open constant 'slip'"),
    ],
)
def test_refused_values(walk: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=f"(?s){message}"):
        from_prism(walk, **(GOOD | change))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(x' = x + 1)", "(x' = x +)", r"walk.prism, line 8, column \d+: expecting"),
        ("x < length -> true", "z < length -> true", r"walk.prism, line 9, column \d+: expecting"),
        ("mdp", "", r"walk.prism, line \d"),
        ("mdp", "ctmc", "walk.prism: The input model is a CTMC"),
        ("1 - slip :", "0.8 :", r"walk.prism: probabilities sum to 0.9, .*x=0', action 'run'"),
        ("min(x + 2, length)", "x + 2", "walk.prism: .*out-of-bounds.*'x'"),
        ("init 0;", ";", "initial states"),
    ],
)
def test_malformed_files(stormpy, tmp_path, capfd, old, new, message):
    text = WALK.replace(old, new, 1)
    assert text != WALK
    if "initial" in message:
        text = text.replace("fell : bool init false", "fell : bool") + "init true endinit\n"
    with pytest.raises(OptionError, match=message):
        from_prism(write(tmp_path, text), **GOOD)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("walk.jani", '{"jani-version": 1,'),
        ("walk.jani", '{"jani-version": 1, "name": "x"}'),
        ("walk.jani", ""),
        ("walk.drn", "@type: MDP\n@model\nstate x\n"),
    ],
)
def test_malformed_files_of_other_forms(stormpy, tmp_path, name, text):
    with pytest.raises(OptionError, match=re.escape(name)):
        from_prism(write(tmp_path, text, name), horizon=2)


EXPLICIT = """@type: MDP
@parameters

@reward_models
gold
@nr_states
3
@nr_choices
3
@model
state 0 [0] init
\taction go [4]
\t\t1 : 0.5
\t\t2 : 0.5
state 1 [0]
\taction stay [0]
\t\t1 : 1
state 2 [0] failed
\taction stay [0]
\t\t2 : 1
"""


def test_explicit_states(stormpy: Any, tmp_path: Path) -> None:
    model = from_prism(write(tmp_path, EXPLICIT, "chain.drn"), horizon=3)
    assert model.initial_state() == 0
    assert model.actions(0) == ["go"]
    assert model.outcomes(0, "go") == [Outcome(0.5, 4.0, 1), Outcome.failure(0.5, 4.0)]
    assert model.actions(1) == []


def test_only_models_whose_steps_are_known(stormpy: Any, tmp_path: Path) -> None:
    text = CHAIN.replace("dtmc", "ctmc").replace("[] x=0 ->", "<> x=0 ->")
    with pytest.raises(OptionError, match="is a CTMC; a model for planning is one of DTMC, MDP"):
        from_prism(write(tmp_path, text), horizon=3, failure="x=2", goal="x=1", reward=4)


def test_there_is_no_file(stormpy: Any) -> None:
    with pytest.raises(OptionError, match=r"there is no file nowhere\.prism"):
        from_prism("nowhere.prism", horizon=2)


def test_settings_that_are_missing(walk: Path) -> None:
    with pytest.raises(OptionError, match=r"needs --set horizon=...\nits parameters are horizon"):
        open_model(str(walk), ["failure=fell", "length=3"])
    with pytest.raises(OptionError, match=r"needs --set length=\.\.\."):
        open_model(str(walk), ["horizon=3", "failure=fell"])


def test_without_storm(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "stormpy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "stormpy", ModuleType("stormpy"))
    with pytest.raises(OptionError, match=r"pip install 'vulcan-planner\[storm\]'"):
        from_prism(COURIER, horizon=3)


def test_states_are_found_by_names_that_nobody_has_asked_for(stormpy: Any, tmp_path: Path) -> None:
    text = """mdp
    module walker
        x : [-3..300] init 0;
        high : bool init false;
        [up] x < 4 -> 0.5 : (x' = x + 1) + 0.5 : (x' = 300) & (high' = true);
    endmodule
    rewards "steps" true : 1; endrewards
    """
    path = tmp_path / "walk.prism"
    path.write_text(text, encoding="utf-8")
    read = partial(from_prism, path, horizon=4, failure="x=4")
    model = read()
    assert model.actions("high=false, x=2") == ["up"]
    after = {outcome.state for outcome in model.outcomes("high=false, x=2", "up")}
    assert after == {"high=false, x=3", "high=true, x=300"}
    with pytest.raises(LookupError, match="high=false, x=0"):
        model.actions("high=true, x=2")
    path.write_text(text.replace("-3..300", "-3..301").replace("300)", "301)"), encoding="utf-8")
    assert read().fingerprint != model.fingerprint
