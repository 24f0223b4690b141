"""What a policy comes to from each of its decisions on.

The numbers are those of `vulcan.kernels.episodes`: the chance of failing, and of coming to where
nothing is planned; mean, variance, smallest and largest of what is collected, discounted from that
decision on. Runs and replans read them, and so does a simulation. An outcome without a plan counts
as an end, as it does in certificates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vulcan.policies.policy import Policy

__all__ = ["find_prospects", "read_plan"]


def read_plan(policy: Policy, first: float) -> Any:
    """Return the arrays of a policy as kernels of episodes need them, a `Plan`.

    Parameters
    ----------
    policy
        The policy.
    first
        The discount after its first decision; that of an initial action is 1.
    """
    from vulcan.kernels.episodes import OUTCOME, Plan

    outcomes = np.zeros(len(policy.child), OUTCOME)
    for name in ("probability", "reward", "child"):
        outcomes[name] = getattr(policy, name)
    discounts = np.array((first, policy.about.discount), np.float64)
    return Plan(policy.first_outcome.copy(), outcomes, discounts)


def find_prospects(plan: Any) -> NDArray[Any]:
    """Return what lies ahead of each decision of a plan, a `VALUE` for each."""
    from vulcan.kernels.episodes import VALUE, evaluate

    values = np.zeros(len(plan.first) - 1, VALUE)
    evaluate(plan, values)
    return values
