"""How far the upper bound of the exploration mission falls, and in how many processor seconds.

`python -m benchmarks.proof` proves the narrow mission of nine moves under Δ: what a randomised
policy can earn at most, then what a deterministic one can, case by case. Another map, horizon and
first price can be given: `python -m benchmarks.proof wide 9 3`.
"""

from __future__ import annotations

import sys
import time
from typing import Final

from benchmarks.exploration_table import Setting
from benchmarks.spend_risk import find_problem
from vulcan.model.reader import ModelReader
from vulcan.sampling.proof import Proof

SECONDS: Final = 180.0  # of the processor
MEMORY: Final = 1 << 30
PRINTED: Final = 1.3  # the ratio of the times of two lines
HISTORIES: Final = 1000  # opened at a time


def main(area: str = "narrow", horizon: str = "9", price: str = "27") -> None:
    """Print the bound as it falls."""
    problem = find_problem(Setting(area, None, int(horizon), "Δ"))
    proof = Proof(problem, ModelReader(problem.model), MEMORY)
    proof.improve(float(price), 1)  # loads or compiles
    began, due, opened = time.process_time(), 0.0, 0
    print("| processor seconds | histories opened | no policy earns more than | MB |")
    while True:
        seconds = time.process_time() - began
        ended = seconds > SECONDS or proof.full or proof.opened == opened
        if seconds > due or ended:
            row = f"{seconds:.1f} | {proof.opened:,} | {proof.upper:.5f} | {proof.memory / 1e6:.0f}"
            print(f"| {row} |", flush=True)
            due = PRINTED * seconds
        if ended:
            break
        opened = proof.opened
        proof.improve(float(price), HISTORIES)


if __name__ == "__main__":
    main(*sys.argv[1:])
