"""`check_model` and states: they must not change, and be told apart."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.helpers.lying_models import (
    Board,
    Mission,
    change,
    one,
)
from vulcan import Outcome
from vulcan.model.checker import check_model
from vulcan.model.report import ModelReport


def find(report: ModelReport) -> list[tuple[Any, ...]]:
    """Return rule, state, action and value of each violation."""
    return [(v.rule, v.state, v.action, v.value) for v in report.violations]


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
    # The walk goes on with the state as it was; at last the root is asked again.
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
    # Each action is asked twice, and by then the same object stands for what came fourth.
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
    class Sulky:
        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            raise ValueError("not with me")

    left, right = Sulky(), Sulky()
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
def test_states_without_equality_need_not_merge_and_a_label(
    merges: bool, text: str | None, label: str | None
) -> None:
    model = Mission(
        merges=merges,
        initial_state=Alone,
        actions=lambda state: ["go"],
        outcomes=lambda state, action: [one(Alone(text), label=label)],
    )
    report = check_model(model)
    assert report.ok == (not merges and bool(text or label))
    assert {violation.rule for violation in report.violations} <= {"answers repeat"}


@pytest.mark.parametrize("label", [None, "on"])
def test_states_without_a_text_need_labels(label: str | None) -> None:
    # The string of a board has its address in it, and a policy could not find it again.
    ways = lambda state, action: [one(Board(), label=label)]  # noqa: E731
    report = check_model(Mission(horizon=1, actions=lambda state: ["go"], outcomes=ways))
    assert [violation.rule for violation in report.violations] == ["answers repeat"] * (not label)


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


def test_where_nothing_merges_next_states_must_repeat_too() -> None:
    ways = [one("end", label="on")], [one("over", label="on")]
    model = Mission(merges=False, horizon=1, actions=lambda s: ["go"], outcomes=lambda s, a: ask())
    ask = change(*ways)
    assert find(check_model(model)) == [("answers repeat", "start", "go", (*ways[0], *ways[1]))]


@pytest.mark.parametrize("texts", [("left", "right"), (None, None), ("left", None)])
def test_actions_without_equality_need_labels_that_repeat(texts: tuple[str | None, ...]) -> None:
    model = Mission(
        actions=lambda state: [Alone(text) for text in texts],
        outcomes=lambda state, action: [one(state)],
    )
    assert check_model(model).ok == all(texts)
    with_labels = Mission(action_label=lambda move: "same", **vars(model))
    assert {v.rule for v in check_model(with_labels).violations} == {"action labels differ"}
