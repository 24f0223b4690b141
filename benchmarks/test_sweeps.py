"""Sweeps on two workers against one, and what Ray adds to pieces of a second.

Wall time: for an idle machine with two cores. The one worker is the plain call, in a process that
has loaded everything; the two are processes that are started for the sweep, and that counts.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import vulcan
from vulcan import LocalVulcan, Problem, Vulcan
from vulcan.domains import Bandit, Exploration
from vulcan.planning.frontier import Span
from vulcan.solvers import SequenceConstraint

PROBLEM = Problem(Bandit(12), vulcan.Linear(0.002))
SAMPLES = 100_000
ENOUGH = 1.8
MOST_OVERHEAD = 0.10
PIECES = 30


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Load or compile what the sweeps use, here and for workers."""
    small = Problem(Bandit(3), vulcan.Linear(0.002))
    for solver in (LocalVulcan(), Vulcan(), vulcan.baselines.UCT()):
        vulcan.solve(small, solver, samples=20)
    vulcan.trace_frontier(small.model, solver=Vulcan(), samples=20, points=3)


@pytest.fixture
def ray() -> Iterator[vulcan.parallel.Ray]:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    yield vulcan.parallel.Ray(workers=1)
    sys.modules["ray"].shutdown()


def measure(sweep: Callable[..., Any], **options: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    found = sweep(**options)
    return time.perf_counter() - began, found


def require_twice(
    name: str, sweep: Callable[..., Any], describe: Callable[[Any], Any], report: Any
) -> None:
    """Require that two workers find the same, almost twice as fast."""
    alone, found = measure(sweep)
    shared, same = measure(sweep, parallel=2)
    assert describe(found) == describe(same)
    report(f"{name}: one worker, two", f"{alone:.1f} s, {shared:.1f} s: {alone / shared:.2f} times")
    assert alone / shared >= ENOUGH


def test_comparison(report: Any) -> None:
    solvers = {
        f"{name} {exploration}": kind
        for exploration in (0.05, 0.1, 0.2, 0.4)
        for name, kind in (
            ("A", LocalVulcan(exploration, SequenceConstraint())),
            ("B", LocalVulcan(exploration)),
            ("Vulcan", Vulcan(exploration)),
            ("UCT", vulcan.baselines.UCT(exploration)),
        )
    }
    require_twice(
        f"comparison of {len(solvers)} solvers",
        lambda **options: vulcan.compare(
            PROBLEM, solvers, limits=vulcan.Limits(), samples=2 * SAMPLES, **options
        ),
        lambda compared: [(row.reward, row.upper_bound) for row in compared],
        report,
    )


def test_frontier(report: Any) -> None:
    mission = Exploration(horizon=6)
    require_twice(
        "frontier of a mission, 21 points that are placed one after the other",
        lambda **options: vulcan.trace_frontier(
            mission, solver=Vulcan(), samples=3 * SAMPLES, levels=Span(), points=21, **options
        ),
        lambda traced: [(point.at, point.reward, point.upper_bound) for point in traced],
        report,
    )


def test_one_worker_of_ray(report: Any, ray: vulcan.parallel.Ray) -> None:
    solvers = {f"{number}": LocalVulcan(0.1 + 0.001 * number) for number in range(PIECES)}
    options = {"problem": PROBLEM, "solvers": solvers, "samples": SAMPLES, "upper_bound": False}
    options["limits"] = vulcan.Limits()
    alone, found = measure(vulcan.compare, **options)
    there, same = measure(vulcan.compare, parallel=ray, **options)
    assert [row.reward for row in same] == [row.reward for row in found]
    text = f"{alone:.1f} s, {there:.1f} s: {100 * (there / alone - 1):.1f} % more"
    report(f"{PIECES} pieces of {alone / PIECES:.1f} s here, and by one worker of Ray", text)
    assert there / alone - 1 <= MOST_OVERHEAD
