"""RockSample (Smith and Simmons 2004) with traps: rocks at known places, good or bad.

The rover drives over n by n cells, of which it knows its own. Each rock is good or bad; a check
from a distance d sees which with probability (1 + 2^(-d / sight)) / 2. Sampling a good rock pays
10, and it is bad from then on. A bad rock is a trap: sampling it costs 10, and the rover may never
come loose. Leaving to the east pays 10 and ends the mission.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final

from vulcan.model.belief import Transition

MOVES: Final = {"north": (0, 1), "south": (0, -1), "east": (1, 0), "west": (-1, 0)}
LEFT: Final = "left the field"

Cell = tuple[int, int]
State = tuple[Cell, str]  # the cell, and a letter for each rock: "g" or "b"


@dataclass(frozen=True)
class RockSample:
    """Rocks that may be good or trap the rover.

    Parameters
    ----------
    size
        Cells in each direction.
    rocks
        Number of rocks, at places that follow from both numbers.
    horizon
        Number of decisions.
    trap
        Probability that sampling a bad rock ends in failure.
    sight
        Distance at which a check tells half of what it tells nearby.
    """

    size: int = 4
    rocks: int = 3
    horizon: int = 10
    trap: float = 0.2
    sight: float = 4.0

    @cached_property
    def places(self) -> list[Cell]:
        """The cells of the rocks."""
        cells = [(x, y) for x in range(self.size) for y in range(self.size)]
        return sorted(random.Random(self.size * 100 + self.rocks).sample(cells, self.rocks))  # noqa: S311

    def initial_belief(self) -> dict[State, float]:
        """Return all kinds of rocks, equally likely."""
        start = (0, self.size // 2)
        kinds = map("".join, product("gb", repeat=self.rocks))
        return {(start, rocks): 0.5**self.rocks for rocks in kinds}

    def actions(self, observation: str | None) -> list[str]:
        """Return the moves, a check of each rock, and "sample" on a rock."""
        if observation == LEFT:
            return []
        cell = (0, self.size // 2) if observation is None else self._read(observation)
        moves = [m for m, (x, y) in MOVES.items() if m == "east" or self._has(cell, x, y)]
        checks = [f"check {k}" for k in range(1, self.rocks + 1)]
        return [*moves, *checks, *(["sample"] if cell in self.places else [])]

    def transitions(self, state: State, action: str) -> list[Transition]:
        """Return the only transition, or two where the rover may be trapped."""
        cell, rocks = state
        if action.startswith("check"):
            return [Transition(1.0, state, 0.0)]
        if action == "sample":
            number = self.places.index(cell)
            after = cell, f"{rocks[:number]}b{rocks[number + 1 :]}"
            if rocks[number] == "g":
                return [Transition(1.0, after, 10.0)]
            stuck = Transition(self.trap, state, -10.0, fails=True)
            return [Transition(1 - self.trap, after, -10.0), stuck]
        x, y = MOVES[action]
        if not self._has(cell, x, y):
            return [Transition(1.0, ((self.size, cell[1]), rocks), 10.0)]
        return [Transition(1.0, ((cell[0] + x, cell[1] + y), rocks), 0.0)]

    def observations(self, state: State, action: str) -> dict[str, float]:
        """Return the cell, and what a check sees."""
        cell, rocks = state
        if cell[0] == self.size:
            return {LEFT: 1.0}
        here = f"{cell[0]},{cell[1]}"
        if not action.startswith("check"):
            return {here: 1.0}
        number = int(action.removeprefix("check ")) - 1
        far = math.dist(cell, self.places[number])
        right = (1 + 2 ** (-far / self.sight)) / 2
        good = right if rocks[number] == "g" else 1 - right
        return {f"{here} good": good, f"{here} bad": 1 - good}

    def _read(self, observation: str) -> Cell:
        x, y = observation.split(maxsplit=1)[0].split(",")
        return int(x), int(y)

    def _has(self, cell: Cell, x: int, y: int) -> bool:
        return 0 <= cell[0] + x < self.size and 0 <= cell[1] + y < self.size
