"""What the check of a model reports, to programs and to people."""

from __future__ import annotations

from tests.helpers.lying_models import (
    Mission,
    answer_go,
)
from vulcan import Outcome
from vulcan.model.checker import check_model
from vulcan.model.report import MOST_VIOLATIONS, Merged
from vulcan.model.rules import Violation


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
        ("evaluations", "4, up to 2 actions in a state"),
        ("outcomes", "5, up to 2 of an action"),
        ("rewards", "0 to 1"),
        ("largest risk", "0.1 of a single action"),
        ("levels", "2 decisions in the longest history"),
    ]
    violation = "probabilities sum to 0.5, not to 1 (state 'middle', action 'go')"
    assert str(report).splitlines()[-1] == f"probabilities sum to 1: {violation}"
    assert check_model(Mission(horizon=1, actions=lambda s: [])).rows()[4] == ("rewards", "none")


def test_report_shows_even_what_can_not_be_shown() -> None:
    class Faceless:
        def __repr__(self) -> str:
            raise ValueError("no face")

    state = Faceless()
    report = check_model(Mission(initial_state=lambda: state, actions=lambda state: 5))
    assert report.violations == (
        Violation(
            "actions are a list",
            "actions must be a list, in an order that stays, not 5",
            state,
            None,
            5,
        ),
    )
    assert "Faceless object" in str(report)


def test_merged_outcomes_are_named_and_break_no_rule() -> None:
    twice = [Outcome(0.25, 1.0, "end"), Outcome(0.5, 0.0, "end"), Outcome(0.25, 1.0, "end")]
    report = check_model(Mission(**answer_go(lambda: twice)))
    assert report.ok
    assert report.merged == (Merged("middle", "go", Outcome(0.5, 1.0, "end"), 2),)
    assert dict(report.rows())["merged"] == (
        "2 outcomes without labels end in 'end' with the same reward, and count as one "
        "(state 'middle', action 'go')"
    )
    again = check_model(Mission(outcomes=lambda state, action: twice, actions=lambda s: ["a", "b"]))
    assert again.merged_count == len(again.merged) == 4
    assert "; and in 3 more places" in str(again)
    assert report.most_outcomes == 2
