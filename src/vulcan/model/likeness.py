"""Whether two values are alike: equal, and nothing in them tells them apart.

A planner takes equal states for one. A model may see more: a field that is not compared, a tuple's
class, the sign of a zero. What two equal states differ in may make the model answer differently,
and what they don't differ in can't.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, Final

import numpy as np

from vulcan.parameters import shorten

__all__ = ["attempt", "copy_value", "find_difference", "is_equal", "resembles"]

PLAIN: Final = frozenset((bool, int, float, complex, str, bytes, type(None)))
"""Types that have no parts: their texts say all of them."""


def find_difference(one: Any, other: Any) -> str | None:
    """Return where two values differ, however equal they are; None if they are alike.

    What can't be looked into counts as different from all but itself.

    Examples
    --------
    >>> find_difference(("north", 1), ("north", True))
    '[1] is 1 and True'
    >>> find_difference(("north", 1), ("north", 1)) is None
    True
    """
    try:
        return _find(one, other, "")
    except Exception as error:  # users write all sorts of things
        return f"they can't be compared part by part: {shorten(error)}"


def _find(one: Any, other: Any, path: str) -> str | None:
    if one is other:
        return None
    kind = type(one)
    alike, pairs = kind is type(other), list[tuple[str, Any, Any]]()
    if alike and (kind in PLAIN or isinstance(one, np.generic)):
        alike = repr(one) == repr(other)
    elif alike and kind is tuple:  # as most states are
        alike = len(one) == len(other)
        both = enumerate(zip(one, other, strict=False))
        pairs = [(f"[{k}]", part, partner) for k, (part, partner) in both if part is not partner]
    elif alike:
        if kind in (set, frozenset):
            one, other = _pair(one, other)
        parts, others = dict(_list_parts(one)), dict(_list_parts(other))
        alike = bool(parts) and parts.keys() == others.keys()
        pairs = [(name, part, others[name]) for name, part in parts.items()] if alike else []
    if not alike:
        return f"{path or 'the value'} is {shorten(one)} and {shorten(other)}"
    found = (_find(part, partner, path + name) for name, part, partner in pairs)
    return next((difference for difference in found if difference is not None), None)


def _pair(one: Any, other: Any) -> tuple[list[Any], list[Any]]:
    """Return the elements of two sets, equal ones at the same place."""
    partners = {element: element for element in other}
    return list(one), [partners[element] for element in one]


def _list_parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of all that a value is made of."""
    if isinstance(value, np.ndarray):
        content = value.tolist() if value.dtype.hasobject else value.tobytes()
        yield from ((".dtype", str(value.dtype)), (".shape", value.shape), ("", content))
    if isinstance(value, tuple | list):
        yield " length", len(value)  # also an empty one has a part
        yield from ((f"[{k}]", part) for k, part in enumerate(value))
    if isinstance(value, dict):
        yield " length", len(value)
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    own = object.__getstate__(value)
    for fields in own if isinstance(own, tuple) else (own,):
        yield from ((f".{name}", part) for name, part in (fields or {}).items())
    for name in getattr(type(value), "__struct_fields__", ()):
        yield f".{name}", getattr(value, name)


def is_equal(one: Any, other: Any) -> bool:
    """Whether two values are equal, or both of a kind that equals nothing: NaN."""
    try:
        return one is other or bool(one == other) or bool(one != one and other != other)  # noqa: PLR0124
    except Exception:
        return False


def resembles(one: Any, other: Any) -> bool:
    """Whether two values are equal or, if not even a copy would be, of the same type."""
    return is_equal(one, other) or (type(one) is type(other) and not is_equal(one, copy_value(one)))


def copy_value(value: Any) -> Any:
    """Return a copy; the value itself if it can't be copied."""
    copy = attempt(deepcopy, value)
    return value if copy is None else copy


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns, None if it raises: users write all sorts of things."""
    try:
        return function(*arguments)
    except Exception:
        return None
