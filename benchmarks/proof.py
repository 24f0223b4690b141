"""How far the upper bound of the exploration mission falls, and in how many seconds.

`python -m benchmarks.proof` proves the narrow mission of nine moves under Δ: what a randomised
policy can earn at most, then what a deterministic one can, case by case. Another map, horizon,
first price, bound, device and limit of seconds can be given: `python -m benchmarks.proof wide 9 3
Δ/2 cuda 60`.
"""

from __future__ import annotations

import sys
import time
from typing import Final

from benchmarks.exploration_table import Setting
from benchmarks.spend_risk import find_problem
from vulcan.model.reader import ModelReader
from vulcan.sampling.proof import Proof

MEMORY: Final = 1 << 30
PRINTED: Final = 1.3  # the ratio of the times of two lines
HISTORIES: Final = 1000  # opened at a time


def main(
    area: str = "narrow",
    horizon: str = "9",
    price: str = "27",
    bound: str = "Δ",
    device: str = "cpu",
    limit: str = "180",
) -> None:
    """Print the bound as it falls."""
    width = 0.16 if area == "wide" else None
    problem = find_problem(Setting(area, width, int(horizon), bound))
    proof = Proof(problem, ModelReader(problem.model), MEMORY, device=device)
    if device == "cpu":
        proof.improve(float(price), 1)  # loads or compiles
    else:
        warm_up(problem.model)
    began, clock, due, opened = time.process_time(), time.perf_counter(), 0.0, 0
    print(f"{area}, {horizon} moves, {bound}, {device}")
    print("| seconds | of the processor | work | no policy earns more than | prices | cases | MB |")
    while True:
        seconds = time.perf_counter() - clock
        ended = seconds > float(limit) or proof.full or proof.opened == opened > 0
        if seconds > due or ended:
            counts = f"{len(proof._trees)} | {len(proof._cases)} | {proof.memory / 1e6:.0f}"
            core = time.process_time() - began
            row = f"{seconds:.1f} | {core:.1f} | {proof.opened:,} | {proof.upper:.5f} | {counts}"
            print(f"| {row} |", flush=True)
            due = PRINTED * seconds
        if ended:
            break
        opened = proof.opened
        proof.improve(float(price), HISTORIES)


def warm_up(model: object) -> None:
    """Load the kernels of the processor."""
    from vulcan import Problem

    proof = Proof(Problem(model, "0.01*x"), ModelReader(model), MEMORY)
    proof.improve(27.0, 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
