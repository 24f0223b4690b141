"""What a field is: a model, the risk that is acceptable in it, and why it is in the collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import vulcan
from vulcan import Outcome


@dataclass(frozen=True)
class Field:
    """A problem of some field, as a user might bring it along.

    Attributes
    ----------
    name
        Short and unique.
    model
        A plain Python model.
    bound
        The acceptable risk, as on the command line.
    note
        What is special about it.
    feasible
        Whether any policy is within the bound.
    """

    name: str
    model: Any
    bound: str
    note: str
    feasible: bool = True

    @property
    def problem(self) -> vulcan.Problem:
        """Model and bound together."""
        return vulcan.Problem(self.model, vulcan.parse(self.bound))


def combine(chances: Mapping[Any, float], falls: float = 0.0, reward: float = 0.0) -> list[Outcome]:
    """Return the outcomes that lead to some states, and to failure, all with the same reward."""
    outcomes = [Outcome(chance, reward, state) for state, chance in chances.items()]
    return [*outcomes, Outcome.failure(falls, reward)] if falls else outcomes
