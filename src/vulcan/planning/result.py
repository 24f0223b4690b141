"""What `solve` returns."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from vulcan.bounds.reward_limit import RewardLine
from vulcan.certificates.certificate import Certificate
from vulcan.certificates.explanation import describe_sure_failures
from vulcan.certificates.problem import Problem
from vulcan.certificates.text import describe_certificate
from vulcan.errors import ModelError, PolicyError
from vulcan.model.interface import describe_model
from vulcan.planning.spread import Spread
from vulcan.policies.randomised import AnyPolicy
from vulcan.runtime.formatting import show_gap, show_probability, show_reward
from vulcan.runtime.limits import StopReason
from vulcan.solvers.finding import Statistics, Status, Sufficient, Trial, Worth, find_gap
from vulcan.solvers.knowledge import Knowledge
from vulcan.tolerance import ABSOLUTE_GAP, EXACT_GAP

if TYPE_CHECKING:
    from vulcan.pages.page import Page

WORTH_SAYING: Final = 0.01
"""The gain of a randomised policy from which on it is mentioned."""

MANIFOLD: Final = 10.0
"""The gain from which on percents say nothing any more."""


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
    rounding
        How far rounding alone may take the upper bound from what a policy earns; of a linear
        program also what the tolerance of the risk bound is worth.
    trials
        The policies that the search weighed against each other (`Penalty`, `Lagrangian`).
    price
        The price of risk: what the upper bound gains per unit of allowed risk; None if unknown.
    lines
        What was proved of every policy, whatever the bound is: each line is the most that can be
        earned for a risk. A frontier draws its upper bound with them.
    relaxed
        What the best randomised policy earns within the risk bound; None if it is not known.
    estimate
        The value that a tree search gave the root in the end: an estimate of what its policy earns,
        which the certificate computes. None for other solvers.
    safest
        Where no policy is within the risk bound: what the policy of least risk earns and risks.
        None if the solver does not know.
    sufficient
        In the same case, a multiple of the bound that would accept a policy; None if none would,
        or the solver does not know.
    knowledge
        What the search knew in the end, if it was asked to keep that; `vulcan.replan` goes on with
        it.
    spread
        What the other seeds found, where `solve` was given several; else None.
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
    rounding: float = 0.0
    trials: tuple[Trial, ...] = ()
    price: float | None = None
    lines: tuple[RewardLine, ...] = field(default=(), repr=False)
    estimate: float | None = None
    relaxed: float | None = None
    safest: Worth | None = None
    sufficient: Sufficient | None = None
    knowledge: Knowledge | None = field(default=None, repr=False, compare=False)
    spread: Spread | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what passes to another process: all but what the search knew."""
        return {**self.__dict__, "knowledge": None}

    @property
    def gap(self) -> float | None:
        """How far the reward may be below the best possible, as a share of that; None if unknown.

        It compares with policies within the risk bound, so that only a safe policy has one. What
        rounding explains is no gap: the upper bound is rounded up, never down.
        """
        if self.upper_bound is None or self.certificate is None or not self.safe:
            return None
        reward = float(self.certificate.reward)
        if self.upper_bound - reward <= self.rounding:
            return 0.0
        return find_gap(reward, self.upper_bound)

    @property
    def gain_of_randomising(self) -> float:
        """How much more the best randomised policy earns, as a share of this one's reward."""
        if self.relaxed is None or self.certificate is None:
            return 0.0
        reward = float(self.certificate.reward)
        return max(0.0, self.relaxed - reward) / max(abs(reward), ABSOLUTE_GAP)

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
        if certificate.undecided:
            return f"{self.explanation}; whether its risk is allowed is too close to say"
        if not certificate.passes:
            risk, allowed = float(certificate.risk), float(certificate.allowed)
            return f"{self.explanation}; it risks {risk:.4g} where {allowed:.4g} is allowed"
        return f"{self.explanation}; it is not complete"

    def explore(self, **options: Any) -> Page:
        """Return a page on which people explore the plan; see `vulcan.explore` for the options.

        Raises
        ------
        PolicyError
            If there is no policy.
        """
        from vulcan.planning.explore import explore

        if self.policy is None:
            raise PolicyError(f"there is no plan to explore: {self.explanation}")
        return explore(self.problem, self.policy, **options)

    def rows(self) -> list[tuple[str, str]]:
        """Return the result as pairs of a name and a string, for people."""
        statistics = self.statistics
        rows = [("status", self.explanation)]
        if self.certificate is not None and self.policy is not None:
            rows += describe_certificate(self.certificate, self.problem, len(self.policy))
            if sure := describe_sure_failures(self.policy):
                rows.append(("surely fails", sure))
        if self.upper_bound is not None and self.safest is None:
            rows.insert(2 if self.certificate else 1, ("upper bound", self._describe_bound()))
        rows += self._describe_refusal()
        rows += self._describe_randomising()
        if self.spread is not None:
            rows += self.spread.rows()
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
        rows += [
            ("searched", searched),
            ("evaluations", f"{statistics.evaluations:,} of the model{self._describe_speed()}"),
            ("time", seconds),
        ]
        if statistics.lost_workers:
            lost = f"{statistics.lost_workers:,} died on the way"
            rows.append(("workers", lost if self.error else f"{lost}; others did their work"))
        return rows

    def _describe_randomising(self) -> list[tuple[str, str]]:
        """Return what a randomised policy would gain, if that is worth saying."""
        gain = self.gain_of_randomising
        if gain <= WORTH_SAYING:
            return []
        more = f", {100 * gain:.2g} % more" if gain < MANIFOLD else ""
        text = f"a randomised policy would earn {self.relaxed:.6f}{more}"
        return [("randomised", f"{text} (randomised=True, --randomised)")]

    def _describe_refusal(self) -> list[tuple[str, str]]:
        """Return what comes closest where no policy is within the bound."""
        safest, sufficient = self.safest, self.sufficient
        if safest is None:
            return []
        allowed = self.problem.risk_bound(safest.reward)
        risk, earned = show_probability(safest.risk), f"{safest.reward:.6f}"
        least = f"{risk}  of any policy; the best policy of this risk earns {earned}"
        there = f"{show_probability(allowed)}  Δ({earned})"
        if allowed < 0:
            there += ": the bound is negative there, so that not even a risk of 0 is acceptable"
        if sufficient is not None:
            enough = (
                f"{_round_up(sufficient.multiple)} times this bound would accept a policy that "
                f"earns {sufficient.reward:.6f} and risks {show_probability(sufficient.risk)}"
            )
            if sufficient.least:
                enough += "; no smaller multiple would accept any"
        else:
            enough = "no multiple of this bound: it is not above 0 at any reward that can be earned"
            if allowed > -math.inf:
                more = _round_up(safest.risk - allowed)
                enough += f"; raised by {more} everywhere, it would accept the policy above"
        return [("least risk", least), ("allowed there", there), ("would do", enough)]

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

    def __repr__(self) -> str:
        words = [str(self.status.value), "safe" if self.safe else "not safe"]
        if self.certificate is None:
            words[1] = "no policy"
        else:
            if self.certificate.undecided:
                words[1] = "too close to say"
            certificate = self.certificate
            words.append(f"reward {show_reward(float(certificate.reward))}")
            risk, allowed = float(certificate.risk), float(certificate.allowed)
            words.append(f"risk {show_probability(risk)} of {show_probability(allowed)} allowed")
        if self.gap is not None:
            words.append(f"gap {show_gap(self.gap)}")
        return f"<Result for {describe_model(self.problem.model)}: {', '.join(words)}>"

    def _repr_html_(self) -> str:
        from vulcan.planning.cards import write_result

        return write_result(self)

    def __str__(self) -> str:
        return "\n".join(f"{name:<13} {text}" for name, text in self.rows())


def _round_up(number: float) -> str:
    """Return a positive number to five digits and not below it: who types it gets a policy."""
    number = max(number, sys.float_info.min)
    step = 10.0 ** (math.floor(math.log10(number)) - 4)
    return f"{math.ceil(number / step - 1e-9) * step:.5g}"
