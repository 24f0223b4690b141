"""Random maps with treasure, in sizes that can't be unrolled."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import vulcan
from vulcan.domains import TreasureGrid


def draw_map(seed: int, size: int = 25, gold: int = 50, traps: float = 0.28) -> str:
    """Return a map on which all gold can be reached, with a tenth of its cells walls."""
    random = Random(seed)
    while True:
        rows = [
            ["#" if random.random() < 0.1 else "T" if random.random() < traps else "." for _ in row]
            for row in [range(size)] * size
        ]
        cells = [(r, c) for r in range(size) for c in range(size)]
        for place, mark in zip(random.sample(cells, gold + 1), "B" + "G" * gold, strict=True):
            rows[place[0]][place[1]] = mark
        text = "\n".join(map("".join, rows))
        if connects(text):
            return text


def connects(text: str) -> bool:
    """Return whether all gold can be reached from the start."""
    cells = {(r, c): mark for r, row in enumerate(text.split()) for c, mark in enumerate(row)}
    pending = [cell for cell, mark in cells.items() if mark == "B"]
    reached = set(pending)
    while pending:
        r, c = pending.pop()
        beside = {(r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)} - reached
        beside = {cell for cell in beside if cells.get(cell, "#") != "#"}
        reached |= beside
        pending += beside
    return all(cell in reached for cell, mark in cells.items() if mark == "G")


class Plain:
    """A treasure map without labels and without any optional method."""

    def __init__(self, grid: TreasureGrid) -> None:
        self._grid, self.horizon = grid, grid.horizon

    def initial_state(self) -> Any:
        return self._grid.initial_state()

    def actions(self, state: Any) -> list[str]:
        return self._grid.actions(state)

    def outcomes(self, state: Any, action: str) -> Iterator[vulcan.Outcome]:
        for outcome in self._grid.outcomes(state, action):
            yield vulcan.Outcome(outcome.probability, outcome.reward, outcome.state)
