"""Certificates as people read them."""

from __future__ import annotations

from vulcan.certificates.certificate import Certificate
from vulcan.certificates.problem import Problem
from vulcan.runtime.formatting import show_probability


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
    margin = certificate.margin
    if certificate.risk == 0:
        return "(no risk at all)"
    if margin == 0:
        return "(not even without any risk)"
    if margin == float("inf"):
        return "(whatever the size of the risks)"
    if not certificate.passes:
        return f"(would hold if all risks were multiplied by {_show_factor(margin)})"
    return f"(holds until all risks are multiplied by {_show_factor(margin)})"


def _show_factor(factor: float) -> str:
    """Return a factor to four digits: 1.0 rather than 1, which would look like a count."""
    text = f"{factor:.4g}"
    return text if "." in text or "e" in text else f"{text}.0"
