"""Treasure maps with 540 · 2^50 states: what plans earn, with and without the model's subgoals.

    python -m benchmarks.large_maps [SECONDS [MAPS]]

Maps are those of the file that VULCAN_TREASURE_MAPS names (what follows a line "Map:"), or else
random ones of the same kind: 25 by 25 cells, 50 pieces of gold. Slide 0.2, trap 0.02, horizon 200,
bound 0.15. A line per map: reward and risk of the certificate, decisions, seconds of the processor.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

import vulcan
from benchmarks.test_treasure_maps import read_maps
from tests.helpers.treasure_maps import Plain, draw_map
from vulcan.domains import TreasureGrid


def main(seconds: float = 20.0, count: int = 8) -> None:
    path = os.environ.get("VULCAN_TREASURE_MAPS")
    maps = read_maps(Path(path)) if path else [draw_map(seed) for seed in range(count)]
    for kind in ("subgoals", "plain"):
        rewards = []
        for number, text in enumerate(maps[:count]):
            grid = TreasureGrid(200, 0.2, 0.02, text)
            problem = vulcan.Problem(grid if kind == "subgoals" else Plain(grid), 0.15)
            began = time.process_time()
            result = vulcan.solve(problem, time_limit=seconds)
            taken = time.process_time() - began
            found = result.certificate
            rewards.append(float(found.reward) if found is not None and result.safe else 0.0)
            size = 0 if result.policy is None else len(result.policy)
            risk = 0.0 if found is None else float(found.risk)
            print(f"{kind} {number}: {rewards[-1]:.2f} at {risk:.4f}, {size:,}, {taken:.1f} s")
        mean = statistics.mean(rewards)
        print(f"{kind}: least {min(rewards):.2f}, mean {mean:.2f}", flush=True)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]), *map(int, sys.argv[2:3]))
