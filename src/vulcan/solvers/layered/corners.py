"""Policies as points in the plane of reward and risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Corner", "Mix"]


@dataclass(frozen=True)
class Corner:
    """A deterministic policy as a point.

    Attributes
    ----------
    reward, risk
        What it earns and risks.
    plan
        What makes the policy of it.
    """

    reward: float
    risk: float
    plan: Any = None


@dataclass(frozen=True)
class Mix:
    """A point between two policies.

    Attributes
    ----------
    safe, daring
        The policies; the same one twice for a policy alone.
    weight
        Probability of the second.
    """

    safe: Corner
    daring: Corner
    weight: float

    @property
    def reward(self) -> float:
        """Expected reward."""
        return self.safe.reward + self.weight * (self.daring.reward - self.safe.reward)

    @property
    def risk(self) -> float:
        """Probability of failure."""
        return self.safe.risk + self.weight * (self.daring.risk - self.safe.risk)
