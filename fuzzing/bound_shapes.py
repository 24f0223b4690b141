"""Shapes of risk bounds: drawn where they decide something.

A bound is drawn around an anchor: what some policy earns, and a risk that is its own, a rounding
more or less, or anything. Slopes are given in risks per reward that the front spans, so that they
mean the same for rewards of any size; some are steep beyond reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import NamedTuple

from fuzzing.oracle import Point
from fuzzing.problems import Bound
from fuzzing.risk_bounds import find_slope

__all__ = ["NEARLY", "draw_bound"]

NEARLY = (1.0, 1.0, 1.0, 1 + 2.0**-52, 1 - 2.0**-52, 1 + 1e-12, 1 - 1e-12, 1 + 1e-9, 1 - 1e-9)
"""What the risk of the anchor is multiplied with where the bound is to pass close to it."""

STEEP = 1e5
"""From this slope on, a bound is called steep."""

LARGEST_RATE = 1e300
"""Of exponentials: where rewards are as small as floats can be, a larger one would be infinite."""


class _Anchor(NamedTuple):
    """Where a bound is to pass, and how large risks and rewards are around it."""

    reward: float
    level: float
    span: float
    depth: float


def draw_bound(random: Random, front: Sequence[Point]) -> tuple[Bound, str]:
    """Return a bound for a model with this front, and what to call it in the statistics."""
    anchor = _draw_anchor(random, front)
    kind = random.choice(KINDS)
    bound = DRAWS[kind](random, anchor)
    steep = find_slope(bound, 0.0) >= STEEP
    return bound, f"{bound.kind}{' steep' if steep else ''}"


def _draw_anchor(random: Random, front: Sequence[Point]) -> _Anchor:
    low, high = float(front[0].reward), float(front[-1].reward)
    span = high - low if high > low else max(abs(high), 1.0)
    depth = abs(float(front[-1].risk)) or 0.1
    point = random.choice(front)
    reward, risk = float(point.reward), float(point.risk)
    choice = random.random()
    if choice < 0.45:
        level = risk * random.choice(NEARLY)
    elif choice < 0.8:
        level = random.random() * depth * random.choice((0.5, 1.0, 1.2))
        reward = low + random.random() * (high - low)
    else:
        level = random.choice((0.0, 1e-3, 0.01, 0.1, 0.5, 1.0, -0.01, 1e-12))
    return _Anchor(reward, level, span, depth)


def _draw_slope(random: Random, anchor: _Anchor) -> float:
    """Return a slope: mostly such that risks matter, sometimes level or very steep."""
    steepness = random.choice((0.1, 0.3, 1.0, 1.0, 3.0, 10.0, 10.0 ** random.randint(2, 17)))
    return anchor.depth / anchor.span * steepness * (0.5 + random.random())


def _choose_form(random: Random, *forms: str) -> str:
    return random.choice(forms)


def _draw_constant(random: Random, anchor: _Anchor) -> Bound:
    return Bound("constant", _choose_form(random, "class", "class", "text"), (anchor.level,))


def _draw_linear(random: Random, anchor: _Anchor) -> Bound:
    slope = _draw_slope(random, anchor)
    offset = anchor.level - slope * anchor.reward
    if random.random() < 0.2 and anchor.reward > 0 and anchor.level > 0:
        slope, offset = anchor.level / anchor.reward, 0.0  # as in the paper
    if not math.isfinite(offset) or not math.isfinite(slope):
        return _draw_constant(random, anchor)
    return Bound("linear", _choose_form(random, "class", "class", "text"), (slope, offset))


def _draw_pieces(random: Random, anchor: _Anchor) -> Bound:
    width = anchor.span * random.choice((0.1, 0.3, 1.0, 3e-10, 1e-6))
    slope = _draw_slope(random, anchor)
    points = [(anchor.reward - width, anchor.level - slope * width), (anchor.reward, anchor.level)]
    while len(points) < 4 and random.random() < 0.6:
        slope *= random.random()
        reward, level = points[-1]
        points.append((reward + width, level + slope * width))
    if not _is_concave(points):
        return _draw_linear(random, anchor)
    return Bound("pieces", _choose_form(random, "class", "class", "text"), tuple(points))


def _is_concave(points: Sequence[tuple[float, float]]) -> bool:
    """Whether points are what they were meant to be, after all roundings."""
    if not all(math.isfinite(number) for point in points for number in point):
        return False
    exact = [(Fraction(x), Fraction(y)) for x, y in points]
    if any(x1 <= x0 or y1 < y0 for (x0, y0), (x1, y1) in pairwise(exact)):
        return False
    slopes = [(y1 - y0) / (x1 - x0) for (x0, y0), (x1, y1) in pairwise(exact)]
    return all(before >= after for before, after in pairwise(slopes))


def _draw_lines(random: Random, anchor: _Anchor) -> Bound:
    lines = []
    for _ in range(random.choice((2, 2, 3))):
        slope = _draw_slope(random, anchor)
        reward = anchor.reward + anchor.span * random.choice((0.0, 0.0, random.uniform(-0.5, 0.5)))
        lines.append((slope, anchor.level - slope * reward))
    if not all(math.isfinite(number) for line in lines for number in line):
        return _draw_constant(random, anchor)
    return Bound("lines", _choose_form(random, "text", "function"), tuple(lines))


def _draw_exponential(random: Random, anchor: _Anchor) -> Bound:
    rate = min(random.choice((0.3, 1.0, 3.0)) / anchor.span, LARGEST_RATE)
    fall = math.exp(-min(rate * anchor.reward, 300.0)) if rate * anchor.reward > -300 else 1.0
    scale = anchor.depth * random.choice((0.3, 1.0, 3.0)) / fall
    numbers = (anchor.level + scale * fall, scale, rate)
    return Bound("exponential", _choose_form(random, "text", "function"), numbers)


def _draw_root(random: Random, anchor: _Anchor) -> Bound:
    return _draw_rise(random, anchor, "root", math.sqrt)


def _draw_logarithm(random: Random, anchor: _Anchor) -> Bound:
    return _draw_rise(random, anchor, "logarithm", math.log)


def _draw_rise(
    random: Random, anchor: _Anchor, kind: str, function: Callable[[float], float]
) -> Bound:
    """Return a bound that begins at a floor, below which nothing is allowed."""
    below = anchor.span * random.choice((1.0, 0.5, 0.1, 10.0, 1e-9))
    floor = anchor.reward - below
    distance = anchor.reward - floor
    if not distance > 0:
        return _draw_constant(random, anchor)
    factor = anchor.depth * random.choice((0.1, 1.0)) / max(1e-300, math.sqrt(distance))
    numbers = (anchor.level - factor * function(distance), factor, floor)
    return Bound(kind, _choose_form(random, "text", "function"), numbers)


def _draw_parabola(random: Random, anchor: _Anchor) -> Bound:
    distance = anchor.span * random.choice((0.0, 0.3, 1.0))
    factor = anchor.depth / anchor.span * random.choice((0.1, 1.0, 10.0)) / anchor.span
    numbers = (anchor.level + factor * distance * distance, factor, anchor.reward + distance)
    if not all(map(math.isfinite, numbers)):
        return _draw_constant(random, anchor)
    return Bound("parabola", _choose_form(random, "text", "function"), numbers)


DRAWS: dict[str, Callable[[Random, _Anchor], Bound]] = {
    "constant": _draw_constant,
    "linear": _draw_linear,
    "pieces": _draw_pieces,
    "lines": _draw_lines,
    "exponential": _draw_exponential,
    "root": _draw_root,
    "logarithm": _draw_logarithm,
    "parabola": _draw_parabola,
}
KINDS = ("constant", "constant", "linear", "linear", "linear", "pieces", "pieces", *DRAWS)
