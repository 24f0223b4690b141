"""How many workers a coordinator keeps busy whose tasks take 100 ms."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.coordinator import measure_busy, measure_cost
from vulcan.parallel.processes import Processes
from vulcan.parallel.ray_cluster import Ray


@pytest.mark.parametrize(("workers", "least"), [(10, 0.95), (100, 0.95), (300, 0.95), (1000, 0.9)])
def test_waiting_workers_are_busy(
    workers: int, least: float, report: Callable[[str, str], None]
) -> None:
    share, cost = max(measure_busy(workers) for _ in range(3))
    report(f"{workers:,} workers whose tasks wait 100 ms", f"{100 * share:.1f} % busy")
    report(f"{workers:,} workers: processor time of a task", f"{cost:.0f} µs")
    assert share >= least


def test_where_the_coordinator_becomes_the_limit(report: Callable[[str, str], None]) -> None:
    for workers in (2000, 3000):
        share, _ = measure_busy(workers, rounds=10)
        report(f"{workers:,} workers whose tasks wait 100 ms", f"{100 * share:.1f} % busy")
        assert 0.1 < share <= 1


def test_what_a_task_costs_the_coordinator(report: Callable[[str, str], None]) -> None:
    for executor in (Processes(1), Ray(workers=1)):
        cost = measure_cost(executor)
        most = int(0.1 * 1e6 / cost)
        report(f"{type(executor).__name__}: a task costs the coordinator", f"{cost:.0f} µs")
        report(
            f"{type(executor).__name__}: workers of 100 ms that it can serve at most", f"{most:,}"
        )
        assert cost < 2000
