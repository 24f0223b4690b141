"""`vulcan certify` and `vulcan verify`: judge a policy file, and let Storm check that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vulcan.cli import ExitCode, documents, options, output
from vulcan.errors import OptionError
from vulcan.runtime.formatting import clip

if TYPE_CHECKING:
    from vulcan.certificate.certify import Certificate
    from vulcan.certificate.verify import Verification
    from vulcan.policy.policy import AnyPolicy
    from vulcan.problem import Problem


def certify(
    plan: Path,
    model: str,
    settings: list[str] | None = None,
    bound: str | None = None,
    constraints: list[str] | None = None,
    exact: bool = False,
    as_json: bool = False,
) -> None:
    """Judge a policy file by its model and a risk bound.

    Reward and risk are computed from the model alone. The policy is safe (exit code 0) if it is
    complete and its risk is acceptable for its reward by --bound, or else by the bound of the
    mission file. If there is neither, it is judged by the bound in its own file, which the author
    of the file chose: it is never called safe then, but within its own bound (exit code 4). A
    randomised policy is judged as a whole, before one of its members is drawn.

    Examples
    --------
    vulcan certify plan.vulcan bandit --bound "0.002*x"
    vulcan certify plan.vulcan rover.py:Rover --bound 0.01 --exact --json
    vulcan certify plan.vulcan mission.toml
    """
    import vulcan

    with options.keep_off_stdout():
        policy, problem, source = options.open_plan(plan, model, settings, bound, constraints)
        if source == "":
            raise OptionError(
                f"{plan} was made for a bound that can't be written down; give one with --bound"
            )
        certificate = vulcan.certify(problem, policy, exact=exact)
    by_itself = source is None
    if as_json:
        documents.print_document(
            {
                "safe": None if certificate.safe and by_itself else certificate.safe,
                "within_own_bound": certificate.safe if by_itself else None,
                "certificate": documents.describe_certificate(certificate),
                "policy": documents.describe_policy(policy, depth=0),
                **documents.describe_problem(problem),
                "bound_from": source or f"the bound in {plan}",
            }
        )
    else:
        _show(problem, policy, certificate, source, f"the bound in {plan}")
    passed = ExitCode.OWN_BOUND if by_itself else ExitCode.YES
    raise typer.Exit(passed if certificate.safe else ExitCode.NO)


def _show(
    problem: Problem, policy: AnyPolicy, certificate: Certificate, source: str | None, own: str
) -> None:
    from vulcan.certificate.certify import (
        describe_certificate,
        describe_frontier,
        list_excesses,
    )

    verdict, style = ("✓ safe", output.GOOD) if certificate.safe else ("✗ not safe", output.BAD)
    if certificate.undecided:
        verdict = "✗ too close to say"
    elif source is None and certificate.safe:
        verdict, style = "? within its own bound", output.UNSURE
    problems = list_excesses(certificate)
    reason = "complete, and its risk is acceptable for its reward"
    if certificate.constraints:
        reason = "complete, and all that is limited is acceptable for its reward"
    if not certificate.complete:
        reason = describe_frontier(certificate).removeprefix("no: ")
        if certificate.beyond is None:
            problems.append("some histories that it can reach are not planned")
    reason = ", and ".join(problems) or reason
    if source is None:
        reason = f"judged by {own} itself, without --bound: {reason}"
    arithmetic = "fractions, exact" if certificate.exact else "floating point"
    if certificate.refined and not certificate.exact:
        arithmetic = "fractions, because rounding left the verdict open"
    rows = [
        output.name_model(problem.model),
        ("judged by", clip(source or own)),
        *describe_certificate(certificate, problem, len(policy)),
        *output.describe_members(policy),
        ("evaluations", f"{certificate.evaluations:,} of the model"),
        ("arithmetic", arithmetic),
    ]
    output.show_answer(verdict, style, reason, rows, output.style_certificate(certificate))


def verify(
    plan: Path,
    model: str,
    settings: list[str] | None = None,
    as_json: bool = False,
) -> None:
    """Let the model checker Storm compute the reward and the risk of a policy.

    Storm (pip install 'vulcan-planner[storm]') gets the Markov chain of the policy, and must
    compute the reward, the risk and further constraints of the certificate, to 1e-9. A disagreement
    is a defect of one of the two (exit code 70).

    Examples
    --------
    vulcan verify plan.vulcan bandit
    vulcan verify plan.vulcan model.prism --horizon 30 --set failure=attacked
    """
    import vulcan

    with options.keep_off_stdout():
        policy, problem, _ = options.open_plan(plan, model, settings)
        verification = vulcan.verify(problem, policy)
    _show_verification(problem, verification, as_json)
    raise typer.Exit(ExitCode.YES if verification.agrees else ExitCode.DEFECT)


def _show_verification(problem: Problem, verification: Verification, as_json: bool) -> None:
    certificate = verification.certificate
    if as_json:
        values = documents.describe(verification, "agrees", "difference", omit=("certificate",))
        values["certificate"] = documents.describe_certificate(certificate)
        documents.print_document({**values, **documents.describe_problem(problem)})
        return
    verdict, style = ("✓ agrees", output.GOOD) if verification.agrees else ("✗ differs", output.BAD)
    differ = verification.difference
    size = f"differ by {differ:.1g}" if differ else "agree exactly"
    rows = [output.name_model(problem.model)]
    for name in ("reward", "risk", "frontier"):
        ours, theirs = float(getattr(certificate, name)), getattr(verification, name)
        if name != "frontier" or not certificate.complete:
            rows.append((name, f"{theirs:.12g}  certificate {ours:.12g}"))
    for each, theirs in zip(certificate.constraints, verification.constraints, strict=True):
        rows.append((each.quantity, f"{theirs:.12g}  certificate {float(each.value):.12g}"))
    chain = f"{verification.states:,} states, {verification.transitions:,} transitions"
    sentence = f"{verification.tool} and the certificate {size}"
    output.show_answer(verdict, style, sentence, [*rows, ("Markov chain", chain)])
