"""Rounding in a known direction: what floating point makes of numbers that are to be trusted.

A float next to a number, on the side that is asked for, bounds it without fail: `round_down` is
never above, and `round_up` never below. Both are within one unit in the last place of it.
"""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = ["Number", "round_down", "round_up"]

Number = float | Fraction


def round_down(number: Number) -> float:
    """Return the largest float that is not above a number."""
    try:
        nearest = float(number)
    except OverflowError:  # beyond all floats
        nearest = math.inf if number > 0 else -math.inf
    return math.nextafter(nearest, -math.inf) if nearest > number else nearest


def round_up(number: Number) -> float:
    """Return the smallest float that is not below a number."""
    return -round_down(-number) + 0.0  # never -0.0
