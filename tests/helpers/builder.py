"""Building policies node by node."""

from __future__ import annotations

from typing import Any

from vulcan.policy.policy import About, Policy, build_policy


class PolicyBuilder:
    """Collects nodes in the order of their numbers, for `build_policy`."""

    def __init__(self, about: About) -> None:
        self._about = about
        self._decisions: list[Any] = []

    def add(self, *decision: Any) -> None:
        self._decisions.append(decision)

    def build(self) -> Policy:
        return build_policy(self._about, self._decisions)
