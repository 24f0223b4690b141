"""Models with bounds on what is to come that may say nothing, or be wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.helpers.tables import Table
from vulcan import Outcome


@dataclass
class Liar(Table):
    """A model that says the same of every state, whether it is true or not."""

    reward: float = 0.0
    risk: float = 0.0

    def reward_to_go_bound(self, state: object, step: int) -> float:
        return self.reward

    def risk_to_go_bound(self, state: object, action: str, step: int) -> float:
        return self.risk


class Valued(Table):
    """A table that knows what is earned from a state on at best, less the price of failures."""

    def find_value(self, state: Any, step: int, price: float) -> float:
        """Return it in units of the step, in which the price is given."""
        actions = self.table.get(state, {}) if step < self.horizon else {}
        values = [
            sum(o.probability * (o.reward + self._follow(o, step + 1, price)) for o in outcomes)
            for outcomes in actions.values()
        ]
        return max(values, default=0.0)

    def _follow(self, outcome: Outcome, step: int, price: float) -> float:
        if outcome.fails:
            return -price
        if self.discount == 0.0:
            return 0.0  # no less than it is, and all that a bound must be
        return self.discount * self.find_value(outcome.state, step, price / self.discount)


CHAIN = {
    0: {"go": [Outcome(1.0, 1.0, 1)], "wait": [Outcome(1.0, 0.5, 2)]},
    1: {"go": [Outcome(0.99, 2.0, 3), Outcome.failure(0.01)]},
    2: {"go": [Outcome(1.0, 5.0, 3)]},
}
