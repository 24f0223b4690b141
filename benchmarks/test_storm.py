"""The best randomised policy: our search for the price of failure beside the model checker Storm.

Both get the same layered graph of the bandit and answer the same question. Times are of the search
alone; what building takes is reported beside them, and what our search for deterministic policies
adds, which Storm has none of. Storm is used as well as we know how: its sparse engine and sound
mode, costs scaled to the size of rewards (see `tests.oracles.storm`), and an allocator that keeps
its memory, without which it takes twice as long. Run with `make bench`; needs the extra `storm`.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest

import vulcan
from tests.oracles.storm import StormCheck, check_with_storm
from vulcan.domains import Bandit
from vulcan.exact.acceptance import BoundTest
from vulcan.exact.dual import Dual
from vulcan.exact.pipeline import LAGRANGIAN, narrow
from vulcan.exact.search import ExactSearch
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits, Monitor

HORIZON = 10
ROUNDS = 7
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
BEST = [
    (vulcan.Linear(0.002), 5.361827),
    (vulcan.Constant(0.0125), 5.434855),
    (vulcan.Constant(0.01), 5.300971),
]


@pytest.fixture(autouse=True)
def kept_memory() -> None:
    """Let glibc keep freed memory instead of returning it after each of Storm's refinements."""
    pytest.importorskip("stormpy")
    change = getattr(ctypes.CDLL(None), "mallopt", None)
    if change is not None:
        change(M_TRIM_THRESHOLD, 1 << 30)
        change(M_MMAP_THRESHOLD, 1 << 30)


def prepare(bound: vulcan.RiskBound) -> tuple[ExactSearch, float]:
    """Return a search whose graph is unrolled and whose kernels are compiled, and the seconds."""
    problem = vulcan.Problem(Bandit(HORIZON), bound)
    run = ExactSearch(problem, ModelReader(problem.model), Monitor(Limits()), vulcan.Lagrangian())
    began = time.perf_counter()
    assert run.unroll()
    return run, time.perf_counter() - began


def measure(search: Callable[[], Dual]) -> tuple[float, float]:
    """Search once; return the value and the seconds that it took."""
    began = time.perf_counter()
    dual = search()
    seconds = time.perf_counter() - began
    assert dual.best is not None
    return dual.best.reward, seconds


def search_all(run: ExactSearch) -> Dual:
    """Search for deterministic policies too, as if nothing was known yet."""
    run.best = None
    narrow(run, LAGRANGIAN)
    return run.dual


@pytest.mark.parametrize(("bound", "best"), BEST, ids=str)
def test_ratio_to_storm(bound: vulcan.RiskBound, best: float, report: Any) -> None:
    run, unrolling = prepare(bound)
    ours: list[tuple[float, float]] = []
    theirs: list[StormCheck] = []
    for _ in range(ROUNDS):
        theirs.append(check_with_storm(run.problem, run.layers))
        ours.append(measure(Dual(BoundTest(bound), run.sweep).search))
    value = ours[0][0]
    assert value == pytest.approx(best, abs=1e-6)
    assert all(check.value == pytest.approx(value, abs=1e-6) for check in theirs)
    seconds = statistics.median(seconds for _, seconds in ours)
    storm = statistics.median(check.check_seconds for check in theirs)
    building = statistics.median(check.build_seconds for check in theirs)
    whole = statistics.median(measure(lambda: search_all(run))[1] for _ in range(ROUNDS))
    name = f"bandit {HORIZON}, {bound}, best randomised policy"
    ratio = statistics.median(
        check.check_seconds / mine for check, (_, mine) in zip(theirs, ours, strict=True)
    )
    report(f"{name}: Storm / time", f"{ratio:.0f}")
    report(
        f"  value, Storm's value (median of {ROUNDS} alternating)",
        f"{value:.9f}, {theirs[0].value:.9f}",
    )
    report(
        "  milliseconds: search, deterministic too, Storm's query",
        f"{1000 * seconds:.2f}, {1000 * whole:.1f}, {1000 * storm:.1f}",
    )
    report(
        f"  milliseconds: unrolling, Storm's model of that ({theirs[0].states:,} states)",
        f"{1000 * unrolling:.0f}, {1000 * building:.1f}",
    )
    assert ratio >= 1
