"""Gold on a slippery grid with traps, after the maps that planners under risk are tried on.

Each step moves one cell north, east, south or west. A move into a wall, or over the edge of the
map, stays in its cell. A move that leaves its cell may slide: with probability slide / 2 to either
side of the move, one cell further; a wall holds back, and the slide is not seen. Only the cell in
which a step comes to rest counts. Coming to rest in a trap, by moving or by sliding, fails with the
probability `trap`; waiting there, in front of a wall, does not. The gold of a cell pays 1, once.
The mission ends when no gold is left.

A map is a string with a character for each cell:

    .   free        #   wall        T   trap        G   gold        B   the start

A state is a cell and a bit mask of the gold that is left: the default map has 33 cells and 5 pieces
of gold, so at most 33 · 2^5 states. Rewards are few and each has its own risk. The best policies of
two prices of failure are therefore often far apart, and what lies between them for a deterministic
policy are the slides: chance moves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from vulcan.domains.grid import MOVES, Cell, move
from vulcan.errors import OptionError
from vulcan.model.interface import Outcome
from vulcan.pages.maps import PageMap, Position
from vulcan.parameters import require_number, require_whole

MAP: Final = """
G.T.TG
.#TT..
.TB.#T
T..T.G
#.T.T.
GT.TTG
"""

State = tuple[Cell, int]
"""A cell, and the gold that is left: bit k for the k-th piece of the map, row by row."""


@dataclass(frozen=True)
class TreasureGrid:
    """A search for gold on a map of walls and traps, by moves that slide.

    Parameters
    ----------
    horizon
        Number of steps.
    slide
        Probability that a move slides to one of its sides.
    trap
        Probability that coming to rest in a trap fails.
    map
        The cells; see the head of this module.
    """

    horizon: int = 50
    slide: float = 0.2
    trap: float = 0.2
    map: str = field(default=MAP, repr=False)

    def __post_init__(self) -> None:
        require_whole("horizon", self.horizon, 1, 1_000_000)
        for name in ("slide", "trap"):
            if require_number(name, getattr(self, name), least=0.0) > 1:
                raise OptionError(f"{name} must be a probability, not {getattr(self, name)!r}")
        cells = "cells are . (free), # (wall), T (trap), G (gold) and B (start)"
        for number, row in enumerate(self.rows, 1):
            if unknown := row.strip(".#TGB"):
                raise OptionError(f"line {number}: {unknown[0]!r} is no cell of a map; {cells}")
            if len(row) != len(self.rows[0]):
                raise OptionError("the lines of a map must be of the same length")
        if (starts := len(self._find("B"))) != 1:
            raise OptionError(f"a map has one start, B, not {starts}")

    @cached_property
    def rows(self) -> list[str]:
        """The lines of the map."""
        return self.map.split()

    @cached_property
    def gold(self) -> dict[Cell, int]:
        """The bit of each piece of gold."""
        return {cell: 1 << k for k, cell in enumerate(self._find("G"))}

    def initial_state(self) -> State:
        """Return the cell of the start, and all the gold."""
        return self._find("B")[0], (1 << len(self.gold)) - 1

    def actions(self, state: State) -> list[str]:
        """Return the four moves; nothing once all gold is found."""
        return list(MOVES) if state[1] else []

    def outcomes(self, state: State, action: str) -> list[Outcome]:
        """Return where a move may come to rest."""
        cell, left = state
        outcomes = []
        safe, failures = self._moves[cell, action]
        for there, chance, label in safe:
            bit = left & self.gold.get(there, 0)
            outcomes.append(Outcome(chance, 1.0 if bit else 0.0, (there, left ^ bit), label))
        return outcomes + failures

    def reward_to_go_bound(self, state: State, step: int) -> float:
        """Return the gold that is left, one piece a step."""
        return float(min(state[1].bit_count(), self.horizon - step))

    def subgoals(self, state: State) -> tuple[Cell, list[Cell]]:
        """Return the cell, and the cells with gold that is left."""
        cell, left = state
        return cell, [there for there, bit in self.gold.items() if left & bit]

    def page_map(self) -> PageMap:
        return PageMap.from_lines(self.rows)

    def page_position(self, state: State) -> Position:
        (row, column), _ = state
        return column, len(self.rows) - 1 - row

    @cached_property
    def _moves(self) -> dict[tuple[Cell, str], tuple[list[tuple[Cell, float, str]], list[Outcome]]]:
        """For each cell and move: safe ends (cell, probability, label), and how it may fail."""
        moves = {}
        for cell in self._find(".TGB"):
            for action in MOVES:
                safe, failures = [], []
                for there, chance in self._rest(cell, action).items():
                    label = f"{there[0]},{there[1]}"
                    trapped = there != cell and self.rows[there[0]][there[1]] == "T"
                    risk = self.trap if trapped else 0.0
                    if risk < 1:
                        safe.append((there, chance * (1 - risk), label))
                    if risk:
                        failures.append(Outcome.failure(chance * risk, 0.0, f"trapped at {label}"))
                moves[cell, action] = (safe, failures)
        return moves

    def _rest(self, cell: Cell, action: str) -> dict[Cell, float]:
        """Return how probable it is that a move comes to rest in a cell."""
        down, right = MOVES[action]
        there = move(self.rows, cell, (down, right))
        if there == cell:
            return {cell: 1.0}
        rests = {there: 1 - self.slide}
        for side in ((right, down), (-right, -down)):
            aside = move(self.rows, there, side)
            rests[aside] = rests.get(aside, 0.0) + self.slide / 2
        return {there: chance for there, chance in rests.items() if chance}

    def _find(self, marks: str) -> list[Cell]:
        """Return the cells with one of some marks, row by row."""
        return [
            (row, column)
            for row, line in enumerate(self.rows)
            for column, mark in enumerate(line)
            if mark in marks
        ]
