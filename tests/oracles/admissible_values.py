"""Forward search in plain recursion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tests.helpers.tables import Table
from vulcan import Outcome, RiskBound


@dataclass
class Oracle:
    """Forward search in plain recursion: the value of the best admissible way on."""

    table: Table
    bound: RiskBound
    kind: str
    own: Any = None

    def passes(self, survival: float, credit: float) -> bool:
        risk = 1 - survival
        if self.kind != "B":
            if survival <= 0:
                return False
            risk /= survival
        return risk <= self.bound(credit) + 1e-12

    def value(self, state: Any, level: int, survival: float, credit: float) -> float:
        actions = self.table.table.get(state, {})
        if level == self.table.horizon or not actions:
            return 0.0 if self.passes(survival, credit) else -math.inf
        return max(self.action_value(state, a, level, survival, credit) for a in actions)

    def action_value(
        self, state: Any, action: str, level: int, survival: float, credit: float
    ) -> float:
        outcomes = self.table.table[state][action]
        weight = self.table.discount**level
        safe = [o for o in outcomes if not o.fails]
        failing = [o for o in outcomes if o.fails]
        risk = math.fsum(o.probability for o in failing) if safe else 1.0
        mean = math.fsum(o.probability * o.reward for o in outcomes)
        after = survival * (1 - risk)

        def claim(outcome: Outcome | None) -> float:
            if self.kind == "B":
                return credit + weight * survival * mean
            if self.kind == "A":
                return credit + weight * mean
            if self.kind == "A own":
                return credit + weight * self.own(state, action)
            return credit + weight * outcome.reward

        if self.kind != "B":
            if not safe or any(self.bound(claim(o)) < -1e-12 for o in failing):
                return -math.inf
        elif not safe:
            return mean if self.passes(0.0, claim(None)) else -math.inf
        values = [self.value(o.state, level + 1, after, claim(o)) for o in safe]
        if -math.inf in values:
            return -math.inf
        return mean + self.table.discount * math.fsum(
            o.probability * value for o, value in zip(safe, values, strict=True)
        )
