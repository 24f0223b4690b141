"""Certificates as people read them."""

from __future__ import annotations

from typing import Final

from vulcan.certificates.certificate import Certificate
from vulcan.certificates.problem import Problem
from vulcan.runtime.formatting import show_probability

NO_ROOM: Final = 1e-6
"""A margin that is closer to 1 than this is found only up to a rounding."""


def describe_certificate(
    certificate: Certificate, problem: Problem, nodes: int
) -> list[tuple[str, str]]:
    """Return a certificate as pairs of a name and a string, for people."""
    risk, allowed = float(certificate.risk), float(certificate.allowed)
    verdict = "acceptable" if certificate.passes else "NOT ACCEPTABLE"
    complete = f"yes, {nodes:,} decision{'s' if nodes != 1 else ''}"
    if not certificate.complete:
        complete = f"no: {float(certificate.frontier):.4g} is the probability of leaving the plan"
    return [
        ("reward", f"{float(certificate.reward):.6f}"),
        ("risk", f"{show_probability(risk)}  {verdict}"),
        ("allowed risk", f"{show_probability(allowed)}  Δ(x) = {problem.risk_bound}"),
        ("slack", f"{float(certificate.slack):.3g}  {_describe_margin(certificate)}"),
        ("complete", complete),
    ]


def _describe_margin(certificate: Certificate) -> str:
    """Return how wrong the model's risks may be, all by the same factor."""
    margin = certificate.margin
    if certificate.risk == 0:
        return "(no risk at all)"
    if margin == 0:
        return "(would not hold even without any risk)"
    if margin == float("inf"):
        return "(holds however large the risks are)"
    if not certificate.passes:
        return f"(would hold if all risks were {margin:.4g} times as large)"
    if margin < 1 + NO_ROOM:
        return "(no room: would not hold if the risks were any larger)"
    if margin < 1.001:
        return f"(holds until all risks are {100 * (margin - 1):.2g} % larger)"
    return f"(holds until all risks are {margin:.4g} times as large)"
