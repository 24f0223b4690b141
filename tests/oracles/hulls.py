"""The best mixture of points of risk and reward, by their convex hull."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

import vulcan

TOLERANCE = 1e-12
Point = tuple[float, float]


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
