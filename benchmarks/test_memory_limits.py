"""A search that may take so much memory takes no more, as the system counts it.

A tenth more is allowed, beside what is needed to start, and to certify the policy once the search
is over. There are over a hundred searches: all solvers that have the limit, on models whose states
merge or don't, are small or large, in Python or compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from benchmarks.memory_limits import MODELS, list_solvers, measure

MEGABYTE = 1 << 20

DECISION = 1500
"""Bytes that it takes to write a decision out, and to certify it."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what was taken")


@pytest.mark.parametrize("memory", [100 * MEGABYTE, 300 * MEGABYTE])
@pytest.mark.parametrize("model", MODELS)
def test_resident_memory_stays_within_the_limit(
    model: str, memory: int, report: Callable[[str, str], None]
) -> None:
    shares, stopped = {}, 0
    for solver in list_solvers():
        measured = measure(solver, model, memory)
        certifying = DECISION * measured.decisions
        shares[solver] = (measured.peak - measured.start - certifying) / memory
        stopped += measured.stopped_by == "limit of memory"
        name = f"{model}, {memory // MEGABYTE} MB, {solver}"
        report(name, f"{100 * shares[solver]:.0f} % taken, {measured.stopped_by}")
    assert stopped > 0
    assert max(shares.values()) <= 1.1, shares
