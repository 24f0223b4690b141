"""The fluents of a problem with their objects, and the combinations of actions.

A grounded fluent is a pair of its name and its objects, such as ("robot-at", ("x1", "y2")).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import Any, Final

from vulcan.errors import OptionError
from vulcan.formats.rddl.reading import Source, find_bounds

__all__ = ["Fluent", "list_actions", "list_fluents", "list_values", "name_fluent"]

Fluent = tuple[str, tuple[str, ...]]

MOST_ACTIONS: Final = 100_000

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


def list_actions(
    source: Source, rddl: Any, simulator: Any, fluents: Sequence[Fluent]
) -> dict[str, tuple[Any, ...]]:
    """Return the values of the action fluents, by the label of each combination of actions.

    At most `max-nondef-actions` of them have another value than their default.
    """
    defaults = list_values(rddl, rddl.action_fluents)
    choices = {fluent: _list_choices(source, rddl, simulator, fluent) for fluent in fluents}
    others = {f: [v for v in choices[f] if v != defaults[f]] for f in fluents}
    most = min(rddl.max_allowed_actions, len(fluents))
    count = _count_combinations([len(values) for values in others.values()], most)
    if count > MOST_ACTIONS:
        raise OptionError(
            f"{source.instance or source.domain}: {count:,} combinations of actions are too many "
            f"to list (at most {MOST_ACTIONS:,}); max-nondef-actions limits them, here to {most}"
        )
    actions = {}
    for size in range(most + 1):
        for chosen in combinations(fluents, size):
            for values in product(*(others[fluent] for fluent in chosen)):
                changed = dict(zip(chosen, values, strict=True))
                names = [
                    name_fluent(*fluent) + ("" if value is True else f"={value}")
                    for fluent, value in changed.items()
                ]
                label = ", ".join(names) or "noop"
                actions[label] = tuple(changed.get(f, defaults[f]) for f in fluents)
    return actions


def _list_choices(source: Source, rddl: Any, simulator: Any, fluent: Fluent) -> Sequence[Any]:
    """Return the values that an action fluent can have."""
    name, objects = fluent
    kind = rddl.variable_ranges[name]
    if kind == "bool":
        return (False, True)
    if kind in rddl.type_to_objects:
        return tuple(rddl.type_to_objects[kind])
    bounds = find_bounds(simulator) if kind == "int" else {}
    low, high = bounds.get(rddl.ground_var(name, objects), (-math.inf, math.inf))
    if not high - low < MOST_ACTIONS:
        raise OptionError(
            f"{source.domain}: action fluent {name_fluent(name, objects)} is {kind} and has too "
            "many values to list; allowed are bool, enumerated types, and int with bounds among "
            "the action-preconditions"
        )
    return range(math.ceil(low), math.floor(high) + 1)


def _count_combinations(sizes: Iterable[int], most: int) -> int:
    """Return how many ways there are to choose from at most so many of some sets."""
    ways = [1] + [0] * most
    for size in sizes:
        ways = [ways[0], *(ways[k] + size * ways[k - 1] for k in range(1, most + 1))]
    return sum(ways)
