"""Where two plans for one model part.

Both are followed at once, as long as they do the same. A pair of decisions that differ is where the
plans part; what comes after it is no longer compared. Histories that come to the same pair go on as
one, so that plans with more histories than can be counted are compared as well.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import NamedTuple

from vulcan.policies.policy import Policy

__all__ = ["Difference", "Parting", "find_difference"]


class Parting(NamedTuple):
    """A history after which two plans do different things.

    Attributes
    ----------
    reach
        How likely one comes there.
    history
        Action and outcome of each step of the likeliest history that leads there.
    action, instead
        What the one plan does there, and what the other does.
    """

    reach: float
    history: tuple[tuple[str, str], ...]
    action: str
    instead: str


@dataclass(frozen=True)
class Difference:
    """How much two plans differ.

    Attributes
    ----------
    probability
        That they ever do different things.
    partings
        The likeliest partings, the likeliest first.
    """

    probability: float
    partings: tuple[Parting, ...]


@dataclass(slots=True)
class _Pair:
    one: int
    other: int
    reach: float
    likeliest: float
    before: _Pair | None
    outcome: str


def find_difference(one: Policy, other: Policy, most: int = 5) -> Difference:
    """Return where two deterministic policies for one model part.

    Parameters
    ----------
    one, other
        The policies.
    most
        How many partings to return.
    """
    if not len(one) or not len(other):
        return Difference(0.0, ())
    here = {(0, 0): _Pair(0, 0, 1.0, 1.0, None, "")}
    parted: list[_Pair] = []
    while here:
        arrived: dict[tuple[int, int], _Pair] = {}
        for pair in here.values():
            if _name(one, pair.one) != _name(other, pair.other):
                parted.append(pair)
            else:
                _go_on(pair, one, other, arrived)
        here = arrived
    likeliest = heapq.nlargest(most, parted, key=lambda pair: pair.reach)
    return Difference(
        math.fsum(pair.reach for pair in parted),
        tuple(
            Parting(
                pair.reach,
                _tell_history(pair, one),
                _name(one, pair.one),
                _name(other, pair.other),
            )
            for pair in likeliest
        ),
    )


def _go_on(pair: _Pair, one: Policy, other: Policy, arrived: dict[tuple[int, int], _Pair]) -> None:
    """Follow both plans along the outcomes of the action that they share."""
    children = {
        other.labels[other.label[row]]: int(other.child[row]) for row in other.outcomes(pair.other)
    }
    for row in one.outcomes(pair.one):
        label = one.labels[one.label[row]]
        child, beside = int(one.child[row]), children.get(label, -1)
        if child < 0 or beside < 0:
            continue
        chance = float(one.probability[row])
        after = arrived.setdefault((child, beside), _Pair(child, beside, 0.0, 0.0, None, ""))
        after.reach += pair.reach * chance
        if pair.likeliest * chance > after.likeliest:
            after.likeliest, after.before = pair.likeliest * chance, pair
            after.outcome = label


def _tell_history(pair: _Pair, policy: Policy) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    while pair.before is not None:
        found.append((_name(policy, pair.before.one), pair.outcome))
        pair = pair.before
    return tuple(found[::-1])


def _name(policy: Policy, node: int) -> str:
    return policy.labels[int(policy.action[node])]
