"""What a certified digit costs: processor seconds until the proved gap is 10 %, 1 % and 0.1 %.

Each gap has a search of its own, from nothing, with a certificate in the end. A search that
has not proved its gap when its time is over says how far it came.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Final

import vulcan
from benchmarks.exploration_table import Setting
from benchmarks.spend_risk import find_problem
from vulcan.domains import Bandit

GAPS: Final = (0.1, 0.01, 0.001)
SECONDS: Final = 60.0


def list_problems() -> Mapping[str, tuple[vulcan.Problem, vulcan.solvers.Solver | None]]:
    """Return problems that merge, and that do not, with who solves them."""
    missions = {
        f"{area} map, {horizon} moves": (find_problem(Setting(area, None, horizon, "Δ")), None)
        for area, horizon in (("wide", 7), ("narrow", 7), ("narrow", 8), ("narrow", 9))
    }
    bandit = vulcan.Problem(Bandit(12), vulcan.Linear(0.002))
    return {
        "bandit, 12 steps, merged": (bandit, None),
        "bandit, 12 steps, by samples": (bandit, vulcan.Vulcan()),
        **missions,
    }


def measure(problem: vulcan.Problem, solver: vulcan.solvers.Solver | None, gap: float) -> str:
    """Return the processor seconds of one search, or how far it came."""
    began = time.process_time()
    found = vulcan.solve(problem, solver, gap=gap, time_limit=SECONDS)
    seconds = time.process_time() - began
    assert found.safe
    if found.gap is not None and found.gap <= gap:
        return f"{seconds:.2f}"
    return f"{seconds:.0f}, and no more than {found.gap:.2%}"


def main() -> None:
    """Print a row for each problem."""
    print("|", " | ".join(["processor seconds to a gap of", *(f"{gap:.1%}" for gap in GAPS)]), "|")
    for name, (problem, solver) in list_problems().items():
        vulcan.solve(problem, solver, samples=200)  # loads or compiles
        print("|", " | ".join([name, *(measure(problem, solver, gap) for gap in GAPS)]), "|")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
