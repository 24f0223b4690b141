"""Models with few states and long horizons: far more histories than pairs of state and step."""

from __future__ import annotations

from dataclasses import dataclass

from vulcan import Outcome

MOVES = {"north": (0, -1), "east": (1, 0), "south": (0, 1), "west": (-1, 0)}

TRAPS = """\
#########
#B..T..G#
#.#.#.#.#
#..T..G.#
#.#..T..#
#G.T....#
#########"""
"""30 cells: `#` is a wall, `T` a trap, `G` gold, `B` the start."""

Cell = tuple[int, int]


@dataclass(frozen=True)
class Treasure:
    """Collect gold on a map, past traps; each piece once, and done when none is left.

    A move that changes the cell slides on by one more cell to either side, each with half of the
    probability `slide`. A cell with a trap fails with probability `trap`.
    """

    horizon: int
    text: str = TRAPS
    slide: float = 0.2
    trap: float = 0.2

    def initial_state(self) -> tuple[Cell, frozenset[Cell]]:
        return self._find("B")[0], frozenset(self._find("G"))

    def actions(self, state: tuple[Cell, frozenset[Cell]]) -> list[str]:
        return list(MOVES) if state[1] else []

    def outcomes(self, state: tuple[Cell, frozenset[Cell]], action: str) -> list[Outcome]:
        place, gold = state
        right, down = MOVES[action]
        there = self._move(place, right, down)
        ends = {there: 1.0}
        if there != place:
            ends = {there: 1.0 - self.slide}
            for side in (1, -1):
                end = self._move(there, side * down, side * right)
                ends[end] = ends.get(end, 0.0) + self.slide / 2
        outcomes = []
        for end, probability in ends.items():
            risk = self.trap if self._read(end) == "T" else 0.0
            reward = 1.0 if end in gold else 0.0
            outcomes.append(Outcome(probability * (1 - risk), reward, (end, gold - {end})))
            if risk:
                outcomes.append(Outcome.failure(probability * risk, label=f"trap at {end}"))
        return outcomes

    def _move(self, place: Cell, right: int, down: int) -> Cell:
        end = (place[0] + right, place[1] + down)
        return place if self._read(end) == "#" else end

    def _read(self, cell: Cell) -> str:
        return self.text.splitlines()[cell[1]][cell[0]]

    def _find(self, sign: str) -> list[Cell]:
        lines = self.text.splitlines()
        return [(x, y) for y, line in enumerate(lines) for x, c in enumerate(line) if c == sign]


WORST, MOST_DOSES = 4, 5


@dataclass(frozen=True)
class Treatment:
    """Treat a patient over some weeks: a state is how ill he is, and how many doses he had.

    Each week costs as much as he is ill. A dose helps more often than waiting, and does harm: the
    more doses there were, the more probable it is to be fatal. So is the illness where it is worst.
    """

    horizon: int = 12

    def initial_state(self) -> tuple[int, int]:
        return 2, 0

    def actions(self, state: tuple[int, int]) -> list[str]:
        severity, doses = state
        if severity == 0:
            return []
        return ["wait", "dose"] if doses < MOST_DOSES else ["wait"]

    def outcomes(self, state: tuple[int, int], action: str) -> list[Outcome]:
        severity, doses = state
        death = 0.002 * severity**2 + (0.004 * (1 + doses) if action == "dose" else 0.0)
        better = 0.6 if action == "dose" else 0.25
        after = doses + (action == "dose")
        reward = float(WORST - severity)
        ends = {severity - 1: better, severity: 0.3, min(WORST, severity + 1): 0.7 - better}
        if severity == WORST:
            ends = {severity - 1: better, severity: 1 - better}
        safe = [
            Outcome(p * (1 - death), reward, (end, after), label=str(end))
            for end, p in ends.items()
        ]
        return [*safe, Outcome.failure(death)]
