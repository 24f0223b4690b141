"""A state that a walk has met: what it was like then, and what was asked about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from vulcan.model.interface import Outcome
from vulcan.model.likeness import attempt, copy_value, is_equal

__all__ = ["Answer", "MetState", "next_states", "possible"]

Answer = tuple[Any, ...] | None
"""Actions or outcomes; None if the model gave none that can be listed."""


class MetState:
    """A state that was met, and what it was like then.

    The copy is out of the model's reach. Where a copy is not equal to the state, the state itself
    has to do, and only its hash can tell whether it was changed.

    Attributes
    ----------
    state, hash, copy
        The model's own object, its hash, and its copy.
    actions, outcomes
        The model's answers: which actions there are, and the outcomes of each.
    reached
        Each an action, a state that it leads to, and whether that is only a part of an outcome,
        which nobody can tell apart from another.
    equal
        The copy of the state that was met before and equals this one, if they are not alike.
    """

    def __init__(self, state: Any) -> None:
        self.take(state)
        self.actions: Answer = None
        self.outcomes: list[Answer] = []
        self.reached: list[tuple[Any, MetState, bool]] = []
        self.equal: Any = None

    def take(self, state: Any) -> None:
        """Take a state for what this one is."""
        self.state, self.hash, copy = state, attempt(hash, state), copy_value(state)
        same = is_equal(copy, state) and attempt(hash, copy) == self.hash
        self.copy = copy if same else state

    def reach(self, action: Any, observed: Iterable[Any], given: Iterable[Any]) -> None:
        """Add the states that an action leads to: as they are observed, and as they were given."""
        seen = list(next_states(observed))
        known = set(map(id, seen))
        self.reached += [(action, MetState(state), False) for state in seen]
        parts = (state for state in next_states(given) if id(state) not in known)
        self.reached += [(action, MetState(state), True) for state in parts]


def possible(outcomes: Iterable[Any]) -> Iterator[Outcome]:
    """Yield the outcomes that are not of probability 0."""
    for outcome in outcomes:
        if isinstance(outcome, Outcome) and not is_equal(outcome.probability, 0):
            yield outcome


def next_states(outcomes: Iterable[Any]) -> Iterator[Any]:
    """Yield the states that possible outcomes lead to, if the model can be asked about them."""
    for outcome in possible(outcomes):
        if not (outcome.fails or outcome.state is None or attempt(hash, outcome.state) is None):
            yield outcome.state
