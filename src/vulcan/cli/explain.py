"""`vulcan explain`: where a policy takes its risk, and what was rejected there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vulcan.cli import ExitCode, documents, options, output
from vulcan.numerics import TOLERANCE
from vulcan.runtime.formatting import TextTable, clip, show_percent, show_probability, show_reward

if TYPE_CHECKING:
    from rich.console import Console

    from vulcan.planning.explain import Choice, Explanation, RiskyPlace, Spending
    from vulcan.policy.policy import AnyPolicy
    from vulcan.problem import Problem

LAST = 4  # steps of a history that are shown: the last ones


def explain(
    plan: Path,
    model: str,
    settings: list[str] | None = None,
    bound: str | None = None,
    constraints: list[str] | None = None,
    rows: int = 10,
    as_json: bool = False,
) -> None:
    """Show where a policy takes its risk, what was rejected there, and if it fails on purpose.

    At the places that take the most risk, the best other action is shown, and why it was rejected:
    put there, the rest of the plan kept, it would be too risky for the bound, or worth less. A
    policy fails on purpose (exit code 1) if it takes an action that surely fails where another
    would not. That is nearly always a mistake in the model: failing costs less than going on.

    Examples
    --------
    vulcan explain plan.vulcan bandit
    vulcan explain plan.vulcan rover.py:Rover --set days=6 --rows 30
    vulcan explain plan.vulcan mission.toml --json
    """
    import vulcan

    with options.keep_off_stdout():
        policy, problem, source = options.open_plan(plan, model, settings, bound, constraints)
        # Without a bound nothing is too risky, so that rejected actions can't be explained.
        places = 0 if source == "" else rows
        explanation = vulcan.explain(problem, policy, places=places)
    judged_by = f"the bound in {plan}" if source is None else source or "no bound"
    if as_json:
        document = documents.describe_explanation(explanation, problem, rows)
        documents.print_document({**document, "bound_from": judged_by})
    else:
        _show(problem, policy, explanation, rows, judged_by)
    raise typer.Exit(ExitCode.NO if explanation.deliberate else ExitCode.YES)


def _show(
    problem: Problem, policy: AnyPolicy, explanation: Explanation, most: int, judged_by: str
) -> None:
    share = "none"
    if explanation.tempting:
        share = show_percent(explanation.tempting / explanation.risk)
    tempting = f"{share} of it where failing pays more than going on"
    rows = [
        output.name_model(problem.model),
        ("judged by", clip(judged_by)),
        ("reward", show_reward(explanation.reward)),
        ("risk", f"{show_probability(explanation.risk)}  {tempting}"),
        ("unavoidable", f"{show_probability(explanation.unavoidable)}, whatever is done"),
        *_describe_bound(problem, explanation),
        *map(_describe_spending, explanation.spent),
    ]
    styles = {"risk": output.UNSURE if explanation.tempting else ""}
    console = output.show_answer(*_judge(explanation, policy), rows, styles)
    failures = []
    for failure in explanation.failures[:most]:
        remark = "no other action is available"
        if failure.instead is not None and failure.instead_risk is not None:
            remark = f"{failure.instead} fails {show_percent(failure.instead_risk)}"
        failures.append([failure.action, failure.state, show_percent(failure.times), remark])
    if failures:
        table = TextTable(["action", "state", "how often", ""], failures, left=2)
        output.show_table(console, table, "Actions that surely fail")
    # Where histories do not merge, each row would be one of the places below.
    if any(place.alike > 1 for place in explanation.places) or not explanation.places:
        risky = [choice for choice in explanation.choices if choice.accepted > 0]
        _show_choices(console, "Where the risk is accepted", risky, explanation, most)
    _show_places(console, explanation)
    _show_choices(console, "Reward and risk of the actions", explanation.actions, explanation, most)


def _describe_bound(problem: Problem, explanation: Explanation) -> list[tuple[str, str]]:
    """Return the allowed risk, and what more of it would earn."""
    if explanation.compared is None and explanation.price is None:
        return []
    allowed = problem.risk_bound(explanation.reward)
    rows = [("allowed risk", f"{show_probability(allowed)}  Δ(x) = {problem.risk_bound}")]
    price = explanation.price
    if price == 0:
        rows.append(("price of risk", "0: the bound does not limit the plan"))
    elif price is not None:
        change = f"10 % more allowed risk would earn about {0.1 * allowed * price:+.4g}"
        rows.append(("price of risk", f"{price:.4g} of reward per unit of allowed risk: {change}"))
    return rows


def _describe_spending(spending: Spending) -> tuple[str, str]:
    """Return the largest parts of what a further constraint is spent on."""
    parts = [f"{x:.4g} by {action} in {state}" for action, state, x in spending.choices[:LAST]]
    if spending.history:
        steps = [f"{action} → {outcome}" for action, outcome in spending.history[-LAST:]]
        parts.append(f"after {'; '.join(steps)}")
    return spending.quantity, f"{spending.total:.6g}: {', '.join(parts) or 'nothing'}"


def _show_places(console: Console, explanation: Explanation) -> None:
    """Show the places that take the most risk, and the actions rejected there."""
    if not explanation.places:
        return
    console.print("\n  Which histories take it, and what was rejected there", style="bold")
    output.show_rows(console, [("compared", explanation.compared or "")])
    for place in explanation.places:
        console.print()
        share = show_percent(place.alike_accepted / explanation.risk)
        reached = f"step {place.step + 1}, reached with {show_percent(place.reach)}"
        if place.alike > 1:
            reached = f"at {place.alike:,} places, most at {reached}"
        steps = [f"{action} → {outcome}" for action, outcome in place.history]
        failing = f"fails at once {show_percent(place.fails)}"
        rows = [
            (f"{share:>7}", f"{place.action} in {place.state}, {failing}"),
            ("when", reached),
            ("after", ("… " if len(steps) > LAST else "") + "; ".join(steps[-LAST:])),
            ("not", _describe_alternative(place, explanation)),
        ]
        output.show_rows(console, [row for row in rows if row[1]])


def _describe_alternative(place: RiskyPlace, explanation: Explanation) -> str:
    """Return the best other action at a place, and why it was rejected."""
    other = place.alternative
    if other is None:
        return "no other action is available"
    reward, risk = (
        change if abs(change) > TOLERANCE else 0.0
        for change in (other.reward_change, other.risk_change)
    )
    changes = f"reward {reward:+.3g}, risk {risk:+.3g}"
    whole = show_probability(explanation.risk + other.risk_change)
    verdicts = {
        "as good": "worth as much",
        "too risky": f"too risky, {whole} of {show_probability(other.allowed)}",
        "better": "would be better; the plan is not the best one",
        "not known": "better in this step; later effects unknown",
    }
    text = f"{other.action}: {verdicts.get(other.verdict, other.verdict)} ({changes})"
    if other.safest_change is not None:
        text += f"; going on as safely as possible, reward {other.safest_change:+.3g}"
    return text


def _judge(explanation: Explanation, policy: AnyPolicy) -> tuple[str, str, str]:
    """Return the verdict, its colour, and a sentence."""
    from vulcan.planning.explain import describe_sure_failures

    sure = describe_sure_failures(policy, explanation)
    if explanation.deliberate:
        return "✗ fails on purpose", output.BAD, sure or ""
    if explanation.tempting:
        why = "in some states failing pays more than going on"
        what = "If that is not meant, let the model charge more for failing"
        return "? failing pays", output.UNSURE, f"{why}. {what}"
    remark = "" if sure is None else f"; {sure}"
    return "✓ no problems found", output.GOOD, f"the policy never fails on purpose{remark}"


def _show_choices(
    console: Console, title: str, choices: Sequence[Choice], explanation: Explanation, most: int
) -> None:
    if not choices:
        return
    named = any(choice.state for choice in choices)
    rows = []
    for choice in choices[:most]:
        share = show_percent(choice.accepted / explanation.risk) if explanation.risk else ""
        numbers = [f"{choice.times:.4g}", show_reward(choice.reward)]
        where = [choice.action, *([choice.state] if named else [])]
        remark = "failing pays more than going on" if named and choice.tempting else ""
        risks = [show_probability(risk) for risk in (choice.risk, choice.accepted)]
        rows.append([*where, *numbers, *risks, share, remark])
    names = ["action", *(["state"] if named else [])]
    header = [*names, "times", "reward", "fails", "accepts", "share", ""]
    table = TextTable(header, rows, left=1 + named)
    output.show_table(console, table, title)
