"""Checks of parameters: each returns the value as it is used, or says what is allowed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from vulcan.errors import OptionError
from vulcan.reader import shorten

__all__ = ["require_number", "require_pair", "require_whole"]


def require_number(
    name: str, value: Any, *, least: float = -math.inf, above: float | None = None
) -> float:
    """Return a finite number as a float.

    Parameters
    ----------
    name
        What the message calls it.
    value
        What was given.
    least, above
        The number is at least the one, and larger than the other.

    Raises
    ------
    OptionError
        If it is anything else.
    """
    real = isinstance(value, Real) and not isinstance(value, bool)
    low = above if above is not None else least
    fits = real and math.isfinite(value) and value >= low and value != above
    if not fits:
        kind = f" above {low:g}" if above is not None else f" of at least {low:g}"
        allowed = "a finite number" + (kind if math.isfinite(low) else "")
        raise OptionError(f"{name} must be {allowed}, not {shorten(value)}")
    return float(value)


def require_whole(name: str, value: Any, low: int, high: int) -> int:
    """Return a whole number from low to high.

    Raises
    ------
    OptionError
        If it is anything else.
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not low <= value <= high:
        allowed = f"a whole number from {low:,} to {high:,}"
        raise OptionError(f"{name} must be {allowed}, not {shorten(value)}")
    return int(value)


def require_pair(name: str, value: Any) -> tuple[float, float]:
    """Return a pair of finite numbers.

    Raises
    ------
    OptionError
        If it is anything else.
    """
    listed = isinstance(value, Sequence) and not isinstance(value, str)
    if not listed or len(value) != 2:
        raise OptionError(f"{name} must be a pair of numbers, not {shorten(value)}")
    return require_number(f"{name}, first", value[0]), require_number(f"{name}, second", value[1])
