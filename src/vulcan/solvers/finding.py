"""What a search found, before it is checked, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from vulcan.bounds.base import RewardLine
from vulcan.certificate.certify import Certificate
from vulcan.errors import ModelError
from vulcan.policy.policy import AnyPolicy


class Status(Enum):
    """How a search ended."""

    SOLVED = "solved"
    """The policy is within the requested share of the best, or the best up to rounding, proved.

    For a solver with a local constraint: no policy that the constraint admits is better."""

    INFEASIBLE = "infeasible"
    """There is no policy within the risk bound, or none that the constraint admits, proved."""

    DONE = "done"
    """The search is over, without a proof that its policy is the best or that there is none."""

    STOPPED = "stopped"
    """A limit or Ctrl-C ended the search; the policy, if there is one, is the best so far."""


@dataclass(frozen=True)
class Statistics:
    """Size and time of a search.

    Attributes
    ----------
    search_seconds
        Time of the search, model included.
    histories
        Histories visited, or kept in the search tree. Those that end in a state known to be a safe
        terminal do not count as visited.
    evaluations
        Number of (state, action) pairs that the search evaluated.
    samples
        Samples taken; 0 for a search that takes none.
    memory
        Bytes of the search tree and the state graph.
    certificate_seconds
        Time of the certificate.
    nodes
        State–step pairs that an exact solver worked on; 0 for others.
    lost_workers
        Workers that died; others did their work.
    """

    search_seconds: float
    histories: int
    evaluations: int
    samples: int = 0
    memory: int = 0
    certificate_seconds: float = 0.0
    nodes: int = 0
    lost_workers: int = 0


@dataclass(frozen=True)
class Worth:
    """Expected reward and risk of a policy, as a search computed them."""

    reward: float
    risk: float


@dataclass(frozen=True)
class Trial:
    """One policy that a search compared with others.

    Attributes
    ----------
    multiplier
        The price of failure that it is the best policy for: it maximises reward - multiplier risk.
    reward, risk, allowed
        Its expected reward, its risk, and the risk that the bound allows for that reward.
    passes
        Whether the bound holds.
    """

    multiplier: float
    reward: float
    risk: float
    allowed: float
    passes: bool


@dataclass(frozen=True)
class Sufficient:
    """A multiple of a risk bound that accepts a policy where the bound itself accepts none.

    Attributes
    ----------
    multiple
        How many times the bound.
    reward, risk
        Those of that policy.
    least
        Whether no smaller multiple accepts any policy, randomised or not.
    """

    multiple: float
    reward: float
    risk: float
    least: bool


@dataclass(frozen=True)
class Finding:
    """What a search found, before `solve` has checked it.

    Attributes
    ----------
    status
        How the search ended.
    explanation
        The same in a sentence or two.
    policy
        The policy; None if there is none.
    reward, risk
        Expected reward and risk of the policy by the search's own arithmetic. `solve` compares them
        with the certificate.
    credits
        Where the search evaluated the risk bound: every point, or the ends of an interval.
    statistics
        Size and time of the search.
    planned
        A policy that was found, and for whose certificate there was no time: estimates of the
        search, which prove nothing. None where the best policy was certified.
    certificate
        The certificate of the policy, computed from the model alone; None without one.
    error
        The model's error, if that ended the search; the policy is the best until then.
    upper_bound
        No policy within the risk bound earns more: no deterministic one, and for a randomised
        policy no randomised one either. None if it is not known.
    rounding
        Distance between upper bound and reward that rounding alone can explain; for a linear
        program including the value of the risk bound's tolerance.
    trials
        The policies that the search compared (`Penalty`, `Lagrangian`).
    price
        The price of risk: gain of the upper bound per unit of allowed risk; None if unknown.
    lines
        Proved for every policy, whatever the bound: each line is an upper bound on the reward as a
        function of risk. A frontier draws its upper bound with them.
    estimate
        The final value of the root of a search tree, which is not that of its policy unless all of
        it was explored. None for other solvers.
    relaxed
        Reward of the best randomised policy within the risk bound; None if unknown.
    safest
        Where no policy is within the risk bound: reward and risk of the policy of least risk. None
        if unknown.
    sufficient
        In the same case, a multiple of the bound that would accept a policy; None if none would,
        or the solver does not know.
    """

    status: Status
    explanation: str
    policy: AnyPolicy | None
    reward: float
    risk: float
    credits: Sequence[float]
    statistics: Statistics
    planned: Worth | None = None
    certificate: Certificate | None = None
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

    @property
    def complete(self) -> bool:
        """Whether there is a complete policy that the search calls acceptable."""
        passes = self.certificate is None or self.certificate.passes
        return self.policy is not None and self.policy.complete and passes


def is_closed(reward: float, upper_bound: float, gap: float, rounding: float = 0.0) -> bool:
    """Return whether a reward is within a relative gap of an upper bound, or within rounding.

    Nothing here depends on the unit of rewards: multiplying them all by a number changes nothing.
    """
    if upper_bound <= reward:  # also where both are infinite
        return True
    return upper_bound - reward <= max(rounding, gap * abs(upper_bound))


def find_distance(reward: float, upper_bound: float, rounding: float = 0.0) -> float:
    """Return how far a reward is below an upper bound; 0 if rounding explains it."""
    distance = max(0.0, upper_bound - reward)
    return 0.0 if distance <= rounding else distance


def find_gap(reward: float, upper_bound: float, rounding: float = 0.0) -> float:
    """Return the distance as a share of the bound's size, or of the reward's where that is 0."""
    distance = find_distance(reward, upper_bound, rounding)
    return distance / (abs(upper_bound) or abs(reward)) if distance else 0.0
