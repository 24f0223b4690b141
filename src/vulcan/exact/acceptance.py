"""Whether a risk bound accepts a policy, as far as rounding lets one know.

**Accuracy.** Every number that a dynamic program adds up, of the reward and of the risk, is rounded
in the factors that it is made of, and in each sum that it is a part of. With at most m outcomes of
an action, that is less than m + 16 times at each level, n times in all. With u = 2^-53, roundings
of one number multiply it by a factor between (1 - u)^n and (1 + u)^n. So with

    e = n u / (1 - n u)

a computed reward is at most e E Σ γ^t |r| from the exact one, and a risk, whose terms are all
positive, at most e er. Rewards may cancel: where 1e8 is earned and lost again, digits of 1e8 are
lost. With P the largest E Σ γ^t max(r, 0) of any policy, one dynamic program,

    E Σ γ^t |r|  =  2 E Σ γ^t max(r, 0) - E g  <=  2 P - E g,

so that an action that no good policy takes, such as a way out that costs 1e15, blurs nothing.
Actions that can only fail count as risk 1, although their probabilities sum to 1 only up to
`SUM_TOLERANCE`.

**Acceptance.** A bound may be so steep that the last digits of a reward decide. So there are two
questions: does the bound accept a policy for certain, and does it refuse it for certain
(`BoundTest`)? Where both answers are no, the certificate of the policy decides (`ExactCheck`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RiskBound, Weights
from vulcan.certificate.certify import Certificate, certify
from vulcan.exact.sweeps import Mixture, PolicyPoint, Sweeps
from vulcan.graph.levels import Levels
from vulcan.graph.states import Graph
from vulcan.numerics import EXACT_GAP, LARGEST_REWARD, SUM_TOLERANCE, TOLERANCE
from vulcan.policy.policy import Policy
from vulcan.problem import Problem
from vulcan.runtime.arrays import ThreadPool, ranges
from vulcan.runtime.limits import TimeUp

__all__ = [
    "ACCEPTED",
    "Accuracy",
    "BoundTest",
    "ExactCheck",
    "Extremes",
    "bound_accuracy",
    "find_accuracy",
    "find_extremes",
    "join_extremes",
]

UNIT: Final = sys.float_info.epsilon / 2
"""Relative rounding error of one operation."""

EVERY_LEVEL: Final = 16
"""Roundings at each level beside those of the outcomes, with some to spare."""

BLOCK: Final = 1 << 16
"""Actions that are processed at once."""

ACCEPTED: Final = TOLERANCE / 2
"""A search must leave room for the certificate's own rounding."""

ROUNDINGS: Final = 1024
"""Rounding error of an upper bound, in units of that of a reward.

Branching over 100 decisions adds 8 units for each of them."""

MOST_CHECKS: Final = 32
"""A safeguard, for bounds so steep that almost every policy is in doubt."""


@dataclass(frozen=True)
class Accuracy:
    """Bounds on the rounding error of policies.

    Attributes
    ----------
    share
        e: relative to the absolute rewards of a policy.
    gains
        P: the largest expected reward of any policy, losses not counted.
    risk
        Relative error of a risk.
    """

    share: float = 0.0
    gains: float = 0.0
    risk: float = 0.0

    def at(self, reward: float) -> float:
        """Return a bound on the error of a reward of about this size."""
        return self.share * (1 + self.share) * (2 * self.gains + abs(reward))


class Extremes(NamedTuple):
    """Maxima over the actions of a graph."""

    outcomes: int  # of an action
    gains: float  # expected reward of an action, losses not counted
    certain: bool  # whether some action can only fail


def find_accuracy(
    levels: Levels, tips: NDArray[np.void] | None = None, thread_pool: ThreadPool | None = None
) -> Accuracy:
    """Return how accurately the policies of some levels are evaluated; arguments as of `Sweeps`."""
    each = _find_gains(levels.graph)
    gains = levels.arrays._replace(expected_reward=each)
    if tips is not None:
        tips = tips.copy()
        # An unknown value counts as larger than anything, however it is rounded.
        known = np.abs(tips["reward"]) <= LARGEST_REWARD
        tips["reward"] = np.where(known, np.maximum(tips["reward"], 0.0), 0.0)
    most = Sweeps(Levels(levels.graph, gains), tips, thread_pool).find_best(1.0, 0.0).reward
    return _make_accuracy(_collect(levels.graph, each), len(levels.arrays.first) - 1, most)


def bound_accuracy(extremes: Extremes, weights: NDArray[np.float64]) -> Accuracy:
    """Return how accurately policies are evaluated in any form: less sharp, and quickly found.

    Parameters
    ----------
    extremes
        Of all graphs of the model.
    weights
        The discount of each level.
    """
    return _make_accuracy(extremes, len(weights), float(np.sum(weights)) * extremes.gains)


def find_extremes(graph: Graph) -> Extremes:
    """Return the maxima over the actions of a graph."""
    return _collect(graph, _find_gains(graph))


def join_extremes(some: Iterable[Extremes]) -> Extremes:
    """Return the maxima over several graphs."""
    return Extremes(*map(max, zip(*some, strict=True)))


def _collect(graph: Graph, gains: NDArray[np.float64]) -> Extremes:
    actions = graph.actions.array[: graph.actions.count]
    outcomes = int(actions["outcome_count"].max(initial=1))
    certain = bool((actions["safe_count"] == 0).any())
    return Extremes(outcomes, float(gains.max(initial=0.0)), certain)


def _make_accuracy(extremes: Extremes, levels: int, gains: float) -> Accuracy:
    """Return the accuracy of sums over some levels, with the largest gains of a policy."""
    count = levels * (extremes.outcomes + EVERY_LEVEL)
    share = count * UNIT / (1 - count * UNIT)
    risk = share + (SUM_TOLERANCE if extremes.certain else 0.0)
    return Accuracy(share, gains * (1 + share), risk)


def _find_gains(graph: Graph) -> NDArray[np.float64]:
    """Return the expected reward of each action, losses not counted."""
    actions = graph.actions.array[: graph.actions.count]
    outcomes = graph.outcomes.array
    gains = np.zeros(len(actions))
    for begin in range(0, len(actions), BLOCK):
        stored = actions["first_outcome"][begin : begin + BLOCK] >= 0
        counts = np.where(stored, actions["outcome_count"][begin : begin + BLOCK], 0)
        rows = ranges(actions["first_outcome"][begin : begin + BLOCK], counts)
        parts = outcomes["probability"][rows] * np.maximum(outcomes["reward"][rows], 0.0)
        owner = np.repeat(np.arange(len(counts)), counts)
        gains[begin : begin + BLOCK] = np.bincount(owner, parts, len(counts))
    for row, answers in graph.evaluate_unstored():
        gains[row] = sum(p * max(r, 0.0) for p, r, _ in answers.tolist())
    return gains


class BoundTest:
    """Compares policies with a risk bound, given how accurately they are evaluated."""

    def __init__(self, bound: RiskBound, accuracy: Accuracy | None = None) -> None:
        self.bound = bound
        self.accuracy = Accuracy() if accuracy is None else accuracy

    def accepts(self, point: PolicyPoint | Mixture) -> bool:
        """Whether the bound accepts a policy for certain."""
        return self.allow(point.reward) - point.risk * (1 + self.accuracy.risk) >= -ACCEPTED

    def refuses(self, point: PolicyPoint | Mixture) -> bool:
        """Whether the bound refuses a policy for certain, and all that earn and risk the same."""
        most = self.bound.enclose(point.reward, self.raise_reward(point.reward))[1]
        return point.risk * (1 - self.accuracy.risk) - float(most) > TOLERANCE

    def allow(self, reward: float) -> float:
        """Return the least allowed risk of rewards that a computed one may stand for."""
        return float(self.bound.enclose(self.lower_reward(reward), reward)[0])

    def slack(self, point: PolicyPoint | Mixture) -> float:
        """Return the difference of allowed risk and risk."""
        return self.bound(point.reward) - point.risk

    def raise_reward(self, reward: float) -> float:
        """Return the largest reward that a computed one may stand for."""
        return reward + 2 * self.accuracy.at(reward)

    def lower_reward(self, reward: float) -> float:
        """Return the least reward that a computed one may stand for."""
        return reward - 2 * self.accuracy.at(reward)

    def find_rounding(self, upper: float) -> float:
        """Return how far rounding alone may take an upper bound from an optimal policy."""
        return max(EXACT_GAP * abs(upper), ROUNDINGS * self.accuracy.at(upper))

    def raise_value(self, value: float, weights: Weights, most: float) -> float:
        """Return an upper bound on the value of every policy, from the largest one computed.

        The value of a policy that risks or loses much may be wrong by much. But as it earns no more
        than `most`, it is worth little, and by a small share more is still less than the best.

        Parameters
        ----------
        value
            The largest w E g - k er of any policy, as computed.
        weights
            w and k.
        most
            No policy earns more.
        """
        accuracy = self.accuracy
        loss = max(0.0, weights[0] * most - value)  # what a policy of this value pays for its risk
        margin = weights[0] * accuracy.at(most) + accuracy.share * abs(value)
        return value + 2 * (margin + accuracy.risk * loss)


class ExactCheck:
    """Decides whether policies are acceptable, by their certificates where rounding leaves it open.

    Parameters
    ----------
    problem
        Model and bound.
    write_out
        Makes the policy of a point.
    may_go_on
        Called before each certificate; False stops.

    Attributes
    ----------
    doubtful
        Whether rounding left it open for any policy.
    """

    def __init__(
        self,
        problem: Problem,
        write_out: Callable[[PolicyPoint], Policy],
        may_go_on: Callable[[], bool],
    ) -> None:
        self._problem, self._write_out, self._may_go_on = problem, write_out, may_go_on
        self._decided: list[tuple[PolicyPoint, Certificate]] = []
        self.doubtful = False

    def accepts(self, bound_test: BoundTest, point: PolicyPoint) -> bool:
        """Whether a policy is acceptable."""
        if bound_test.accepts(point):
            return True
        if bound_test.refuses(point):
            return False
        self.doubtful = True
        certificate = self.find_certificate(point)
        if certificate is None and len(self._decided) < MOST_CHECKS and self._may_go_on():
            try:
                certificate = certify(self._problem, self._write_out(point))
            except TimeUp:
                return False
            self._decided.append((point, certificate))
        return certificate is not None and certificate.safe

    def find_certificate(self, point: PolicyPoint | None) -> Certificate | None:
        """Return the certificate of a policy, if it was in doubt; else None."""
        return next((found for known, found in self._decided if known is point), None)
