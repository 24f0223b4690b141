"""A rover that may get stuck: drill where it is, or drive to better ground through soft sand.

Each day the rover drills the rock that it stands on or drives on. The further it goes, the richer
the rock and the softer the sand. Drilling wears the drill, and a worn drill finds less. Run it with
`python examples/rover.py`, or

    vulcan solve examples/rover.py:Rover --set days=6 --bound "min(0.004*x, 0.05)"
"""

from __future__ import annotations

from typing import NamedTuple

import vulcan
from vulcan import Outcome


class Place(NamedTuple):
    """Where the rover is and how often it has drilled."""

    zone: int
    drilled: int

    def __str__(self) -> str:
        return f"zone {self.zone}, drilled {self.drilled} times"


class Rover:
    """Zones 0 to 3 hold samples worth 1, 2, 4 and 8; the sand between them is ever softer."""

    worth = (1.0, 2.0, 4.0, 8.0)
    stuck = (0.001, 0.004, 0.02)

    def __init__(self, days: int = 6) -> None:
        self.horizon = days

    def __repr__(self) -> str:
        return f"Rover(days={self.horizon})"

    def initial_state(self) -> Place:
        """Return the landing site."""
        return Place(0, 0)

    def actions(self, place: Place) -> list[str]:
        """Return what the rover can do in a place."""
        return ["drill", "drive"] if place.zone < len(self.stuck) else ["drill"]

    def outcomes(self, place: Place, action: str) -> list[Outcome]:
        """Return what may come of it."""
        if action == "drive":
            risk = self.stuck[place.zone]
            return [
                Outcome(0.8 * (1 - risk), 0.0, Place(place.zone + 1, place.drilled), "arrives"),
                Outcome(0.2 * (1 - risk), 0.0, place, "slips back"),
                Outcome.failure(risk, label="stuck"),
            ]
        chance = 0.9**place.drilled
        after = Place(place.zone, place.drilled + 1)
        return [
            Outcome(chance, self.worth[place.zone], after, "a good sample"),
            Outcome(1 - chance, 0.2, after, "dust"),
        ]


if __name__ == "__main__":
    problem = vulcan.Problem(Rover(days=6), risk_bound=vulcan.parse("min(0.004*x, 0.05)"))
    result = vulcan.solve(problem)
    print(result)
    print(result.policy)
