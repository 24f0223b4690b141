"""The texts of states and actions: the same in every process.

A policy knows outcomes and actions by their labels, and it may be saved by one process and followed
in another. Python writes the elements of a set in an order that depends on the hashes of strings,
which differ from process to process. So sets are sorted here, wherever they are: in tuples, lists
and dictionaries, in dataclasses and whatever else writes its fields as those do. What writes its
text in a way of its own has to see to that itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

__all__ = ["stable_text"]


def stable_text(value: Any) -> str:
    """Return `str(value)`, with sets in it sorted.

    Examples
    --------
    >>> stable_text(("north", frozenset({"key", "axe", "rope"})))
    "('north', frozenset({'axe', 'key', 'rope'}))"
    >>> stable_text("north")
    'north'
    """
    text = str(value)
    # A set of two elements is written with braces, and little else is.
    own: Any = type(value).__str__
    return _represent(value) if "{" in text and own is object.__str__ else text


def _represent(value: Any) -> str:
    """Return `repr(value)`, with sets in it sorted."""
    kind, text = type(value), repr(value)
    if "{" not in text:
        return text
    if kind in (set, frozenset):
        inside = f"{{{', '.join(_sort(value))}}}"
        return inside if kind is set else f"frozenset({inside})"
    if kind is tuple:
        return f"({', '.join(map(_represent, value))}{',' if len(value) == 1 else ''})"
    if kind is list:
        return f"[{', '.join(map(_represent, value))}]"
    if kind is dict:
        items = (f"{_represent(key)}: {_represent(entry)}" for key, entry in value.items())
        return f"{{{', '.join(items)}}}"
    name, fields = text.partition("(")[0], _list_fields(value)
    if text != f"{name}({', '.join(f'{field}={entry!r}' for field, entry in fields)})":
        return text
    return f"{name}({', '.join(f'{field}={_represent(entry)}' for field, entry in fields)})"


def _sort(values: Iterable[Any]) -> list[str]:
    """Return the texts of the elements of a set: numbers by size, others by their texts."""
    if all(isinstance(value, Real) for value in values):
        return [repr(value) for value in sorted(values)]
    return sorted(map(_represent, values))


def _list_fields(value: Any) -> Sequence[tuple[str, Any]]:
    """Return the fields of a dataclass, a named tuple, or a class of msgspec or attrs."""
    kind: Any = type(value)
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind) if field.repr]
    else:
        names = getattr(kind, "__struct_fields__", None) or getattr(kind, "__match_args__", [])
    return [(name, getattr(value, name)) for name in names]
