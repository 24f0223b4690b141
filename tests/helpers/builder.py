"""Building policies node by node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from vulcan import Outcome
from vulcan.model.answers import label_outcomes
from vulcan.policy.policy import About, Policy


class PolicyBuilder:
    """Collects nodes in the order of their numbers, for `build_policy`."""

    def __init__(self, about: About) -> None:
        self._about = about
        self._decisions: list[Any] = []

    def add(self, *decision: Any) -> None:
        self._decisions.append(decision)

    def decide(self, action: str, outcomes: list[Outcome], children: list[int]) -> None:
        """Add a node with the outcomes of a model."""
        chances = [float(o.probability) for o in outcomes]
        rewards = [float(o.reward) for o in outcomes]
        self.add(action, label_outcomes(outcomes), chances, rewards, children)

    def build(self) -> Policy:
        return build_policy(self._about, self._decisions)


def build_policy(
    about: About,
    decisions: Iterable[tuple[str, Sequence[str], Sequence[float], Sequence[float], Sequence[int]]],
) -> Policy:
    """Return the policy of decisions in the order of their nodes' numbers.

    A decision is an action, and the labels, probabilities, rewards and children of its outcomes.
    """
    numbers: dict[str, int] = {}
    actions: list[int] = []
    first = [0]
    rows: list[tuple[int, float, float, int]] = []
    for action, labels, *columns in decisions:
        actions.append(numbers.setdefault(action, len(numbers)))
        named = [numbers.setdefault(label, len(numbers)) for label in labels]
        rows.extend(zip(named, *columns, strict=True))
        first.append(len(rows))
    kinds = {"label": "i4", "probability": "f8", "reward": "f8", "child": "i4"}
    table = np.array(rows, list(kinds.items()))
    nodes = np.array(actions, np.int32), np.array(first, np.int64)
    label, probability, reward, child = (table[name].copy() for name in kinds)
    return Policy(about, tuple(numbers), *nodes, label, probability, reward, child)
