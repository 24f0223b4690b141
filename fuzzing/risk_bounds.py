"""Risk bounds as plain data: what they allow, within which error, and how Vulcan is given them.

A bound is a kind and its numbers:

    constant     level
    linear       slope, offset
    pieces       points (reward, risk); the first slope goes on to the left, level to the right
    lines        (slope, offset) of several lines: the least of them
    exponential  level, scale, rate:     level - scale · exp(-rate · x)
    root         offset, factor, floor:  offset + factor · sqrt(x - floor), nothing below floor
    logarithm    offset, factor, floor:  offset + factor · log(x - floor), nothing below floor
    parabola     level, factor, top:     level - factor · (top - x)² up to top, level from there on

The first three are exact: in fractions there is no rounding. The others are functions of floating
point to Vulcan (its documentation says so): what they allow is known up to the rounding of their
argument and of their terms, so that `allow` returns the least and the most that they may be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from fuzzing.problems import Bound

__all__ = ["NOTHING", "allow", "evaluate_float", "find_slope", "is_straight", "write_text"]

NOTHING = -math.inf
"""Allowed where nothing is acceptable."""

EPSILON = 2.0**-52
ROUNDINGS = 16
"""Roundings, in units of the last place of the largest term, that a function may make."""

Allowed = Fraction | float


def is_straight(bound: Bound) -> bool:
    """Whether Vulcan knows the bound as straight pieces, and evaluates it without rounding."""
    return bound.kind in ("constant", "linear", "pieces")


def allow(bound: Bound, reward: Fraction) -> tuple[Allowed, Allowed]:
    """Return the least and the most risk that a bound may be said to allow for a reward."""
    if bound.kind == "constant":
        (level,) = bound.numbers
        return (Fraction(level),) * 2
    if bound.kind == "linear":
        slope, offset = map(Fraction, bound.numbers)
        return (slope * reward + offset,) * 2
    if bound.kind == "pieces":
        return (_interpolate(bound.numbers, reward),) * 2
    return _enclose(bound, reward)


def _interpolate(points: Sequence[tuple[float, float]], reward: Fraction) -> Fraction:
    """Return a piecewise linear function."""
    exact = [(Fraction(x), Fraction(y)) for x, y in points]
    if reward >= exact[-1][0]:
        return exact[-1][1]
    for (x0, y0), (x1, y1) in pairwise(exact):
        if reward < x1:
            return y0 + (y1 - y0) / (x1 - x0) * (reward - x0)
    raise AssertionError("rewards of points increase")


def _enclose(bound: Bound, reward: Fraction) -> tuple[Allowed, Allowed]:
    """Return a function at the floats around a reward, wider by what its terms are rounded by."""
    here = float(reward)
    values = []
    for place in (math.nextafter(here, -math.inf), here, math.nextafter(here, math.inf)):
        try:
            value, size = evaluate_float(bound, place)
            error = Fraction(ROUNDINGS * EPSILON) * Fraction(size)
        except ArithmeticError:
            return NOTHING, math.inf  # it has no value: nothing is known of it
        values.append(
            (value, value)
            if math.isinf(value)
            else (Fraction(value) - error, Fraction(value) + error)
        )
    return min(low for low, _ in values), max(high for _, high in values)


def evaluate_float(bound: Bound, reward: float) -> tuple[float, float]:
    """Return a function at a float, and how large its terms are there.

    Raises
    ------
    ArithmeticError
        If it has no value there.
    """
    kind, _, numbers = bound
    if kind == "constant":
        return float(numbers[0]), abs(numbers[0])
    if kind == "linear":
        numbers = ((numbers[0], numbers[1]),)
    if kind == "pieces":
        value = float(_interpolate(numbers, Fraction(reward)))
        return value, max(abs(risk) for _, risk in numbers)
    if kind in ("lines", "linear"):
        terms = [(slope * reward, offset) for slope, offset in numbers]
        value = min(rise + offset for rise, offset in terms)
        return value, max(abs(part) for term in terms for part in term)
    first, second, third = numbers
    if kind == "exponential":
        fall = second * math.exp(-third * reward)
        # The exponent is rounded as well, which moves the value by as many times itself.
        return first - fall, abs(first) + abs(fall) * (1 + abs(third * reward))
    if kind == "parabola":
        distance = max(0.0, third - reward)
        spread = (abs(third) + abs(reward)) * distance
        return first - second * distance * distance, abs(first) + second * (spread + distance**2)
    distance = reward - third
    if kind == "root":
        if distance < 0:
            return NOTHING, 0.0
        rise = second * math.sqrt(distance)
        return first + rise, abs(first) + abs(rise)
    assert kind == "logarithm", kind
    if distance <= 0:
        return NOTHING, 0.0
    rise = second * math.log(distance)
    # Near 1 the logarithm is small, and the rounding of its argument is not.
    return first + rise, abs(first) + abs(rise) + abs(second)


def find_slope(bound: Bound, reach: float) -> float:
    """Return the largest slope of a bound between -reach and reach, or more."""
    kind, _, numbers = bound
    if kind == "constant":
        return 0.0
    if kind == "linear":
        return float(numbers[0])
    if kind == "lines":
        return max(float(slope) for slope, _ in numbers)
    if kind == "pieces":
        (x0, y0), (x1, y1) = numbers[:2]
        return float((Fraction(y1) - Fraction(y0)) / (Fraction(x1) - Fraction(x0)))
    _, factor, third = map(float, numbers)
    if kind == "exponential":
        return factor * third * math.exp(min(third * reach, 600.0))
    if kind == "parabola":
        return 2 * factor * abs(third + reach)
    return math.inf if reach else 0.0  # they begin infinitely steep


def write_text(bound: Bound) -> str:
    """Return the text that `vulcan.parse` reads."""
    kind, _, numbers = bound
    if kind == "constant":
        return repr(numbers[0])
    if kind == "linear":
        return _line(*numbers)
    if kind == "pieces":
        return f"piecewise({', '.join(map(repr, numbers))})"
    if kind == "lines":
        return f"min({', '.join(_line(*line) for line in numbers)})"
    first, second, third = numbers
    if kind == "exponential":
        return f"{first!r} - {second!r} * exp(-{third!r} * x)"
    if kind == "parabola":
        return f"{first!r} - {second!r} * max(0, {third!r} - x) ** 2"
    function = {"root": "sqrt", "logarithm": "log"}[kind]
    return f"{first!r} + {second!r} * {function}(x - ({third!r}))"


def _line(slope: float, offset: Any) -> str:
    return f"{slope!r} * x + ({offset!r})"
