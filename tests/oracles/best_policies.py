"""The best of all policies of a small model, and the best mixture of two, by their hull."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

import vulcan
from tests.oracles.brute_force import Plan
from vulcan.planning import Status

TOLERANCE = 1e-12
Point = tuple[float, float]
"""Reward and risk."""


def acceptable(plans: Sequence[Plan], bound: vulcan.RiskBound, slack: float = 0.0) -> list[Plan]:
    return [plan for plan in plans if plan.risk <= bound(plan.reward) + TOLERANCE + slack]


def find_hull(points: list[Point]) -> list[Point]:
    """Return the corners of largest reward for their risk, from little risk to much."""
    hull: list[Point] = []
    for reward, risk in sorted(points, key=lambda p: (p[1], -p[0])):
        if hull and reward <= hull[-1][0]:
            continue
        while len(hull) >= 2:
            (r0, x0), (r1, x1) = hull[-2:]
            if (r1 - r0) * (risk - x0) > (reward - r0) * (x1 - x0):
                break
            hull.pop()
        hull.append((reward, risk))
    return hull


def find_best_mixture(points: list[Point], bound: vulcan.RiskBound) -> float:
    """Return the largest acceptable reward of any mixture; -inf if none is acceptable."""
    best = max((g for g, x in points if x <= bound(g) + TOLERANCE), default=-math.inf)
    for (g0, x0), (g1, x1) in pairwise(find_hull(points)):
        weights = np.linspace(0, 1, 129)
        slack = [bound(g0 + w * (g1 - g0)) - x0 - w * (x1 - x0) for w in weights]
        top = int(np.argmax(slack))
        if slack[top] < -TOLERANCE:
            continue
        low, high = float(weights[top]), 1.0
        for _ in range(100):
            middle = (low + high) / 2
            reward = g0 + middle * (g1 - g0)
            passes = x0 + middle * (x1 - x0) <= bound(reward) + TOLERANCE
            low, high = (middle, high) if passes else (low, middle)
        best = max(best, g0 + low * (g1 - g0))
    return best


def best_mixture(plans: Sequence[Plan], bound: vulcan.RiskBound) -> float:
    """Return the largest reward of an acceptable mixture of plans; -inf if there is none."""
    return find_best_mixture([(plan.reward, plan.risk) for plan in plans], bound)


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
