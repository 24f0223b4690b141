"""`vulcan check`: put a model through the rules that every model must keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from vulcan.cli.codes import ExitCode
from vulcan.cli.options import AsJson, ModelText, Settings, StateLimit

if TYPE_CHECKING:
    from rich.table import Table

    from vulcan.reader import Violation
    from vulcan.testing import ModelReport

__all__ = ["EXAMPLES", "check"]

EXAMPLES = """
\b
Examples:
  vulcan check bandit --set horizon=4
  vulcan check rover.py:Rover --states 1000000 --json
"""

MOST_SHOWN = 20


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
    from vulcan.cli.models import find_model, keep_off_stdout
    from vulcan.testing import check_model

    with keep_off_stdout():
        checked = find_model(model, settings or ())
        report = check_model(checked, most_states=states)
    if as_json:
        _print_document(checked, report)
    else:
        _show(checked, report)
    raise typer.Exit(ExitCode.YES if report.ok else ExitCode.NO)


def _print_document(model: Any, report: ModelReport) -> None:
    from vulcan.cli.documents import print_document
    from vulcan.model import describe_model

    print_document(
        {
            "ok": report.ok,
            "finished": report.finished,
            "violation_count": report.violation_count,
            "violations": [_describe(violation) for violation in report.violations],
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
    from dataclasses import replace

    from vulcan.cli import screen
    from vulcan.model import describe_model

    console = screen.open_console()
    verdict, style = ("✓ sound", screen.GOOD) if report.ok else ("✗ unsound", screen.BAD)
    if report.ok and not report.finished:
        verdict, style = "✓ sound so far", screen.UNSURE
    count = report.violation_count
    text = screen.shorten(describe_model(model))
    if count:
        text += f" breaks a rule in {count:,} place{'s' if count > 1 else ''}"
    if not report.finished:
        text += "; not all states were walked"
    screen.show_heading(console, verdict, style, text)
    console.print()
    # The verdict, in the first row, was just given; the violations get a table of their own.
    screen.show_rows(console, replace(report, violations=()).rows()[1:])
    if report.violations:
        console.print(_tabulate(report.violations[:MOST_SHOWN]))
        hidden = count - MOST_SHOWN
        if hidden > 0:
            console.print(f"  and {hidden:,} more; --json lists them", style=screen.QUIET)


def _describe(violation: Violation) -> dict[str, str | None]:
    """Return a violation as texts; states and actions can be anything."""
    places = {name: getattr(violation, name) for name in ("state", "action", "value")}
    return {
        "rule": violation.rule,
        "message": violation.message.rstrip(","),  # a place may follow it elsewhere
        **{name: None if place is None else repr(place) for name, place in places.items()},
    }


def _tabulate(violations: Sequence[Violation]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from vulcan.cli.screen import BAD, printable, shorten

    names = ("rule", "state", "action", "value", "message")
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in names:
        table.add_column(name, style=BAD if name == "rule" else "", overflow="fold")
    for violation in violations:
        texts = _describe(violation)
        if isinstance(violation.value, float):
            texts["value"] = f"{violation.value:.6g}"  # the message has all digits
        table.add_row(*(Text(shorten(printable(texts[name] or "–"))) for name in names))
    return table
