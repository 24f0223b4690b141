"""Forward search beside C++ written for the bandit alone, and beside plain Python.

The bandit is an ordinary Python class. Times are of the search alone, on a graph that is already
known; what evaluating the model adds is reported beside them. Run with `make bench`.
"""

from __future__ import annotations

import math
import os
import resource
import statistics
import subprocess
import sys
import time
from typing import Any

import pytest

import vulcan
from vulcan.baselines.forward_search import ForwardSearchRun
from vulcan.domains import Bandit
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits, Monitor

UNDER_A = vulcan.solvers.SequenceConstraint()
BOUND = vulcan.Linear(0.002)


def prepare(horizon: int, constraint: Any, bound: vulcan.RiskBound = BOUND) -> ForwardSearchRun:
    """Return a search whose graph is known and whose kernels are compiled."""
    problem = vulcan.Problem(Bandit(horizon), bound)
    solver = vulcan.ForwardSearch(constraint, cut_short=False)
    run = ForwardSearchRun(problem, ModelReader(problem.model), solver)
    assert run.advance(Monitor(Limits()))
    return run


def measure(run: ForwardSearchRun) -> float:
    """Search again, and return the seconds that it took."""
    run.restart()
    began = time.perf_counter()
    assert run.advance(Monitor(Limits()))
    return time.perf_counter() - began


@pytest.mark.parametrize("constraint", [UNDER_A, vulcan.solvers.SurvivalConstraint()])
def test_ratio_to_the_yardstick(constraint: Any, yardstick: Any, report: Any) -> None:
    run = prepare(9, constraint)
    ratios = []
    for _ in range(9):
        words = yardstick("forward_search", 9)
        assert int(words[2]) == 12_093_235
        ratios.append(measure(run) / float(words[3]))
    assert run.histories == 12_093_235
    if constraint == UNDER_A:
        assert run.reward == pytest.approx(float(words[1]), abs=1e-6)
    ratio = statistics.median(ratios)
    name = f"forward search, bandit 9, constraint {constraint.letter}"
    report(f"{name}: time / C++ (median of 9 alternating)", f"{ratio:.2f}")
    assert ratio <= 1.5


def test_ratio_to_plain_python(report: Any) -> None:
    horizon = 6
    run = prepare(horizon, UNDER_A)
    fast = min(measure(run) for _ in range(5))
    plain = PlainSearch(Bandit(horizon), BOUND)
    plain.search(plain.root, 0, 1.0, 0.0)
    began = time.perf_counter()
    value = plain.search(plain.root, 0, 1.0, 0.0)
    slow = time.perf_counter() - began
    assert value == pytest.approx(run.reward, abs=1e-12)
    report("forward search, bandit 6: plain Python on a known graph / time", f"{slow / fast:.0f}")
    assert slow / fast > 30


class PlainSearch:
    """Algorithm 1 in plain Python; each (state, action) is evaluated once."""

    def __init__(self, model: Bandit, bound: vulcan.RiskBound) -> None:
        self.horizon = model.horizon
        self.bound = bound
        self.root = model.initial_state()
        self.model = model
        self.known: dict[Any, list[tuple[float, float, list[tuple[float, Any]]]]] = {}

    def expand(self, state: Any) -> list[tuple[float, float, list[tuple[float, Any]]]]:
        rows = []
        for action in self.model.actions(state):
            outcomes = self.model.outcomes(state, action)
            mean = sum(o.probability * o.reward for o in outcomes)
            risk = sum(o.probability for o in outcomes if o.fails)
            rows.append(
                (mean, 1 - risk, [(o.probability, o.state) for o in outcomes if not o.fails])
            )
        self.known[state] = rows
        return rows

    def search(self, state: Any, step: int, survival: float, credit: float) -> float:
        rows = () if step == self.horizon else self.known.get(state)
        if rows is None:
            rows = self.expand(state)
        if not rows:
            admitted = (1 - survival) / survival <= self.bound(credit) + 1e-12
            return 0.0 if admitted else -math.inf
        best = -math.inf
        for mean, safe, outcomes in rows:
            value = mean
            for probability, following in outcomes:
                value += probability * self.search(
                    following, step + 1, survival * safe, credit + mean
                )
            best = max(best, value)
        return best


def test_cost_of_evaluating_the_model(report: Any) -> None:
    run = prepare(9, UNDER_A)
    alone = min(measure(run) for _ in range(5))
    began = time.perf_counter()
    result = vulcan.solve(vulcan.Problem(Bandit(9), BOUND), vulcan.ForwardSearch(UNDER_A, False))
    whole = time.perf_counter() - began
    evaluated = result.statistics.evaluations
    report("bandit 9: whole solve, certificate included / search alone", f"{whole / alone:.1f}")
    per_answer = 1e6 * (whole - alone) / evaluated
    report(f"bandit 9: microseconds per evaluation ({evaluated:,})", f"{per_answer:.0f}")


def test_bounds_that_are_functions(report: Any) -> None:
    line = min(measure(prepare(8, UNDER_A)) for _ in range(3))
    curve = vulcan.parse("(1 - exp(-0.4*x)) * (0.015 + 0.001*x)")
    bent = min(measure(prepare(8, UNDER_A, curve)) for _ in range(3))
    report("bandit 8: a bound that is a function / a linear one", f"{bent / line:.2f}")
    assert bent / line < 6


def test_horizon_12_in_flat_memory(report: Any) -> None:
    vulcan.solve(vulcan.Problem(Bandit(4), BOUND))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = vulcan.solve(vulcan.Problem(Bandit(12), BOUND), vulcan.ForwardSearch(UNDER_A, False))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert result.statistics.histories == sum(6**k for k in range(13))
    report(
        f"bandit 12 ({result.statistics.histories:,} histories): memory grown by", f"{grown:.0f} MB"
    )
    report(
        "bandit 12: reward, seconds",
        str((round(result.certificate.reward, 6), round(result.statistics.search_seconds, 1))),
    )
    assert grown < 100


def test_start_up(tmp_path: Any, report: Any) -> None:
    python = sys.executable
    code = "from vulcan.cli import main; main()"

    def run(*arguments: str) -> float:
        environment = {**os.environ, "VULCAN_CACHE_DIR": str(tmp_path)}
        began = time.perf_counter()
        subprocess.run(
            [python, "-c", code, *arguments], check=True, capture_output=True, env=environment
        )
        return time.perf_counter() - began

    solve = ("solve", "bandit", "--set", "horizon=2", "--bound", "0.002*x")
    help_seconds = min(run("--help") for _ in range(3))
    first, later = run(*solve), min(run(*solve) for _ in range(3))
    report(
        "seconds: --help; first solve ever; later ones",
        f"{help_seconds:.2f}; {first:.1f}; {later:.2f}",
    )
    assert later < first
