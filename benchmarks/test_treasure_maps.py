"""Treasure maps by default: how close policies are proved to be to the best, and how soon.

The maps are those of the file that VULCAN_TREASURE_MAPS names (what follows a line "Map:"), or else
64 maps of the same kind: 6 by 6 cells, 5 pieces of gold, and shares of walls and traps that
go through four values each. Where every first step is too risky, no deterministic policy earns
anything, and that is proved. Run with `make bench`.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

import vulcan
from vulcan.domains import TreasureGrid

BOUND = vulcan.Constant(0.15)
SIZE, GOLD, COPIES = 6, 5, 4
WALLS = (0.1, 0.15, 0.25, 0.35)
FREE = (0.5, 0.7, 0.8, 0.9)


def read_maps(path: Path) -> list[str]:
    """Return the maps of a file."""
    blocks = path.read_text().split("Map:\n")[1:]
    return [block.split("\n\n")[0].strip() for block in blocks]


def make_maps(seed: int = 0) -> Iterator[str]:
    """Yield maps on which all gold can be come to, and the start is not hopeless."""
    random = Random(seed)
    for walls, free, _ in product(WALLS, FREE, range(COPIES)):
        traps = 1.05 - 0.45 * free - 0.5 * walls
        text = _draw(random, walls, traps)
        while not _connects(text) or not _may_begin(text):
            text = _draw(random, walls, traps)
        yield text


def _draw(random: Random, walls: float, traps: float) -> str:
    marks = [
        "#" if random.random() < walls else "T" if random.random() < traps else "."
        for _ in range(SIZE * SIZE)
    ]
    for place, mark in zip(
        random.sample(range(SIZE * SIZE), GOLD + 1), "B" + GOLD * "G", strict=True
    ):
        marks[place] = mark
    rows = ("".join(marks[k : k + SIZE]) for k in range(0, SIZE * SIZE, SIZE))
    return "\n".join(rows)


def _may_begin(text: str) -> bool:
    """Whether a wall or the edge is beside the start, to wait there, and a cell without a trap."""
    grid = TreasureGrid(map=text)
    start = grid.initial_state()
    moves = [grid.outcomes(start, move)[0].state for move in grid.actions(start)]
    rows = text.splitlines()
    free = any(rows[r][c] != "T" for (r, c), _ in moves if (r, c) != start[0])
    return free and start in moves


def _connects(text: str) -> bool:
    """Whether all gold can be come to from the start."""
    cells = {
        (r, c): mark
        for r, row in enumerate(text.splitlines())
        for c, mark in enumerate(row)
        if mark != "#"
    }
    pending = [cell for cell, mark in cells.items() if mark == "B"]
    reached = set(pending)
    while pending:
        r, c = pending.pop()
        beside = {(r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)} & cells.keys() - reached
        reached |= beside
        pending += beside
    return all(cell in reached for cell, mark in cells.items() if mark == "G")


@pytest.fixture(scope="module")
def maps() -> list[str]:
    path = os.environ.get("VULCAN_TREASURE_MAPS")
    return read_maps(Path(path)) if path else list(make_maps())


@pytest.mark.parametrize("horizon", [50, 100])
def test_deterministic_policies_come_close(horizon: int, maps: list[str], report: Any) -> None:
    vulcan.solve(vulcan.Problem(TreasureGrid(5, map=maps[0]), BOUND))
    gaps, randomised, seconds = [], [], []
    for text in maps:
        problem = vulcan.Problem(TreasureGrid(horizon, map=text), BOUND)
        began = time.process_time()
        result = vulcan.solve(problem)
        seconds.append(time.process_time() - began)
        assert result.safe
        assert result.certificate.complete
        gaps.append(result.gap)
        randomised.append(vulcan.solve(problem, vulcan.Automatic(randomised=True)).gap)
    name = f"treasure, {len(maps)} maps, horizon {horizon}"
    far = sum(gap > 0.15 for gap in gaps)
    mean, middle = statistics.mean(gaps), statistics.median(gaps)
    report(
        f"{name}: gap in %, mean, median, worst (above 15 %)",
        f"{100 * mean:.2f}, {100 * middle:.3f}, {100 * max(gaps):.1f} ({far})",
    )
    report(
        f"{name}: seconds of the processor, median, longest",
        f"{statistics.median(seconds):.2f}, {max(seconds):.2f}",
    )
    report(f"{name}: worst gap in % of randomised policies", f"{100 * max(randomised):.1e}")
    assert middle <= 0.01
    assert max(randomised) <= 0.001
    if "VULCAN_TREASURE_MAPS" in os.environ:
        assert mean <= 0.03
