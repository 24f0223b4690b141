"""check_model against models that keep every rule, and models that break each."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given

import vulcan
from tests.helpers.lying_models import (
    NAN,
    SOUND,
    VISIBLE_AT_ONCE,
    VISIBLE_WHEN_ASKED_AGAIN,
    Board,
    Lie,
    Mission,
    Sulky,
    answer_go,
    change,
    fail,
    one,
    parametrise,
)
from tests.helpers.tables import Table, tables
from vulcan import Outcome, Start
from vulcan.domains import Bandit
from vulcan.model.check import MOST_VIOLATIONS, ModelReport, check_model


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
        states=math.comb(horizon + 6, 6) + 1,
        terminals=1 if horizon > 1 else 0,
        evaluations=4 * asked,
        outcomes=(1 + 3 * 3) * asked,
        reward_range=(0.0, max(1.0, 0.25 * horizon)),
        largest_immediate_risk=0.0015,
        levels=horizon,
        finished=True,
    )


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


def test_impossible_outcomes_are_neither_followed_nor_counted() -> None:
    ways = [Outcome(0.0, 9.0, "nowhere"), one("start")]
    report = check_model(Mission(**answer_go(lambda: ways, "start")))
    assert report.ok
    assert (report.states, report.outcomes, report.reward_range) == (1, 2, (0.0, 0.0))


def test_stops_at_most_states() -> None:
    for most, finished in [(1, False), (50, False), (210, False), (211, True)]:
        report = check_model(Bandit(horizon=4), most_states=most)
        assert (report.states, report.finished, report.ok) == (most, finished, True)
    assert "not all states" in str(check_model(Bandit(horizon=4), most_states=50))


@pytest.mark.parametrize("most_states", [0, -1, 2.5, True, None])
def test_most_states_must_be_a_number(most_states: Any) -> None:
    with pytest.raises(vulcan.errors.OptionError, match="most_states"):
        check_model(SOUND, most_states=most_states)


def test_state_that_was_met_earlier_must_not_change() -> None:
    shared = Board(5)
    asked = []

    def actions(state: Any) -> list[str]:
        asked.append(deepcopy(state))
        return ["go"]

    def outcomes(state: Any, action: str) -> list[Outcome]:
        if state == "first":
            shared.move()
        ways = [Outcome(0.5, 0.0, "first"), Outcome(0.5, 0.0, shared, "board")]
        return ways if state == "start" else [one("end")]

    report = check_model(Mission(actions=actions, outcomes=outcomes))
    assert find(report) == [("states stay the same", Board(5), None, Board(7))]
    # The walk goes on with the state as it was; at last the root is evaluated again.
    assert asked == ["start", "start", "first", "first", Board(5), Board(5), "start"]


def test_second_question_must_not_change_the_state_either() -> None:
    ask = change(Board.__hash__, Board.move)
    model = Mission(
        horizon=1,
        initial_state=Board,
        actions=lambda board: ["go"],
        outcomes=lambda board, action: [one("end")] if ask()(board) is not None else [],
    )
    assert find(check_model(model)) == [("states stay the same", Board(0), "go", Board(1))]


def test_error_names_the_state_as_it_was() -> None:
    model = Mission(initial_state=Board, actions=lambda board: board.move().lost)
    assert [(v.rule, v.state) for v in check_model(model).violations] == [
        ("answers", Board(0)),
        ("states stay the same", Board(0)),
    ]


def test_next_state_must_not_be_used_for_another_one_again() -> None:
    board = Board()
    model = Mission(
        horizon=1,
        actions=lambda state: ["left", "right"],
        outcomes=lambda state, action: [one(board.move(), label="moved")],
    )
    # Each action is evaluated twice, and by then the same object stands for what came fourth.
    assert find(check_model(model)) == [
        ("states stay the same", Board(1), None, Board(4)),
        ("states stay the same", Board(3), None, Board(4)),
    ]


def test_hash_must_not_change() -> None:
    class Restless:
        hashes = iter(range(1_000))

        def __hash__(self) -> int:
            return next(self.hashes)

    state = Restless()
    model = Mission(initial_state=lambda: state, actions=lambda state: [])
    first = check_model(model).violations[0]
    assert (first.rule, first.state) == ("hashes stay the same", state)
    assert first.value[0] != first.value[1]


def test_states_of_the_same_hash_must_be_comparable() -> None:
    left, right = Sulky("left"), Sulky("right")
    ways = [Outcome(0.5, 0.0, left, "left"), Outcome(0.5, 0.0, right, "right")]
    model = Mission(horizon=1, actions=lambda s: ["go"], outcomes=lambda s, a: ways)
    assert find(check_model(model)) == [("states compare", "start", "go", right)]


def test_where_nothing_merges_no_two_histories_may_reach_equal_states() -> None:
    report = check_model(Mission(merges=False))
    assert find(report) == [
        ("merges", "start", "wait", "start"),
        ("merges", "middle", "wait", "middle"),
    ]
    assert report.states == 3


class Alone:
    """Equal to nothing but itself."""

    def __init__(self, text: str | None = None) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text or super().__str__()


@pytest.mark.parametrize("label", [None, "on"])
@pytest.mark.parametrize("text", [None, "alone"])
@pytest.mark.parametrize("merges", [False, True])
def test_states_without_equality_need_not_merge_and_a_label(merges, text, label):
    model = Mission(
        merges=merges,
        initial_state=Alone,
        actions=lambda state: ["go"],
        outcomes=lambda state, action: [one(Alone(text), label=label)],
    )
    report = check_model(model)
    assert report.ok == (not merges and bool(text or label))
    assert {violation.rule for violation in report.violations} <= {"answers repeat"}


class Equal:
    """Equal to its copies, but hashed by what it is."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)


@pytest.mark.parametrize("kind", [Alone, Equal])
def test_state_that_is_always_the_same_object_is_sound(kind: type) -> None:
    only = kind()
    report = check_model(Mission(initial_state=lambda: only, outcomes=lambda s, a: [one(s)]))
    assert report.ok
    assert report.states == 1


@pytest.mark.parametrize("texts", [("left", "right"), (None, None), ("left", None)])
def test_actions_without_equality_need_labels_that_repeat(texts: tuple[str | None, ...]) -> None:
    model = Mission(
        actions=lambda state: [Alone(text) for text in texts],
        outcomes=lambda state, action: [one(state)],
    )
    assert check_model(model).ok == all(texts)
    with_labels = Mission(action_label=lambda move: "same", **vars(model))
    assert {v.rule for v in check_model(with_labels).violations} == {"action labels differ"}


def test_keeps_only_the_first_violations_but_counts_all() -> None:
    many = MOST_VIOLATIONS + 500
    report = check_model(Mission(actions=lambda s: range(many), outcomes=lambda s, a: []))
    assert report.violation_count == many
    assert [violation.action for violation in report.violations] == list(range(MOST_VIOLATIONS))
    assert str(report).endswith(f"… and {many - 20:,} more")


def test_report_is_shown_to_people() -> None:
    report = check_model(Mission(**answer_go(lambda: [Outcome(0.5, 7.0, "end")])))
    assert report.rows() == [
        ("model", "NOT OK: 1 violation"),
        ("states", "3, 0 of them without actions"),
        ("evaluations", "4"),
        ("outcomes", "5"),
        ("rewards", "0 to 1"),
        ("largest risk", "0.1 of a single action"),
        ("levels", "2 decisions in the longest history"),
    ]
    violation = "probabilities sum to 0.5, not to 1 (state 'middle', action 'go')"
    assert str(report).splitlines()[-1] == f"probabilities sum to 1: {violation}"
    assert check_model(Mission(horizon=1, actions=lambda s: [])).rows()[4] == ("rewards", "none")


def test_merged_outcomes_are_named_and_break_no_rule() -> None:
    twice = [Outcome(0.25, 1.0, "end"), Outcome(0.5, 0.0, "end"), Outcome(0.25, 1.0, "end")]
    report = check_model(Mission(**answer_go(lambda: twice)))
    assert report.ok
    assert report.merged == 1
    assert dict(report.rows())["merged"] == (
        "2 outcomes without labels end in 'end' with the same reward, and count as one "
        "(state 'middle', action 'go')"
    )
    again = check_model(Mission(outcomes=lambda state, action: twice, actions=lambda s: ["a", "b"]))
    assert again.merged == 4
    assert "; and in 3 more places" in str(again)
    assert report.outcomes == 6
