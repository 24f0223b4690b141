"""The best deterministic policy of small random problems, by enumeration of all policies."""

from __future__ import annotations

import math

import vulcan
from tests.oracles.several import draw_problem, is_within, list_worths

__all__ = ["compare_with_enumeration"]


def compare_with_enumeration(seed: int) -> str:
    """Return how the answer for a problem differs from the best policy of all, or how it agrees."""
    problem = draw_problem(seed, horizon=2 + (seed % 4 == 0))
    rewards = [float(worth[0]) for worth in list_worths(problem) if is_within(problem, worth)]
    result = vulcan.solve(problem, gap=0)
    best = max(rewards, default=-math.inf)
    solved = result.status is vulcan.planning.Status.SOLVED
    if result.upper_bound is not None and result.upper_bound < best - 1e-9:
        return "wrong: a policy is above the upper bound"
    if result.certificate is None or not result.safe:
        if not rewards:
            proved = result.status is vulcan.planning.Status.INFEASIBLE
            return "no policy, proved" if proved else "no policy, not proved"
        return "wrong: called infeasible" if result.upper_bound is None else "not found"
    reward = float(result.certificate.reward)
    if reward > best + 1e-9:
        return "wrong: a policy that enumeration does not have"
    if reward >= best - 1e-9:
        return "best, proved" if solved else "best, not proved"
    return "wrong: called the best" if solved else "worse, with a true gap"
