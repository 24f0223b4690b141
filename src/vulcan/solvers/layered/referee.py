"""Whether a risk bound accepts a policy, as far as roundings let one know.

Reward and risk of a policy are known up to an `Accuracy`, and a bound may be so steep that the last
digits of a reward decide. So there are two questions, and where both are answered with no, only
exact arithmetic can tell: does the bound accept the policy for certain, and does it refuse it for
certain?
"""

from __future__ import annotations

from typing import Final, Protocol

from vulcan.bounds.base import RiskBound
from vulcan.bounds.reward_limit import Weights
from vulcan.solvers.layered.accuracy import Accuracy
from vulcan.tolerance import EXACT_GAP, TOLERANCE

__all__ = ["ACCEPTED", "Referee"]

ACCEPTED: Final = TOLERANCE / 2
"""A search must not use up what the certificate's own roundings need."""


ROUNDINGS: Final = 128
"""As many times what rounding does to a reward, all that is done with rewards does to a bound."""


class Point(Protocol):
    """A policy, or a mixture of two."""

    @property
    def reward(self) -> float:
        """What it earns, up to roundings."""

    @property
    def risk(self) -> float:
        """What it risks, up to roundings."""


class Referee:
    """Compares policies with a risk bound.

    Parameters
    ----------
    bound
        The risk bound.
    accuracy
        How accurately policies are evaluated; by default without any rounding.

    Attributes
    ----------
    bound, accuracy
        The same.
    """

    def __init__(self, bound: RiskBound, accuracy: Accuracy | None = None) -> None:
        self.bound = bound
        self.accuracy = Accuracy() if accuracy is None else accuracy

    def accepts(self, point: Point) -> bool:
        """Whether the bound accepts a policy for certain."""
        return self.allow(point.reward) - point.risk * (1 + self.accuracy.risk) >= -ACCEPTED

    def refuses(self, point: Point) -> bool:
        """Whether the bound refuses a policy for certain, and all that earn and risk the same."""
        most = self.bound.enclose(point.reward, self.raise_reward(point.reward))[1]
        return point.risk * (1 - self.accuracy.risk) - float(most) > TOLERANCE

    def allow(self, reward: float) -> float:
        """Return the least risk that is allowed for a reward, whatever that is without rounding."""
        return float(self.bound.enclose(self.lower_reward(reward), reward)[0])

    def slack(self, point: Point) -> float:
        """Return how much less a policy risks than is allowed."""
        return self.bound(point.reward) - point.risk

    def raise_reward(self, reward: float) -> float:
        """Return what a policy earns at most, from what was computed."""
        return reward + 2 * self.accuracy.at(reward)

    def lower_reward(self, reward: float) -> float:
        """Return what a policy earns at least, from what was computed."""
        return reward - 2 * self.accuracy.at(reward)

    def find_rounding(self, upper: float) -> float:
        """Return how far rounding alone may take an upper bound from what a policy earns."""
        return max(EXACT_GAP * abs(upper), ROUNDINGS * self.accuracy.at(upper))

    def raise_value(self, value: float, weights: Weights, most: float) -> float:
        """Return what no policy is worth more than, from the largest value that was computed.

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
