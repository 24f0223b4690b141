"""The best of all policies of a small model, and the best mixture of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import vulcan
from tests.oracles.brute_force import Plan
from vulcan.planning import Status

TOLERANCE = 1e-12


def acceptable(plans: Sequence[Plan], bound: vulcan.RiskBound, slack: float = 0.0) -> list[Plan]:
    return [plan for plan in plans if plan.risk <= bound(plan.reward) + TOLERANCE + slack]


def best_mixture(plans: Sequence[Plan], bound: vulcan.RiskBound) -> float:
    """Return the largest reward of a mixture of two plans, by a scan of each pair that matters.

    A mixture that risks the least for its reward lies between two neighbours on the convex hull.
    """
    hull: list[tuple[float, float]] = []
    for reward, risk in sorted({(plan.reward, plan.risk) for plan in plans}):
        if hull and hull[-1][0] == reward:
            continue
        while hull and hull[-1][1] >= risk:
            hull.pop()
        while len(hull) > 1 and _lies_above(hull[-1], hull[-2], (reward, risk)):
            hull.pop()
        hull.append((reward, risk))
    best = max((g for g, x in hull if x <= bound(g) + TOLERANCE), default=-math.inf)
    for (g0, x0), (g1, x1) in pairwise(hull):
        best = max(best, _scan(bound, g0, x0, g1, x1))
    return best


def _lies_above(
    point: tuple[float, float], left: tuple[float, float], right: tuple[float, float]
) -> bool:
    """Whether a point risks no less than the mixture of two others with its reward."""
    share = (point[0] - left[0]) / (right[0] - left[0])
    return point[1] >= left[1] + share * (right[1] - left[1])


def _scan(bound: vulcan.RiskBound, g0: float, x0: float, g1: float, x1: float) -> float:
    def passes(weight: float) -> bool:
        return x0 + weight * (x1 - x0) <= bound(g0 + weight * (g1 - g0)) + TOLERANCE

    grid = [k / 64 for k in range(65)]
    held = [weight for weight in grid if passes(weight)]
    if not held:
        return -math.inf
    low, high = max(held), min(1.0, max(held) + 1 / 64)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return g0 + low * (g1 - g0)


def check_best(result: vulcan.Result, plans: list[Plan], bound: vulcan.RiskBound) -> None:
    # Plans that pass or fail by a rounding may be seen either way.
    surely, maybe = acceptable(plans, bound, -1e-11), acceptable(plans, bound, 1e-11)
    if not maybe:
        assert result.status is Status.INFEASIBLE
        assert result.policy is None
        assert result.upper_bound == -math.inf
    if surely:
        best = max(plan.reward for plan in surely)
        assert result.status is Status.SOLVED
        assert result.safe
        assert result.certificate is not None
        assert result.certificate.reward >= best - 1e-9
        assert result.certificate.reward <= max(plan.reward for plan in maybe) + 1e-9
        assert result.upper_bound >= best - 1e-12
        assert result.gap <= 1e-9
