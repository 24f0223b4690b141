"""`vulcan explain`: where a policy earns its reward and takes its risk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from vulcan.cli.codes import ExitCode
from vulcan.cli.options import AsJson, ModelText, PlanFile, Rows, Settings

if TYPE_CHECKING:
    from rich.console import Console

    from vulcan.certificates.explanation import Choice, Explanation, SureFailure
    from vulcan.certificates.problem import Problem

__all__ = ["EXAMPLES", "explain"]

EXAMPLES = """
\b
Examples:
  vulcan explain plan.vulcan bandit
  vulcan explain plan.vulcan rover.py:Rover --set days=6 --rows 30
  vulcan explain plan.vulcan mission.toml --json
"""


def explain(
    plan: PlanFile,
    model: ModelText,
    settings: Settings = None,
    rows: Rows = 10,
    as_json: AsJson = False,
) -> None:
    """Say where a policy takes its risk, and whether it fails on purpose.

    A policy fails on purpose (exit code 1) if it takes an action that surely fails where another
    would not. That is nearly always a mistake of the model: failing costs less than going on.
    """
    import vulcan
    from vulcan.bounds.straight import Constant
    from vulcan.cli.models import keep_off_stdout
    from vulcan.formats.registry import open_model

    policy = vulcan.Policy.load(plan)
    with keep_off_stdout():
        problem = vulcan.Problem(open_model(model, settings or ()).model, Constant(1.0))
        explanation = vulcan.explain(problem, policy)
    _show(problem, explanation, rows, as_json)
    raise typer.Exit(ExitCode.NO if explanation.deliberate else ExitCode.YES)


def _show(problem: Problem, explanation: Explanation, most: int, as_json: bool) -> None:
    from vulcan.cli import documents, screen
    from vulcan.model.interface import describe_model
    from vulcan.runtime.formatting import show_percent, show_probability, show_reward

    if as_json:
        documents.print_document(documents.describe_explanation(explanation, problem, most))
        return
    console = screen.open_console()
    screen.show_heading(console, *_judge(explanation))
    console.print()
    tempting = "none of it where failing pays more than going on"
    if explanation.tempting:
        share = show_percent(explanation.tempting / explanation.risk)
        tempting = f"{share} of it where failing pays more than going on"
    rows = [
        ("model", screen.clip(describe_model(problem.model))),
        ("reward", show_reward(explanation.reward)),
        ("risk", f"{show_probability(explanation.risk)}  {tempting}"),
    ]
    screen.show_rows(console, rows, {"risk": screen.UNSURE if explanation.tempting else ""})
    _show_failures(console, explanation.failures, most)
    risky = [choice for choice in explanation.choices if choice.risk > 0]
    _show_choices(console, "Where the risk is taken", risky, explanation, most)
    _show_choices(console, "What the actions bring", explanation.actions, explanation, most)


def _judge(explanation: Explanation) -> tuple[str, str, str]:
    """Return the answer in a word or two, its colour, and a sentence."""
    from vulcan.cli import screen
    from vulcan.runtime.formatting import show_percent

    if explanation.deliberate:
        chance = show_percent(explanation.deliberate)
        return (
            "✗ fails on purpose",
            screen.BAD,
            f"with probability {chance}, where something else could be done. That is nearly always "
            "a mistake of the model: failing costs less than going on",
        )
    if explanation.tempting:
        return (
            "? failing pays",
            screen.UNSURE,
            "in some states failing pays more than going on. If that is not meant, let the model "
            "charge more for failing",
        )
    return "✓ nothing odd", screen.GOOD, "the policy never fails on purpose"


def _show_failures(console: Console, failures: Sequence[SureFailure], most: int) -> None:
    from vulcan.cli import screen
    from vulcan.runtime.formatting import TextTable, show_percent

    if not failures:
        return
    rows, styles = [], []
    for failure in failures[:most]:
        remark = "nothing else could be done"
        if failure.instead is not None and failure.instead_risk is not None:
            remark = f"{failure.instead} fails {show_percent(failure.instead_risk)}"
        rows.append([failure.action, failure.state, show_percent(failure.probability), remark])
        styles.append(screen.QUIET if failure.instead is None else screen.BAD)
    screen.show_title(console, "Actions that surely fail", len(failures) - most)
    table = TextTable(["action", "state", "how often", ""], rows, left=2)
    screen.show_table(console, table, styles)


def _show_choices(
    console: Console,
    title: str,
    choices: Sequence[Choice],
    explanation: Explanation,
    most: int,
) -> None:
    from vulcan.cli import screen
    from vulcan.runtime.formatting import TextTable, show_percent, show_probability, show_reward

    if not choices:
        return
    named = any(choice.state for choice in choices)
    rows, styles = [], []
    for choice in choices[:most]:
        share = show_percent(choice.risk / explanation.risk) if explanation.risk else ""
        numbers = [f"{choice.times:.4g}", show_reward(choice.reward)]
        where = [choice.action, *([choice.state] if named else [])]
        remark = "failing pays more than going on" if named and choice.tempting else ""
        rows.append([*where, *numbers, show_probability(choice.risk), share, remark])
        styles.append(screen.UNSURE)
    screen.show_title(console, title, len(choices) - most)
    header = ["action", *(["state"] if named else []), "times", "reward", "risk", "share", ""]
    screen.show_table(console, TextTable(header, rows, left=1 + named), styles)
