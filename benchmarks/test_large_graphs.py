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
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import vulcan
from benchmarks.large import LARGE, make_arrays
from vulcan.exact.search import ExactSearch
from vulcan.graph.states import open_graph
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits, Monitor

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
        f"unrolled in {found['unrolling']:.1f} s, one program {found['program']:.2f} s, "
        f"search and policy {found['search']:.1f} s, certificate {found['certificate']:.1f} s "
        f"({1e6 * found['certificate'] / found['decisions']:.2f} µs a decision), "
        f"{found['megabytes']:,.0f} MB"
    )
    assert found["safe"]
    assert gap <= 1e-3
    assert found["megabytes"] <= MEGABYTES.get(name, 4000)
    assert solve <= MOST_PROGRAMS * found["program"] + 1


def open_runs(size: int, horizon: int) -> list[ExactSearch]:
    """Return runs with one and with two threads over the same levels."""
    problem = vulcan.Problem(make_arrays(size, horizon), vulcan.Constant(0.2))
    reader = ModelReader(problem.model)
    graph, monitor = open_graph(reader), Monitor(Limits())
    runs = [ExactSearch(problem, reader, monitor, None, graph, threads) for threads in (1, 2)]
    assert runs[0].unroll()
    runs[1].use(runs[0].levels)
    return runs


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="two threads need two cores")
def test_two_threads(report: Any) -> None:
    runs = open_runs(300, 300)
    one, two = (partial(run.sweeps.find_best, 1.0, 1.0) for run in runs)
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
        f"dynamic program over {len(runs[0].levels):,} pairs: speed of two threads over one",
        f"{median(ratios):.2f}  ({median(seconds):.2f} s with one)",
    )
    assert median(ratios) >= LEAST_SPEED
