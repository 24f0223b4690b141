"""`vulcan show` and `vulcan explore`: a policy as a tree, a table, or a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vulcan.cli import ExitCode, documents, options, output
from vulcan.errors import OptionError
from vulcan.runtime.formatting import clip

if TYPE_CHECKING:
    from vulcan.policy.policy import AnyPolicy
    from vulcan.policy.views import PolicyTable


def show(
    plan: Path,
    model: str | None = None,
    settings: list[str] | None = None,
    depth: int | None = None,
    table: bool = False,
    sort: str | None = None,
    top: int | None = None,
    file: Path | None = None,
    as_json: bool = False,
) -> None:
    """Show what a policy file holds, as a tree or a table.

    Nothing in the file is run. A model is needed only for states: without it, rows are named by the
    most likely history that leads there. `vulcan certify` says whether the policy is safe, and
    `vulcan explain` what else could be done.

    Examples
    --------
    vulcan show plan.vulcan
    vulcan show plan.vulcan --depth 9 | less
    vulcan show plan.vulcan --table --sort reach --top 20
    vulcan show plan.vulcan -o plan.csv
    vulcan show plan.vulcan bandit --json
    """
    import vulcan
    from vulcan.formats.registry import open_model
    from vulcan.policy.views import check_table_file

    if model is None and settings:
        raise OptionError("--set needs the model: vulcan show PLAN MODEL --set")
    if file is not None:
        check_table_file(file)
        output.check_output(file)
    policy = vulcan.Policy.load(plan)
    as_rows = table or sort or top or file
    with options.keep_off_stdout():
        if model is not None:
            opened, _ = open_model(model, settings or ())
            policy = policy.bind(opened)
        if as_rows:
            rows = policy.table()
            if top is not None:
                rows = rows.top(top, sort or "risk")
            elif sort is not None:
                rows = rows.sort(sort)
        elif as_json:
            document = documents.describe_policy(policy, depth)
    if as_rows:
        _show_rows(rows, top, file, as_json)
    elif as_json:
        documents.print_document({"policy": document})
    else:
        _show_tree(policy, depth)


def _show_rows(rows: PolicyTable, top: int | None, file: Path | None, as_json: bool) -> None:
    from vulcan.policy.views import MOST_ROWS, build_text_table, describe_left_out

    if file is not None:
        rows.save(file)
        output.tell_saved(file, as_json)
        return
    if as_json:
        documents.print_document({"table": documents.describe_table(rows)})
        return
    console = output.open_console()
    most = MOST_ROWS if top is None else top
    output.show_table(console, build_text_table(rows, most))
    if left_out := describe_left_out(rows, most):
        console.print(f"\n  {left_out}", style=output.QUIET)


def _show_tree(policy: AnyPolicy, depth: int | None) -> None:
    about = policy.about
    outcomes = sum(len(member.label) for member in policy.members)
    discounted = "" if about.discount == 1 else f", discount {about.discount!r}"
    rows = [
        ("model", clip(about.model)),
        ("fingerprint", about.fingerprint),
        ("horizon", f"{about.horizon:,} steps{discounted}"),
        ("risk bound", about.risk_bound or "a function that can't be written down"),
        *([("constraints", ", ".join(about.constraints))] if about.constraints else ()),
        ("solver", clip(about.solver)),
        *output.describe_members(policy),
        ("decisions", f"{len(policy):,}, with {outcomes:,} outcomes"),
        ("complete", "yes" if policy.complete else "no: some histories are not planned"),
    ]
    console = output.open_console()
    styles = {"model": "bold", "complete": "" if policy.complete else output.BAD}
    output.show_rows(console, rows, styles)
    output.show_policy(console, policy, depth)


def explore(
    plan: Path,
    model: str,
    file: Path,
    settings: list[str] | None = None,
    bound: str | None = None,
    constraints: list[str] | None = None,
    what_if: float = 5.0,
) -> None:
    """Write a plan as a page: one HTML file that people explore in any browser.

    The page shows the first action, the action after a bad outcome, where the risk is taken, what
    changes with less of it, and how probable the worst branch is. It shows the plan as a tree along
    which one clicks, with reward and risk so far and ahead, the bound, and the map of a mission. It
    needs no server and no network.

    Examples
    --------
    vulcan explore plan.vulcan rover.py:Rover --set days=6 -o plan.html
    vulcan explore plan.vulcan mission.toml -o plan.html --what-if 30
    """
    import vulcan

    output.check_output(file)
    with options.keep_off_stdout():
        policy, problem, source = options.open_plan(plan, model, settings, bound, constraints)
        if source == "":
            raise OptionError("Missing option '--bound': the policy file has none")
        own = source is None
        page = vulcan.explore(problem, policy, what_if=what_if or None, own_bound=own)
    page.save(file)
    rows = [("judged by", source or f"the bound in {plan}")]
    rows += [(answer.question, answer.words) for answer in page.answers]
    output.show_answer("✓ written", output.GOOD, "open the file in a browser", rows)
    output.tell_saved(file)
    raise typer.Exit(ExitCode.YES)
