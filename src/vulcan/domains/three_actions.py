"""The example of Ayton and Williams on which no penalty of failure finds the best policy.

One decision between three actions. With Δ(x) = 0.004 x the third is too risky and the second is
the best that is acceptable:

    action   reward   risk    allowed
    a1       5        0.01    0.02
    a2       6        0.02    0.024
    a3       10       0.05    0.04

With a penalty M the actions are worth 5 - 0.01 M, 6 - 0.02 M and 10 - 0.05 M: the third is the best
for M < 125, the first for M > 125, and the second never.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vulcan.model.interface import Outcome

ACTIONS: Final = {"a1": (5.0, 0.01), "a2": (6.0, 0.02), "a3": (10.0, 0.05)}


@dataclass(frozen=True)
class ThreeActions:
    """One decision between three actions, each with its reward, also on failure, and its risk."""

    horizon: int = 1

    def initial_state(self) -> str:
        """Return the only state with a decision."""
        return "start"

    def actions(self, state: str) -> list[str]:
        """Return the three actions; nothing once one was taken."""
        return list(ACTIONS) if state == "start" else []

    def outcomes(self, state: str, action: str) -> list[Outcome]:
        """Return success and failure."""
        reward, risk = ACTIONS[action]
        return [Outcome(1 - risk, reward, "done"), Outcome.failure(risk, reward)]
