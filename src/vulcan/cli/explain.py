"""`vulcan explain`: where a policy takes its risk, and what was rejected there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from vulcan.cli.codes import ExitCode
from vulcan.cli.options import (
    ANSWER,
    AsJson,
    Look,
    ModelText,
    PlanFile,
    RecordedBoundText,
    Rows,
    Settings,
)

if TYPE_CHECKING:
    from rich.console import Console

    from vulcan.certificates.explanation import Choice, Explanation, RiskyPlace, SureFailure
    from vulcan.certificates.problem import Problem

__all__ = ["EXAMPLES", "explain"]

EXAMPLES = """
\b
Examples:
  vulcan explain plan.vulcan bandit
  vulcan explain plan.vulcan rover.py:Rover --set days=6 --rows 30
  vulcan explain plan.vulcan bandit --what-if 5
  vulcan explain plan.vulcan mission.toml --rows 5 --look 2
  vulcan explain plan.vulcan mission.toml --json
"""

BAR = 40
LONGEST_HISTORY = 100
"""Characters; of a longer one the last steps are shown."""

WhatIfSeconds = Annotated[
    float | None,
    typer.Option(
        "--what-if",
        metavar="SECONDS",
        help="Solve again for 10 % more and 10 % less allowed risk, each with this time limit.",
        show_default="by the price of risk, where it is known",
        rich_help_panel=ANSWER,
    ),
]


def explain(
    plan: PlanFile,
    model: ModelText,
    settings: Settings = None,
    bound: RecordedBoundText = None,
    rows: Rows = 10,
    what_if: WhatIfSeconds = None,
    look: Look = None,
    as_json: AsJson = False,
) -> None:
    """Say where a policy takes its risk, what was rejected there, and if it fails on purpose.

    At the places that take the most risk, the best other action is shown, and why it was rejected:
    put there, the rest of the plan kept, it would be too risky for the bound, or worth less. A
    policy fails on purpose (exit code 1) if it takes an action that surely fails where another
    would not. That is nearly always a mistake of the model: failing costs less than going on.
    """
    import vulcan
    from vulcan.bounds.straight import Constant
    from vulcan.cli.models import choose_bound, keep_off_stdout
    from vulcan.formats.registry import open_model

    policy = vulcan.Policy.load(plan)
    with keep_off_stdout():
        found, own_bound = open_model(model, settings or ())
        chosen = choose_bound(bound, own_bound, policy.about)
        problem = vulcan.Problem(found, Constant(1.0) if chosen is None else chosen)
        # Without a bound nothing is too risky, and what else could be done says nothing.
        places = 0 if chosen is None else rows
        explanation = vulcan.explain(problem, policy, places=places, what_if=what_if, look=look)
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
        *_describe_bound(problem, explanation),
    ]
    screen.show_rows(console, rows, {"risk": screen.UNSURE if explanation.tempting else ""})
    _show_failures(console, explanation.failures, most)
    if explanation.places and all(place.alike == 1 for place in explanation.places):
        _show_steps(console, explanation, most)  # states hardly come again: a row would be a place
    else:
        risky = [choice for choice in explanation.choices if choice.risk > 0]
        _show_choices(console, "Where the risk is taken", risky, explanation, most)
    _show_places(console, explanation)
    _show_choices(console, "What the actions bring", explanation.actions, explanation, most)


def _describe_bound(problem: Problem, explanation: Explanation) -> list[tuple[str, str]]:
    """Return what the bound allows, and what more or less of it would change."""
    from vulcan.runtime.formatting import show_probability, show_reward
    from vulcan.tolerance import TOLERANCE

    if explanation.compared is None and not explanation.what_if:
        return []
    allowed = problem.risk_bound(explanation.reward)
    rows = [("allowed risk", f"{show_probability(allowed)}  Δ(x) = {problem.risk_bound}")]
    known = {case.scale: case for case in explanation.what_if}
    for scale, name in ((0.9, "10 % less"), (1.1, "10 % more")):
        case = known.get(scale)
        if case is None:
            rows.append((name, "not known without solving again (--what-if SECONDS)"))
            continue
        if case.reward is None:
            rows.append((name, "no plan was found for so much allowed risk"))
            continue
        change = f"{case.reward - explanation.reward:+.4g}"
        if case.source == "kept":
            text = "no change: the plan is within that, too"
            if scale > 1:
                text = "no change: the bound does not hold the plan back"
        elif abs(case.reward - explanation.reward) <= TOLERANCE * max(1.0, abs(case.reward)):
            text = "no change, solved again"
        elif case.source == "price":
            text = f"{change} of reward, about: by the price of risk, {explanation.price:.4g}"
        else:
            limit = f", at most {show_reward(case.upper_bound)}" if case.upper_bound else ""
            text = (
                f"{change} of reward, solved again: {show_reward(case.reward)}{limit}, "
                f"at risk {show_probability(case.risk)}"
            )
        rows.append((name, text))
    return rows


def _show_places(console: Console, explanation: Explanation) -> None:
    """Show the places that take the most risk, and what was rejected there."""
    from vulcan.cli import screen
    from vulcan.runtime.formatting import show_percent

    if not explanation.places:
        return
    screen.show_title(console, "Which histories take it, and what was rejected there")
    screen.show_rows(console, [("compared", explanation.compared or "")])
    for place in explanation.places:
        console.print()
        share = show_percent(place.alike_risk / explanation.risk)
        reached = f"step {place.step + 1}, reached with {show_percent(place.reach)}"
        if place.alike > 1:
            reached = f"at {place.alike:,} places, most at {reached}"
        rows = [
            (f"{share:>7}", f"{place.action} in {place.state}, fails {show_percent(place.fails)}"),
            ("when", reached),
            ("after", _describe_history(place)),
            ("not", _describe_alternative(place, explanation)),
        ]
        screen.show_rows(console, [row for row in rows if row[1]])


def _show_steps(console: Console, explanation: Explanation, most: int) -> None:
    """Show which steps take the most risk, in their order."""
    from vulcan.cli import screen
    from vulcan.runtime.formatting import TextTable, show_percent, show_probability

    risky = [step for step, risk in enumerate(explanation.steps) if risk > 0]
    shown = sorted(sorted(risky, key=lambda step: -explanation.steps[step])[:most])
    rows = []
    for step in shown:
        share = explanation.steps[step] / explanation.risk
        text = show_percent(share)
        bar = "█" * round(BAR * share)
        rows.append([str(step + 1), show_probability(explanation.steps[step]), text, bar])
    screen.show_title(console, "When the risk is taken", len(risky) - most)
    table = TextTable(["step", "risk", "share", ""], rows)
    screen.show_table(console, table, [screen.UNSURE] * len(rows))


def _describe_history(place: RiskyPlace) -> str:
    """Return how one comes to a place most likely, as far as there is room for it."""
    parts = [f"{action} → {outcome}" for action, outcome in place.history]
    text = "; ".join(parts)
    while len(text) > LONGEST_HISTORY and len(parts) > 1:
        parts = parts[1:]
        text = "… " + "; ".join(parts)
    return text


def _describe_alternative(place: RiskyPlace, explanation: Explanation) -> str:
    """Return what else could be done at a place, and why it is not."""
    from vulcan.runtime.formatting import show_probability
    from vulcan.tolerance import TOLERANCE

    other = place.alternative
    if other is None:
        return "anything else: there is no other action"
    reward, risk = (
        change if abs(change) > TOLERANCE else 0.0
        for change in (other.reward_change, other.risk_change)
    )
    changes = f"reward {reward:+.3g}, risk {risk:+.3g}"
    if other.verdict == "worth less":
        verdict = "worth less, and riskier" if other.risk_change > 0 else "worth less"
        return f"{other.action}: {verdict} ({changes})"
    if other.verdict == "as good":
        beside = ", and safer" if risk < 0 else ", but riskier" if risk > 0 else ""
        return f"{other.action}: worth as much{beside}" + (f" ({changes})" if beside else "")
    if other.verdict == "not known":
        led = f"if {place.action} is right, it is for what it leads to"
        return f"{other.action}: by the step alone it would be better ({changes}); {led}"
    if other.verdict == "better":
        return f"{other.action}: would be better ({changes}); the plan is not the best one"
    whole = show_probability(explanation.risk + other.risk_change)
    text = f"{other.action}: too risky ({changes}: {whole}, of {show_probability(other.allowed)})"
    if other.careful is not None:
        text += f"; going on as safely as possible, reward {other.careful:+.3g}"
    return text


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
            "a mistake of the model: failing costs no more than going on",
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
