"""Models whose bounds on rewards say nothing, or are wrong."""

from __future__ import annotations

import math

from tests.helpers.tables import Table
from vulcan import Outcome


class Unknowing(Table):
    """A model whose bound on rewards says nothing."""

    def reward_to_go_bound(self, state: object, step: int) -> float:
        return math.inf


class Wrong(Table):
    def reward_to_go_bound(self, state: object, step: int) -> float:
        return -math.inf


CHAIN = {
    0: {"go": [Outcome(1.0, 1.0, 1)], "wait": [Outcome(1.0, 0.5, 2)]},
    1: {"go": [Outcome(0.99, 2.0, 3), Outcome.failure(0.01)]},
    2: {"go": [Outcome(1.0, 5.0, 3)]},
}
