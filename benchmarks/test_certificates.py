"""Certificates of array models: microseconds a decision, and the share of a whole solve.

Beside them, in the same run: the certificate of the same policy pair by pair, as for a model in
Python. Seconds are processor time. Run with `make bench`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import vulcan
from benchmarks.large import make_arrays, make_epidemic
from vulcan.model import ArrayModel

LEAST_SPEED = 1.5
"""Beside the certificate pair by pair; with many small levels calls of numpy take most time."""


class PairByPair(ArrayModel):
    """A model whose methods are called for each pair, since they might be other ones."""


CASES: dict[str, tuple[Callable[[], ArrayModel], float, vulcan.Solver]] = {
    "grid 100 x 100, 100 steps": (lambda: make_arrays(100, 100), 0.2, vulcan.Lagrangian()),
    "grid 300 x 300, 20 steps": (lambda: make_arrays(300, 20), 0.1, vulcan.Lagrangian()),
    "grid 6 x 6, 3,000 steps": (lambda: make_arrays(6, 3000), 0.5, vulcan.Lagrangian()),
    "epidemic of 60, 80 days": (lambda: make_epidemic(60, 80), 0.01, vulcan.Lagrangian()),
    "mixture, grid 50 x 50, 100 steps": (
        lambda: make_arrays(50, 100),
        0.2,
        vulcan.Lagrangian(randomised=True),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_certificate(name: str, report: Any) -> None:
    make, bound, solver = CASES[name]
    vulcan.solve(vulcan.Problem(make_arrays(4, 6), 0.05), solver)  # compiles
    problem = vulcan.Problem(make(), bound)
    began = time.process_time()
    result = vulcan.solve(problem, solver)
    solving = time.process_time() - began
    assert result.policy is not None

    def measure() -> tuple[vulcan.Certificate, float]:
        began = time.process_time()
        return vulcan.certify(problem, result.policy), time.process_time() - began

    certificate, seconds = measure()
    problem.model.__class__ = PairByPair
    other, before = measure()
    assert float(other.reward) == pytest.approx(float(certificate.reward), rel=1e-12)
    assert certificate.passes == other.passes
    decisions = len(result.policy)
    ways = sum(len(member.child) for member in result.policy.members)
    report(
        f"{name}: µs a decision, pair by pair / time",
        f"{1e6 * seconds / decisions:.2f}, {before / seconds:.0f}",
    )
    report(
        "  decisions, ns an outcome, seconds of the solve, share of the certificate",
        f"{decisions:,}, {1e9 * seconds / ways:.0f}, {solving:.2f}, {seconds / solving:.3f}",
    )
    assert before >= LEAST_SPEED * seconds
