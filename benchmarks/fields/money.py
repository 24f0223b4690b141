"""Fields about money and games."""

from __future__ import annotations

from math import log

from benchmarks.fields.field import Field
from vulcan import Outcome


class Ruin:
    """How much of a fortune to stake in each of twenty years; who has nothing left is ruined."""

    horizon = 20
    most = 30

    def initial_state(self):
        return 10

    def actions(self, wealth):
        return range(min(wealth, 24) + 1)

    def outcomes(self, wealth, stake):
        outcomes = []
        for gained, chance in ((stake, 0.55), (-stake, 0.4), (-(stake + 1) // 2, 0.05)):
            after = min(self.most, wealth + gained)
            grown = 0.01 * (log(1 + max(0, after)) - log(1 + wealth))
            if after <= 0:
                outcomes.append(Outcome.failure(chance, grown))
            else:
                outcomes.append(Outcome(chance, grown, after))
        return outcomes


class PressYourLuck:
    """Roll one die or two, and lose everything with a one; what was rolled is paid at the end."""

    horizon = 20
    most = 60

    def initial_state(self):
        return 0

    def actions(self, pot):
        return [] if pot == "paid" else ["stop", "one die", "two dice"]

    def outcomes(self, pot, action):
        if action == "stop":
            return [Outcome(1, pot, "paid")]
        if action == "one die":
            rolls = [(points, 1 / 6) for points in range(1, 7)]
        else:
            both = [(a, b) for a in range(1, 7) for b in range(1, 7)]
            rolls = [(1 if 1 in (a, b) else a + b, 1 / 36) for a, b in both]
        # Two dice have many ways to the same sum: only the pot is observable.
        return [
            Outcome.failure(chance)
            if points == 1
            else Outcome(chance, 0, min(self.most, pot + points))
            for points, chance in rolls
        ]


FIELDS = [
    Field("ruin", Ruin(), "0.0001", "up to 25 actions; rewards near 0"),
    Field(
        "press your luck", PressYourLuck(), "0.07*x", "36 rolls, many alike; paid at the end only"
    ),
]
