"""What a frontier is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from vulcan.bounds.base import RiskBound
from vulcan.bounds.reward_limit import RewardLine
from vulcan.certificates.certificate import Certificate
from vulcan.planning.frontier.enclosure import Enclosure
from vulcan.planning.result import Result
from vulcan.policies.randomised import AnyPolicy, RandomisedPolicy
from vulcan.runtime.formatting import MISSING, TextTable, show_gap, show_probability, show_reward
from vulcan.runtime.limits import StopReason
from vulcan.solvers.finding import find_gap

__all__ = ["Frontier", "FrontierFailure", "FrontierPoint"]


@dataclass(frozen=True)
class FrontierPoint:
    """The best policy for one bound.

    Attributes
    ----------
    bound
        The bound.
    level, scale
        The bound is this constant, or this multiple of the frontier's bound; the other is None.
    result
        What the search for this bound found.
    policy, certificate
        The best safe policy: that of the result, or one of another point that is within this bound
        as well. None without one.
    carried_from
        The level or scale that the policy was found for, if it was not this one.
    upper_bound
        No policy within the bound earns more; as in `Result`. None if unknown.
    price
        The price of risk; None if unknown.
    price_from
        Where the price comes from: the "dual", or the "difference" to neighbouring points.
    """

    bound: RiskBound
    level: float | None
    scale: float | None
    result: Result
    policy: AnyPolicy | None
    certificate: Certificate | None
    carried_from: float | None = None
    upper_bound: float | None = None
    price: float | None = None
    price_from: Literal["dual", "difference"] | None = None

    def __repr__(self) -> str:
        earned = f"reward {show_reward(self.reward)}, risk {show_probability(self.risk)}"
        return f"<FrontierPoint at {self.at:.4g}: {earned if self.safe else 'no policy'}>"

    @property
    def at(self) -> float:
        """The level or the scale."""
        place = self.scale if self.level is None else self.level
        assert place is not None
        return place

    @property
    def safe(self) -> bool:
        """Whether there is a complete policy within the bound."""
        return self.certificate is not None

    @property
    def reward(self) -> float | None:
        """Certified reward of the best safe policy."""
        return None if self.certificate is None else float(self.certificate.reward)

    @property
    def risk(self) -> float | None:
        """Its certified risk."""
        return None if self.certificate is None else float(self.certificate.risk)

    @property
    def allowed(self) -> float | None:
        """The risk that the bound allows for its reward."""
        return self.level if self.certificate is None else float(self.certificate.allowed)

    @property
    def gap(self) -> float | None:
        """How far the reward may be below the best possible, as a share of that."""
        if self.reward is None or self.upper_bound is None:
            return None
        return find_gap(self.reward, self.upper_bound)

    @property
    def explanation(self) -> str:
        """How the search ended, and where the policy comes from if not from there."""
        found = self.result.summary
        return found if self.carried_from is None else f"policy for {self.carried_from:g}; {found}"


@dataclass(frozen=True)
class FrontierFailure:
    """A bound whose search failed.

    Attributes
    ----------
    at
        The level or scale.
    error
        What was raised.
    """

    at: float
    error: str


@dataclass(frozen=True)
class Frontier:
    """Points in the order of the risk that they allow.

    Attributes
    ----------
    model
        Text of the model.
    bound
        The bound whose multiples were used; None for constant bounds.
    solver
        Text of the solver.
    points
        The points that were solved.
    evaluations
        (state, action) that the model was asked by all searches together. Searches share what they
        know, as far as one worker does them: several ask more.
    seconds
        Time of everything.
    stopped_by
        `StopReason.INTERRUPTED` if Ctrl-C came before the last point; else None.
    lines
        What the searches proved of every policy: the most that it earns for its risk.
    failures
        Where a search raised an error, and which; others went on.
    lost_workers
        How many workers were lost; their searches were run again by others.
    """

    model: str
    bound: RiskBound | None
    solver: str
    points: tuple[FrontierPoint, ...]
    evaluations: int
    seconds: float
    stopped_by: StopReason | None = None
    lines: tuple[RewardLine, ...] = ()
    failures: tuple[FrontierFailure, ...] = ()
    lost_workers: int = 0

    @property
    def deterministic(self) -> bool:
        """Whether all policies are: then upper bounds of points speak of such policies alone."""
        return not any(isinstance(point.policy, RandomisedPolicy) for point in self.points)

    @cached_property
    def enclosure(self) -> Enclosure:
        """What is proved at every level or scale, between the points as well."""
        return Enclosure(self.points, self.lines, self.bound)

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.points)

    def __iter__(self) -> Iterator[FrontierPoint]:
        """Return the points, one after the other."""
        return iter(self.points)

    def tabulate(self) -> TextTable:
        """Return the frontier as a table, for people."""
        scaled = self.bound is not None
        header = ["allowed", "reward", "risk", "at most", "gap", "price", ""]
        return TextTable(
            ["scale", *header] if scaled else header,
            [
                [
                    *([f"{point.scale:.4g}"] if scaled else []),
                    show_probability(point.allowed),
                    show_reward(point.reward),
                    show_probability(point.risk),
                    show_reward(point.upper_bound),
                    show_gap(point.gap),
                    _show_price(point),
                    _remark(point),
                ]
                for point in self.points
            ],
        )

    def __repr__(self) -> str:
        ends = f" from {self.points[0].at:.4g} to {self.points[-1].at:.4g}" if self.points else ""
        kind = "levels" if self.bound is None else f"multiples of {self.bound}"
        return f"<Frontier for {self.model}: {len(self)} {kind}{ends}>"

    def _repr_html_(self) -> str:
        from vulcan.planning.cards import write_frontier

        return write_frontier(self)

    def __str__(self) -> str:
        return str(self.tabulate())


def _show_price(point: FrontierPoint) -> str:
    """Return the price of a point; an estimate looks like one."""
    if point.price is None:
        return MISSING
    return f"{'' if point.price_from == 'dual' else '≈ '}{point.price:.4g}"


def _remark(point: FrontierPoint) -> str:
    if point.carried_from is not None:
        return f"policy for {point.carried_from:.4g}"
    if not point.safe:
        return point.explanation.split(". ")[0]  # the first sentence
    return point.result.stopped_by or ""
