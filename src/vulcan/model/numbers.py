"""Numbers that a model gives, as numbers of Python's own.

A number of a user's class may be one number where it is compared, and another where it is
converted. So each is read once, here, and everybody goes on with what was read: a float, an
integer or a fraction, as exact as what was given. What contradicts itself, or raises, is no number.
"""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, Final

from vulcan.parameters import shorten

__all__ = ["Number", "describe_number", "is_number", "read_number", "read_whole"]

Number = float | int | Fraction

PLAIN: Final = frozenset((float, int, Fraction))


def read_number(value: Any) -> Number | None:
    """Return a real number; None if it is none, or contradicts itself. True and False are none."""
    if type(value) in PLAIN:
        number: Number = value
        return number
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number, said = _convert(value), float(value)
        agrees = float(number) == said or (math.isnan(number) and math.isnan(said))
        return number if agrees else None
    except Exception:
        return None


def is_number(value: Any) -> bool:
    """Whether a value is a real number that does not contradict itself."""
    return read_number(value) is not None


def _convert(value: Any) -> Number:
    """Return what a number is, whatever its class says of it where Python knows better."""
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return float(value)


def read_whole(value: Any) -> int | None:
    """Return a whole number; None if it is none, or contradicts itself."""
    number = read_number(value) if isinstance(value, Integral) else None
    return number if isinstance(number, int) and _counts_as(value, number) else None


def _counts_as(value: Any, number: int) -> bool:
    try:
        return int(value) == number
    except Exception:
        return False


def describe_number(value: Any) -> str:
    """Return what a message calls a value that is no number that can be used."""
    text, kind = shorten(value), type(value)
    if isinstance(value, bool) or not isinstance(value, Real) or is_number(value):
        return text
    try:
        said = shorten(float(value))
    except Exception as error:
        return f"{text}, whose class {kind.__name__} raised {shorten(error)} when it was read"
    return f"{text}, which its class {kind.__name__} says is {said}"
