"""What a policy still risks and earns from each of its decisions on.

With r the immediate risk of a decision, R̄ its expected reward, γ the discount and p the
probabilities of the safe outcomes that go on,

    risk = r + Σ p · risk(next),    reward = R̄ + γ · Σ p · reward(next),

discounted from that decision on. A child has a larger number than its parent, so that one pass from
the last decision to the first is enough. An outcome without a plan counts as an end, as it does in
certificates.
"""

from __future__ import annotations

from typing import NamedTuple

from vulcan.policies.policy import Policy
from vulcan.sentinels import FAILED

__all__ = ["Prospects", "find_prospects"]


class Prospects(NamedTuple):
    """What lies ahead of each decision, by its number.

    Attributes
    ----------
    risk
        Probability of failing from there on.
    earned, later
        Expected reward of the action itself, and of what follows it, not discounted yet: only the
        first decision may be an initial action, after which there is no discount.
    """

    risk: list[float]
    earned: list[float]
    later: list[float]

    def reward(self, node: int, discount: float) -> float:
        """Return the expected reward from a decision on, given the discount after it."""
        return self.earned[node] + discount * self.later[node]


def find_prospects(policy: Policy) -> Prospects:
    """Return what lies ahead of each decision of a policy."""
    count, discount = len(policy), policy.about.discount
    risk, earned, later = [0.0] * count, [0.0] * count, [0.0] * count
    first, children = policy.first_outcome.tolist(), policy.child.tolist()
    chances, rewards = policy.probability.tolist(), policy.reward.tolist()
    for node in range(count - 1, -1, -1):
        fails = pays = brings = 0.0
        for row in range(first[node], first[node + 1]):
            chance, child = chances[row], children[row]
            pays += chance * rewards[row]
            if child >= 0:
                fails += chance * risk[child]
                brings += chance * (earned[child] + discount * later[child])
            elif child == FAILED:
                fails += chance
        risk[node], earned[node], later[node] = fails, pays, brings
    return Prospects(risk, earned, later)
