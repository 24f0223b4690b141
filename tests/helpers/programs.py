"""Models and bounds for the tests of linear and integer programs."""

from __future__ import annotations

import math
from random import Random

import vulcan
from tests.helpers.tables import Table
from tests.oracles.best_policies import Point
from vulcan import Outcome
from vulcan.planning import Status


def make_edged(seed: int) -> vulcan.RiskBound:
    """Return a bound that is -inf for small rewards, some infinitely steep where it begins."""
    random = Random(seed)
    start = random.choice([-1.0, -0.5, 0.0, 0.5, 1.0])
    scale = random.choice([0.01, 0.1, 0.3, 1.0])
    function = random.choice(
        [
            lambda x: scale * math.sqrt(x - start),
            lambda x: scale * (x - start) ** 0.25 - 0.05,
            lambda x: 0.1 + scale * math.log(x - start) if x > start else -math.inf,
            lambda x: scale * (x - start) + 0.01,
        ]
    )
    return vulcan.Concave(lambda x: function(x) if x >= start else -math.inf)


def is_open(result: vulcan.Result, points: list[Point], bound: vulcan.RiskBound) -> bool:
    """Whether nothing was decided, as a policy earns what a bound begins with up to roundings.

    A function rounds what it is given, so that no arithmetic tells whether the policy is within.
    """
    begins = any(bound(g - 1e-9) == -math.inf < bound(g + 1e-9) for g, _ in points)
    if result.status is not Status.DONE or not begins:
        return False
    acceptable = [g for g, x in points if x <= bound(g)]
    assert result.upper_bound >= max(acceptable, default=-math.inf)
    return True


class Choose(Table):
    """A model whose start is drawn, or chosen."""

    def initial_state(self) -> vulcan.Start:
        half = [Outcome(0.5, 0, 0, "first"), Outcome(0.5, 0, 1, "second")]
        return vulcan.Start({"draw": half, "right": [Outcome(1.0, 0, 1)]})
