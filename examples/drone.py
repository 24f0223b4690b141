"""A delivery drone in a town of towers, with a small battery and a wind that rises.

The drone takes parcels from a depot to customers, one at a time, among towers that stand two by two
with streets between them. Each minute it flies to a neighbouring cell or hovers. Its battery shows
a few bars and loses one now and then, more often in a wind; at the depot it gets a fresh battery
and the next parcel. In a wind, a gust may push the drone one cell to the east: into another street,
or into a tower. `docs/examples/drone.md` tells the story. Run it with
`python examples/drone.py`, or

    vulcan solve examples/drone.py:Drone --bound "0.004*x" --gap 0.001
    vulcan solve examples/drone.py:Drone --set size=7 --set minutes=12 --bound "0.004*x"
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import vulcan
from vulcan import Outcome

MOVES = {"north": (-1, 0), "east": (0, 1), "south": (1, 0), "west": (0, -1), "hover": (0, 0)}
GUST = 0.15  # probability that a windy minute pushes the drone
DRAIN, DRAIN_IN_WIND = 0.06, 0.12  # probability that a minute costs a bar
WIND_DROPS = 0.2


class Flight(NamedTuple):
    """What the drone knows of itself and of the weather."""

    minute: int
    row: int
    column: int
    bars: int
    loaded: bool
    windy: bool

    def __str__(self) -> str:
        load = "with a parcel" if self.loaded else "empty"
        wind = "windy" if self.windy else "calm"
        place = f"row {self.row}, column {self.column}"
        return f"minute {self.minute}: {place}, {load}, {self.bars} bars, {wind}"


class Drone:
    """A shift of some minutes over a square town, whose depot is in the middle.

    Parameters
    ----------
    size
        Rows and columns of the town.
    minutes
        Length of the shift, which is the horizon. At its end the drone lands where it is.
    bars
        What a fresh battery shows. The drone falls when it loses the last one.
    """

    def __init__(self, size: int = 15, minutes: int = 40, bars: int = 3) -> None:
        if size < 7:
            raise ValueError(f"a town has at least 7 rows and columns, not {size}")
        self.size, self.horizon, self.bars = size, minutes, bars
        middle = size // 2
        self.depot = (middle, middle)
        self.pays = {(middle - 3, middle + 1): 1.0, (middle + 3, max(0, middle - 7)): 4.0}
        cells = set(itertools.product(range(size), repeat=2))
        towers = {(row, column) for row, column in cells if {row % 4, column % 5} <= {1, 2}}
        self.streets = (cells - towers) | {self.depot, *self.pays}

    def __repr__(self) -> str:
        return f"Drone(size={self.size}, minutes={self.horizon}, bars={self.bars})"

    def initial_state(self) -> Flight:
        """Return the start of the shift."""
        return Flight(0, *self.depot, self.bars, loaded=True, windy=False)

    def actions(self, flight: Flight) -> Iterable[str]:
        """Return the same five moves everywhere."""
        return MOVES

    def outcomes(self, flight: Flight, action: str) -> list[Outcome]:
        """Return what may come of a minute: a gust, a bar less, and another wind."""
        south, east = MOVES[action]
        row, column = flight.row + south, flight.column + east
        if (row, column) not in self.streets:  # the drone sees what stands still, and stays
            row, column = flight.row, flight.column
        gust, drain = (GUST, DRAIN_IN_WIND) if flight.windy else (0.0, DRAIN)
        if (row, column) == self.depot:  # under a roof
            gust = drain = 0.0
        rises = 0.05 + 0.1 * flight.minute / self.horizon
        windy = 1 - WIND_DROPS if flight.windy else rises
        outcomes, falls = [], 0.0
        for pushed, chance in ((0, 1 - gust), (1, gust)):
            for lost, share in ((0, chance * (1 - drain)), (1, chance * drain)):
                if not share:
                    continue
                if lost == flight.bars or (row, column + pushed) not in self.streets:
                    falls += share
                    continue
                reward, after = self.arrive(flight, row, column + pushed, flight.bars - lost)
                outcomes.append(Outcome(share * windy, reward, Flight(*after, True)))
                outcomes.append(Outcome(share * (1 - windy), reward, Flight(*after, False)))
        if falls:
            outcomes.append(Outcome.failure(falls, label="falls"))
        return outcomes

    def arrive(
        self, flight: Flight, row: int, column: int, bars: int
    ) -> tuple[float, tuple[int, int, int, int, bool]]:
        """Return what is earned in a cell, and the state there, without the wind."""
        minute, place = flight.minute + 1, (row, column)
        if place == self.depot:
            return 0.0, (minute, row, column, self.bars, True)
        if flight.loaded and place in self.pays:
            return self.pays[place], (minute, row, column, bars, False)
        return 0.0, (minute, row, column, bars, flight.loaded)


if __name__ == "__main__":
    problem = vulcan.Problem(Drone(), risk_bound=vulcan.parse("0.004*x"))
    print(vulcan.solve(problem, gap=0.001, progress=True))
