"""What `solve` returns."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from vulcan.certificate.certify import describe_certificate, judge_certificate, list_excesses
from vulcan.errors import PolicyError
from vulcan.model.interface import describe_model
from vulcan.numerics import EXACT_GAP
from vulcan.planning.explain import describe_sure_failures
from vulcan.problem import Problem
from vulcan.runtime.formatting import (
    BAD,
    build_card,
    build_table,
    show_gap,
    show_probability,
    show_reward,
)
from vulcan.runtime.limits import Progress, StopReason
from vulcan.solvers.finding import Finding, Statistics, Status, Trial, find_distance, find_gap

if TYPE_CHECKING:
    from vulcan.pages.page import Page

__all__ = ["Progress", "Result", "Statistics", "Status", "StopReason", "Trial"]

WORTH_SAYING: Final = 0.01  # smallest gain of a randomised policy that is mentioned


@dataclass(frozen=True, kw_only=True)
class Result(Finding):
    """A policy with its certificate, or the reason why there is none.

    It is what the search found (the attributes of `vulcan.solvers.finding.Finding`, such as
    `status`, `explanation`, `policy`, `certificate`, `statistics`, `upper_bound` and `price`), now
    certified and checked.

    Attributes
    ----------
    problem
        The problem.
    solver
        Text of the solver.
    stopped_by
        The reason for an early end, such as `StopReason.TIME`; else None.
    """

    problem: Problem
    solver: str
    stopped_by: StopReason | None = None

    @property
    def gap(self) -> float | None:
        """Largest relative distance of the reward from the optimum; None if unknown.

        Only safe policies have one, since the optimum is over policies within the risk bound.
        Differences that rounding explains don't count: the upper bound is rounded up.
        """
        if self.upper_bound is None or self.certificate is None or not self.safe:
            return None
        return find_gap(float(self.certificate.reward), self.upper_bound, self.rounding)

    @property
    def absolute_gap(self) -> float | None:
        """The same in units of reward: upper bound less certified reward; None if unknown."""
        if self.upper_bound is None or self.certificate is None or not self.safe:
            return None
        return find_distance(float(self.certificate.reward), self.upper_bound, self.rounding)

    @property
    def gain_of_randomising(self) -> float:
        """Relative gain in reward of the best randomised policy."""
        if self.relaxed is None or self.certificate is None:
            return 0.0
        reward, rounding = float(self.certificate.reward), self.rounding
        more = find_distance(reward, self.relaxed, rounding)
        if abs(reward) <= rounding:
            return math.inf if more else 0.0
        return more / abs(reward)

    @property
    def safe(self) -> bool:
        """Whether the policy passes, and is complete or bounded beyond its frontier."""
        return self.certificate is not None and self.certificate.safe

    @property
    def summary(self) -> str:
        """How the search ended, and why its policy is not safe if it is not."""
        certificate = self.certificate
        if certificate is None or certificate.safe:
            return self.explanation
        if certificate.undecided:
            return f"{self.explanation}; rounding leaves open whether its risk is allowed"
        if certificate.risk_verdict and not certificate.passes:
            return f"{self.explanation}; {', and '.join(list_excesses(certificate))}"
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
        if self.estimate is not None:
            rows.append(("estimate", f"{show_reward(self.estimate)}  of the root, by the search"))
        rows += self._describe_planned()
        if self.upper_bound is not None and self.safest is None and not self.relaxations:
            rows.insert(2 if self.certificate else 1, ("upper bound", self._describe_bound()))
        rows += self._describe_infeasibility()
        if self.gain_of_randomising > WORTH_SAYING:
            text = f"a randomised policy has reward {show_reward(self.relaxed)}"
            rows.append(("randomised", f"{text} (Automatic(randomised=True), --randomised)"))
        seconds = f"{statistics.search_seconds:.3g} s"
        if self.certificate is not None:
            seconds += f", certificate {statistics.certificate_seconds:.3g} s"
        size = ("histories", f"{statistics.histories:,}")
        if statistics.nodes:
            size = ("state–step pairs", f"{statistics.nodes:,}")
        rows.append(size)
        if statistics.samples:
            rows.append(("samples", f"{statistics.samples:,}, {statistics.memory / 1e6:,.1f} MB"))
        rows += [("evaluations", f"{statistics.evaluations:,} of the model"), ("time", seconds)]
        if self.advice:
            rows.append(("advice", self.advice))
        if statistics.lost_workers:
            lost = f"{statistics.lost_workers:,} lost"
            rows.append(("workers", lost if self.error else f"{lost}; others took over their work"))
        return rows

    def _describe_planned(self) -> list[tuple[str, str]]:
        """Return what was planned without a certificate, if anything was."""
        if self.planned is None:
            return []
        reward, risk = show_reward(self.planned.reward), show_probability(self.planned.risk)
        text, again = f"reward {reward}, risk {risk}: estimates of the search", ""
        if self.certificate is not None:
            text += ", for a better policy than the one above"
        elif self.policy is not None:
            again = "; certify() can still compute it"
        return [
            ("planned", text),
            ("missing", f"certificate: the policy is not reported as safe{again}"),
        ]

    def _describe_infeasibility(self) -> list[tuple[str, str]]:
        """Return the least risk, and a sufficient multiple, if no policy is acceptable."""
        safest, sufficient = self.safest, self.sufficient
        if self.relaxations:
            ways = [
                f"{name} by {_round_up(more)}" if more else f"{name}"
                for name, more in self.relaxations
                if more is not None
            ]
            text = f"raise one limit alone: {', or '.join(ways)}"
            return [("sufficient", text if ways else "no limit that is raised alone is enough")]
        if safest is None:
            return []
        allowed = self.problem.risk_bound(safest.reward)
        risk, earned = show_probability(safest.risk), show_reward(safest.reward)
        least = f"{risk}  of any policy; the best policy of this risk has reward {earned}"
        there = f"{show_probability(allowed)}  Δ({earned})"
        if allowed < 0:
            there += ": the bound is negative there, so that not even a risk of 0 is acceptable"
        if sufficient is not None:
            enough = (
                f"{_round_up(sufficient.multiple)} times this bound accepts a policy with "
                f"reward {show_reward(sufficient.reward)} and risk "
                f"{show_probability(sufficient.risk)}"
            )
            if sufficient.least:
                enough += "; no smaller multiple accepts any policy"
        else:
            enough = "no scaling of this bound helps: it is at most 0 for every reachable reward"
            if allowed > -math.inf:
                more = _round_up(safest.risk - allowed)
                enough += f"; raised by {more} everywhere, it accepts the policy above"
        return [("least risk", least), ("allowed there", there), ("sufficient", enough)]

    def _describe_bound(self) -> str:
        assert self.upper_bound is not None
        if self.upper_bound == -float("inf"):
            return "no policy is within the risk bound"
        text = show_reward(self.upper_bound)
        if self.gap is None:
            return text
        if self.gap <= EXACT_GAP:
            assert self.certificate is not None
            distance = find_distance(float(self.certificate.reward), self.upper_bound)
            near = distance > EXACT_GAP * abs(self.upper_bound)
            return f"{text}  the best possible" + (f" up to roundings of {distance:.2g}" * near)
        gap = show_gap(self.gap, self.absolute_gap, self.upper_bound)
        return f"{text}  at most {gap} below the best possible"

    def __repr__(self) -> str:
        words = [str(self.status.value), "safe" if self.safe else "not safe"]
        if self.certificate is None:
            words[1] = "no policy" if self.planned is None else "not certified"
        else:
            if self.certificate.undecided:
                words[1] = "too close to say"
            certificate = self.certificate
            words.append(f"reward {show_reward(float(certificate.reward))}")
            risk, allowed = float(certificate.risk), float(certificate.allowed)
            words.append(f"risk {show_probability(risk)} of {show_probability(allowed)} allowed")
        if self.gap is not None:
            words.append(f"gap {show_gap(self.gap, self.absolute_gap, self.upper_bound)}")
        return f"<Result for {describe_model(self.problem.model)}: {', '.join(words)}>"

    def _repr_html_(self) -> str:
        verdict, colour = ("✗ no policy" if self.planned is None else "✗ not certified"), BAD
        if self.certificate is not None:
            verdict, colour = judge_certificate(self.certificate)
        rows = [("model", describe_model(self.problem.model)), *self.rows()]
        table = build_table((), [row for row in rows if row[0] != "status"])
        return build_card(verdict, table, remark=self.explanation, colour=colour)

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}} {text}" for name, text in rows)


def _round_up(number: float) -> str:
    """Return a positive number rounded up to five digits, so that the printed number suffices."""
    number = max(number, sys.float_info.min)
    step = 10.0 ** (math.floor(math.log10(number)) - 4)
    return f"{math.ceil(number / step - 1e-9) * step:.5g}"
