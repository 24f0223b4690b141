"""`check_model` against models that keep every rule, and models that break each."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from hypothesis import given

import vulcan
from tests.helpers.lying_models import (
    NAN,
    SOUND,
    VISIBLE_AT_ONCE,
    VISIBLE_WHEN_ASKED_AGAIN,
    Lie,
    Mission,
    answer_go,
    fail,
    one,
    parametrise,
)
from tests.helpers.tables import Table, tables
from vulcan import Outcome, Start
from vulcan.domains import Bandit
from vulcan.model.checker import check_model
from vulcan.model.report import ModelReport


def find(report: ModelReport) -> list[tuple[Any, ...]]:
    """Return rule, state, action and value of each violation."""
    return [(v.rule, v.state, v.action, v.value) for v in report.violations]


@parametrise(VISIBLE_AT_ONCE | VISIBLE_WHEN_ASKED_AGAIN)
def test_reports_each_lie_once_with_its_place(lie: Lie) -> None:
    report = check_model(Mission(**lie.replaced()))
    assert find(report) == [lie.found]
    assert report.violation_count == 1
    assert not report.ok


@pytest.mark.parametrize("horizon", [1, 4, 6])
def test_bandit_has_as_many_states_as_its_counts(horizon: int) -> None:
    # Six counts that sum to at most n: C(n + 6, 6). Those that sum to n are never asked.
    asked = math.comb(horizon + 5, 6)
    assert check_model(Bandit(horizon=horizon)) == ModelReport(
        violations=(),
        violation_count=0,
        states=math.comb(horizon + 6, 6) + 1,
        terminals=1 if horizon > 1 else 0,
        evaluations=4 * asked,
        outcomes=(1 + 3 * 3) * asked,
        most_actions=4,
        most_outcomes=3,
        reward_range=(0.0, max(1.0, 0.25 * horizon)),
        largest_immediate_risk=0.0015,
        levels=horizon,
        finished=True,
    )


def test_bandit_without_merging_has_as_many_states_as_histories() -> None:
    report = check_model(Bandit(horizon=3, merges=False))
    playing, stopped = [1, 6, 36, 216], [0, 1, 6, 36]
    assert report.ok
    assert report.finished
    assert report.states == sum(playing) + sum(stopped)
    assert report.terminals == sum(stopped[:3])
    assert report.evaluations == 4 * sum(playing[:3])
    assert report.outcomes == 10 * sum(playing[:3])


@given(table=tables())
def test_random_models_are_sound(table: Table) -> None:
    report = check_model(table)
    assert report.ok, report


def test_initial_action_is_one_more_level() -> None:
    start = Start.choose({"near": "middle", "far": "start"})
    report = check_model(Mission(initial_state=lambda: start, horizon=1))
    # The end is met after two decisions, which is all that there are.
    assert report.ok
    assert (report.levels, report.states, report.terminals) == (2, 3, 0)
    assert (report.evaluations, report.outcomes) == (2 + 4, 2 + 6)


def test_violations_of_a_start_name_the_initial_action() -> None:
    start = Start({"near": [one("middle")], "far": [Outcome(0.5, NAN, "start")], "none": []})
    report = check_model(Mission(initial_state=lambda: start))
    assert find(report) == [
        ("rewards", start, "far", NAN),
        ("outcomes exist", start, "none", None),
    ]
    assert report.states == 3


def test_walk_goes_on_after_a_violation() -> None:
    model = Mission(
        discount=2,
        horizon=2,
        actions=lambda state: list("abcd") if state == "start" else fail(),
        outcomes=lambda state, action: {
            "a": [],
            "b": [Outcome(0.5, 1.0, "left"), Outcome(NAN, 1.0, None)],
            "c": "nothing",
            "d": [Outcome(0.75, 0.0, "left"), Outcome(0.75, 0.0, "right")],
        }[action],
    )
    report = check_model(model)
    assert find(report) == [
        ("discount", None, None, 2),
        ("outcomes exist", "start", "a", None),
        ("probabilities", "start", "b", NAN),
        ("states", "start", "b", None),
        ("outcomes are a list", "start", "c", "nothing"),
        ("probabilities sum to 1", "start", "d", 1.5),
        ("answers", "left", None, None),
        ("answers", "right", None, None),
    ]
    assert (report.states, report.evaluations, report.outcomes) == (3, 4, 4)
    assert report.reward_range is None
    assert report.largest_immediate_risk == 0


def test_without_a_horizon_the_initial_state_is_still_checked() -> None:
    report = check_model(Mission(horizon=0, initial_state=lambda: None))
    assert [violation.rule for violation in report.violations] == ["horizon", "states"]
    sound = check_model(Mission(horizon=0))
    assert (sound.states, sound.evaluations, sound.finished) == (1, 0, False)


def test_missing_methods_are_all_named() -> None:
    report = check_model(object())
    assert [violation.rule for violation in report.violations] == ["interface"] * 3 + ["horizon"]
    assert (report.states, report.levels, report.finished) == (0, 0, False)


def test_an_attribute_that_raises_is_a_violation() -> None:
    class Moody(Mission):
        horizon = property(fail)  # type: ignore[assignment]

    assert [violation.rule for violation in check_model(Moody()).violations] == ["answers"]


@pytest.mark.parametrize("method", ["action_label", "__str__"])
def test_label_that_raises_is_a_violation(method: str) -> None:
    kind = type("Move", (), {"__str__": fail} if method == "__str__" else {})
    move = kind()
    replaced = {"action_label": lambda action: fail()} if method == "action_label" else {}
    model = Mission(actions=lambda state: [move], horizon=1, **replaced)
    assert find(check_model(model)) == [("answers", "start", move, None)]


def test_same_lie_is_not_told_again_at_the_end() -> None:
    rewards = itertools.count()
    report = check_model(Mission(**answer_go(lambda: [one("middle", next(rewards))], "start")))
    assert [violation.rule for violation in report.violations] == ["answers repeat"]


def test_nan_is_no_change() -> None:
    report = check_model(Mission(**answer_go(lambda: [Outcome(float("nan"), 0.0, "end")])))
    assert [violation.rule for violation in report.violations] == ["probabilities"]


def test_impossible_outcomes_are_neither_followed_nor_counted() -> None:
    ways = [Outcome(0.0, 9.0, "nowhere"), one("start")]
    report = check_model(Mission(**answer_go(lambda: ways, "start")))
    assert report.ok
    assert (report.states, report.outcomes, report.reward_range) == (1, 2, (0.0, 0.0))


def test_frozen_dataclasses_and_enumerations_are_sound() -> None:
    class Move(Enum):
        LEFT = 1
        RIGHT = 2

    @dataclass(frozen=True)
    class Spot:
        x: int

    model = Mission(
        horizon=5,
        initial_state=lambda: Spot(0),
        actions=lambda spot: list(Move),
        outcomes=lambda spot, move: [one(Spot(spot.x + (1 if move is Move.RIGHT else -1)))],
    )
    report = check_model(model)
    assert report.ok
    assert (report.states, report.evaluations) == (11, 18)


def test_stops_at_most_states() -> None:
    for most, finished in [(1, False), (50, False), (210, False), (211, True)]:
        report = check_model(Bandit(horizon=4), most_states=most)
        assert (report.states, report.finished, report.ok) == (most, finished, True)
    assert "not all states" in str(check_model(Bandit(horizon=4), most_states=50))


@pytest.mark.parametrize("most_states", [0, -1, 2.5, True, None])
def test_most_states_must_be_a_number(most_states: Any) -> None:
    with pytest.raises(vulcan.OptionError, match="most_states"):
        check_model(SOUND, most_states=most_states)
