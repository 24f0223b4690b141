"""`check_compiled` against forms that say the same, and forms that don't."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from tests.helpers.charts import CHART, HONEST, MOST, STATE, Chart, draw_chart, look_ahead
from vulcan import Outcome
from vulcan.domains import Bandit
from vulcan.errors import ModelError, OptionError
from vulcan.model.compiled import outcomes_signature, value_bound_signature
from vulcan.testing import check_compiled


def test_example_agrees_unless_it_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    from glider import Glider

    assert check_compiled(Glider(), most_states=200).ok
    other = Glider()
    assert other.compiled.most_outcomes == 4
    other.worth = [[worth + 1e-6 for worth in column] for column in other.worth]
    assert not check_compiled(other, most_states=200).ok


@pytest.mark.parametrize("seed", range(4))
def test_charts_agree(seed: int) -> None:
    report = check_compiled(draw_chart(seed, 4), most_states=100)
    assert report.ok, report
    assert report.evaluations >= report.states / 2


def test_exact_last_values_agree() -> None:
    chart = Chart(HONEST, 3)
    last_by(3.0)(chart)
    report = check_compiled(chart)
    assert report.ok, report


def test_walk_goes_near_and_far() -> None:
    chart = draw_chart(1, 8)
    met: list[int] = []
    chart.reward_to_go_bound = lambda state, step: met.append(step) or 0.0
    chart.compiled = dataclasses.replace(chart.compiled, bound=look_ahead)
    report = check_compiled(chart, most_states=60)
    assert report.ok, report
    assert not report.finished
    assert len(met) == report.states == 60
    assert {0, 1, 7} <= set(met)


def tell(name: str, where: tuple[int, ...], value: float) -> Callable[[Chart], None]:
    """Return a lie: another value in the table of the compiled form."""

    def change(chart: Chart) -> None:
        chart.table[name][0, *where] = value

    return change


def reorder(chart: Chart) -> None:
    chart.actions = lambda place: Chart.actions(chart, place)[::-1]


def forget_action(chart: Chart) -> None:
    chart.compiled = dataclasses.replace(chart.compiled, actions=("left", "ahead", "up"))


def hide_labels(chart: Chart) -> None:
    chart.answers = {**HONEST, (1, "ahead"): [(0.75, 4.0, 2), (0.125, 1.0, 1), (0.125, 1.0, 1)]}
    chart.outcomes = lambda place, action: [
        Outcome(o.probability, o.reward, o.state) for o in Chart.outcomes(chart, place, action)
    ]
    chart.table["counts"][0, 1, 1] = 3
    chart.table["probability"][0, 1, 1, 1:3] = 0.125
    chart.table["reward"][0, 1, 1, 2], chart.table["after"][0, 1, 1, 2] = 1.0, 1


def bound_by(value: float) -> Callable[[Chart], None]:
    def change(chart: Chart) -> None:
        chart.compiled = dataclasses.replace(chart.compiled, bound=look_ahead)
        chart.table["bounds"][0, 2] = value
        chart.reward_to_go_bound = lambda state, step: 0.0

    return change


@numba.cfunc(value_bound_signature(STATE, CHART))
def look_at_price(parameters, state, step, price):
    return numba.carray(parameters, 1)[0].bounds[numba.carray(state, 1)[0].place, step] - price


def value_by(value: float) -> Callable[[Chart], None]:
    def change(chart: Chart) -> None:
        chart.compiled = dataclasses.replace(chart.compiled, value_bound=look_at_price)
        chart.table["bounds"][0, 2] = value
        chart.value_to_go_bound = lambda state, step, price: -price

    return change


@numba.cfunc(value_bound_signature(STATE, CHART))
def look_up_last_value(parameters, state, step, price):
    return numba.carray(parameters, 1)[0].bounds[numba.carray(state, 1)[0].place, 0]


def last_by(value: float) -> Callable[[Chart], None]:
    def change(chart: Chart) -> None:
        chart.table["bounds"][0, 1:3, 0] = 3.25, value
        parts = {"last_value": look_up_last_value, "last_steps": 1}
        chart.compiled = dataclasses.replace(chart.compiled, **parts)

    return change


LIES = {
    "probability": (tell("probability", (1, 1, 0), 0.7), 1, "ahead", "of outcome 0 are (0.7, 4.0"),
    "reward": (tell("reward", (2, 0, 0), 3.1), 2, "left", "3.1"),
    "failure": (tell("fails", (1, 1, 1), 1), 1, "ahead", "(0.25, 1.0, 1)"),
    "NaN": (tell("reward", (2, 0, 0), math.nan), 2, "left", "nan"),
    "count": (tell("counts", (1, 1), 1), 1, "ahead", "has 1 outcomes, the plain one 2"),
    "too many": (tell("counts", (1, 1), MOST + 1), 1, "ahead", "5 outcomes; most_outcomes is 4"),
    "negative": (tell("counts", (1, 1), -1), 1, "ahead", "-1 outcomes"),
    "no action": (tell("counts", (0, 2), 0), 0, "right", "has 0 outcomes, the plain one 1"),
    "one more action": (tell("counts", (1, 0), 1), 1, "left", "has 1 outcomes, the plain one 0"),
    "another state": (tell("after", (0, 2, 0), 1), 2, "left", "has 0 outcomes, the plain one 1"),
    "unknown action": (forget_action, 0, None, "has no action 'right'"),
    "another order": (reorder, 0, None, "another order"),
    "told apart": (hide_labels, 1, "ahead", "indistinguishable outcomes count as one"),
    "bound": (bound_by(1.0), 2, None, "differ: 1.0, plain 0.0"),
    "value bound": (value_by(1.0), 2, None, "price 0 differ: 1.0, plain -0.0"),
    "value bound NaN": (value_by(math.nan), 2, None, "and price 0 is nan"),
    "last value": (last_by(2.5), 2, None, "is 2.5, but the best action is worth 3.0"),
    "last value NaN": (last_by(math.nan), 2, None, "is nan, but"),
    "bound NaN": (bound_by(math.nan), 2, None, "nan"),
}


@pytest.mark.parametrize("name", LIES)
def test_differences_are_found(name: str) -> None:
    lie, state, action, text = LIES[name]
    chart = Chart(HONEST, 3)
    lie(chart)
    report = check_compiled(chart)
    found = report.violations[0]
    assert (found.rule, found.state, found.action) == ("compiled", state, action), report
    assert text in found.message
    assert text in str(report)


@numba.cfunc(outcomes_signature(STATE, CHART), cache=True)
def keep_notes(parameters, state, action, answers, following):
    chart = numba.carray(parameters, 1)[0]
    chart.bounds[0, 0] += 1.0  # a note that shows
    answer = numba.carray(answers, MOST)
    answer[0].probability, answer[0].reward, answer[0].fails = 1.0, chart.bounds[0, 0], 1
    return 1


@numba.cfunc(outcomes_signature(STATE, CHART), cache=True)
def forget_field(parameters, state, action, answers, following):
    answer = numba.carray(answers, MOST)
    answer[0].probability, answer[0].reward, answer[0].fails = 1.0, 0.0, 0
    return 1


@pytest.mark.parametrize(
    ("function", "message"),
    [(keep_notes, "with fresh parameters"), (forget_field, "not every field")],
)
def test_functions_that_depend_on_what_was_before(function: Any, message: str) -> None:
    chart = Chart({(0, name): [(1.0, 0.0, 0)] for name in ("left", "ahead", "right")}, 2)
    chart.compiled = dataclasses.replace(chart.compiled, outcomes=function)
    assert any(message in str(violation) for violation in check_compiled(chart).violations)


def test_what_can_not_be_compared() -> None:
    with pytest.raises(OptionError, match="no compiled form"):
        check_compiled(Bandit(3))
    with pytest.raises(OptionError, match="most_states"):
        check_compiled(Chart(HONEST, 2), most_states=0)
    chart = Chart(HONEST, 3)
    chart.compiled = np.zeros(1)
    assert "must be a vulcan.model.CompiledModel" in str(check_compiled(chart))
    broken = Chart({(0, "left"): [(0.5, 0.0, 1)]}, 2)
    with pytest.raises(ModelError, match=r"sum to 0\.5"):
        check_compiled(broken)
