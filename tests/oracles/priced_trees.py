"""The tree of all histories of a small model, and what its policies are worth at a price of risk.

Written from docs/theory/proofs.md ("Prices"), in plain recursion, sharing nothing with the library
but the model. A policy from a history on is a nested tuple, as in `brute_force`: (action, (a
policy for each safe outcome)), and None where the history has ended. Rewards are as seen from the
start.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.helpers.tables import Table


@dataclass(frozen=True)
class Action:
    """An action of a history, with the histories after its safe outcomes."""

    reward: float  # discounted, mean over all outcomes
    risk: float
    after: tuple[tuple[float, Place], ...]  # probabilities and histories

    def value(self, price: float) -> float:
        """Return Q_λ of this action in its history."""
        to_go = math.fsum(p * place.value(price) for p, place in self.after)
        return self.reward - price * self.risk + to_go


@dataclass(frozen=True)
class Place:
    """A history: the probability with which its actions lead there, and its own actions."""

    reach: float
    actions: dict[str, Action]
    _values: dict[float, float] = field(default_factory=dict, repr=False)

    def value(self, price: float) -> float:
        """Return V_λ of this history."""
        if price not in self._values:
            values = [action.value(price) for action in self.actions.values()]
            self._values[price] = max(values, default=0.0)
        return self._values[price]

    def dual_gap(self, name: str, price: float) -> float:
        """Return the value that an action loses to the best, times the probability to be here."""
        return self.reach * (self.value(price) - self.actions[name].value(price))

    def evaluate(self, policy: Any) -> tuple[float, float]:
        """Return risk and reward of a policy from this history on."""
        if policy is None:
            return 0.0, 0.0
        name, rest = policy
        action = self.actions[name]
        risk, reward = action.risk, action.reward
        for (p, place), chosen in zip(action.after, rest, strict=True):
            x, g = place.evaluate(chosen)
            risk, reward = risk + p * x, reward + p * g
        return risk, reward

    def find_best(self, price: float, daring: bool) -> Any:
        """Return a policy that attains V_λ, of ties the one that risks most, or least."""
        if not self.actions:
            return None
        policies = [
            (name, tuple(place.find_best(price, daring) for _, place in action.after))
            for name, action in self.actions.items()
            if action.value(price) > self.value(price) - 1e-12 * (1 + price)
        ]
        risks = [self.evaluate(policy)[0] for policy in policies]
        return policies[risks.index(max(risks) if daring else min(risks))]

    def walk(self, policy: Any) -> Iterator[tuple[Place, str]]:
        """Yield the histories in which a policy decides, each with what it does there."""
        if policy is None:
            return
        name, rest = policy
        yield self, name
        for (_, place), chosen in zip(self.actions[name].after, rest, strict=True):
            yield from place.walk(chosen)

    def split(self, one: Any, other: Any) -> Iterator[tuple[Place, Any, Any]]:
        """Yield the histories in which two policies first differ, each with both from there on."""
        if one == other:
            return
        if one[0] != other[0]:
            yield self, one, other
            return
        after = self.actions[one[0]].after
        for (_, place), first, second in zip(after, one[1], other[1], strict=True):
            yield from place.split(first, second)

    def find_front(self, kept: Any = None) -> list[tuple[float, float]]:
        """Return the points of all policies that no other beats, of actions that are kept."""
        points = [] if self.actions else [(0.0, 0.0)]
        for name, action in self.actions.items():
            if kept is not None and (id(self), name) not in kept:
                continue
            sums = [(action.risk, action.reward)]
            for p, place in action.after:
                front = place.find_front(kept)
                sums = thin([(x + p * u, g + p * v) for x, g in sums for u, v in front])
            points += sums
        return thin(points)


def thin(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that no other beats, from little risk to much."""
    front: list[tuple[float, float]] = []
    for risk, reward in sorted(points, key=lambda point: (point[0], -point[1])):
        if not front or reward > front[-1][1]:
            front.append((risk, reward))
    return front


def grow(table: Table) -> Place:
    """Return the tree of all histories of a model, from its start."""
    return _grow(table, table.start, 0, 1.0)


def _grow(table: Table, state: Any, step: int, reach: float) -> Place:
    actions = {}
    for name, outcomes in table.table.get(state, {}).items() if step < table.horizon else ():
        actions[name] = Action(
            table.discount**step * math.fsum(o.probability * o.reward for o in outcomes),
            math.fsum(o.probability for o in outcomes if o.fails),
            tuple(
                (o.probability, _grow(table, o.state, step + 1, reach * o.probability))
                for o in outcomes
                if not o.fails
            ),
        )
    return Place(reach, actions)
