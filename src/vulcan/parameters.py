"""Checks of parameters: each returns the value in its own type, or raises a clear error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from typing import Any, Final, TypeVar, cast

from vulcan.errors import OptionError, VulcanError

F = TypeVar("F", bound=Callable[..., Any])

RENAMED: Final = {
    "workers": 'parallel=4, or parallel="processes:4"',
    "executor": 'parallel="processes", or parallel=vulcan.parallel.Ray(...)',
    "histories": "limits=vulcan.Limits(histories=...)",
    "memory": "limits=vulcan.Limits(memory=...)",
    "resume": "checkpoint=vulcan.Checkpoint(path, resume=True)",
    "randomised": "solver=vulcan.Automatic(randomised=True)",
    "bound": "vulcan.Problem(model, risk_bound=...)",
    "constraint": "local_test=SurvivalConstraint(), or vulcan.Problem(model, constraints=[...])",
    "seeds": "one call for each seed",
}
"""Parameters that functions once had, and what to use instead."""


def shorten(value: object, most: int = 200) -> str:
    """Return the `repr` of a value, even if that raises, at most this long."""
    try:
        text = repr(value)
    except Exception:
        text = object.__repr__(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def suggest(given: object, known: Iterable[str]) -> str:
    """Return the end of a message that suggests a known name; empty if none is close."""
    names = {name.lower(): name for name in known}
    close = get_close_matches(given.lower(), names, n=1) if isinstance(given, str) else []
    return f"; did you mean {names[close[0]]!r}?" if close else ""


def knows_parameters(function: F) -> F:
    """Raise an error that lists the parameters if a function or class gets an unknown keyword."""
    known = tuple(signature(function).parameters)
    given: Any = function
    called = given.__init__ if isinstance(function, type) else given

    @wraps(called)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known:
                instead = f"; use {RENAMED[name]}" if name in RENAMED else suggest(name, known)
                raise OptionError(
                    f"{function.__name__} has no parameter {name!r}{instead}; "
                    f"its parameters are {', '.join(known)}"
                )
        return called(*args, **kwargs)

    if called is given:
        return cast(F, call)
    given.__init__ = call
    return function


def require_number(
    name: str,
    value: Any,
    *,
    least: float = -math.inf,
    above: float | None = None,
    error: type[VulcanError] = OptionError,
) -> float:
    """Return a finite number as a float: at least `least`, and larger than `above`."""
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
    """Return a whole number from low to high."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not low <= value <= high:
        allowed = f"a whole number from {low:,} to {high:,}"
        raise OptionError(f"{name} must be {allowed}, not {shorten(value)}")
    return int(value)


def require_pair(name: str, value: Any) -> tuple[float, float]:
    """Return a pair of finite numbers."""
    listed = isinstance(value, Sequence) and not isinstance(value, str)
    if not listed or len(value) != 2:
        raise OptionError(f"{name} must be a pair of numbers, not {shorten(value)}")
    return require_number(f"{name}, first", value[0]), require_number(f"{name}, second", value[1])
