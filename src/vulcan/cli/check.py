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
    from vulcan.testing.compiled import CompiledReport

__all__ = ["EXAMPLES", "check"]

EXAMPLES = """
\b
Examples:
  vulcan check bandit --set horizon=4
  vulcan check rover.py:Rover --states 1000000 --json
  vulcan check mission.toml --set horizon=3
"""

MOST_COMPARED = 1_000
"""States of a compiled form that are compared with the plain one at the most."""

LONGEST = 10_000
"""Characters of a state or an action in a document: all of them, unless it is a whole table."""


def check(
    model: ModelText,
    settings: Settings = None,
    states: StateLimit = 100_000,
    as_json: AsJson = False,
) -> None:
    """Check that a model keeps the rules.

    Probabilities, rewards, states, labels, and answers that don't change. A compiled form, if there
    is one, must say the same as the plain one. Exit code 1 if a rule is broken.
    """
    from vulcan.cli.models import keep_off_stdout
    from vulcan.formats.registry import open_model
    from vulcan.model.checker import check_model

    with keep_off_stdout():
        checked, _ = open_model(model, settings or ())
        report = check_model(checked, most_states=states)
        compared = _compare_forms(checked, states) if report.ok else None
    if as_json:
        _print_document(checked, report, compared)
    else:
        _show(checked, report, compared)
    sound = report.ok and (compared is None or compared.ok)
    raise typer.Exit(ExitCode.YES if sound else ExitCode.NO)


def _compare_forms(model: Any, states: int) -> CompiledReport | None:
    """Compare the compiled form with the plain one, if the model has one that would be used."""
    from vulcan.model.interface import Start
    from vulcan.testing.compiled import check_compiled

    if getattr(model, "compiled", None) is None or isinstance(model.initial_state(), Start):
        return None
    return check_compiled(model, most_states=min(states, MOST_COMPARED))


def _print_document(model: Any, report: ModelReport, compared: CompiledReport | None) -> None:
    from vulcan.cli.documents import print_document
    from vulcan.model.interface import describe_model

    print_document(
        {
            "ok": report.ok and (compared is None or compared.ok),
            "finished": report.finished,
            "violation_count": report.violation_count,
            "violations": [_describe(violation, LONGEST) for violation in report.violations],
            "merged_count": report.merged_count,
            "merged": [_describe_merged(merged) for merged in report.merged],
            "compiled": None if compared is None else _describe_comparison(compared),
            "statistics": {
                "states": report.states,
                "terminals": report.terminals,
                "evaluations": report.evaluations,
                "outcomes": report.outcomes,
                "doubles": report.doubles,
            },
            "model": describe_model(model),
        }
    )


def _describe_comparison(compared: CompiledReport) -> dict[str, Any]:
    return {
        "ok": compared.ok,
        "finished": compared.finished,
        "states": compared.states,
        "evaluations": compared.evaluations,
        "violations": [_describe(violation, LONGEST) for violation in compared.violations],
    }


def _show(model: Any, report: ModelReport, compared: CompiledReport | None) -> None:
    from vulcan.cli import screen
    from vulcan.model.interface import describe_model
    from vulcan.model.report import MOST_SHOWN

    console = screen.open_console()
    count, violations = report.violation_count, report.violations
    rows = report.rows()[1:]  # the verdict, in the first row, is the heading
    if compared is not None:
        count, violations = len(compared.violations), compared.violations
        differs = f"differs in {_count_places(count)}" if count else "says the same"
        rows.append(("compiled", f"{differs}; {compared.states:,} states were compared"))
    verdict, style = ("✗ unsound", screen.BAD) if count else ("✓ sound", screen.GOOD)
    if not count and not report.finished:
        verdict, style = "✓ sound so far", screen.UNSURE
    text = screen.clip(describe_model(model))
    if count:
        text += f" breaks a rule in {_count_places(count)}"
    if not report.finished:
        text += "; not all states were walked"
    screen.show_heading(console, verdict, style, text)
    console.print()
    screen.show_rows(console, rows)
    if violations:
        console.print(_tabulate(violations[:MOST_SHOWN]))
        hidden = count - MOST_SHOWN
        if hidden > 0:
            kept = len(violations)
            listed = "them" if kept == count else f"the first {kept:,}"
            console.print(f"  and {hidden:,} more; --json lists {listed}", style=screen.QUIET)


def _count_places(count: int) -> str:
    return f"{count:,} place{'s' if count > 1 else ''}"


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
