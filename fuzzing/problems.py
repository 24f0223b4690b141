"""Problems as plain data: what the generator draws, the oracle solves and Vulcan is given.

Nothing here knows Vulcan. States are whole numbers, actions and labels are strings, and a risk
bound is a kind with its numbers (`fuzzing.risk_bounds`). The `repr` of a problem is Python that
makes it again, which is how reproducers are written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

__all__ = ["LARGEST_REWARD", "SMALLEST_PROBABILITY", "Bound", "Key", "Limit", "PlainProblem", "Way"]

SMALLEST_PROBABILITY, LARGEST_REWARD = 1e-300, 1e100
"""The range of numbers that Vulcan documents; models with others are refused."""

Key = str | tuple[Any, ...]
"""What an observer sees of an outcome: its label, or else where it leads and what it pays.

Costs and an event belong to it, if it has some.
"""


class Way(NamedTuple):
    """One outcome of an action; it leads to a state, or to None: failure."""

    probability: Any
    reward: float
    target: int | None
    label: str | None = None
    costs: tuple[tuple[str, float], ...] = ()
    event: str | None = None

    @property
    def key(self) -> Key:
        """What an observer can tell it from others by."""
        if self.label is not None:
            return self.label
        seen = (self.target, self.reward + 0.0)
        return (*seen, self.costs, self.event) if self.costs or self.event else seen

    @property
    def is_out_of_range(self) -> bool:
        """Whether a number of it is outside the documented range."""
        amounts = [self.reward, *(cost for _, cost in self.costs)]
        largest = max(map(abs, amounts))
        return 0 < self.probability < SMALLEST_PROBABILITY or largest > LARGEST_REWARD


Actions = Mapping[str, Sequence[Way]]


class Bound(NamedTuple):
    """A risk bound: what kind of function it is, how Vulcan is given it, and its numbers."""

    kind: str
    form: str
    numbers: tuple[Any, ...]


class Limit(NamedTuple):
    """A limit beside the risk bound: on a "cost" or an "event" of that name, or a "cap"."""

    kind: str
    name: str
    bound: Bound


@dataclass(frozen=True)
class PlainProblem:
    """A model, a risk bound, and perhaps further limits.

    Attributes
    ----------
    horizon, discount
        As in every model.
    states
        The actions of each state, by their labels. States without actions may be missing.
    start
        The initial state, or the initial actions that draw or choose it.
    bound
        The risk bound.
    tags
        What shape it is of, for the statistics.
    limits
        What is limited beside the risk.
    """

    horizon: int
    discount: float
    states: Mapping[int, Actions]
    start: int | Actions
    bound: Bound
    tags: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = ()

    @property
    def bounds(self) -> list[Bound]:
        """The risk bound and all limits."""
        return [self.bound, *(limit.bound for limit in self.limits)]

    def answers(self) -> Iterator[tuple[int | None, str, Sequence[Way]]]:
        """Yield every action with its outcomes; those of the start have no state."""
        if not isinstance(self.start, int):
            for action, ways in self.start.items():
                yield None, action, ways
        for state, actions in self.states.items():
            for action, ways in actions.items():
                yield state, action, ways

    @cached_property
    def reach(self) -> float:
        """No expected reward, and no credit, is larger than this in size."""
        largest = max((abs(way.reward) for *_, ways in self.answers() for way in ways), default=0.0)
        return min(float((self.horizon + 1) * largest), sys.float_info.max)

    @cached_property
    def is_out_of_range(self) -> bool:
        """Whether some number is outside the documented range, so that it may be refused."""
        return any(way.is_out_of_range for *_, ways in self.answers() for way in ways)

    @cached_property
    def needs_labels(self) -> bool:
        """Whether some outcomes can only be told apart by their labels."""
        for *_, ways in self.answers():
            keys = {way._replace(label=None).key for way in ways}
            if len(keys) < len({way.key for way in ways}):
                return True
        return False

    def change(self, change: Callable[[Sequence[Way]], Sequence[Way]]) -> PlainProblem:
        """Return the same problem with the outcomes of every action changed."""
        states = {
            state: {action: tuple(change(ways)) for action, ways in actions.items()}
            for state, actions in self.states.items()
        }
        start = self.start
        if not isinstance(start, int):
            start = {action: tuple(change(ways)) for action, ways in start.items()}
        return replace(self, states=states, start=start)

    def without_labels(self) -> PlainProblem:
        """Return the same problem with outcomes that have no labels."""
        return self.change(lambda ways: [way._replace(label=None) for way in ways])

    def immediate_risks(self) -> list[Fraction]:
        """Return the risk of every action that may go well."""
        risks = [_add_up_failures(ways) for *_, ways in self.answers()]
        return [risk for risk in risks if risk < 1]

    def with_risks_times(self, factor: Fraction) -> PlainProblem:
        """Return the same problem with all risks multiplied; safe outcomes share what is left."""

        def change(ways: Sequence[Way]) -> list[Way]:
            risk = _add_up_failures(ways)
            if risk >= 1:
                return list(ways)
            safe = (1 - factor * risk) / (1 - risk)
            return [
                way._replace(probability=Fraction(way.probability) * share)
                for way in ways
                for share in (factor if way.target is None else safe,)
            ]

        return self.change(change)


def _add_up_failures(ways: Sequence[Way]) -> Fraction:
    return sum((Fraction(way.probability) for way in ways if way.target is None), Fraction(0))
