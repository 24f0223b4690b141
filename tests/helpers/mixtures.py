"""Randomised policies: of one decision, and of the bandit."""

from __future__ import annotations

from functools import cache

import vulcan
from tests.helpers.plans import build
from tests.helpers.tables import Table
from tests.oracles.brute_force import enumerate_plans
from vulcan import Outcome, Policy
from vulcan.domains import Bandit
from vulcan.policy.policy import RandomisedPolicy

# Either take 1 for sure, or 10 with a chance of 0.2 to fail.
CHOICE = Table(
    {0: {"rest": [Outcome(1.0, 1.0, 1)], "leap": [Outcome(0.8, 10.0, 1), Outcome.failure(0.2)]}}
)


def take(name: str) -> Policy:
    (plan,) = [plan for plan in enumerate_plans(CHOICE) if plan.choice[0] == name]
    return build(CHOICE, plan)


def mix(weight: float = 0.25) -> RandomisedPolicy:
    """Return the policy that leaps with a probability, and else rests."""
    return RandomisedPolicy([take("leap"), take("rest")], [weight, 1 - weight])


@cache
def mix_bandit() -> RandomisedPolicy:
    """Return two policies of a short bandit, drawn with probabilities 0.6 and 0.4."""
    members = [
        vulcan.solve(vulcan.Problem(Bandit(3), bound), vulcan.ForwardSearch()).policy
        for bound in (vulcan.Linear(0.002), vulcan.Linear(0.001))
    ]
    return RandomisedPolicy(members, [0.6, 0.4])
