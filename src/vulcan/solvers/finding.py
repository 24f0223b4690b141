"""What a search found, before anybody has checked it, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from vulcan.bounds.reward_limit import RewardLine
from vulcan.certificates.certificate import Certificate
from vulcan.errors import ModelError
from vulcan.graphs.state_graph import StateGraph
from vulcan.policies.randomised import AnyPolicy
from vulcan.solvers.knowledge import Knowledge


@dataclass(frozen=True)
class Finding:
    """What a search found, before anybody has checked it.

    Attributes
    ----------
    status, explanation
        How it ended.
    policy
        The policy, or None.
    reward, risk
        The expected reward and the probability of failure that the search credits to it. `solve`
        compares them with the certificate.
    credits
        Where the search evaluated the risk bound: every point, or the ends of an interval.
    statistics
        What the search took.
    certificate
        The certificate of the policy, if the search has made it already.
    error
        What the model raised, if that ended the search.
    upper_bound
        No policy of the same kind (deterministic or randomised) earns more within the risk bound;
        None if the search has no such bound.
    rounding
        How far rounding alone may take the upper bound from what a policy earns; of a linear
        program also what the tolerance of the risk bound is worth.
    trials
        The policies that the search weighed against each other, if that is how it works.
    price
        What the upper bound gains per unit of allowed risk, if the search knows that.
    lines
        What the search proved of the reward of every policy, acceptable or not.
    graph
        What the search knows of the model, if all of it is still there.
    knowledge
        The same and its tree, for a search that goes on from here.
    relaxed
        What the best randomised policy earns, if the search knows that.
    estimate
        The value that a tree search gives the root, which is not that of its policy unless all of
        it was explored.
    safest
        Where no policy is within the bound: what the policy of least risk is worth, and of those
        the one that earns most. None if the search does not know.
    sufficient
        A multiple of the bound that would accept a policy, in the same case.
    """

    status: Status
    explanation: str
    policy: AnyPolicy | None
    reward: float
    risk: float
    credits: Sequence[float]
    statistics: Statistics
    certificate: Certificate | None = None
    error: ModelError | None = None
    upper_bound: float | None = None
    rounding: float = 0.0
    trials: tuple[Trial, ...] = ()
    price: float | None = None
    lines: tuple[RewardLine, ...] = ()
    graph: StateGraph | None = None
    knowledge: Knowledge | None = None
    estimate: float | None = None
    relaxed: float | None = None
    safest: Worth | None = None
    sufficient: Sufficient | None = None

    @property
    def complete(self) -> bool:
        """Whether there is a complete policy that the search calls acceptable."""
        passes = self.certificate is None or self.certificate.passes
        return self.policy is not None and self.policy.complete and passes


SMALLEST_SIZE: Final = 1e-9
"""Where the best reward is about 0, a gap is a share of this instead."""


class Status(Enum):
    """How a search ended."""

    SOLVED = "solved"
    """The policy is the best, or within the gap asked for of the best, proved.

    For a solver with a local constraint: no policy that the constraint admits is better."""

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
    lost_workers
        Workers that died; what they were doing was done again by others.
    """

    search_seconds: float
    histories: int
    evaluations: int
    samples: int = 0
    memory: int = 0
    certificate_seconds: float = 0.0
    nodes: int = 0
    bound_seconds: float = 0.0
    lost_workers: int = 0


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
class Worth:
    """What a policy is worth.

    Attributes
    ----------
    reward, risk
        What it earns and risks.
    """

    reward: float
    risk: float


@dataclass(frozen=True)
class Sufficient:
    """A multiple of a risk bound that accepts a policy where the bound itself accepts none.

    Attributes
    ----------
    multiple
        How many times the bound.
    reward, risk
        What that policy earns and risks.
    least
        Whether no smaller multiple accepts any policy, randomised or not.
    """

    multiple: float
    reward: float
    risk: float
    least: bool


def find_gap(reward: float, upper_bound: float) -> float:
    """Return how far a reward is below an upper bound, as a share of the bound's size."""
    distance = max(0.0, upper_bound - reward)
    return distance / max(abs(upper_bound), SMALLEST_SIZE)
