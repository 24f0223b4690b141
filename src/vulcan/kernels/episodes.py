"""Episodes of a policy, drawn by their probabilities, and what they come to exactly.

A policy's own arrays are played: no model is asked. With V the mean of what is collected from a
decision on, and W its variance, over the outcomes of the decision,

    V = Σ p (r + γ V'),    W = Σ p [(r + γ V' - V)² + γ² W']

(the law of total variance: nothing cancels), from the last decision back to the first.

    Plan.first     [N + 1]  the outcomes of decision k are first[k] to first[k + 1] - 1
    Plan.outcomes  [M]      probability, reward, and the next decision or what comes instead
    Plan.discount  [2]      what follows is multiplied with: after the first decision, and later
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.selection import draw_uniform
from vulcan.sentinels import END, FAILED, UNPLANNED

__all__ = ["OUTCOME", "TALLY", "VALUE", "Plan", "count_all", "evaluate", "play", "spread"]


class Plan(NamedTuple):
    """A policy as episodes need it; see the head of this module."""

    first: Any
    outcomes: Any
    discount: Any


OUTCOME = np.dtype([("probability", "f8"), ("reward", "f8"), ("child", "i8")])

TALLY = np.dtype(
    [
        ("episodes", "i8"),
        ("random", "u8"),  # the first field of a shorter record elsewhere, and not of this
        ("mean", "f8"),  # of the reward
        ("squares", "f8"),  # sum of squared distances from the mean
        ("least", "f8"),
        ("most", "f8"),
        ("failed", "i8"),
        ("unplanned", "i8"),
        ("decisions", "i8"),
    ]
)
"""What is counted over episodes, and the state of their random numbers."""

VALUE = np.dtype(
    [(name, "f8") for name in ("mean", "variance", "risk", "frontier", "least", "most")]
)
"""What a policy comes to from a decision on."""

EDGE = 1e-6
"""The share of a bin below its edge that a rounding may be."""


@kernel
def play(plan, episodes, tally, bins, failures):
    """Play episodes; add them to a tally, a histogram, and to failures by level.

    Parameters
    ----------
    plan
        The policy.
    episodes
        How many.
    tally
        `TALLY` [1].
    bins
        Lower edge and width of the histogram's bins, and then the count of each.
    failures
        How many failed at each level.
    """
    first, outcomes, discount = borrow(plan.first), borrow(plan.outcomes), borrow(plan.discount)
    control = tally[0]
    for _ in range(episodes):
        node = 0 if len(first) > 1 else END
        collected, weight, level = 0.0, 1.0, 0
        while node >= 0:
            outcome = outcomes[draw_outcome(first, outcomes, node, control)]
            collected += weight * outcome.reward
            weight *= discount[min(level, 1)]
            node = outcome.child
            level += 1
        if node == FAILED:
            control.failed += 1
            failures[level - 1] += 1
        control.unplanned += node == UNPLANNED
        control.decisions += level
        add(control, collected)
        count(bins, collected)


@part
def draw_outcome(first, outcomes, node, control):
    """Return an outcome of a decision, drawn by its probability."""
    left = draw_uniform(control)
    last = first[node + 1] - 1
    row = first[node]
    while row < last and left >= outcomes[row].probability:
        left -= outcomes[row].probability
        row += 1
    return row


@part
def add(tally, collected):
    """Add what an episode collected to mean and squares (Welford)."""
    tally.episodes += 1
    distance = collected - tally.mean
    tally.mean += distance / tally.episodes
    tally.squares += distance * (collected - tally.mean)
    tally.least, tally.most = min(tally.least, collected), max(tally.most, collected)


@kernel
def count_all(bins, rewards):
    """Add rewards to a histogram."""
    for reward in rewards:
        count(bins, reward)


@part
def count(bins, collected):
    """Add what an episode collected to a histogram; a rounding below an edge is on the edge."""
    place = int((collected - bins[0]) / bins[1] + EDGE)
    bins[2 + max(0, min(place, len(bins) - 3))] += 1


@kernel
def evaluate(plan, values):
    """Write what the policy comes to from each decision on into `VALUE` [N]."""
    first, outcomes = plan.first, plan.outcomes
    for node in range(len(values) - 1, -1, -1):
        discount = plan.discount[min(node, 1)]
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
            value.least, value.most = min(value.least, least), max(value.most, most)
        for row in range(first[node], first[node + 1]):
            outcome = outcomes[row]
            distance, below = outcome.reward - value.mean, 0.0
            if outcome.child >= 0:
                distance += discount * values[outcome.child].mean
                below = discount * discount * values[outcome.child].variance
            value.variance += outcome.probability * (distance * distance + below)


@kernel
def spread(plan, failures):
    """Add the probability of failing at each level; return how many levels there are.

    Decisions of a level are followed together, each once, however many histories lead to it.
    """
    first, outcomes = plan.first, plan.outcomes
    size = len(first) - 1
    reach, arriving = np.zeros(size), np.zeros(size)
    here, there = np.zeros(size, np.int64), np.zeros(size, np.int64)
    seen = np.full(size, -1)
    count, level = min(1, size), 0
    reach[:count] = 1.0
    while count:
        following = 0
        for k in range(count):
            node = here[k]
            for row in range(first[node], first[node + 1]):
                child, chance = outcomes[row].child, reach[node] * outcomes[row].probability
                if child == FAILED and level < len(failures):
                    failures[level] += chance
                elif child >= 0:
                    if seen[child] != level:
                        seen[child] = level
                        arriving[child] = 0.0
                        there[following] = child
                        following += 1
                    arriving[child] += chance
        here, there, reach, arriving = there, here, arriving, reach
        count, level = following, level + 1
    return level
