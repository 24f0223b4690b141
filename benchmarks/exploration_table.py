"""What Vulcan, constraints A and B, and a plan without regard to risk earn on missions.

    make missions

Every run is completed and certified. The table has means and standard deviations over the seeds.
Runs end after a number of samples and not after a time, so that they can be repeated exactly.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev

os.environ.setdefault("OMP_NUM_THREADS", "1")

import vulcan
from vulcan.domains.exploration import Exploration, Map, Obstacle
from vulcan.parallel.executors import Channel
from vulcan.parallel.pool import WorkerPool

PAPER = "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)"
BOUNDS = {"Δ/2": f"0.5 * {PAPER}", "Δ": PAPER, "2Δ": f"2 * {PAPER}"}
NEUTRAL = "risk-neutral"
SOLVERS = {
    "A": vulcan.LocalVulcan(0.1, vulcan.solvers.SequenceConstraint()),
    "B": vulcan.LocalVulcan(0.1, vulcan.solvers.SurvivalConstraint()),
    "Vulcan": vulcan.Vulcan(),
    NEUTRAL: vulcan.baselines.UCT(0.1),
}
TABLE = re.compile(r"(<!-- missions -->\n).*?(<!-- end of missions -->)", re.DOTALL)


@dataclass(frozen=True)
class Setting:
    """A mission and a bound."""

    area: str
    half_width: float | None
    horizon: int
    bound: str

    def mission(self) -> Exploration:
        """Return the mission."""
        if self.half_width is None:
            return Exploration(map=self.area, horizon=self.horizon)
        low, high = 5 - self.half_width, 5 + self.half_width
        walls = (Obstacle.rectangle(4.3, 5.7, -1, low), Obstacle.rectangle(4.3, 5.7, high, 11))
        return Exploration(map=Map(11, 11, (2, 4), walls), horizon=self.horizon)

    def describe(self) -> str:
        """Return the first columns of the table."""
        width = "0.14 and 0.16" if self.half_width is None else f"{self.half_width:.2f}"
        return f"{self.area} | {width} | {self.horizon} | {self.bound}"


SETTINGS = [
    *(Setting("narrow", None, 9, bound) for bound in BOUNDS),
    *(Setting("narrow", None, horizon, "Δ") for horizon in (7, 5)),
    *(Setting("wide", half_width, 9, "Δ") for half_width in (0.14, 0.16, 0.18)),
]


@dataclass(frozen=True)
class Run:
    """One search; what it found."""

    setting: Setting
    solver: str
    reward: float
    risk: float
    allowed: float
    safe: bool


def search(task: tuple[Setting, str, int, int]) -> Run:
    """Run one search."""
    setting, solver, samples, seed = task
    problem = vulcan.Problem(setting.mission(), vulcan.parse(BOUNDS[setting.bound]))
    result = vulcan.solve(problem, SOLVERS[solver], samples=samples, seed=seed)
    found = result.certificate
    numbers = (float(found.reward), float(found.risk), float(found.allowed))
    return Run(setting, solver, *numbers, found.safe)


class Searcher:
    """What a worker holds: nothing but the way to search."""

    def __init__(self, channel: Channel) -> None:
        pass

    def search(self, task: tuple[Setting, str, int, int]) -> Run:
        """Run one search."""
        return search(task)


def judge_by(run: Run, bound: str) -> Run:
    """Return the same run, without regard to risk, as another bound judges it."""
    allowed = vulcan.parse(BOUNDS[bound])(run.reward)
    setting = replace(run.setting, bound=bound)
    return replace(run, setting=setting, allowed=allowed, safe=run.risk <= allowed)


def show_table(runs: list[Run]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| map | half gap | moves | bound | planner | reward | risk | allowed | safe |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for setting in SETTINGS:
        for solver in SOLVERS:
            own = [run for run in runs if run.setting == setting and run.solver == solver]
            if not own:
                continue
            safe = f"{sum(run.safe for run in own)} of {len(own)}"
            numbers = (
                spread([run.reward for run in own], 2),
                spread([run.risk for run in own], 4),
                spread([run.allowed for run in own], 4),
            )
            yield f"| {setting.describe()} | {solver} | {' | '.join(numbers)} | {safe} |"


def spread(values: list[float], digits: int) -> str:
    """Return mean and standard deviation."""
    deviation = stdev(values) if len(values) > 1 else 0.0
    return f"{fmean(values):.{digits}f} ± {deviation:.{digits}f}"


def main() -> None:
    """Run everything and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--samples", type=int, default=65536)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--page", type=Path, help="page that has such a table between its marks")
    options = parser.parse_args()
    tasks = [
        (setting, solver, options.samples, seed)
        for setting in SETTINGS
        for solver in SOLVERS
        for seed in range(options.seeds)
        if solver != NEUTRAL or setting.bound == "Δ"
    ]
    search((SETTINGS[0], "B", 1, 0))  # compiles, once for all workers
    began = time.perf_counter()
    with WorkerPool(vulcan.parallel.Processes(options.workers), Searcher) as pool:
        calls = [pool.submit("search", task) for task in tasks]
        for done, _ in enumerate(pool.run(), start=1):
            left = (time.perf_counter() - began) / done * (len(tasks) - done)
            print(f"\r{done} of {len(tasks)}, about {left / 60:.0f} min left", end="")
            sys.stdout.flush()
    print()
    runs = [call.result() for call in calls]
    neutral = [run for run in runs if run.solver == NEUTRAL and run.setting == SETTINGS[1]]
    runs += [judge_by(run, bound) for bound in BOUNDS if bound != "Δ" for run in neutral]
    text = "\n".join(show_table(runs)) + "\n"
    print(text)
    if options.page is not None:
        page = options.page.read_text(encoding="utf-8")
        page = TABLE.sub(lambda found: found[1] + text + found[2], page)
        options.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
