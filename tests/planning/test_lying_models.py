"""A model that lies never gets a policy."""

from __future__ import annotations

from typing import Any

import pytest

import vulcan
from tests.helpers.lying_models import (
    SOUND,
    VISIBLE_AT_ONCE,
    Lie,
    Mission,
    answer_go,
    answer_in,
    change,
    one,
    parametrise,
)
from vulcan import Outcome
from vulcan.model.checker import check_model

ANY_RISK = vulcan.Constant(1.0)


def test_without_a_lie_there_is_a_policy() -> None:
    assert check_model(SOUND).ok
    assert vulcan.solve(vulcan.Problem(SOUND, ANY_RISK)).safe


@parametrise(VISIBLE_AT_ONCE)
def test_solve_raises_where_the_report_does(lie: Lie) -> None:
    model = Mission(**lie.replaced())
    with pytest.raises(vulcan.ModelError) as caught:
        vulcan.solve(vulcan.Problem(model, ANY_RISK))
    assert caught.value.violation == check_model(model).violations[0]


@pytest.mark.parametrize(
    ("after", "named"),
    [
        ([Outcome(0.9, 2.0, "end"), Outcome.failure(0.1)], ["'middle'", "'go'", "2.0"]),
        ([Outcome(0.8, 1.0, "end"), Outcome.failure(0.2)], ["'middle'", "'go'", "0.8"]),
        ([Outcome(0.9, 1.0, "end", "there"), Outcome.failure(0.1)], ["'middle'", "'go'", "there"]),
        ([Outcome(1.0, 1.0, "end")], ["'middle'", "'go'", "failure"]),
        (
            [Outcome.failure(0.9, 1.0, "end"), Outcome(0.1, 0.0, "middle", "failure")],
            ["'middle'", "'go'", "['failure', 'end']"],
        ),
    ],
    ids=["reward", "probability", "label", "fewer", "failure"],
)
def test_solve_sees_outcomes_that_change_after_the_search(after: Any, named: list[str]) -> None:
    model = Mission(**answer_go(change(SOUND.outcomes("middle", "go"), after)))
    with pytest.raises(vulcan.MismatchError) as caught:
        vulcan.solve(vulcan.Problem(model, ANY_RISK))
    assert [text for text in named if text not in str(caught.value)] == []


def test_solve_sees_actions_that_change_after_the_search() -> None:
    model = Mission(**answer_in(change(["go", "wait"], ["wait"])))
    with pytest.raises(vulcan.MismatchError, match=r"'go' in state 'middle'.* 'wait'"):
        vulcan.solve(vulcan.Problem(model, ANY_RISK))


def test_solve_sees_a_terminal_that_gets_actions_after_the_search() -> None:
    ask = change([], ["go"])
    model = Mission(horizon=3, actions=lambda s: ask() if s == "end" else SOUND.actions(s))
    with pytest.raises(vulcan.MismatchError, match="'end'"):
        vulcan.solve(vulcan.Problem(model, ANY_RISK))


def test_solve_sees_a_root_that_changes_after_the_search() -> None:
    model = Mission(**answer_go(change([one("middle")], [one("middle", 9.0)]), "start"))
    with pytest.raises(vulcan.MismatchError):
        vulcan.solve(vulcan.Problem(model, ANY_RISK))
