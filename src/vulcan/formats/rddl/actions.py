"""Which combinations of actions a state allows.

At most `max-nondef-actions` action fluents have another value than their default. Where these are
few combinations, they are listed once, and preconditions are tried on each. Otherwise most of them
are refused, and in each state values are given to one fluent after the other: a combination is left
as soon as a precondition can't hold any more. For that it is evaluated on intervals
(`intervals`), with whatever has no value yet anywhere in its range.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, Final

from vulcan.errors import ModelError, OptionError
from vulcan.formats.rddl.fluents import Fluent, list_values, name_fluent
from vulcan.formats.rddl.intervals import ANYTHING, Interval, Known, Preconditions
from vulcan.formats.rddl.reading import Source, find_bounds
from vulcan.formats.rddl.terms import Term, compile_term, conjoin
from vulcan.model.rules import Rule, Violation

__all__ = ["Actions"]

FEW_ACTIONS: Final = 2_000
"""So many combinations are listed once."""

MOST_ACTIONS: Final = 10_000
"""A state has at most so many."""

MOST_STEPS: Final = 100_000
"""A search for those of a state tries at most so many values."""

Values = tuple[Any, ...]


class Actions:
    """The combinations of actions of a problem.

    Parameters
    ----------
    source, rddl, simulator
        The problem: its files, and pyRDDLGym's model and simulator of it.
    places
        The place of each action fluent in the list that terms read, after those of the state.
    preconditions
        What must hold.
    """

    def __init__(
        self,
        source: Source,
        rddl: Any,
        simulator: Any,
        places: Mapping[Fluent, int],
        preconditions: Sequence[Term],
    ) -> None:
        self._names = [name_fluent(*fluent) for fluent in places]
        self._places = list(places.values())
        defaults = list_values(rddl, rddl.action_fluents)
        bounds = find_bounds(simulator) if "int" in rddl.action_ranges.values() else {}
        self._choices = []
        for fluent in places:
            values = _list_choices(source, rddl, bounds, fluent)
            self._choices.append([defaults[fluent], *(v for v in values if v != defaults[fluent])])
        self._most = min(rddl.max_allowed_actions, len(places))
        self._allows = compile_term(conjoin(preconditions))
        self._labels: dict[Values, str] = {}
        self._values: dict[str, Values] = {}
        self._listed: list[Values] | None = None
        sizes = [len(values) - 1 for values in self._choices]
        if _count_combinations(sizes, self._most) <= FEW_ACTIONS:
            self._listed = list(self._list_all())
        self._ranges = [
            (min(values), max(values)) if not isinstance(values[0], str) else ANYTHING
            for values in self._choices
        ]
        self._preconditions = Preconditions(preconditions)

    def list_allowed(self, state: Values) -> list[str]:
        """Return the labels of the combinations that a state allows: few actions first."""
        if self._listed is None:
            return [self._label(values) for values in self._search(state)]
        return [self._label(values) for values in self._listed if self._allows((*state, *values))]

    def find(self, state: Values, label: str) -> Values:
        """Return the values of the action fluents for a label."""
        if label not in self._values:
            self.list_allowed(state)  # another process may have listed it
        return self._values[label]

    def _list_all(self) -> Iterator[Values]:
        """Yield all combinations of values."""
        defaults = [values[0] for values in self._choices]
        for size in range(self._most + 1):
            for changed in combinations(range(len(defaults)), size):
                for chosen in product(*(self._choices[i][1:] for i in changed)):
                    values = defaults.copy()
                    for i, value in zip(changed, chosen, strict=True):
                        values[i] = value
                    yield tuple(values)

    def _search(self, state: Values) -> list[Values]:
        """Return the combinations that a state allows, few actions first."""
        known, can_hold = Known(state, self._ranges), self._preconditions.can_hold
        values = [choice[0] for choice in self._choices]
        free = []  # fluents with a choice: which, their place, and their values but the default
        for i, (place, choice) in enumerate(zip(self._places, self._choices, strict=True)):
            allowed = []
            for value in choice:
                known.fix(place, value)
                if can_hold(place, known):
                    allowed.append(value)
            if len(allowed) == 1:
                values[i] = allowed[0]
                known.fix(place, values[i])
            else:
                known.forget(place)
                free.append((i, place, [value for value in allowed if value != choice[0]]))
        found: list[Values] = []
        steps = 0

        def change_more(begin: int, left: int) -> None:
            """Keep what is changed, and change at most so many more from a position on."""
            nonlocal steps
            if self._allows((*state, *values)):
                found.append(tuple(values))
            for position in range(begin, len(free) if left else begin):
                i, place, others = free[position]
                default = values[i]
                for value in others:
                    values[i] = value
                    known.fix(place, value)
                    if can_hold(place, known):
                        change_more(position + 1, left - 1)
                values[i] = default
                known.fix(place, default)
                steps += 1 + len(others)
                if steps > MOST_STEPS or len(found) > MOST_ACTIONS:
                    raise ModelError(_refuse(state))
                if not can_hold(place, known):
                    break
            for _, place, _ in free[begin:]:
                known.forget(place)

        forced = sum(v != choice[0] for v, choice in zip(values, self._choices, strict=True))
        if forced <= self._most:
            change_more(0, self._most - forced)
        return sorted(found, key=self._rank)

    def _rank(self, values: Values) -> tuple[Any, ...]:
        """Return what to sort by: few actions first, and earlier ones before later ones."""
        pairs = zip(self._choices, values, strict=True)
        numbers = [known.index(value) for known, value in pairs]
        changed = [place for place, number in enumerate(numbers) if number]
        return (len(changed), changed, numbers)

    def _label(self, values: Values) -> str:
        label = self._labels.get(values)
        if label is None:
            changed = [
                name + ("" if value is True else f"={value}")
                for name, known, value in zip(self._names, self._choices, values, strict=True)
                if value != known[0]
            ]
            label = self._labels[values] = ", ".join(changed) or "noop"
            self._values[label] = values
        return label


def _refuse(state: Values) -> Violation:
    message = (
        f"combinations of actions are too many to list, more than {MOST_ACTIONS:,} or found only "
        f"by trying more than {MOST_STEPS:,}; "
        "max-nondef-actions and action-preconditions limit them"
    )
    return Violation(Rule.ACTIONS_END, message, state)


def _count_combinations(sizes: Sequence[int], most: int) -> int:
    """Return how many ways there are to choose from at most so many of some sets."""
    ways = [1] + [0] * most
    for size in sizes:
        ways = [ways[0], *(ways[k] + size * ways[k - 1] for k in range(1, most + 1))]
    return sum(ways)


def _list_choices(
    source: Source, rddl: Any, bounds: Mapping[str, Interval], fluent: Fluent
) -> Sequence[Any]:
    """Return the values that an action fluent can have."""
    name, objects = fluent
    kind = rddl.variable_ranges[name]
    if kind == "bool":
        return (False, True)
    if kind in rddl.type_to_objects:
        return tuple(rddl.type_to_objects[kind])
    low, high = bounds.get(rddl.ground_var(name, objects), ANYTHING)
    if kind == "real" or not high - low < MOST_ACTIONS:
        raise OptionError(
            f"{source.domain}: action fluent {name_fluent(name, objects)} is {kind} and has too "
            "many values to list; allowed are bool, enumerated types, and int with bounds among "
            "the action-preconditions"
        )
    return range(math.ceil(low), math.floor(high) + 1)
