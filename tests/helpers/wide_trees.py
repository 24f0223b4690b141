"""A plan as large as that of the narrow mission: four outcomes, nine steps, 87,381 decisions."""

from __future__ import annotations

import vulcan
from tests.helpers.plans import build_merged
from vulcan import Outcome
from vulcan.pages.maps import PageMap
from vulcan.policy.policy import Policy

CHANCES = (0.05, 0.45, 0.4, 0.0999)
FAILS = 1.0 - sum(CHANCES)


class WideTree:
    """Histories of numbers from 0 to 3; every step fails with the same small probability."""

    merges = False

    def __init__(self, horizon: int = 9) -> None:
        self.horizon = horizon

    def initial_state(self) -> tuple[int, ...]:
        return ()

    def actions(self, state: tuple[int, ...]) -> list[str]:
        return ["go"]

    def outcomes(self, state: tuple[int, ...], action: str) -> list[Outcome]:
        found = [
            Outcome(chance, self._pay(state, k), (*state, k), f"found {k}")
            for k, chance in enumerate(CHANCES)
        ]
        return [*found, Outcome.failure(FAILS, 0.0, "lost")]

    def page_map(self) -> PageMap:
        return PageMap(self.horizon + 1, 4 * self.horizon)

    def page_position(self, state: tuple[int, ...]) -> tuple[float, float]:
        return float(len(state)), float(sum(state))

    def _pay(self, state: tuple[int, ...], k: int) -> float:
        return k + (hash(state) % 1000) / 1000  # as many different rewards as a mission has


def make_wide_plan(horizon: int = 9) -> tuple[vulcan.Problem, Policy]:
    """Return the problem and its only policy."""
    model = WideTree(horizon)
    return vulcan.Problem(model, "0.1"), build_merged(model)
