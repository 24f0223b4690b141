"""What `solve` returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from vulcan.certificate import Certificate
from vulcan.errors import ModelError
from vulcan.problem import Problem
from vulcan.randomised import AnyPolicy
from vulcan.text_table import show_probability

__all__ = ["EXACT_GAP", "Result", "Statistics", "Status", "Trial", "find_gap"]

EXACT_GAP: Final = 1e-9
"""A policy within this share of an upper bound is called the best: the rest is rounding."""

SMALLEST_SIZE: Final = 1e-9
"""Where the best reward is about 0, a gap is a share of this instead."""


class Status(Enum):
    """How a search ended."""

    SOLVED = "solved"
    """The policy is the best, or within the gap asked for of the best, proved.

    For a solver with a local constraint: the best that the constraint admits."""

    INFEASIBLE = "infeasible"
    """There is no policy within the risk bound, or none that the constraint admits, proved."""

    DONE = "done"
    """The search is over, without a proof that its policy is the best or that there is none."""

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
    nodes
        Pairs of a state (or history) and a step that an exact solver worked on; 0 for others.
    bound_seconds
        Time of the upper bound, where `solve` was asked for one.
    """

    search_seconds: float
    histories: int
    evaluations: int
    samples: int = 0
    memory: int = 0
    certificate_seconds: float = 0.0
    nodes: int = 0
    bound_seconds: float = 0.0


@dataclass(frozen=True)
class Trial:
    """One policy that a search weighed against others.

    Attributes
    ----------
    multiplier
        The price of failure that it is the best policy for: it maximises reward - multiplier risk.
    reward, risk, allowed
        What it earns, risks and may risk.
    passes
        Whether the bound holds.
    """

    multiplier: float
    reward: float
    risk: float
    allowed: float
    passes: bool


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
    upper_bound
        No policy within the risk bound earns more: no deterministic one, and for a randomised
        policy no randomised one either. None if it is not known.
    trials
        The policies that the search weighed against each other (`Penalty`, `Lagrangian`).
    price
        The price of risk: what the upper bound gains per unit of allowed risk; None if unknown.
    estimate
        The value that a tree search gave the root in the end: an estimate of what its policy earns,
        which the certificate computes. None for other solvers.
    """

    problem: Problem
    solver: str
    status: Status
    explanation: str
    stopped_by: str | None
    policy: AnyPolicy | None
    certificate: Certificate | None
    statistics: Statistics
    error: ModelError | None = None
    upper_bound: float | None = None
    trials: tuple[Trial, ...] = ()
    price: float | None = None
    estimate: float | None = None

    @property
    def gap(self) -> float | None:
        """How far the reward may be below the best possible, as a share of that; None if unknown.

        It compares with policies within the risk bound, so that only a safe policy has one.
        """
        if self.upper_bound is None or self.certificate is None or not self.safe:
            return None
        return find_gap(float(self.certificate.reward), self.upper_bound)

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
        if self.upper_bound is not None:
            rows.insert(2 if self.certificate else 1, ("upper bound", self._describe_bound()))
        seconds = f"{statistics.search_seconds:.3g} s"
        if self.certificate is not None:
            seconds += f", certificate {statistics.certificate_seconds:.3g} s"
        if statistics.bound_seconds:
            seconds += f", upper bound {statistics.bound_seconds:.3g} s"
        searched = f"{statistics.histories:,} histories"
        if statistics.nodes:
            searched = f"{statistics.nodes:,} pairs of state and step"
        if statistics.samples:
            searched += f", {statistics.samples:,} samples, {statistics.memory / 1e6:,.1f} MB"
        return [
            *rows,
            ("searched", searched),
            ("model asked", f"{statistics.evaluations:,} times{self._describe_speed()}"),
            ("time", seconds),
        ]

    def _describe_speed(self) -> str:
        """Return how fast a tree search was; others spend their time elsewhere."""
        statistics = self.statistics
        if not statistics.samples or statistics.search_seconds <= 0:
            return ""
        samples, answers = (
            f"{count / statistics.search_seconds:,.0f}"
            for count in (statistics.samples, statistics.evaluations)
        )
        return f"; {samples} samples and {answers} answers a second"

    def _describe_bound(self) -> str:
        assert self.upper_bound is not None
        if self.upper_bound == -float("inf"):
            return "no policy is within the risk bound"
        text = f"{self.upper_bound:.6f}"
        if self.gap is None:
            return text
        if self.gap <= EXACT_GAP:
            return f"{text}  the best possible"
        return f"{text}  at most {100 * self.gap:.2g} % below the best possible"

    def __str__(self) -> str:
        return "\n".join(f"{name:<13} {text}" for name, text in self.rows())


def find_gap(reward: float, upper_bound: float) -> float:
    """Return how far a reward is below an upper bound, as a share of the bound's size."""
    distance = max(0.0, upper_bound - reward)
    return distance / max(abs(upper_bound), SMALLEST_SIZE)


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
    return f"(holds up to {margin:.4g} times the risks)"
