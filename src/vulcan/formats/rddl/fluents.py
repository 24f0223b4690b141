"""The fluents of a problem with their objects.

A grounded fluent is a pair of its name and its objects, such as ("robot-at", ("x1", "y2")).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

__all__ = ["Fluent", "list_fluents", "list_values", "name_fluent"]

Fluent = tuple[str, tuple[str, ...]]

EMPTY: Final = {"bool": False, "int": 0, "real": 0.0}
"""The value of a fluent without a default; of an object, it is the first."""


def name_fluent(name: str, objects: Sequence[str]) -> str:
    """Return how a file writes a fluent of some objects."""
    return f"{name}({','.join(objects)})" if objects else name


def list_fluents(rddl: Any, names: Iterable[str]) -> list[Fluent]:
    """Return the fluents of some names with all their objects."""
    return [
        (name, tuple(objects))
        for name in names
        for objects in rddl.ground_types(rddl.variable_params[name])
    ]


def list_values(rddl: Any, values: Mapping[str, Any]) -> dict[Fluent, Any]:
    """Return the value of each fluent with its objects, from pyRDDLGym's lists."""
    found = {}
    for name, listed in values.items():
        kind = rddl.variable_ranges[name]
        empty = EMPTY[kind] if kind in EMPTY else rddl.type_to_objects[kind][0]
        make = {"bool": bool, "int": int, "real": float}.get(kind, str)
        given = listed if rddl.variable_params[name] else [listed]
        for fluent, value in zip(list_fluents(rddl, [name]), given, strict=True):
            found[fluent] = make(empty if value is None else value)
    return found
