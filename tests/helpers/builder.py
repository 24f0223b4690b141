"""Building policies node by node."""

from __future__ import annotations

from typing import Any

from vulcan import Outcome
from vulcan.model.answers import label_outcomes
from vulcan.policy.policy import About, Policy, build_policy


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
