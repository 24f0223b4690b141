"""What `solve` returns."""

from __future__ import annotations

from dataclasses import dataclass

from vulcan.certificates.certificate import Certificate
from vulcan.certificates.problem import Problem
from vulcan.certificates.text import describe_certificate
from vulcan.errors import ModelError
from vulcan.policies.randomised import AnyPolicy
from vulcan.runtime.limits import StopReason
from vulcan.solvers.finding import Statistics, Status, Trial, find_gap
from vulcan.tolerance import EXACT_GAP


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
        What ended the search early, such as `StopReason.TIME`; else None.
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
    stopped_by: StopReason | None
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

    @property
    def summary(self) -> str:
        """How the search ended, and what is wrong with its policy if that is not safe."""
        certificate = self.certificate
        if certificate is None or certificate.safe:
            return self.explanation
        if not certificate.passes:
            risk, allowed = float(certificate.risk), float(certificate.allowed)
            return f"{self.explanation}; it risks {risk:.4g} where {allowed:.4g} is allowed"
        return f"{self.explanation}; it is not complete"

    def rows(self) -> list[tuple[str, str]]:
        """Return the result as pairs of a name and a string, for people."""
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
            ("evaluations", f"{statistics.evaluations:,} of the model{self._describe_speed()}"),
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
        return f"; {samples} samples and {answers} evaluations a second"

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
