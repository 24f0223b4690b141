"""Gold on a slippery grid with traps, after the maps that planners under risk are tried on.

Each step moves one cell north, east, south or west. A move into a wall, or over the edge of the
map, stays in its cell. Whoever left a cell may slide: with probability slide / 2 to either side of
the move, one cell further; a wall holds back, and the slide is not seen. Only the cell in which a
step comes to rest counts. Coming to rest in a trap, by moving or by sliding, fails with the
probability `trap`; waiting there, in front of a wall, does not. The gold of a cell pays 1, once.
The mission ends when no gold is left.

A map is a string with a character for each cell:

    .   free        #   wall        T   trap        G   gold        B   the start

A state is a cell and a bit mask of the gold that is left: the default map has 33 cells and 5 pieces
of gold, so at most 33 · 2^5 states. Rewards are few and each has its own risk. The best policies of
two prices of failure are therefore often far apart, and what lies between them for a deterministic
policy are the slides: coins that the world throws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from vulcan.errors import OptionError
from vulcan.model.interface import Outcome
from vulcan.pages.maps import PageMap, Position
from vulcan.parameters import require_number, require_whole
from vulcan.runtime.texts import read_text

__all__ = ["TreasureGrid", "load_map"]

MAP: Final = """
G.T.TG
.#TT..
.TB.#T
T..T.G
#.T.T.
GT.TTG
"""

MOVES: Final = {"north": (-1, 0), "east": (0, 1), "south": (1, 0), "west": (0, -1)}

Cell = tuple[int, int]
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
        The cells (see the head of this module), or the text file that has them; see `load_map`.
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
        assert self.rows  # a bad map is refused at once

    @cached_property
    def rows(self) -> list[str]:
        """The lines of the map."""
        text = self.map
        if set(text) - set(".#TGB\n\r\t ") and "\n" not in text:
            return load_map(text)
        rows = [line.strip() for line in text.strip().splitlines()]
        _check(rows)
        return rows

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
        for there, chance, label in self._moves[cell, action]:
            bit = left & self.gold.get(there, 0)
            outcomes.append(Outcome(chance, 1.0 if bit else 0.0, (there, left ^ bit), label))
        return outcomes + self._failures[cell, action]

    def reward_to_go_bound(self, state: State, step: int) -> float:
        """Return the gold that is left, one piece a step."""
        return float(min(state[1].bit_count(), self.horizon - step))

    def page_map(self) -> PageMap:
        """Return the map for pages."""
        return PageMap.from_lines(self.rows)

    def page_position(self, state: State) -> Position:
        """Return where on the map of a page a state is."""
        (row, column), _ = state
        return column, len(self.rows) - 1 - row

    @cached_property
    def _moves(self) -> dict[tuple[Cell, str], list[tuple[Cell, float, str]]]:
        """For each cell and move, where it comes to rest safely, how probably, and its label."""
        moves = {}
        for cell in self._find(".TGB"):
            for action in MOVES:
                rests = self._rest(cell, action)
                moves[cell, action] = [
                    (there, safe, f"{there[0]},{there[1]}")
                    for there, chance in rests.items()
                    if (safe := chance * (1 - self._risk(cell, there)))
                ]
        return moves

    @cached_property
    def _failures(self) -> dict[tuple[Cell, str], list[Outcome]]:
        """For each cell and move, how it may fail."""
        failures = {}
        for cell in self._find(".TGB"):
            for action in MOVES:
                rests = self._rest(cell, action)
                failures[cell, action] = [
                    Outcome.failure(chance * risk, 0.0, f"trapped at {there[0]},{there[1]}")
                    for there, chance in rests.items()
                    if (risk := self._risk(cell, there))
                ]
        return failures

    def _rest(self, cell: Cell, action: str) -> dict[Cell, float]:
        """Return how probable it is that a move comes to rest in a cell."""
        down, right = MOVES[action]
        there = self._after(cell, (down, right))
        if there == cell:
            return {cell: 1.0}
        rests = {there: 1 - self.slide}
        for side in ((right, down), (-right, -down)):
            aside = self._after(there, side)
            rests[aside] = rests.get(aside, 0.0) + self.slide / 2
        return {there: chance for there, chance in rests.items() if chance}

    def _after(self, cell: Cell, step: Cell) -> Cell:
        row, column = cell[0] + step[0], cell[1] + step[1]
        inside = 0 <= row < len(self.rows) and 0 <= column < len(self.rows[0])
        return (row, column) if inside and self.rows[row][column] != "#" else cell

    def _risk(self, cell: Cell, there: Cell) -> float:
        """Return how probable it is that coming to rest in a cell fails."""
        return self.trap if there != cell and self.rows[there[0]][there[1]] == "T" else 0.0

    def _find(self, marks: str) -> list[Cell]:
        """Return the cells with one of some marks, row by row."""
        return [
            (row, column)
            for row, line in enumerate(self.rows)
            for column, mark in enumerate(line)
            if mark in marks
        ]


def load_map(place: str) -> list[str]:
    """Return the lines of a map in a text file.

    The maps of a file are separated by empty lines; if it has lines `Map:`, they are what follows
    these, and everything else is passed over.

    Parameters
    ----------
    place
        The path, and of a file with several maps the number of one, from 1: `maps.txt:7`.

    Raises
    ------
    OptionError
        If there is no such map, or it is none; the message names the line.
    """
    path, colon, number = place.rpartition(":")
    if not colon or not number.isdecimal():
        path, number = place, ""
    lines = [line.strip() for line in read_text(path).splitlines()]
    maps = _split(lines)
    if not maps:
        raise OptionError(f"{path}: there is no map in it")
    if not number and len(maps) > 1:
        raise OptionError(f"{path}: has {len(maps)} maps; say which, as in {path}:1")
    if number and not 1 <= int(number) <= len(maps):
        raise OptionError(f"{place}: there is no such map; the file has 1 to {len(maps)}")
    first, rows = maps[int(number or 1) - 1]
    _check(rows, f"{path}, ", first)
    return rows


def _split(lines: Sequence[str]) -> list[tuple[int, list[str]]]:
    """Return the maps among lines, each with the number of its first line."""
    titled = "Map:" in lines
    maps: list[tuple[int, list[str]]] = []
    inside = False
    for number, line in enumerate(lines, 1):
        if line == "Map:" or not line:
            inside = False
        elif inside:
            maps[-1][1].append(line)
        elif not titled or lines[number - 2] == "Map:":
            maps.append((number, [line]))
            inside = True
    return maps


def _check(rows: Sequence[str], place: str = "", first: int = 1) -> None:
    """Refuse what is no map; say where it stands, and in which line it begins."""
    if not rows:
        raise OptionError(f"{place}a map must have at least one line")
    for number, row in enumerate(rows, first):
        for mark in row:
            if mark not in ".#TGB":
                raise OptionError(
                    f"{place}line {number}: {mark!r} is no cell of a map; cells are . (free), "
                    "# (wall), T (trap), G (gold) and B (start)"
                )
        if len(row) != len(rows[0]):
            raise OptionError(
                f"{place}line {number}: has {len(row)} cells where the first line of the map has "
                f"{len(rows[0])}; they must be of the same length"
            )
    if (starts := sum(row.count("B") for row in rows)) != 1:
        end = first + len(rows) - 1
        raise OptionError(f"{place}lines {first} to {end}: a map has one start, B, not {starts}")
