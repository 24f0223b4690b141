"""How much memory a search takes that may take so much, as the system counts it.

Each search has a process of its own, which solves a small problem of the same kind first: what that
took is what is needed to start. Then it solves a problem that is larger than any limit here.

    python -m benchmarks.memory_limits SOLVER MODEL MEGABYTES
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import vulcan
from vulcan import Outcome
from vulcan.domains import Bandit, Exploration
from vulcan.solvers.base import load_solvers

TIME_LIMIT = 20.0
"""Seconds after which a search that does not come to its limit of memory is ended."""

FAT = 5000
"""Bytes of a fat state."""


@dataclass
class Drift:
    """A walk on the line in ever longer steps: states merge, and there is no end of them."""

    horizon: int
    fat: bool = False
    merges: bool = True

    def initial_state(self) -> Any:
        return self._place(0)

    def actions(self, state: Any) -> list[str]:
        return ["near", "far", "wide"]

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        here = state[0]
        steps = {"near": (1, 2, 3), "far": (5, 8, 13), "wide": (21, 34, 55)}[action]
        risk = {"near": 0.0001, "far": 0.0005, "wide": 0.002}[action]
        safe = (1 - risk) / len(steps)
        moved = [Outcome(safe, 0.01 * s, self._place(3 * here % 1_000_003 + s)) for s in steps]
        return [*moved, Outcome.failure(risk)]

    def _place(self, here: int) -> Any:
        return (here, here.to_bytes(8, "big") * (FAT // 8)) if self.fat else (here, f"at {here}")


@dataclass
class Diary:
    """Every history is a state, which has all its days."""

    horizon: int
    merges: bool = False

    def initial_state(self) -> Any:
        return ()

    def actions(self, state: Any) -> list[str]:
        return ["rest", "work"]

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        risk = 0.001 * (action == "work")
        earned = 1.0 * (action == "work")
        chance = (1 - risk) / 3
        days = [(*state, (len(state), action, k)) for k in range(3)]
        return [*(Outcome(chance, earned, day) for day in days), Outcome.failure(risk)]


MODELS: dict[str, Callable[[int], Any]] = {
    "merged": Drift,
    "merged, fat": lambda horizon: Drift(horizon, fat=True),
    "unmerged": Diary,
    "unmerged, fat": lambda horizon: Drift(horizon, fat=True, merges=False),
    "compiled": lambda horizon: Bandit(horizon, merges=False),
    "mission": lambda horizon: Exploration(horizon=horizon),
}

HORIZONS = {"mission": (3, 9), "compiled": (4, 25)}
"""Of the small problem and of the large one."""


@dataclass
class Measured:
    """What a search took.

    Attributes
    ----------
    start, peak
        Bytes in memory before it, and the most while it ran.
    counted
        What it counted itself.
    decisions
        Of the policy, which is certified when the search is over.
    stopped_by, safe
        How it ended.
    """

    start: int
    peak: int
    counted: int
    decisions: int
    stopped_by: str | None
    safe: bool


def measure(solver: str, model: str, memory: int) -> Measured:
    """Measure a search in a process of its own."""
    command = [sys.executable, "-m", __spec__.name, solver, model, str(memory)]
    home = Path(__file__).parents[1]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=home)
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def list_solvers() -> dict[str, Any]:
    """Return the solvers that have a limit of memory, by their names."""
    return {name: kind for name, kind in load_solvers().items() if "memory" in kind.limits}


def _solve(solver: Any, model: Any, **limits: Any) -> vulcan.Result:
    problem = vulcan.Problem(model, vulcan.Linear(0.01, 0.001))
    return vulcan.solve(problem, solver, **limits)


def _read(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


def main(solver: str, model: str, memory: int) -> None:
    """Solve a small problem, and then a large one, and print what that took."""
    kind, make = list_solvers()[solver](), MODELS[model]
    small, large = HORIZONS.get(model, (3, 40))
    _solve(kind, make(small))
    _solve(vulcan.Vulcan(), make(small), samples=1000)  # which the default solver may go on with
    start = _read("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    result = _solve(kind, make(large), limits=vulcan.Limits(memory=memory, time_limit=TIME_LIMIT))
    measured = Measured(
        start,
        _read("VmHWM"),
        result.statistics.memory,
        0 if result.policy is None else len(result.policy),
        None if result.stopped_by is None else str(result.stopped_by),
        result.safe,
    )
    print(json.dumps(vars(measured)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
