"""Certificates as people read them."""

from __future__ import annotations

import math
from typing import Final

from vulcan.certificates.certificate import Certificate
from vulcan.certificates.problem import Problem
from vulcan.rounding import to_float
from vulcan.runtime.formatting import show_percent, show_probability
from vulcan.runtime.markup import BAD, GOOD, build_card, build_table

BAR: Final = 240
"""Width of the bar of a certificate."""

NO_ROOM: Final = 1e-6
"""A margin that is closer to 1 than this is found only up to a rounding."""

WORTH_SHOWING: Final = 1e-9
"""Errors of numbers, in shares of the largest of 1 and the number, that people are told of."""


def describe_certificate(
    certificate: Certificate, problem: Problem | None = None, nodes: int | None = None
) -> list[tuple[str, str]]:
    """Return a certificate as pairs of a name and a string, for people.

    Parameters
    ----------
    certificate
        The certificate.
    problem, nodes
        The problem, and how many decisions the policy has, if they are known.
    """
    risk, allowed = to_float(certificate.risk), to_float(certificate.allowed)
    verdict = "acceptable" if certificate.passes else "NOT ACCEPTABLE"
    if certificate.undecided:
        verdict = "TOO CLOSE TO SAY"
    bound = "" if problem is None else f"  Δ(x) = {problem.risk_bound}"
    complete = "yes" if nodes is None else f"yes, {nodes:,} decision{'s' if nodes != 1 else ''}"
    if not certificate.complete:
        complete = (
            f"no: {to_float(certificate.frontier):.4g} is the probability of leaving the plan"
        )
    return [
        ("reward", f"{to_float(certificate.reward):.6f}{_show_error(certificate, 'reward')}"),
        ("risk", f"{show_probability(risk)}{_show_error(certificate, 'risk')}  {verdict}"),
        (
            "allowed risk",
            f"{show_probability(allowed)}{_show_error(certificate, 'allowed')}{bound}",
        ),
        ("slack", f"{to_float(certificate.slack):.3g}  {_describe_margin(certificate)}"),
        ("complete", complete),
    ]


def _show_error(certificate: Certificate, name: str) -> str:
    """Return how far a number may be off, where people would want to know."""
    error = to_float(getattr(certificate, f"{name}_error"))
    visible = WORTH_SHOWING * max(1.0, abs(to_float(getattr(certificate, name))))
    return f" ± {error:.1g}" if certificate.undecided or error > visible else ""


def write_certificate(certificate: Certificate) -> str:
    """Return a card of a certificate, with a bar of how much of the allowed risk is taken."""
    verdict, colour = judge_certificate(certificate)
    rows = build_table((), describe_certificate(certificate))
    exact = "exact, in fractions" if certificate.exact else "from the model alone"
    return build_card(verdict, rows, _draw_share(certificate), remark=exact, colour=colour)


def judge_certificate(certificate: Certificate) -> tuple[str, str]:
    """Return a verdict in a few words, and its colour."""
    if certificate.safe:
        return "✓ safe", GOOD
    if certificate.undecided and certificate.complete:
        return "✗ too close to say", BAD
    return ("✗ not safe", BAD) if not certificate.passes else ("✗ not complete", BAD)


def _draw_share(certificate: Certificate) -> str:
    """Return a bar of the risk, with a mark where the allowed risk ends."""
    risk, allowed = to_float(certificate.risk), to_float(certificate.allowed)
    if not 0 < allowed < math.inf:
        return ""
    longest = max(risk, allowed)
    taken, mark = (BAR * value / longest for value in (risk, allowed))
    colour = GOOD if certificate.passes else BAD
    share = show_percent(risk / allowed)
    return (
        f'<svg viewBox="-2 0 {BAR + 4} 44" width="{BAR + 4}" height="44" role="img" '
        f'aria-label="risk, of what is allowed"><rect y="4" width="{BAR}" height="14" rx="2" '
        f'fill="currentColor" opacity=".12"/><rect y="4" width="{taken:.1f}" height="14" rx="2" '
        f'fill="{colour}"/><path d="M{mark:.1f} 0v22" stroke="currentColor" stroke-width="2"/>'
        f'<text y="36" fill="currentColor">{share} of the allowed risk</text></svg>'
    )


def _describe_margin(certificate: Certificate) -> str:
    """Return how wrong the model's risks may be, all by the same factor."""
    margin = certificate.margin
    if certificate.risk == 0:
        return "(no risk at all)"
    if certificate.undecided:
        return "(roundings decide)"
    if margin == 0:
        return "(would hold, if at all, only without any risk)"
    if margin == float("inf"):
        return "(holds however large the risks are)"
    if not certificate.passes:
        return f"(would hold if all risks were at most {margin:.4g} times as large)"
    if margin < 1 + NO_ROOM:
        return "(no room for larger risks)"
    if margin < 1.001:
        return f"(holds until all risks are {100 * (margin - 1):.2g} % larger)"
    return f"(holds until all risks are {margin:.4g} times as large)"
