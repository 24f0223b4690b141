"""Whether a risk bound accepts a policy, allowing for rounding errors.

**Accuracy.** Every term of the reward and of the risk that a dynamic program adds up is rounded in
its factors and in each sum that contains it. With at most m outcomes of an action, a term is
rounded less than m + 16 times at each level, n times in all. With u = 2^-53, this multiplies the
term by a factor between (1 - u)^n and (1 + u)^n. So with

    e = n u / (1 - n u)

a computed reward is at most e E Σ γ^t |r| from the exact one, and a risk, whose terms are all
positive, at most e er. Rewards may cancel: where 1e8 is earned and lost again, digits of 1e8 are
lost. With P the largest E Σ γ^t max(r, 0) of any policy, found by one dynamic program,

    E Σ γ^t |r|  =  2 E Σ γ^t max(r, 0) - E g  <=  2 P - E g,

so that an action that no good policy takes, such as a way out that costs 1e15, adds no error.
Actions that can only fail count as risk 1, although their probabilities sum to 1 only up to
`SUM_TOLERANCE`.

**Acceptance.** A bound may be so steep that the last digits of a reward decide. So there are two
questions: does the bound accept a policy for certain, and does it refuse it for certain? Where both
answers are no, the certificate of the policy decides (`ExactSearch.accepts`). Searches over
histories use `accepts` or `ACCEPTED` alone, and certify their policies as they go.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RiskBound, Weights
from vulcan.errors import BoundError
from vulcan.exact.device import open_sweeps
from vulcan.exact.sweeps import PolicyPoint
from vulcan.graph.levels import Levels
from vulcan.graph.states import Graph
from vulcan.numerics import EXACT_GAP, LARGEST_REWARD, SUM_TOLERANCE, TOLERANCE
from vulcan.runtime.arrays import ranges

UNIT: Final = sys.float_info.epsilon / 2  # relative rounding error of one operation
EVERY_LEVEL: Final = 16  # roundings at each level beside those of the outcomes, with some to spare
BLOCK: Final = 1 << 16  # actions that are processed at once
ACCEPTED: Final = TOLERANCE / 2  # leaves room for the certificate's own rounding

ROUNDINGS: Final = 1024
"""Rounding error of an upper bound, in units of the rounding error of a reward.

Branching over 100 decisions adds 8 units for each of them."""


def accepts(bound: RiskBound, reward: float, risk: float) -> bool:
    """Return whether a bound accepts a risk; False where it has no value."""
    try:
        return risk <= bound(reward) + ACCEPTED
    except BoundError:
        return False


Extremes = tuple[int, float, bool]
"""Most outcomes and largest gains of an action, and whether some action can only fail."""


def find_extremes(graph: Graph, gains: NDArray[np.float64] | None = None) -> Extremes:
    """Return the maxima over the actions of a graph; `gains` as of `_find_gains`."""
    gains = _find_gains(graph) if gains is None else gains
    actions = graph.actions.array[: graph.actions.count]
    outcomes = int(actions["outcome_count"].max(initial=1))
    certain = bool((actions["safe_count"] == 0).any())
    return outcomes, float(gains.max(initial=0.0)), certain


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


@dataclass(frozen=True)
class BoundTest:
    """Compares policies with a risk bound, given how accurately they are evaluated."""

    bound: RiskBound
    share: float = 0.0  # e: rounding error of a reward, relative to its policy's absolute rewards
    gains: float = 0.0  # P: the largest expected reward of any policy, losses not counted
    risk_share: float = 0.0  # relative rounding error of a risk

    @classmethod
    def of_levels(
        cls,
        bound: RiskBound,
        levels: Levels,
        tips: NDArray[np.void] | None = None,
        threads: int = 1,
        device: str = "cpu",
    ) -> BoundTest:
        """Return the test of policies over some levels; for other arguments see `open_sweeps`."""
        each = _find_gains(levels.graph)
        gains = levels.arrays._replace(expected_reward=each)
        if tips is not None:
            tips = tips.copy()
            # An unknown value counts as larger than anything, however it is rounded.
            known = np.abs(tips["reward"]) <= LARGEST_REWARD
            tips["reward"] = np.where(known, np.maximum(tips["reward"], 0.0), 0.0)
        sweeps = open_sweeps(Levels(levels.graph, gains), tips, threads, device)
        most = sweeps.find_best(1.0, 0.0).reward
        extremes = find_extremes(levels.graph, each)
        return cls._make(bound, extremes, len(levels.arrays.first) - 1, most)

    @classmethod
    def of_graphs(
        cls, bound: RiskBound, extremes: Extremes, weights: NDArray[np.float64]
    ) -> BoundTest:
        """Return the test of policies in any form: less sharp, and quickly found.

        `extremes` are those of all graphs of the model, `weights` the discounts of the levels.
        """
        return cls._make(bound, extremes, len(weights), float(np.sum(weights)) * extremes[1])

    @classmethod
    def _make(cls, bound: RiskBound, extremes: Extremes, levels: int, gains: float) -> BoundTest:
        """Return the test of sums over some levels, with the largest gains of a policy."""
        outcomes, _, certain = extremes
        count = levels * (outcomes + EVERY_LEVEL)
        share = count * UNIT / (1 - count * UNIT)
        risk_share = share + (SUM_TOLERANCE if certain else 0.0)
        return cls(bound, share, gains * (1 + share), risk_share)

    def find_error(self, reward: float) -> float:
        """Return a bound on the rounding error of a reward of about this size."""
        return self.share * (1 + self.share) * (2 * self.gains + abs(reward))

    def accepts(self, point: PolicyPoint) -> bool:
        """Whether the bound accepts a policy for certain."""
        return self.allow(point.reward) - point.risk * (1 + self.risk_share) >= -ACCEPTED

    def refuses(self, point: PolicyPoint) -> bool:
        """Whether the bound certainly refuses all policies with this reward and risk."""
        most = self.bound.enclose(point.reward, self.raise_reward(point.reward))[1]
        return point.risk * (1 - self.risk_share) - float(most) > TOLERANCE

    def allow(self, reward: float) -> float:
        """Return the least risk allowed for any exact reward behind a computed reward."""
        return float(self.bound.enclose(self.lower_reward(reward), reward)[0])

    def slack(self, point: PolicyPoint) -> float:
        """Return the difference of allowed risk and risk."""
        return self.bound(point.reward) - point.risk

    def raise_reward(self, reward: float) -> float:
        """Return the largest exact reward behind a computed reward."""
        return reward + 2 * self.find_error(reward)

    def lower_reward(self, reward: float) -> float:
        """Return the least exact reward behind a computed reward."""
        return reward - 2 * self.find_error(reward)

    def find_rounding(self, upper: float) -> float:
        """Return the distance from an upper bound to the optimum that rounding may cause."""
        return max(EXACT_GAP * abs(upper), ROUNDINGS * self.find_error(upper))

    def raise_value(self, value: float, weights: Weights, most: float) -> float:
        """Return an upper bound on the value of every policy, from the largest one computed.

        The computed value of a policy with a large risk or loss may have a large error. But as no
        policy earns more than `most`, that value is far below the best, also with its error.
        """
        loss = max(0.0, weights[0] * most - value)  # what a policy of this value pays for its risk
        margin = weights[0] * self.find_error(most) + self.share * abs(value)
        return value + 2 * (margin + self.risk_share * loss)
