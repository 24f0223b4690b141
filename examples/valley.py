"""A drone that flies medicine from a depot to a village, by a gorge or over a ridge.

The gorge is one leg and dangerous in a wind; the ridge is two legs, with a hut between them, and
nearly safe. The drone has eight legs before dusk, and fetches the next parcel whenever it is back
at the depot. `docs/tutorial/index.md` plans for it, step by step. Run it with
`python examples/valley.py`, or

    vulcan solve examples/valley.py:Valley --bound "0.005*x"
"""

from __future__ import annotations

from typing import NamedTuple

import vulcan
from vulcan import Outcome

LEGS = {  # from where, by which way: to where, and the risk in a calm and in a wind
    "depot": {
        "gorge": ("village", 0.004, 0.04),
        "ridge": ("hut", 0.0005, 0.003),
        "wait": ("depot", 0.0, 0.0),
    },
    "hut": {
        "to village": ("village", 0.0005, 0.003),
        "to depot": ("depot", 0.0005, 0.003),
        "wait": ("hut", 0.0, 0.0),
    },
    "village": {
        "gorge": ("depot", 0.004, 0.04),
        "ridge": ("hut", 0.0005, 0.003),
        "wait": ("village", 0.0, 0.0),
    },
}


class Flight(NamedTuple):
    """What the pilot knows before a leg."""

    place: str
    loaded: bool
    windy: bool

    def __str__(self) -> str:
        load = "loaded" if self.loaded else "empty"
        return f"{self.place}, {load}, {'windy' if self.windy else 'calm'}"


class Valley:
    """Eight legs between a depot, a hut and a village."""

    horizon = 8

    def __repr__(self) -> str:
        return "Valley()"

    def initial_state(self) -> Flight:
        """Return the morning: a parcel is on board, and the air is calm."""
        return Flight("depot", loaded=True, windy=False)

    def actions(self, flight: Flight) -> list[str]:
        """Return the ways from a place."""
        return list(LEGS[flight.place])

    def outcomes(self, flight: Flight, action: str) -> list[Outcome]:
        """Return what a leg may come to: the wind after it, or a crash."""
        place, calm, windy = LEGS[flight.place][action]
        risk = windy if flight.windy else calm
        reward = 1.0 if flight.loaded and place == "village" else 0.0
        loaded = place == "depot" or (flight.loaded and not reward)
        wind = 0.6 if flight.windy else 0.3
        outcomes = [
            Outcome((1 - risk) * (1 - wind), reward, Flight(place, loaded, False), label="calm"),
            Outcome((1 - risk) * wind, reward, Flight(place, loaded, True), label="windy"),
        ]
        if risk:
            outcomes.append(Outcome.failure(risk, label="crash"))
        return outcomes


if __name__ == "__main__":
    print(vulcan.solve(vulcan.Problem(Valley(), risk_bound="0.005*x")))
