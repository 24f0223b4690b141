"""Sweeps: the same results from threads, processes and Ray, whatever fails or is lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import vulcan
from tests.helpers.sweeping import Moody, Mortal, Patient, Refusing
from vulcan import LocalVulcan, Pareto, Problem
from vulcan.baselines import Penalty
from vulcan.domains import Bandit
from vulcan.parallel import Processes, Threads
from vulcan.parallel.executors import Executor
from vulcan.planning.frontier import Span

SMALL = Problem(Bandit(horizon=4), vulcan.Linear(0.002))
FEW = {"samples": 12}


def list_points(frontier: vulcan.planning.Frontier) -> list[Any]:
    return [
        (p.at, p.reward, p.upper_bound, p.price, p.carried_from, p.policy) for p in frontier.points
    ]


def list_rows(comparison: vulcan.planning.Comparison) -> list[Any]:
    return [
        (row.name, row.certificate, row.upper_bound, row.error, row.result and row.result.policy)
        for row in comparison
    ]


def compare(executor: Executor | None) -> list[Any]:
    solvers = [LocalVulcan(), Pareto(), vulcan.baselines.UCT()]
    compared = vulcan.compare(SMALL, solvers, parallel=executor, **FEW)
    return [*list_rows(compared), compared.upper_bound, compared.randomised_upper_bound]


def trace(executor: Executor | None) -> list[Any]:
    traced = vulcan.trace_frontier(SMALL, levels=Span(), points=12, parallel=executor)
    return [*list_points(traced), traced.lines]


def trace_samples(executor: Executor | None) -> list[Any]:
    options = {"solver": LocalVulcan(), "samples": 300, "parallel": executor}
    model = Bandit(horizon=6)
    spanned = vulcan.trace_frontier(model, levels=Span(), points=9, **options)
    listed = vulcan.trace_frontier(model, levels=[0.004, 0.0045, 0.005, 0.007], **options)
    return [*list_points(spanned), *list_points(listed)]


@pytest.mark.parametrize("sweep", [compare, trace, trace_samples])
def test_results_do_not_depend_on_the_number_of_threads(sweep):
    alone = sweep(None)
    assert sweep(Threads(1)) == sweep(Threads(3)) == alone


def test_results_do_not_depend_on_processes():
    assert trace(Processes(2)) == trace(None)


def test_results_do_not_depend_on_ray(ray_executor):
    assert compare(ray_executor) == compare(None)


# What fails, and who is lost.


def test_a_point_that_fails_stops_no_others():
    levels = [0.001, 0.002, 0.003]
    traced = vulcan.trace_frontier(SMALL.model, solver=Moody(level=0.002), levels=levels, **FEW)
    assert [point.level for point in traced] == [0.001, 0.003]
    assert traced.failures == {0.002: "RuntimeError: not in the mood"}
    with pytest.raises(RuntimeError, match="not in the mood"):
        vulcan.trace_frontier(SMALL.model, solver=Moody(level=0.002), levels=[0.002], **FEW)


def test_a_killed_worker_is_replaced_and_what_it_was_at_is_done_again(tmp_path):
    levels = [0.001, 0.002, 0.003]
    traced, whole = (
        vulcan.trace_frontier(SMALL.model, solver=solver, levels=levels, parallel=parallel, **FEW)
        for solver, parallel in ((Mortal(str(tmp_path), seed=0), 2), (LocalVulcan(), None))
    )
    assert traced.lost_workers == 1
    assert list_points(traced) == list_points(whole)


@pytest.mark.slow
def test_a_search_that_kills_its_workers_or_can_not_be_sent_stops_no_others(tmp_path):
    solvers = {
        "mortal": Mortal(str(tmp_path), seed=0, again=True),
        "mine": Refusing(),
        "penalty": Penalty(),
    }
    compared = vulcan.compare(SMALL, solvers, parallel=Processes(1), **FEW)
    assert [row.safe for row in compared] == [False, False, True]
    assert "its process ended" in compared.rows[0].error
    assert "stays here" in compared.rows[1].error
    assert compared.lost_workers == 3


# Ctrl-C.


def interrupt_when(*paths: Path) -> threading.Thread:
    """Send Ctrl-C to this process when some files have appeared."""

    def wait() -> None:
        while not all(path.exists() for path in paths):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.parametrize("executor", [None, Threads(2), Processes(2)])
def test_ctrl_c_leaves_the_points_and_rows_under_way(tmp_path, executor):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = interrupt_when(tmp_path / "begun-0")
    levels = [0.001, 0.002, 0.003, 0.004]
    solver = Patient(str(tmp_path))
    traced = vulcan.trace_frontier(SMALL.model, solver=solver, levels=levels, parallel=executor)
    thread.join()
    assert traced.stopped_by == "Ctrl-C"
    assert 1 <= len(traced) <= 2
    assert any(point.safe for point in traced)  # one may have been stopped before it began
    (tmp_path / "begun-0").unlink()
    thread = interrupt_when(tmp_path / "begun-0")
    solvers = {"first": Penalty(), "second": solver, "third": solver, "fourth": solver}
    compared = vulcan.compare(SMALL, solvers, parallel=executor)
    thread.join()
    assert compared.stopped_by == "Ctrl-C"
    assert [row.name for row in compared][:2] == ["first", "second"]
    assert len(compared) < 4
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
