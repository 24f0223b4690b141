"""Large graphs with `Lagrangian`: what is proved, the seconds of each part, and the memory.

Seconds are shown beside those of one dynamic program over the same pairs, measured in the same
process: a search takes some twenty of them, and writing the policy out and certifying it as long
again. Two threads are measured beside one, by the clock on the wall: the processor's would not show
what they are for. Run with `make bench`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import vulcan
from benchmarks.large import LARGE, make_arrays
from vulcan.graphs.array_graph import open_graph
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.fronts import load_kernels
from vulcan.solvers.layered import coins
from vulcan.solvers.layered.pareto import FrontRun
from vulcan.solvers.layered.run import LayeredRun

ROOT = Path(__file__).parents[1]
MEGABYTES = {"arrays 300 x 300, 300 steps": 6000, "consensus (4, 2), 1,500 steps": 500}
MOST_PROGRAMS = 400
"""How many dynamic programs over the same pairs a whole solve may take."""

REPEATS = 5
LEAST_SPEED = 1.5
"""Of two threads relative to one, on a machine that has nothing else to do."""


@pytest.mark.parametrize("name", LARGE)
def test_a_large_graph(name: str) -> None:
    command = [sys.executable, "-m", "benchmarks.large", name]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    gap = (found["upper"] - found["reward"]) / abs(found["upper"])
    solve = found["search"] + found["certificate"]
    print(
        f"\n{name}: {found['pairs']:,} pairs, {found['decisions']:,} decisions, gap {gap:.2e}, "
        f"unrolled in {found['asking']:.1f} s, one program {found['program']:.2f} s, "
        f"search and policy {found['search']:.1f} s, certificate {found['certificate']:.1f} s "
        f"({1e6 * found['certificate'] / found['decisions']:.2f} µs a decision), "
        f"{found['megabytes']:,.0f} MB"
    )
    assert found["safe"]
    assert gap <= 1e-3
    assert found["megabytes"] <= MEGABYTES.get(name, 4000)
    assert solve <= MOST_PROGRAMS * found["program"] + 1


def open_runs(size: int, horizon: int) -> list[LayeredRun]:
    """Return runs with one and with two threads over the same levels."""
    problem = vulcan.Problem(make_arrays(size, horizon), vulcan.Constant(0.2))
    reader = ModelReader(problem.model)
    graph, monitor = open_graph(reader), Monitor(Limits())
    runs = [LayeredRun(problem, reader, monitor, None, graph, threads) for threads in (1, 2)]
    assert runs[0].unroll()
    runs[1].use(runs[0].levels)
    return runs


def prepare_programs(runs: list[LayeredRun]) -> list[Callable[[], Any]]:
    return [partial(run.sweeps.find_best, 1.0, 1.0) for run in runs]


def prepare_thin_fronts(runs: list[LayeredRun]) -> list[Callable[[], Any]]:
    coins.load_kernels()
    dual = runs[0].find_relaxed()
    ways = runs[0].sweeps.follow_weights(1.0, dual.multiplier)
    values = ways.rewards - dual.multiplier * ways.risks
    given = (
        runs[0].levels.arrays,
        runs[0].referee,
        dual.multiplier,
        values,
        (0, dual.upper_bound),
    )
    slack = 0.01 * dual.upper_bound
    return [partial(coins.Coins(*given, team=run.team).search, slack, 4) for run in runs]


def prepare_fronts(runs: list[LayeredRun]) -> list[Callable[[], Any]]:
    load_kernels()
    dual = runs[0].find_relaxed()
    fronts = [FrontRun(run, dual, None) for run in runs]
    slack = 1e-4 * dual.upper_bound
    return [partial(one.compute, slack, 16) for one in fronts]


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="two threads need two cores")
@pytest.mark.parametrize(
    ("name", "prepare", "size", "horizon"),
    [
        ("dynamic program", prepare_programs, 300, 300),
        ("thin fronts", prepare_thin_fronts, 100, 200),
        ("fronts", prepare_fronts, 24, 60),
    ],
)
def test_two_threads(name: str, prepare: Any, size: int, horizon: int, report: Any) -> None:
    runs = open_runs(size, horizon)
    one, two = prepare(runs)
    one(), two()  # arrays get their memory
    ratios, seconds = [], []
    for _ in range(REPEATS):
        times = [time.perf_counter()]
        for work in (one, two):
            work()
            times.append(time.perf_counter())
        seconds.append(times[1] - times[0])
        ratios.append(seconds[-1] / (times[2] - times[1]))
    report(
        f"{name} over {len(runs[0].levels):,} pairs: speed of two threads over one",
        f"{median(ratios):.2f}  ({median(seconds):.2f} s with one)",
    )
    assert median(ratios) >= LEAST_SPEED
