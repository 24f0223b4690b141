"""`Vulcan()` on the bandit over histories, beside VulcanFS and a sweep over penalties.

The optimum is proved by fronts, on merged states: policies may depend on the whole history either
way, so that it is the same. So is what VulcanFS and penalties find. Run with

    python -m pytest benchmarks/test_bandits.py --quiet

VULCAN_SEEDS changes the number of seeds (5; 20 at horizon 10 under a constant).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from statistics import fmean
from typing import Any

import pytest

import vulcan
from reproduction.parts.alpha import HORIZON, INSIDE
from vulcan.domains import Bandit

SEEDS = int(os.environ.get("VULCAN_SEEDS", "5"))
SEEDS_AT_10 = min(20, int(os.environ.get("VULCAN_SEEDS", "20")))
SAMPLES = 1_000_000
SLOPE = vulcan.Linear(0.002)

OTHERS: Mapping[str, vulcan.solvers.Solver] = {
    "VulcanFS, A": vulcan.ForwardSearch(vulcan.solvers.SequenceConstraint()),
    "VulcanFS, B": vulcan.ForwardSearch(),
    "penalties": vulcan.baselines.Penalty(),
}

BEST_WITH_A_CONSTANT = 5.434855


@cache
def find_optimum(horizon: int, bound: vulcan.RiskBound) -> float:
    """Return the largest reward within the bound."""
    exact = vulcan.solve(vulcan.Problem(Bandit(horizon), bound), vulcan.Pareto())
    assert exact.status is vulcan.planning.Status.SOLVED
    return float(exact.certificate.reward)


def find_loss(
    horizon: int,
    bound: vulcan.RiskBound,
    solver: vulcan.solvers.Solver,
    merges: bool,
    **options: Any,
) -> float:
    """Return the loss to the optimum, in percent."""
    problem = vulcan.Problem(Bandit(horizon, merges=merges), bound)
    result = vulcan.solve(problem, solver, **options)
    assert result.safe
    return 100 * (1 - float(result.certificate.reward) / find_optimum(horizon, bound))


def test_over_risk_bounds(report: Any) -> None:
    bounds = [vulcan.Linear(alpha) for alpha in INSIDE]
    losses = [
        find_loss(HORIZON, bound, vulcan.Vulcan(), False, samples=SAMPLES, seed=seed)
        for seed, bound in enumerate(bounds)
    ]
    name = (
        f"bandit {HORIZON}, {len(bounds)} values of α: mean loss in %, worst (values with a loss)"
    )
    report(f"{name}: Vulcan", describe(losses))
    for other, solver in OTHERS.items():
        lost = [find_loss(HORIZON, bound, solver, True) for bound in bounds]
        report(f"{name}: {other}", describe(lost))
    assert fmean(losses) <= 0.1


def describe(losses: list[float]) -> str:
    """Return the mean and the worst of some losses, and how many they are."""
    lost = [loss for loss in losses if loss > 1e-7]
    return f"{fmean(losses):.4f}, {max(losses):.3f} ({len(lost)})"


@pytest.mark.parametrize("horizon", range(2, 11))
def test_over_horizons(horizon: int, report: Any) -> None:
    losses = [
        find_loss(horizon, SLOPE, vulcan.Vulcan(), False, samples=SAMPLES, seed=seed)
        for seed in range(SEEDS)
    ]
    others = ", ".join(
        f"{name} {find_loss(horizon, SLOPE, solver, True):.3f}" for name, solver in OTHERS.items()
    )
    report(
        f"bandit {horizon}, unmerged, {SEEDS} seeds: mean and worst loss in %; of others",
        f"{fmean(losses):.4f}, {max(losses):.4f}; {others}",
    )
    assert fmean(losses) <= 0.1


def test_few_evaluations_at_horizon_9(report: Any) -> None:
    """The largest budget with at most 5 % of all evaluations comes within 0.08 %."""
    everything = 4 * sum(6**k for k in range(9))
    problem = vulcan.Problem(Bandit(9, merges=False), SLOPE)
    best, errors = find_optimum(9, SLOPE), []
    for samples in (10_000, 20_000, 40_000, 80_000, 160_000):
        results = [
            vulcan.solve(problem, vulcan.Vulcan(), samples=samples, seed=seed)
            for seed in range(SEEDS)
        ]
        assert all(result.safe for result in results)
        error = 100 * fmean(1 - float(result.certificate.reward) / best for result in results)
        share = fmean(result.statistics.evaluations for result in results) / everything
        report(
            f"bandit 9, unmerged, {SEEDS} seeds, {samples:,} samples: mean error in %; evaluated",
            f"{error:.4f}; {share:.1%} of all",
        )
        if share <= 0.05:
            errors.append(error)
    assert errors
    assert errors[-1] <= 0.08


def test_horizon_10_with_a_constant(report: Any) -> None:
    problem = vulcan.Problem(Bandit(10, merges=False), vulcan.Constant(0.0125))
    results = [
        vulcan.solve(problem, vulcan.Vulcan(), samples=SAMPLES, seed=seed)
        for seed in range(SEEDS_AT_10)
    ]
    assert all(result.safe for result in results)
    errors = [
        100 * (1 - float(result.certificate.reward) / BEST_WITH_A_CONSTANT) for result in results
    ]
    report(
        f"bandit 10, unmerged, bound 0.0125, {SEEDS_AT_10} seeds: mean and worst error in %",
        f"{fmean(errors):.4f}, {max(errors):.4f}",
    )
    assert max(errors) <= 0.1
