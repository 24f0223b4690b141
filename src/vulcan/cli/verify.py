"""`vulcan verify`: let another tool compute what a policy earns and risks."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from vulcan.cli.codes import ExitCode
from vulcan.cli.options import SEARCH, AsJson, ModelText, PlanFile, Settings

if TYPE_CHECKING:
    from vulcan.certificates.problem import Problem
    from vulcan.certificates.verification import Verification

__all__ = ["EXAMPLES", "verify"]

EXAMPLES = """
\b
Examples:
  vulcan verify plan.vulcan bandit --with storm
  vulcan verify plan.vulcan model.prism --horizon 30 --set failure=attacked
  vulcan verify plan.vulcan rover.py:Rover --set days=6 --json
"""


class Tool(Enum):
    """Who computes."""

    STORM = "storm"


With = Annotated[
    Tool,
    typer.Option(
        "--with",
        help="The tool that computes: storm, a model checker (pip install "
        "'vulcan-planner[storm]').",
        rich_help_panel=SEARCH,
    ),
]


def verify(
    plan: PlanFile,
    model: ModelText,
    settings: Settings = None,
    tool: With = Tool.STORM,
    as_json: AsJson = False,
) -> None:
    """Let another tool compute what a policy earns and risks.

    The tool gets the Markov chain of the policy, and has to come to the reward and the risk of the
    certificate, to 1e-9. A disagreement is a defect of one of the two (exit code 70).
    """
    import vulcan
    from vulcan.bounds.straight import Constant
    from vulcan.cli.models import choose_bound, keep_off_stdout
    from vulcan.formats.registry import open_model

    policy = vulcan.Policy.load(plan)
    with keep_off_stdout():
        judged, own_bound = open_model(model, settings or ())
        chosen = choose_bound(None, own_bound, policy.about)
        problem = vulcan.Problem(judged, Constant(1.0) if chosen is None else chosen)
        verification = vulcan.verify(problem, policy)
    _show(problem, verification, as_json)
    raise typer.Exit(ExitCode.YES if verification.agrees else ExitCode.DEFECT)


def _show(problem: Problem, verification: Verification, as_json: bool) -> None:
    from vulcan.cli import documents, screen
    from vulcan.model.interface import describe_model

    if as_json:
        documents.print_document(
            {
                **documents.describe_fields(
                    verification, "agrees", "difference", omit=("certificate",)
                ),
                "certificate": documents.describe_certificate(verification.certificate),
                **documents.describe_problem(problem),
            }
        )
        return
    console = screen.open_console()
    verdict, style = ("✓ agrees", screen.GOOD) if verification.agrees else ("✗ differs", screen.BAD)
    size = f"{verification.difference:.1g}" if verification.difference else "nothing at all"
    screen.show_heading(
        console, verdict, style, f"{verification.tool} and the certificate differ by {size}"
    )
    console.print()
    certificate = verification.certificate
    rows = [("model", screen.clip(describe_model(problem.model)))]
    for name in ("reward", "risk", "frontier"):
        ours, theirs = float(getattr(certificate, name)), getattr(verification, name)
        if name != "frontier" or not certificate.complete:
            rows.append((name, f"{theirs:.12g}  certificate {ours:.12g}"))
    chain = f"{verification.states:,} states, {verification.transitions:,} transitions"
    screen.show_rows(console, [*rows, ("Markov chain", chain)])
