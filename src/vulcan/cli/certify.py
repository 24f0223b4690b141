"""`vulcan certify`: judge a policy file by a model and a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from vulcan.cli.codes import ExitCode
from vulcan.cli.options import AsJson, Exact, ModelText, PlanFile, RecordedBoundText, Settings

if TYPE_CHECKING:
    from pathlib import Path

    from vulcan.certificates.certificate import Certificate
    from vulcan.certificates.problem import Problem
    from vulcan.policies.randomised import AnyPolicy

__all__ = ["EXAMPLES", "certify"]

EXAMPLES = """
\b
Examples:
  vulcan certify plan.vulcan bandit
  vulcan certify plan.vulcan bandit --set horizon=9 --bound 0.01
  vulcan certify plan.vulcan rover.py:Rover --exact --json
  vulcan certify plan.vulcan mission.toml
"""


def certify(
    plan: PlanFile,
    model: ModelText,
    settings: Settings = None,
    bound: RecordedBoundText = None,
    exact: Exact = False,
    as_json: AsJson = False,
) -> None:
    """Judge a policy file by its model and a risk bound.

    Reward and risk are computed from the model alone. The policy passes (exit code 0) if it is
    complete and its risk is acceptable for its reward. Without --bound it is judged by the bound
    of the mission file, or else by the one that the policy's own file says it was made for, and
    the answer says which. A randomised policy is judged as a whole, before one of its members is
    drawn.
    """
    import vulcan
    from vulcan.cli.models import choose_bound, keep_off_stdout
    from vulcan.formats.registry import open_model

    policy = vulcan.Policy.load(plan)
    with keep_off_stdout():
        judged, own_bound = open_model(model, settings or ())
        chosen = choose_bound(bound, own_bound, policy.about)
        if chosen is None:
            raise vulcan.OptionError(
                f"{plan} was made for a bound that can't be written down; give one with --bound"
            )
        problem = vulcan.Problem(judged, chosen)
        certificate = vulcan.certify(problem, policy, exact=exact)
    _show(problem, policy, certificate, _name_source(bound, own_bound, plan, model), as_json)
    raise typer.Exit(ExitCode.YES if certificate.safe else ExitCode.NO)


def _name_source(bound: str | None, own_bound: str | None, plan: Path, model: str) -> str:
    """Return who says what is acceptable."""
    if bound is not None:
        return "--bound"
    return f"the bound in {model}" if own_bound is not None else f"the bound in {plan}"


def _show(
    problem: Problem, policy: AnyPolicy, certificate: Certificate, source: str, as_json: bool
) -> None:
    from vulcan.certificates.text import describe_certificate
    from vulcan.cli import documents, screen
    from vulcan.model.interface import describe_model
    from vulcan.policies.randomised import RandomisedPolicy
    from vulcan.policies.text import describe_members

    if as_json:
        documents.print_document(
            {
                "safe": certificate.safe,
                "certificate": documents.describe_certificate(certificate),
                "policy": documents.describe_policy(policy, depth=0),
                **documents.describe_problem(problem),
                "bound_from": source,
            }
        )
        return
    console = screen.open_console()
    verdict, style = ("✓ safe", screen.GOOD) if certificate.safe else ("✗ not safe", screen.BAD)
    if certificate.undecided:
        verdict = "✗ too close to say"
    screen.show_heading(console, verdict, style, _explain(certificate))
    console.print()
    members = []
    if isinstance(policy, RandomisedPolicy):
        members = [("members", screen.clip(describe_members(policy)))]
    rows = [
        ("model", screen.clip(describe_model(problem.model))),
        ("judged by", screen.clip(source)),
        *describe_certificate(certificate, problem, len(policy)),
        *members,
        ("evaluations", f"{certificate.evaluations:,} of the model"),
        ("arithmetic", _describe_arithmetic(certificate)),
    ]
    screen.show_rows(console, rows, screen.style_certificate(certificate))


def _describe_arithmetic(certificate: Certificate) -> str:
    if certificate.exact:
        return "fractions, exact"
    if certificate.refined:
        return "fractions, since floating point was too close to say"
    return "floating point"


def _explain(certificate: Certificate) -> str:
    if certificate.safe:
        return "complete, and its risk is acceptable for its reward"
    problems = []
    if certificate.undecided:
        problems.append("what the bound allows for its reward is too close to its risk")
    elif not certificate.passes:
        problems.append("its risk is more than the bound allows for its reward")
    if not certificate.complete:
        problems.append("some histories that it can reach are not planned")
    return ", and ".join(problems)
