"""Random episodes of a policy, and the exact mean and variance of their rewards.

Episodes follow the arrays of the policy; the model is not evaluated. With V the mean and W the
variance of the reward collected from a decision on, over its outcomes of reward R,

    V = Σ p (R + γ V'),    W = Σ p [(R + γ V' - V)² + γ² W']

(the law of total variance: nothing cancels), from the last decision back to the first.

A policy is given as three arrays:

    first     [N + 1]  the outcomes of decision k are first[k] to first[k + 1] - 1
    outcomes  [M]      `OUTCOME`: the child is the next decision, or END, FAILED, UNPLANNED
    discount  [2]      γ after the first decision, and after later ones

Further constraints have a column each:

    charges   [M, K]   what an outcome is charged
    once      [K]      whether an episode is charged the first time only
"""

from __future__ import annotations

import numpy as np

from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.paper_tree import draw_uniform
from vulcan.numerics import END, FAILED, UNPLANNED

OUTCOME = np.dtype(
    [
        ("probability", "f8"),
        ("reward", "f8"),
        ("child", "i8"),
        ("later_risk", "f8"),  # claimed for what follows an unplanned outcome
        ("later_reward", "f8"),
    ]
)

STREAM = np.dtype([("seed", "u8"), ("random", "u8")])
"""The first and the current state of the random numbers. Numba takes a record whose fields begin
another one for the same type: then a search that follows would get a warning."""

VALUE = np.dtype(
    [(name, "f8") for name in ("mean", "variance", "risk", "frontier", "least", "most")]
)
"""Exact figures of a policy from a decision on."""


@kernel
def play(policy, begin, charges, once, stream, rewards, ends, decisions, totals):
    """Play an episode for each element of the arrays, from a decision on.

    `stream` is a `STREAM` [1]; an episode ends in END, FAILED or UNPLANNED. `totals` [n, K], zeros,
    get what each is charged.
    """
    first, outcomes, discount = borrow(policy)
    control = stream[0]
    for k in range(len(rewards)):
        node = begin if len(first) > 1 else END
        collected, weight, level = 0.0, 1.0, 0
        while node >= 0:
            row = draw_outcome(first, outcomes, node, control)
            outcome = outcomes[row]
            collected += weight * outcome.reward
            for c in range(len(once)):
                if not once[c] or totals[k, c] == 0.0:
                    totals[k, c] += charges[row, c]
            weight *= discount[min(level, 1)]
            node = outcome.child
            level += 1
        rewards[k], ends[k], decisions[k] = collected, node, level


@part
def draw_outcome(first, outcomes, node, control):
    """Draw an outcome of a decision by its probability."""
    left = draw_uniform(control)
    last = first[node + 1] - 1
    row = first[node]
    while row < last and left >= outcomes[row].probability:
        left -= outcomes[row].probability
        row += 1
    return row


@kernel
def evaluate(policy, values):
    """Fill the exact figures of the policy from each decision on: `VALUE` [N]."""
    first, outcomes, discounts = policy
    for node in range(len(values) - 1, -1, -1):
        discount = discounts[min(node, 1)]
        value = values[node]
        value.mean = value.risk = value.frontier = value.variance = 0.0
        value.least, value.most = np.inf, -np.inf
        for row in range(first[node], first[node + 1]):
            outcome = outcomes[row]
            least = most = outcome.reward
            value.mean += outcome.probability * outcome.reward
            if outcome.child >= 0:
                later = values[outcome.child]
                value.mean += outcome.probability * discount * later.mean
                value.risk += outcome.probability * later.risk
                value.frontier += outcome.probability * later.frontier
                least += discount * later.least
                most += discount * later.most
            elif outcome.child == FAILED:
                value.risk += outcome.probability
            elif outcome.child == UNPLANNED:
                value.frontier += outcome.probability
                value.risk += outcome.probability * outcome.later_risk
                value.mean += outcome.probability * discount * outcome.later_reward
            value.least, value.most = min(value.least, least), max(value.most, most)
        for row in range(first[node], first[node + 1]):
            outcome = outcomes[row]
            distance, below = outcome.reward - value.mean, 0.0
            if outcome.child == UNPLANNED:
                distance += discount * outcome.later_reward
            if outcome.child >= 0:
                distance += discount * values[outcome.child].mean
                below = discount * discount * values[outcome.child].variance
            value.variance += outcome.probability * (distance * distance + below)
