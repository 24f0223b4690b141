"""Vulcan against RAO*: horizon 10 with a constant bound of 0.0125, and a race over horizons.

Early policies of the algorithm as printed are incomplete, and what the search takes them to earn is
too much. Vulcan and forward search are run where every history is a state of its own, as in the
tree that Vulcan grows; RAO* where histories with the same counts are one state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from reproduction.paper import COMPLETE_LOSS, COMPLETE_SECONDS, RAO_STAR_SECONDS, RAO_STAR_SPEEDUP
from reproduction.part import Record, Section, Task, leave_open
from reproduction.parts.horizon_ten import HORIZON, Findings
from reproduction.parts.race import BOUND, Race
from reproduction.rao_star import compare_on_trees
from reproduction.runs import (
    CONSTRAINTS,
    VARIANTS,
    describe_run,
    estimate_seeds,
    list_seeds,
    load_kernels,
    run_seeds,
    solve_timed,
)
from vulcan.baselines.forward_search import ForwardSearch
from vulcan.baselines.rao_star import RAOStar
from vulcan.bounds.forms import Constant
from vulcan.domains import Bandit
from vulcan.exact.pipeline import Pareto
from vulcan.problem import Problem
from vulcan.solvers.base import Solver

__all__ = ["HeuristicSearch"]

EXACT: Final[dict[str, tuple[Solver, Constant, bool]]] = {
    "optimum": (Pareto(), BOUND, True),
    "RAO*": (RAOStar(), BOUND, True),
    "risk-neutral": (Pareto(), Constant(1.0), True),
    "A": (ForwardSearch(CONSTRAINTS["A"]), BOUND, False),
    "B": (ForwardSearch(CONSTRAINTS["B"]), BOUND, False),
}
"""Solver, bound, and whether histories merge."""

THOUSANDS: Final = (1, 10, 100, 500, 2000)
QUICK_THOUSANDS: Final = (1, 10, 100)
RUNS, QUICK_RUNS = 10, 5

REPEATS: Final = 3
"""Exact solvers are run so often, and the least time is taken."""

LONG: Final = {30_000_000: 3, 100_000_000: 1}
"""Samples with which the algorithm as printed ends with a complete policy: runs of each."""

SIZES: Final = ((2, 2), (4, 2), (2, 3), (4, 3))
"""Actions and depths of random trees."""

TREES, QUICK_TREES = 250, 20
"""Trees of each size."""


class HeuristicSearch:
    """Vulcan against RAO*."""

    name = "rao-star"
    title = "Bandit: Vulcan against heuristic search"
    version = 6

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return tasks for exact solvers, for every ten runs with a budget, and for the race."""
        exact = ({"what": "exact", "solver": solver} for solver in EXACT)
        race = ({"what": "race", **task} for task in Race.list_tasks(quick))
        seeds = list_seeds(QUICK_THOUSANDS, QUICK_RUNS) if quick else list_seeds(THOUSANDS, RUNS)
        long = [
            {"variant": variant, "samples": samples, "first": first, "runs": 1}
            for variant in ("printed", "tuned")
            for samples, runs in LONG.items()
            for first in range(0 if quick else runs)
        ]
        trees = [
            {"what": "trees", "actions": actions, "depth": depth, "trees": count}
            for actions, depth in SIZES
            for count in [QUICK_TREES if quick else TREES]
        ]
        runs = ({"what": "runs", **task} for task in (*seeds, *long))
        return [*exact, *race, *trees, *runs]

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes."""
        if task["what"] == "exact":
            return 2.0
        if task["what"] == "race":
            return Race.estimate(task)
        if task["what"] == "trees":
            return 0.03 * float(task["trees"])
        return estimate_seeds(task)

    def run(self, task: Task) -> dict[str, Any]:
        """Solve exactly, run some seeds with one budget, or race to the final solution."""
        if task["what"] == "trees":
            return compare_on_trees(task["depth"], task["actions"], task["trees"])
        load_kernels(BOUND)
        if task["what"] == "race":
            return Race.run(task)
        if task["what"] == "exact":
            solver, bound, merges = EXACT[task["solver"]]
            problem = Problem(Bandit(HORIZON, merges=merges), bound)
            runs = [describe_run(*solve_timed(problem, solver)) for _ in range(REPEATS)]
            return min(runs, key=lambda run: float(run["seconds"]))
        problem = Problem(Bandit(HORIZON, merges=False), BOUND)
        return {"runs": run_seeds(problem, VARIANTS[task["variant"]], task)}

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        """Return the section."""
        found = Findings([record for record in records if record.task["what"] != "race"])
        race = Race([record for record in records if record.task["what"] == "race"])
        return Section(
            paper=(
                f"At horizon {HORIZON} RAO* takes {RAO_STAR_SECONDS:,} s. Vulcan overestimates at "
                f"first, always returns complete policies from {COMPLETE_SECONDS} s on, "
                f"{RAO_STAR_SPEEDUP} times faster, and these lose {COMPLETE_LOSS} % on average. Up "
                "to horizon 7 RAO* is about twice as fast, at 8 it is comparable, and at 9 Vulcan "
                "is about twice as fast."
            ),
            measured=found.describe(),
            meaning=" ".join((*found.judge(), *race.judge())),
            claims=leave_open((*found.list_claims(), *race.list_claims()), quick),
            tables=[
                table
                for table in (found.tabulate_last(), found.tabulate(), race.tabulate())
                if table.rows
            ],
            figures=[*found.list_figures(), *race.list_figures()],
            numbers=found.summarise() | race.summarise(),
        )
