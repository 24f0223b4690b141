"""`vulcan check`: put a model through the rules that every model must keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from vulcan.cli.codes import ExitCode
from vulcan.cli.options import AsJson, ModelText, Settings, StateLimit

if TYPE_CHECKING:
    from rich.table import Table

    from vulcan.model.report import Merged, ModelReport
    from vulcan.model.rules import Violation

__all__ = ["EXAMPLES", "check"]

EXAMPLES = """
\b
Examples:
  vulcan check bandit --set horizon=4
  vulcan check rover.py:Rover --states 1000000 --json
  vulcan check mission.toml --set horizon=3
"""

LONGEST = 10_000
"""Characters of a state or an action in a document: all of them, unless it is a whole table."""


def check(
    model: ModelText,
    settings: Settings = None,
    states: StateLimit = 100_000,
    as_json: AsJson = False,
) -> None:
    """Check that a model keeps the rules.

    Probabilities, rewards, states, labels, and answers that don't change. Exit code 1 if any is
    broken.
    """
    from vulcan.cli.models import keep_off_stdout
    from vulcan.formats.registry import open_model
    from vulcan.model.checker import check_model

    with keep_off_stdout():
        checked, _ = open_model(model, settings or ())
        report = check_model(checked, most_states=states)
    if as_json:
        _print_document(checked, report)
    else:
        _show(checked, report)
    raise typer.Exit(ExitCode.YES if report.ok else ExitCode.NO)


def _print_document(model: Any, report: ModelReport) -> None:
    from vulcan.cli.documents import print_document
    from vulcan.model.interface import describe_model

    print_document(
        {
            "ok": report.ok,
            "finished": report.finished,
            "violation_count": report.violation_count,
            "violations": [_describe(violation, LONGEST) for violation in report.violations],
            "merged_count": report.merged_count,
            "merged": [_describe_merged(merged) for merged in report.merged],
            "statistics": {
                "states": report.states,
                "terminals": report.terminals,
                "evaluations": report.evaluations,
                "outcomes": report.outcomes,
            },
            "model": describe_model(model),
        }
    )


def _show(model: Any, report: ModelReport) -> None:
    from vulcan.cli import screen
    from vulcan.model.interface import describe_model
    from vulcan.model.report import MOST_SHOWN

    console = screen.open_console()
    verdict, style = ("✓ sound", screen.GOOD) if report.ok else ("✗ unsound", screen.BAD)
    if report.ok and not report.finished:
        verdict, style = "✓ sound so far", screen.UNSURE
    count = report.violation_count
    text = screen.clip(describe_model(model))
    if count:
        text += f" breaks a rule in {count:,} place{'s' if count > 1 else ''}"
    if not report.finished:
        text += "; not all states were walked"
    screen.show_heading(console, verdict, style, text)
    console.print()
    # The verdict, in the first row, was just given.
    screen.show_rows(console, report.rows()[1:])
    if report.violations:
        console.print(_tabulate(report.violations[:MOST_SHOWN]))
        hidden = count - MOST_SHOWN
        if hidden > 0:
            kept = len(report.violations)
            listed = "them" if kept == count else f"the first {kept:,}"
            console.print(f"  and {hidden:,} more; --json lists {listed}", style=screen.QUIET)


def _describe(violation: Violation, most: int) -> dict[str, str | None]:
    """Return a violation as strings; states and actions can be anything, and of any length."""
    from vulcan.parameters import shorten

    places = {name: getattr(violation, name) for name in ("state", "action", "value")}
    return {
        "rule": violation.rule,
        "message": violation.message,
        **{name: None if place is None else shorten(place, most) for name, place in places.items()},
    }


def _describe_merged(merged: Merged) -> dict[str, str | int | None]:
    """Return outcomes that count as one as strings, like violations."""
    from vulcan.parameters import shorten

    places = {"state": merged.state, "action": merged.action}
    after = None if merged.outcome.fails else shorten(merged.outcome.state, LONGEST)
    texts = {name: shorten(place, LONGEST) for name, place in places.items()}
    return {**texts, "next_state": after, "outcomes": merged.count}


def _tabulate(violations: Sequence[Violation]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from vulcan.cli.screen import BAD, clip, printable

    names = ("rule", "state", "action", "value", "message")
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in names:
        table.add_column(name, style=BAD if name == "rule" else "", overflow="fold")
    for violation in violations:
        texts = _describe(violation, most=160)
        if isinstance(violation.value, float):
            texts["value"] = f"{violation.value:.6g}"  # the message has all digits
        table.add_row(*(Text(clip(printable(texts[name] or "–"))) for name in names))
    return table
