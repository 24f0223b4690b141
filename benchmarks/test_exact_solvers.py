"""Exact solvers on the bandit and the grid: what they prove, in which time, beside each other.

Solvers get a known state graph, so that model time does not count; it is reported separately.
Times are of one run after the kernels are compiled, programs are built within them, and ratios are
of solvers in the same run. Run with `make bench`.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import pytest

import vulcan
from vulcan.baselines.forward_search import ForwardSearchRun
from vulcan.domains import Bandit, Grid
from vulcan.graph.levels import build_levels
from vulcan.graph.states import StateGraph
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits, Monitor
from vulcan.solvers.base import Options
from vulcan.solvers.finding import Finding

BOUND = vulcan.Linear(0.002)
OPTIMUM = {6: 3.1517873, 7: 3.7009878, 8: 4.2527818, 9: 4.8066179, 10: 5.3618047, 12: 6.4751781}


class Known:
    """A problem whose model is evaluated completely."""

    def __init__(self, model: Any, bound: vulcan.RiskBound) -> None:
        self.problem = vulcan.Problem(model, bound)
        self.reader = ModelReader(model)
        self.graph = StateGraph(self.reader)
        began = time.perf_counter()
        assert build_levels(self.graph) is not None
        self.model_seconds = time.perf_counter() - began

    def solve(self, solver: Any, **limits: Any) -> tuple[Finding, float]:
        """Return what a solver finds, and its seconds."""
        with Monitor(Limits(**limits)) as monitor:
            options = Options(graph=self.graph)
            finding = solver.search(self.problem, self.reader, monitor, options)
        return finding, finding.statistics.search_seconds

    def search_forwards(self, constraint: Any) -> float:
        """Return the seconds of forward search, policy recorded, the median of nine runs."""
        solver = vulcan.ForwardSearch(constraint)
        run = ForwardSearchRun(self.problem, self.reader, solver, self.graph)
        run.advance(Monitor(Limits()))
        seconds = []
        for _ in range(9):
            began = time.perf_counter()
            run.restart()
            assert run.advance(Monitor(Limits()))
            seconds.append(time.perf_counter() - began)
        return statistics.median(seconds)


@pytest.mark.parametrize("horizon", [7, 8, 9, 10, 12])
def test_pareto_is_exact(horizon: int, report: Any) -> None:
    known = Known(Bandit(horizon), BOUND)
    known.solve(vulcan.Pareto())
    finding, seconds = known.solve(vulcan.Pareto())
    assert finding.status is vulcan.planning.Status.SOLVED
    assert finding.reward == pytest.approx(OPTIMUM[horizon], abs=1e-7)
    assert finding.upper_bound == pytest.approx(finding.reward, rel=1e-9)
    name = f"Pareto, bandit {horizon}, exact {finding.reward:.6f}: seconds (of the model)"
    report(name, f"{seconds:.3f} ({known.model_seconds:.2f})")
    assert seconds < 5  # by orders of magnitude; the issue's own limit


def test_forward_search_beside_programs(report: Any) -> None:
    known = Known(Bandit(6), BOUND)
    forwards = {
        constraint.letter: known.search_forwards(constraint)
        for constraint in (vulcan.solvers.SequenceConstraint(), vulcan.solvers.SurvivalConstraint())
    }
    for letter, seconds in forwards.items():
        report(f"forward search, bandit 6, constraint {letter}: ms", f"{1e3 * seconds:.2f}")
    report("evaluating the model of bandit 6: ms", f"{1e3 * known.model_seconds:.1f}")
    programs = {
        "LinearProgram on merged states": (vulcan.baselines.LinearProgram(), 1),
        "LinearProgram on histories": (vulcan.baselines.LinearProgram("tree"), 50),
        "IntegerProgram on histories, as published": (
            vulcan.baselines.IntegerProgram(reduced=False),
            600,
        ),
        "IntegerProgram on histories": (vulcan.baselines.IntegerProgram(), 1),
        "IntegerProgram on merged states": (vulcan.baselines.IntegerProgram("graph"), 1),
        "Lagrangian": (vulcan.Lagrangian(), 1),
        "Pareto": (vulcan.Pareto(), 1),
        "RAOStar": (vulcan.baselines.RAOStar(update="exact"), 1),
    }
    for name, (solver, least) in programs.items():
        _, seconds = known.solve(solver)
        slower = {letter: seconds / forward for letter, forward in forwards.items()}
        whole = {
            letter: (seconds + known.model_seconds) / (forward + known.model_seconds)
            for letter, forward in forwards.items()
        }
        report(
            f"{name}, bandit 6: time / forward search A, B (model included)",
            f"{slower['A']:.0f}, {slower['B']:.0f} ({whole['A']:.1f}, {whole['B']:.1f})",
        )
        assert max(slower.values()) >= least


def test_grid_of_forty_cells_and_a_hundred_steps(report: Any) -> None:
    for text in ("0.01", "0.05", "0.0005*x", "0.01 * (1 - exp(-0.1 * x))"):
        known = Known(Grid(), vulcan.parse(text))
        for solver, limits in ((vulcan.Lagrangian(), {}), (vulcan.Pareto(), {"gap": 0.001})):
            finding, seconds = known.solve(solver, **limits)
            assert finding.upper_bound is not None
            gap = 1 - finding.reward / finding.upper_bound
            certificate = vulcan.certify(known.problem, finding.policy)
            assert certificate.safe
            report(
                f"{type(solver).__name__}, grid, {text}: gap in %, seconds",
                f"{100 * gap:.6f}, {seconds:.2f}",
            )
            assert gap <= 0.001
