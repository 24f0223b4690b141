"""`vulcan show`: what a policy file holds, as a tree, a table or a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vulcan.cli.options import (
    ANSWER,
    FILES,
    AsJson,
    Depth,
    Look,
    OptionalModelText,
    PlanFile,
    RecordedBoundText,
    Settings,
)

if TYPE_CHECKING:
    from rich.console import Console

    from vulcan.certificates.problem import Problem
    from vulcan.policies.randomised import AnyPolicy
    from vulcan.policies.table import PolicyTable

__all__ = ["EXAMPLES", "show"]

EXAMPLES = """
\b
Examples:
  vulcan show plan.vulcan
  vulcan show plan.vulcan --depth 9 | less
  vulcan show plan.vulcan --table --where step=3 --top 20
  vulcan show plan.vulcan rover.py:Rover --matrix
  vulcan show plan.vulcan rover.py:Rover --table --top 10 --instead
  vulcan show plan.vulcan -o plan.csv
  vulcan show plan.vulcan bandit --json
"""

AsTable = Annotated[
    bool,
    typer.Option(
        "--table",
        help="Show a row for each decision: step, state (or history), action, how likely it is, "
        "the risk taken there, and the risk and the reward ahead.",
        rich_help_panel=ANSWER,
    ),
]
AsMatrix = Annotated[
    bool,
    typer.Option(
        "--matrix",
        help="Show what is done in which state at which step; needs MODEL.",
        rich_help_panel=ANSWER,
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help="Only the rows that meet it: step=3, 'reach>=1%', 'state~severe' (contains), "
        "action!=rest. May be repeated; all must be met.",
        show_default=False,
        rich_help_panel=ANSWER,
    ),
]
Sort = Annotated[
    str | None,
    typer.Option(
        "--sort",
        metavar="COLUMN",
        help="The order of the rows: reach, risk, risk_ahead, reward_ahead, action, ... Numbers "
        "begin with the largest, steps and words with the first.",
        show_default="step; with --top, risk",
        rich_help_panel=ANSWER,
    ),
]
Top = Annotated[
    int | None,
    typer.Option(
        "--top",
        min=1,
        metavar="N",
        help="Only the first N rows of that order.",
        show_default="60 on the screen, all in a file",
        rich_help_panel=ANSWER,
    ),
]
Instead = Annotated[
    bool,
    typer.Option(
        "--instead",
        help="Say also what else could be done in each row that is shown, and why it is not; "
        "needs MODEL.",
        rich_help_panel=ANSWER,
    ),
]
TableFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the table to a file: .csv, .md, .html or .parquet (with pandas or polars); "
        "with --matrix, .html. An existing file is replaced.",
        rich_help_panel=FILES,
    ),
]


def show(
    plan: PlanFile,
    model: OptionalModelText = None,
    settings: Settings = None,
    bound: RecordedBoundText = None,
    depth: Depth = None,
    table: AsTable = False,
    matrix: AsMatrix = False,
    where: Where = None,
    sort: Sort = None,
    top: Top = None,
    instead: Instead = False,
    look: Look = None,
    output: TableFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what a policy file holds, as a tree, a table or a matrix.

    Nothing in the file is run, and no model is needed but for states (without a model, rows are
    known by the likeliest history that leads there) and for what else could be done. Whether the
    policy is safe is for `vulcan certify` to say.
    """
    from vulcan.cli import documents, screen
    from vulcan.cli.models import keep_off_stdout
    from vulcan.policies.policy import Policy

    _check(model, settings, table, matrix, instead, look, output)
    policy = Policy.load(plan)
    if table or matrix or where or sort or top or instead or output:
        with keep_off_stdout():
            rows, problem = _find_rows(policy, model, settings or (), bound, where or (), sort, top)
            if instead:
                rows = _add_alternatives(rows, problem, look)
        _show_rows(rows, matrix, top, output, as_json)
        return
    if model is not None:
        with keep_off_stdout():
            policy = policy.bind(_open(model, settings or ())[0])
    if as_json:
        with keep_off_stdout():
            document = documents.describe_policy(policy, depth, states=True)
        documents.print_document({"policy": document})
        return
    console = screen.open_console()
    _show_about(console, policy)
    screen.show_policy(console, policy, depth)


def _check(
    model: str | None,
    settings: Sequence[str] | None,
    table: bool,
    matrix: bool,
    instead: bool,
    look: float | None,
    output: Path | None,
) -> None:
    """Refuse options that don't go together before anything is done."""
    from vulcan.cli.output import check_output
    from vulcan.errors import OptionError
    from vulcan.policies.table_text import check_table_file

    if table and matrix:
        raise OptionError("--table and --matrix are two ways to show a policy: choose one")
    if model is None:
        given = {"--matrix": matrix, "--instead": instead, "--set": bool(settings)}
        for option in (name for name, wanted in given.items() if wanted):
            raise OptionError(f"{option} needs the model: vulcan show PLAN MODEL {option}")
    if matrix and instead:
        raise OptionError("--instead is for rows, and a matrix has none: --table --instead")
    if look is not None and not instead:
        raise OptionError("--look is for what else could be done: --instead --look SECONDS")
    if output is not None:
        check_table_file(output, (".html",) if matrix else None)
        check_output(output)


def _open(model: str, settings: Sequence[str]) -> tuple[object, str | None]:
    from vulcan.formats.registry import open_model

    return open_model(model, settings)


def _find_rows(
    policy: AnyPolicy,
    model: str | None,
    settings: Sequence[str],
    bound: str | None,
    where: Sequence[str],
    sort: str | None,
    top: int | None,
) -> tuple[PolicyTable, Problem | None]:
    """Return the rows that are asked for, and the problem, if model and bound are known."""
    import vulcan
    from vulcan.cli.models import choose_bound

    opened, own_bound = (None, None) if model is None else _open(model, settings)
    rows = (policy if opened is None else policy.bind(opened)).table().where(*where)
    if top is not None:
        rows = rows.top(top, sort or "risk")
    elif sort is not None:
        rows = rows.sort(sort)
    chosen = choose_bound(bound, own_bound, policy.about)
    if opened is None or chosen is None:
        return rows, None
    return rows, vulcan.Problem(opened, chosen)


def _add_alternatives(
    rows: PolicyTable, problem: Problem | None, look: float | None
) -> PolicyTable:
    import vulcan
    from vulcan.errors import OptionError

    if problem is None:
        raise OptionError("--instead needs a bound to judge by: --bound EXPR")
    return vulcan.find_alternatives(problem, rows, look=look)


def _show_rows(
    rows: PolicyTable, as_matrix: bool, top: int | None, output: Path | None, as_json: bool
) -> None:
    from vulcan.cli import documents, screen
    from vulcan.cli.output import tell_saved
    from vulcan.policies.table_text import MOST_ROWS, build_text_table, describe_left_out

    if output is not None:
        (rows.matrix() if as_matrix else rows).save(output)
        tell_saved(output, as_json, None)
        return
    if as_json:
        documents.print_document({"table": documents.describe_table(rows)})
        return
    console = screen.open_console()
    if as_matrix:
        screen.show_matrix(console, rows.matrix())
        return
    most = MOST_ROWS if top is None else top
    text = build_text_table(rows, most)
    screen.show_table(console, text, [""] * len(text.rows))
    if left_out := describe_left_out(rows, most):
        console.print()
        more = ": --where, --top N, -o FILE" if len(rows) else ""
        screen.show_rows(console, [("", left_out + more)], {"": "dim"})
    if rows.note:
        console.print()
        screen.show_rows(console, [("", rows.note)], {"": "dim"})


def _show_about(console: Console, policy: AnyPolicy) -> None:
    from vulcan.cli import screen
    from vulcan.policies.randomised import RandomisedPolicy
    from vulcan.policies.text import describe_members

    about = policy.about
    outcomes = sum(len(member.label) for member in policy.members)
    members = []
    if isinstance(policy, RandomisedPolicy):
        members = [("members", screen.clip(describe_members(policy)))]
    rows = [
        ("model", screen.clip(about.model)),
        ("fingerprint", about.fingerprint),
        ("horizon", f"{about.horizon:,} steps" + _discounted(about.discount)),
        ("risk bound", about.risk_bound or "a function that can't be written down"),
        ("solver", screen.clip(about.solver)),
        *members,
        ("decisions", f"{len(policy):,}, with {outcomes:,} outcomes"),
        ("complete", "yes" if policy.complete else "no: some histories are not planned"),
    ]
    styles = {"model": "bold", "complete": "" if policy.complete else screen.BAD}
    screen.show_rows(console, rows, styles)


def _discounted(discount: float) -> str:
    return "" if discount == 1 else f", discount {discount!r}"
