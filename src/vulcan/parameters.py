"""Checks of parameters: each returns the value as it is used, or says what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

from vulcan.errors import OptionError, VulcanError

__all__ = ["require_number", "require_pair", "require_whole", "shorten", "suggest"]


def shorten(value: object, most: int = 200) -> str:
    """Return the text of any value, also of one that can't show itself, at most this long."""
    try:
        text = repr(value)
    except Exception:
        text = object.__repr__(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def suggest(given: object, known: Iterable[str]) -> str:
    """Return the end of a message that names what was probably meant; empty if nothing is close.

    Parameters
    ----------
    given
        What was given.
    known
        What is allowed.
    """
    close = get_close_matches(given, list(known), n=1) if isinstance(given, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


def require_number(
    name: str,
    value: Any,
    *,
    least: float = -math.inf,
    above: float | None = None,
    error: type[VulcanError] = OptionError,
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
    error
        What to raise if it is anything else.
    """
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            raise error(f"{name} must be a finite number; this is too large") from None
    low = above if above is not None else least
    if math.isfinite(number) and number >= low and number != above:
        return number
    kind = f" above {low:g}" if above is not None else f" of at least {low:g}"
    allowed = "a finite number" + (kind if math.isfinite(low) else "")
    raise error(f"{name} must be {allowed}, not {shorten(value)}")


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
