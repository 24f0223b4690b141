"""A vehicle on a grid of cells, whose moves slip.

Each step it moves north, south, east or west, or stays. A move goes where it should with
probability 1 - slip, and to either side with slip / 2 each; walls and edges keep it where it is.
Arriving in a cell (also by staying) pays what the map says, and fails with the cell's risk.

A map is a string with a character for each cell:

    .   free        1 to 9   pays this many tenths       #   wall
    S   the start   a to z   pays 1 tenth for a, 2 for b, ..., and fails with probability `danger`
    X   fails for sure

The default map has 40 cells. What pays best lies behind places where a slip ends the mission. With
horizon n there are at most 40 n pairs of cell and step, and about 10^n histories: far too many to
count at 100 steps, the default, and no trouble for solvers on merged states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from vulcan.model.interface import Outcome
from vulcan.pages.maps import PageMap, Position

MAP: Final = """
S.1.X..2
...#....
.2.#c.X4
..d...X.
1..X..9e
"""

MOVES: Final = {"north": (-1, 0), "east": (0, 1), "south": (1, 0), "west": (0, -1)}

Cell = tuple[int, int]


def move(rows: Sequence[str], cell: Cell, step: Cell) -> Cell:
    """Return the cell after a step; walls and edges block it."""
    row, column = cell[0] + step[0], cell[1] + step[1]
    inside = 0 <= row < len(rows) and 0 <= column < len(rows[0])
    return (row, column) if inside and rows[row][column] != "#" else cell


@dataclass(frozen=True)
class Grid:
    """A vehicle whose moves slip, on a map of rewards and dangers.

    Parameters
    ----------
    horizon
        Number of steps.
    slip
        Probability that a move goes to one of its sides.
    danger
        Probability that arriving in a dangerous cell (a small letter) fails.
    map
        The cells; see the head of this module.
    """

    horizon: int = 100
    slip: float = 0.1
    danger: float = 0.0005
    map: str = field(default=MAP, repr=False)

    def __post_init__(self) -> None:
        rows = self.rows
        if not rows or len({len(row) for row in rows}) > 1:
            raise ValueError("the lines of a map must be of the same length, and at least one")
        if sum(row.count("S") for row in rows) != 1:
            raise ValueError("the map must have one start, S")

    @property
    def rows(self) -> list[str]:
        """The lines of the map."""
        return self.map.strip().splitlines()

    def initial_state(self) -> Cell:
        """Return the cell of the start."""
        row = next(k for k, line in enumerate(self.rows) if "S" in line)
        return row, self.rows[row].index("S")

    def actions(self, state: Cell) -> list[str]:
        """Return the four moves, and to stay."""
        return [*MOVES, "stay"]

    def outcomes(self, state: Cell, action: str) -> list[Outcome]:
        """Return where a move may lead."""
        chances: dict[Cell, float] = {}
        for step, chance in self._steps(action):
            cell = move(self.rows, state, step)
            chances[cell] = chances.get(cell, 0.0) + chance
        outcomes = []
        for cell, chance in chances.items():
            reward, risk = self._look_up(cell)
            outcomes.append(Outcome(chance * (1 - risk), reward, cell, f"{cell[0]},{cell[1]}"))
            if risk:
                label = f"lost at {cell[0]},{cell[1]}"
                outcomes.append(Outcome.failure(chance * risk, 0.0, label))
        return outcomes

    def reward_to_go_bound(self, state: Cell, step: int) -> float:
        """Return what the best cell would pay in every step that is left."""
        cells = ((r, c) for r, row in enumerate(self.rows) for c in range(len(row)))
        best = max(self._look_up(cell)[0] for cell in cells)
        return best * (self.horizon - step)

    def page_map(self) -> PageMap:
        return PageMap.from_lines(self.rows)

    def page_position(self, state: Cell) -> Position:
        return state[1], len(self.rows) - 1 - state[0]

    def _steps(self, action: str) -> list[tuple[Cell, float]]:
        if action == "stay":
            return [((0, 0), 1.0)]
        down, right = MOVES[action]
        aside = self.slip / 2
        return [
            ((down, right), 1 - self.slip),
            ((right, down), aside),
            ((-right, -down), aside),
        ]

    def _look_up(self, cell: Cell) -> tuple[float, float]:
        """Return reward and risk of arriving in a cell."""
        mark = self.rows[cell[0]][cell[1]]
        if mark == "X":
            return 0.0, 1.0
        if mark.isdigit():
            return int(mark) / 10, 0.0
        if mark.islower():
            return (ord(mark) - ord("a") + 1) / 10, self.danger
        return 0.0, 0.0
