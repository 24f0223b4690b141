"""What `solve` returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from vulcan.certificate import Certificate
from vulcan.errors import ModelError
from vulcan.policy import Policy
from vulcan.problem import Problem

__all__ = ["Result", "Statistics", "Status"]


class Status(Enum):
    """How a search ended."""

    SOLVED = "solved"
    """The policy is the best that the solver's constraint admits, proved."""

    INFEASIBLE = "infeasible"
    """The solver's constraint admits no policy, proved."""

    STOPPED = "stopped"
    """A limit or Ctrl-C ended the search; the policy, if there is one, is the best so far."""


@dataclass(frozen=True)
class Statistics:
    """What a search took.

    Attributes
    ----------
    search_seconds
        Time of the search, model included.
    histories
        Histories visited, or kept in the search tree. Those that end in a state known to be a safe
        terminal do not count as visited.
    evaluations
        (state, action) that the model was asked by the search.
    samples
        Samples taken; 0 for a search that takes none.
    memory
        Bytes of the search tree and the state graph.
    certificate_seconds
        Time of the certificate.
    """

    search_seconds: float
    histories: int
    evaluations: int
    samples: int = 0
    memory: int = 0
    certificate_seconds: float = 0.0


@dataclass(frozen=True)
class Result:
    """A policy with its certificate, or the reason why there is none.

    Attributes
    ----------
    problem
        What was solved.
    solver
        Text of the solver.
    status
        How the search ended.
    explanation
        The same in a sentence or two.
    stopped_by
        What ended the search early: "Ctrl-C", "time limit", "limit of histories"; else None.
    policy
        The policy; None if there is none. It is bound to the model.
    certificate
        Its certificate, computed from the model alone; None without a policy.
    statistics
        What the search took.
    error
        What the model raised, if that ended the search; the policy is the best until then.
    """

    problem: Problem
    solver: str
    status: Status
    explanation: str
    stopped_by: str | None
    policy: Policy | None
    certificate: Certificate | None
    statistics: Statistics
    error: ModelError | None = None

    @property
    def safe(self) -> bool:
        """Whether there is a complete policy whose certificate passes."""
        return self.certificate is not None and self.certificate.safe

    def rows(self) -> list[tuple[str, str]]:
        """Return the result as pairs of a name and a text, for people."""
        statistics = self.statistics
        rows = [("status", self.explanation)]
        if self.certificate is not None and self.policy is not None:
            rows += describe_certificate(self.certificate, self.problem, len(self.policy))
        seconds = f"{statistics.search_seconds:.3g} s"
        if self.certificate is not None:
            seconds += f", certificate {statistics.certificate_seconds:.3g} s"
        searched = f"{statistics.histories:,} histories"
        if statistics.samples:
            searched += f", {statistics.samples:,} samples, {statistics.memory / 1e6:,.1f} MB"
        return [
            *rows,
            ("searched", searched),
            ("model asked", f"{statistics.evaluations:,} times"),
            ("time", seconds),
        ]

    def __str__(self) -> str:
        return "\n".join(f"{name:<13} {text}" for name, text in self.rows())


def describe_certificate(
    certificate: Certificate, problem: Problem, nodes: int
) -> list[tuple[str, str]]:
    """Return a certificate as pairs of a name and a text, for people."""
    risk, allowed = float(certificate.risk), float(certificate.allowed)
    verdict = "acceptable" if certificate.passes else "NOT ACCEPTABLE"
    complete = f"yes, {nodes:,} decision{'s' if nodes != 1 else ''}"
    if not certificate.complete:
        complete = f"no: {float(certificate.frontier):.4g} is the probability of leaving the plan"
    return [
        ("reward", f"{float(certificate.reward):.6f}"),
        ("risk", f"{_format_risk(risk)}  {verdict}"),
        ("allowed risk", f"{_format_risk(allowed)}  Δ(x) = {problem.risk_bound}"),
        ("slack", f"{float(certificate.slack):.3g}  {_describe_margin(certificate)}"),
        ("complete", complete),
    ]


def _format_risk(risk: float) -> str:
    return f"{risk:.6f}" if risk == 0 or abs(risk) >= 1e-4 else f"{risk:.3e}"


def _describe_margin(certificate: Certificate) -> str:
    margin = certificate.margin
    if certificate.risk == 0:
        return "(no risk at all)"
    if margin == 0:
        return "(not even without any risk)"
    if margin == float("inf"):
        return "(whatever the size of the risks)"
    return f"(holds up to {margin:.4g} times the risks)"
