"""Rounding in a known direction: what floating point makes of numbers that are to be trusted.

A float next to a number, on the side that is asked for, bounds it without fail: `round_down` is
never above, and `round_up` never below. Both are within one unit in the last place of it.
"""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = ["Number", "divide_down", "is_infinite", "round_down", "round_up", "to_float"]

Number = float | Fraction


def is_infinite(number: Number) -> bool:
    """Whether a number is infinite; fractions are not, however large."""
    return number in (math.inf, -math.inf)


def to_float(number: Number) -> float:
    """Return the float next to a number, to show it: infinite beyond all floats."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def divide_down(numerator: int, denominator: int) -> float:
    """Return the largest float that is not above a quotient, whose denominator is positive."""
    try:
        nearest = numerator / denominator
    except OverflowError:  # beyond all floats
        return math.nextafter(math.inf, 0.0) if numerator > 0 else -math.inf
    top, bottom = nearest.as_integer_ratio()
    above = top * denominator > numerator * bottom
    return math.nextafter(nearest, -math.inf) if above else nearest


def round_down(number: Number) -> float:
    """Return the largest float that is not above a number."""
    if isinstance(number, Fraction):
        return divide_down(number.numerator, number.denominator)
    return float(number)


def round_up(number: Number) -> float:
    """Return the smallest float that is not below a number."""
    return -round_down(-number) + 0.0  # never -0.0
