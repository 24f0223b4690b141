"""Compiled models: which parts they have, and that no lie is believed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import vulcan
from tests.helpers.charts import (
    CURVED,
    HONEST,
    MOST,
    STATE,
    Chart,
    draw_chart,
    look_ahead,
    look_up,
    plan_to_the_end,
    solve,
)
from vulcan import Outcome
from vulcan.domains.exploration.field import Field
from vulcan.domains.exploration.model import Exploration
from vulcan.errors import ModelError, OptionError

LIED_TO = [vulcan.Vulcan(), vulcan.LocalVulcan(), vulcan.ForwardSearch(), vulcan.baselines.UCT()]


@pytest.mark.parametrize("solver", LIED_TO, ids=str)
def test_what_is_no_compiled_model(solver: Any) -> None:
    chart = Chart(HONEST, 3)
    chart.compiled = look_up
    with pytest.raises(
        ModelError, match=r"compiled must be a vulcan.model.CompiledModel, not a CFunc"
    ):
        solve(chart, solver)


WHOLE = Chart(HONEST, 3).compiled


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"initial": (0,)}, "initial of a compiled model must be a numpy array"),
        ({"parameters": None}, "parameters of a compiled model must be a numpy array"),
        ({"initial": np.zeros(2, STATE)}, "one initial state"),
        ({"initial": np.zeros(0, STATE)}, "one initial state"),
        ({"initial": np.zeros(1, object)}, "no Python objects"),
        ({"parameters": np.zeros(1, object)}, "no Python objects"),
        ({"actions": ()}, "actions of a compiled model must be distinct labels"),
        ({"actions": ("left", "left")}, "must be distinct labels"),
        ({"most_outcomes": 0}, "most_outcomes of a compiled model must be at least 1"),
        ({"most_outcomes": 2.0}, "most_outcomes of a compiled model must be at least 1"),
        ({"outcomes": None}, "outcomes of a compiled model must be made with numba.cfunc"),
        ({"outcomes": look_up.__wrapped__}, "outcomes .* must be made with numba.cfunc"),
        ({"bound": numba.njit(lambda x: x)}, "bound .* must be made with numba.cfunc"),
        ({"value_bound": look_ahead}, "value_bound .* made with numba.cfunc.value_bound_signature"),
        ({"last_value": look_ahead, "last_steps": 1}, "last_value .* made with .*value_bound_sig"),
        ({"last_steps": 2}, "last_steps of a compiled model must be a whole number"),
        ({"last_value": plan_to_the_end}, "at least 1 if there is a last_value"),
        ({"last_value": plan_to_the_end, "last_steps": 2.0}, "must be a whole number"),
    ],
)
def test_parts_that_are_refused(part: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        dataclasses.replace(WHOLE, **part)


def test_function_of_other_types_is_refused() -> None:
    for part in ({"outcomes": look_ahead}, {"initial": np.zeros(1, "f4")}):
        with pytest.raises(OptionError, match="outcomes"):
            dataclasses.replace(WHOLE, **part)


MIDDLE = (0, 1, 1)  # place 1, "ahead"


def put(name: str, position: int, value: float) -> Callable[[np.ndarray], None]:
    """Return a lie about one outcome of going ahead from place 1."""

    def tell(table: np.ndarray) -> None:
        table[name][*MIDDLE, position] = value

    return tell


def count(number: int) -> Callable[[np.ndarray], None]:
    """Return a lie about how many outcomes that has."""

    def tell(table: np.ndarray) -> None:
        table["counts"][MIDDLE] = number

    return tell


BROKEN = {
    "sum below 1": put("probability", 0, 0.5),
    "sum above 1": put("probability", 0, 0.8),
    "sum just off": put("probability", 0, 0.75 + 1e-7),
    "probability negative": put("probability", 1, -0.25),
    "probability zero": put("probability", 1, 0.0),
    "probability NaN": put("probability", 1, math.nan),
    "probability infinite": put("probability", 1, math.inf),
    "reward NaN": put("reward", 0, math.nan),
    "reward infinite": put("reward", 0, math.inf),
    "reward minus infinite": put("reward", 1, -math.inf),
    "reward beyond sums": put("reward", 1, 1e200),
    "failure before a safe outcome": put("fails", 0, 1),
    "too many outcomes": count(MOST + 1),
    "very many outcomes": count(1 << 40),
    "negative count": count(-1),
}


def lying(tell: Callable[[np.ndarray], None], horizon: int = 3) -> Chart:
    chart = Chart(HONEST, horizon)
    tell(chart.table)
    return chart


@pytest.mark.parametrize("horizon", [2, 3])  # place 1 is at the last step, and before it
@pytest.mark.parametrize("solver", LIED_TO, ids=str)
@pytest.mark.parametrize("lie", BROKEN)
def test_answers_that_break_a_rule(lie: str, solver: Any, horizon: int) -> None:
    chart = lying(BROKEN[lie], horizon)
    with pytest.raises(ModelError, match="compiled outcomes break a rule; there must be") as caught:
        solve(chart, solver, vulcan.Constant(1.0))
    violation = caught.value.violation
    assert violation.rule == "compiled"
    assert violation.action == "ahead"
    assert violation.state["place"] == 1
    assert "at most 4 outcomes, safe ones first" in str(caught.value)


OTHERWISE = {
    "another reward": put("reward", 0, 4.0 + 1e-6),
    "a failure that is none": put("fails", 1, 1),
    "fewer outcomes": lambda table: (
        count(1)(table),
        put("probability", 0, 1.0)(table),
        put("reward", 0, 3.25)(table),
    ),
}


@pytest.mark.parametrize("solver", LIED_TO, ids=str)
@pytest.mark.parametrize("lie", OTHERWISE)
def test_answers_that_the_plain_model_does_not_give(lie: str, solver: Any) -> None:
    with pytest.raises(ModelError, match="compiled and plain answers differ") as caught:
        solve(lying(OTHERWISE[lie]), solver, vulcan.Constant(1.0))
    assert caught.value.violation.state == 1
    assert caught.value.violation.action == "ahead"


@pytest.mark.parametrize("solver", LIED_TO, ids=str)
def test_rounding_is_no_lie(solver: Any) -> None:
    result = solve(lying(put("reward", 0, 4.0 + 1e-12)), solver, vulcan.Constant(1.0))
    assert result.certificate == solve(Chart(HONEST, 3), solver, vulcan.Constant(1.0)).certificate


@pytest.mark.parametrize("solver", LIED_TO, ids=str)
def test_action_that_the_plain_model_has_not(solver: Any) -> None:
    def tell(table: np.ndarray) -> None:
        table["counts"][0, 1, 2] = table["probability"][0, 1, 2, 0] = 1
        table["reward"][0, 1, 2, 0] = 9.0

    with pytest.raises(ModelError, match="has an action 'right' that the plain model has not"):
        solve(lying(tell), solver, vulcan.Constant(1.0))


@pytest.mark.parametrize("solver", LIED_TO, ids=str)
def test_states_that_the_plain_model_does_not_reach(solver: Any) -> None:
    def swap(table: np.ndarray) -> None:
        table["after"][0, 0, 0, :2] = [2, 1]

    with pytest.raises(ModelError, match="has an action 'left' that the plain"):
        solve(lying(swap), solver, vulcan.Constant(1.0))


@pytest.mark.parametrize("solver", LIED_TO, ids=str)
def test_terminal_that_is_none_in_the_plain_model(solver: Any) -> None:
    with pytest.raises((ModelError, vulcan.errors.MismatchError), match="state 1"):
        solve(lying(count(0)), solver, vulcan.Constant(1.0))


@pytest.mark.parametrize("solver", [*LIED_TO[:3]], ids=str)
@pytest.mark.parametrize("told", [[(1.0, 1.0, 0)], []], ids=["risky", "extra action"])
def test_a_form_that_lies_proves_nothing(solver: Any, told: Any) -> None:
    honest: Any = {(0, "left"): [(0.5, 1.0, 0), (0.5, 0.0, None)]}
    chart = Chart(honest, 4)
    chart.answers = {(0, "left"): told} if told else honest | {(0, "ahead"): [(1.0, 1.0, 0)]}
    assert solve(chart.plain(), vulcan.Pareto(), 0.1).safe
    with pytest.raises(ModelError, match="compiled and plain answers differ") as caught:
        solve(chart, solver, 0.1, **{"samples": 1000} if solver.sampling else {})
    assert caught.value.violation.state == 0


def test_bound_that_is_not_a_number() -> None:
    chart = draw_chart(3, 4)
    chart.table["bounds"] = math.nan
    chart.compiled = dataclasses.replace(chart.compiled, bound=look_ahead)
    with pytest.raises(ModelError, match="bound"):
        solve(chart, vulcan.LocalVulcan())


@pytest.mark.parametrize("solver", LIED_TO, ids=str)
def test_other_probabilities_with_the_same_mean(solver: Any) -> None:
    chart = Chart({(0, "left"): [(0.5, 1.0, 1), (0.5, 1.0, 2)], (2, "left"): [(1.0, 1.0, 2)]}, 2)
    chart.table["probability"][0, 0, 0, :2] = [0.25, 0.75]
    with pytest.raises(ModelError, match=r"differ: .* up to 0\.25 apart"):
        solve(chart, solver)


class Unlabelled(Chart):
    """A chart whose plain form gives no labels."""

    def outcomes(self, place: int, action: str) -> list[Outcome]:
        return [Outcome(o.probability, o.reward, o.state) for o in super().outcomes(place, action)]


@pytest.mark.parametrize("solver", LIED_TO, ids=str)
def test_indistinguishable_outcomes(solver: Any) -> None:
    alike: Any = {(0, "left"): [(0.25, 1.0, 1), (0.5, 1.0, 1), (0.25, 0.0, 1)]}
    with pytest.raises(ModelError, match="that agree in state and reward are to be one"):
        solve(Unlabelled(alike, 2), solver)
    merged = Unlabelled({(0, "left"): [(0.75, 1.0, 1), (0.25, 0.0, 1)]}, 2)
    merged.answers = alike  # of the plain form; the compiled one has its table
    result = solve(merged, solver)
    assert result.certificate.reward == pytest.approx(0.75)
    assert list(result.policy.start().expected) == ["1, reward 1", "1, reward 0"]


def test_smooth_fields_are_no_lies() -> None:
    mission = Exploration(9, field=Field(length=14.0), degree=2)
    assert solve(mission, vulcan.LocalVulcan(), CURVED, samples=3000).safe
