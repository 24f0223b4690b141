"""What branching keeps of policies: see `vulcan.solvers.layered.branching`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Case", "Open", "Step", "Vector", "Vectors"]

Vector = NDArray[np.float64]
"""A number for each price."""

Vectors = NDArray[np.float64]
"""A vector for each node."""


@dataclass(frozen=True)
class Step:
    """An action in a node.

    Attributes
    ----------
    row
        The action.
    reward, risk
        Of the action by itself.
    rewards, risks
        How much more is earned and risked by it than by the best action for each price.
    targets
        Place, probability and node of each outcome that goes on.
    """

    row: int
    reward: float
    risk: float
    rewards: Vector
    risks: Vector
    targets: list[tuple[int, float, int]]


@dataclass(frozen=True)
class Open:
    """A history in which nothing is decided yet.

    Attributes
    ----------
    reach, node
        Its probability, and where it leads.
    parent, place
        The number of the decision before it, and which of its outcomes it is.
    """

    reach: float
    node: int
    parent: int
    place: int


@dataclass(frozen=True)
class Case:
    """What policies have in common.

    Attributes
    ----------
    limit
        No acceptable policy of the case earns more.
    reward, risk
        What is earned and risked for certain so far.
    rewards, risks
        Of the policies that go on with the best actions for each price.
    opened
        The histories that come next.
    before, decided
        The case that this was branched off, the history that was decided and its action.
    depth
        How many histories are decided: each has rounded the sums once more.
    """

    limit: float
    reward: float
    risk: float
    rewards: Vector
    risks: Vector
    opened: tuple[Open, ...]
    before: Case | None = None
    decided: tuple[Open, int] | None = None
    depth: int = 0

    def trace(self) -> list[tuple[Open, int]]:
        """Return the histories that are decided, the first one first, and their actions."""
        trail, case = [], self
        while case.before is not None and case.decided is not None:
            trail.append(case.decided)
            case = case.before
        return trail[::-1]
