"""`Vulcan()` on 500 random problems, beside the local test alone, against the optimum.

    python -m pytest benchmarks/test_random_problems.py --quiet

VULCAN_PROBLEMS=100 takes the first 100. With 1,000 samples nearly all of them are solved outright:
that says what a constraint costs, and little of sampling. VULCAN_SAMPLES takes fewer. A loss is a
share of the optimum, or of 1 where the optimum is smaller than that (rewards have both signs, and
the optimum may be near 0).
"""

from __future__ import annotations

import os
from functools import cache
from statistics import fmean
from typing import Any

import pytest

import vulcan
from benchmarks.random_problems import COUNT, make_problems

PROBLEMS = int(os.environ.get("VULCAN_PROBLEMS", COUNT))
USUAL_SAMPLES = 1000
SAMPLES = int(os.environ.get("VULCAN_SAMPLES", USUAL_SAMPLES))


@cache
def find_optima() -> list[tuple[vulcan.Problem, float | None]]:
    """Return the problems, each with its best reward; None where no policy is within the bound."""
    found = []
    for problem in make_problems(PROBLEMS):
        exact = vulcan.solve(problem, vulcan.Pareto())
        assert exact.status in (vulcan.planning.Status.SOLVED, vulcan.planning.Status.INFEASIBLE)
        best = None if exact.certificate is None else float(exact.certificate.reward)
        found.append((problem, best))
    return found


def find_losses(solver: vulcan.solvers.Solver, **limits: Any) -> tuple[list[float], int, int]:
    """Return the losses of policies found, how many were missed, and how many problems proved."""
    losses, missed, proved = [], 0, 0
    for seed, (problem, best) in enumerate(find_optima()):
        result = vulcan.solve(problem, solver, seed=seed, **limits)
        proved += result.status in (
            vulcan.planning.Status.SOLVED,
            vulcan.planning.Status.INFEASIBLE,
        )
        if best is None:
            assert not result.safe
        elif not result.safe:
            missed += 1
        else:
            losses.append((best - float(result.certificate.reward)) / max(1.0, abs(best)))
    return losses, missed, proved


def report_losses(name: str, losses: list[float], missed: int, proved: int, report: Any) -> None:
    """Add a line to the table of results."""
    feasible = len(losses) + missed
    report(
        f"random problems, {feasible} of {PROBLEMS} feasible: {name}",
        f"mean loss {fmean(losses):.4%}, worst {max(losses):.3%}, "
        f"{sum(loss > 1e-9 for loss in losses)} with a loss, {missed} missed, {proved} proved",
    )


def test_vulcan_comes_close_to_the_optimum(report: Any) -> None:
    losses, missed, proved = find_losses(vulcan.Vulcan(), samples=SAMPLES)
    report_losses(f"Vulcan, {SAMPLES:,} samples", losses, missed, proved, report)
    assert not missed
    assert fmean(losses) <= 0.001 or SAMPLES < USUAL_SAMPLES


@pytest.mark.parametrize(
    ("name", "solver", "limits"),
    [
        (
            "constraint A",
            vulcan.LocalVulcan(local_test=vulcan.solvers.SequenceConstraint()),
            {"samples": SAMPLES},
        ),
        ("constraint B", vulcan.LocalVulcan(), {"samples": SAMPLES}),
        ("penalties", vulcan.baselines.Penalty(), {}),
    ],
)
def test_what_others_lose(
    name: str, solver: vulcan.solvers.Solver, limits: dict[str, int], report: Any
) -> None:
    report_losses(name, *find_losses(solver, **limits), report)
