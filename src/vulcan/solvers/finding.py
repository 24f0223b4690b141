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

    For a solver with a local test: no policy that the constraint admits is better."""

    INFEASIBLE = "infeasible"
    """There is no policy within the risk bound, or none that the constraint admits, proved."""

    DONE = "done"
    """The search is over, without a proof that its policy is the best or that there is none."""

    STOPPED = "stopped"
    """A limit or Ctrl-C ended the search; the policy, if there is one, is the best so far."""


@dataclass(frozen=True)
class Statistics:
    """Size and time of a search."""

    search_seconds: float  # the model's time included
    histories: int  # visited, or kept in the search tree; not those known to end safely
    evaluations: int  # number of (state, action) pairs evaluated
    samples: int = 0
    memory: int = 0  # bytes of the search tree and the state graph
    certificate_seconds: float = 0.0
    nodes: int = 0  # state–step pairs of an exact solver
    lost_workers: int = 0  # workers that died; others did their work


@dataclass(frozen=True)
class Worth:
    """Expected reward and risk of a policy, as a search computed them."""

    reward: float
    risk: float


@dataclass(frozen=True)
class Trial:
    """One policy that a search compared with others: it maximises reward - multiplier risk."""

    multiplier: float  # the price of failure
    reward: float
    risk: float
    allowed: float  # by the bound for that reward
    passes: bool


@dataclass(frozen=True)
class Sufficient:
    """A multiple of a risk bound that accepts a policy where the bound itself accepts none."""

    multiple: float
    reward: float  # of that policy
    risk: float
    least: bool  # whether no smaller multiple accepts any policy, randomised or not


@dataclass(frozen=True)
class Finding:
    """What a search found, before `solve` has checked it.

    `planned` are the search's own estimates of a policy for whose certificate there was no time.
    Each of `lines` is proved for every policy, whatever the bound: an upper bound on the reward as
    a function of risk, with which a frontier draws its upper bound. `safest` and `sufficient` are
    given where no policy is within the risk bound.
    """

    status: Status
    explanation: str  # the status in a sentence or two
    policy: AnyPolicy | None
    reward: float  # of the policy by the search's own arithmetic; compared with the certificate
    risk: float
    credits: Sequence[float]  # where the bound was evaluated: every point, or ends of an interval
    statistics: Statistics
    planned: Worth | None = None
    certificate: Certificate | None = None  # of the policy, from the model alone
    error: ModelError | None = None  # that ended the search; the policy is the best until then
    upper_bound: float | None = None  # for randomised policies, too, if the policy is one
    rounding: float = 0.0  # distance of upper bound and reward that rounding alone can explain
    trials: tuple[Trial, ...] = ()
    price: float | None = None  # of risk: gain of the upper bound per unit of allowed risk
    lines: tuple[RewardLine, ...] = field(default=(), repr=False)
    estimate: float | None = None  # final value of the root of a search tree
    relaxed: float | None = None  # reward of the best randomised policy within the bound
    safest: Worth | None = None  # the policy of least risk
    sufficient: Sufficient | None = None
    # By how much each limit alone must be raised; None where that does not help.
    relaxations: tuple[tuple[str, float | None], ...] = ()
    advice: str = ""  # what a smaller model would win

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
