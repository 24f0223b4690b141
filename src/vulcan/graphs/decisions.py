"""Decisions: a policy over a graph, before it is written out for people and files.

    rows      [D]  the row of the action that each decision takes, NONE in a tip
    children  [C]  what comes after each safe outcome of it: a decision, or END
    nodes     [D]  the node that each decision is taken in

Decisions are numbered level by level, so that a child always has a larger number than its parent,
and the children of a decision are as many entries as its row has safe outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vulcan.sentinels import END, NONE

__all__ = ["Choice", "DecidedPlan", "Decisions", "Plan", "collect_decisions"]

Choice = NDArray[np.int32]
"""A row of an action for each node, NONE in tips: a policy that is a function of the node."""


class Decisions(NamedTuple):
    """A policy over a graph; see the head of this module."""

    rows: NDArray[np.int32]
    children: NDArray[np.int32]
    nodes: NDArray[np.int32]

    def find_tips(self) -> list[int]:
        """Return the nodes in which the policy does not know what to do."""
        return sorted(set(self.nodes[self.rows == NONE].tolist()))


class Plan(Protocol):
    """A policy over a graph, in a form that solvers find handy."""

    def decide(self) -> Decisions:
        """Return its decisions."""


@dataclass(frozen=True)
class DecidedPlan:
    """A plan whose decisions are there already."""

    decisions: Decisions

    def decide(self) -> Decisions:
        """Return its decisions."""
        return self.decisions


Key = TypeVar("Key", bound=Hashable)


def collect_decisions(
    root: Key, choose: Callable[[Key], tuple[int, int, Sequence[Key | None]]]
) -> Decisions:
    """Return the decisions of a policy that remembers something of a history: its key.

    Parameters
    ----------
    root
        The key at the start.
    choose
        From a key to the node, the row, and the key after each safe outcome: None for an end.
    """
    rows: list[int] = []
    children: list[int] = []
    nodes: list[int] = []
    level: list[Key] = [root]
    count = 1
    while level:
        following: dict[Key, int] = {}
        for key in level:
            node, row, after = choose(key)
            nodes.append(node)
            rows.append(row)
            for next_ in after:
                known = (
                    END if next_ is None else following.setdefault(next_, count + len(following))
                )
                children.append(known)
        count += len(following)
        level = list(following)
    return Decisions(*(np.array(numbers, np.int32) for numbers in (rows, children, nodes)))
