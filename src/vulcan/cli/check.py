"""`vulcan check`: check a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import typer

from vulcan.cli import ExitCode, documents, options, output
from vulcan.parameters import shorten

if TYPE_CHECKING:
    from vulcan.model.check import ModelReport
    from vulcan.model.rules import Violation
    from vulcan.testing import CompiledReport

MOST_COMPARED: Final = 1_000  # states in which the compiled form is compared with the plain one
LONGEST: Final = 10_000  # characters of a state or an action in a document: enough but for tables


def check(
    model: str, settings: list[str] | None = None, most_states: int = 100_000, as_json: bool = False
) -> None:
    """Check that a model keeps the rules.

    The rules are about probabilities, rewards, states and labels, and about outcomes that must not
    change between calls. A compiled form, if there is one, must agree with the plain one. Exit code
    1 if a rule is broken.

    Examples
    --------
    vulcan check bandit --set horizon=4
    vulcan check rover.py:Rover --most-states 1000000 --json
    vulcan check mission.toml --set horizon=3
    """
    from vulcan.formats.registry import open_model
    from vulcan.model.check import check_model
    from vulcan.model.interface import Start
    from vulcan.testing import check_compiled

    compared = None
    with options.keep_off_stdout():
        checked, _ = open_model(model, settings or ())
        report = check_model(checked, most_states=most_states)
        compiled = report.ok and getattr(checked, "compiled", None) is not None
        if compiled and not isinstance(checked.initial_state(), Start):  # as solvers would use it
            compared = check_compiled(checked, most_states=min(most_states, MOST_COMPARED))
    (_print_document if as_json else _show)(checked, report, compared)
    sound = report.ok and (compared is None or compared.ok)
    raise typer.Exit(ExitCode.YES if sound else ExitCode.NO)


def _print_document(model: Any, report: ModelReport, compared: CompiledReport | None) -> None:
    from vulcan.model.interface import describe_model

    statistics = ("states", "terminals", "evaluations", "outcomes", "duplicates")
    differing = [_describe(violation) for violation in compared.violations] if compared else []
    documents.print_document(
        {
            "ok": report.ok and (compared is None or compared.ok),
            "finished": report.finished,
            "violation_count": report.violation_count,
            "violations": [_describe(violation) for violation in report.violations],
            "costs": report.costs,
            "events": sorted(report.events),
            "merged": report.merged,
            "first_merged": report.first_merged,
            "compiled": compared and documents.describe(compared, "ok", violations=differing),
            "statistics": {name: getattr(report, name) for name in statistics},
            "model": describe_model(model),
        }
    )


def _describe(violation: Violation) -> dict[str, str | None]:
    """Return a violation as strings; states and actions can be anything, and of any length."""
    places = {name: getattr(violation, name) for name in ("state", "action", "value")}
    texts = {name: None if x is None else shorten(x, LONGEST) for name, x in places.items()}
    return {"rule": violation.rule, "message": violation.message, **texts}


def _show(model: Any, report: ModelReport, compared: CompiledReport | None) -> None:
    from vulcan.model.check import MOST_SHOWN

    count, violations = report.violation_count, report.violations
    rows = report.rows()[1:]  # the verdict, in the first row, is the heading
    if compared is not None:
        count, violations = len(compared.violations), compared.violations
        verdict = f"differs in {_count_places(count)}" if count else "agrees"
        rows.append(("compiled", f"{verdict}, compared in {compared.states:,} states"))
    verdict, style = ("✗ unsound", output.BAD) if count else ("✓ sound", output.GOOD)
    if not count and not report.finished:
        verdict, style = "✓ sound so far", output.UNSURE
    text = output.name_model(model)[1]
    if count:
        text += f" breaks a rule in {_count_places(count)}"
    if not report.finished:
        text += "; not all states were visited"
    console = output.show_answer(verdict, style, text, rows)
    if violations:
        console.print()
        output.show_rows(console, [(one.rule, str(one)) for one in violations[:MOST_SHOWN]])
    if count > MOST_SHOWN:
        console.print(f"  and {count - MOST_SHOWN:,} more; see --json", style=output.QUIET)


def _count_places(count: int) -> str:
    return f"{count:,} place{'s' if count > 1 else ''}"
