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
from vulcan import LocalVulcan, OptionError, Pareto, Penalty, Problem, Processes, Threads
from vulcan.domains import Bandit
from vulcan.executors.base import Executor
from vulcan.planning.frontier import Span

SMALL = Problem(Bandit(horizon=4), vulcan.Linear(0.002))
SEEDS = range(5)
FEW = {"samples": 12}


def list_points(frontier: vulcan.Frontier) -> list[Any]:
    return [
        (p.at, p.reward, p.upper_bound, p.price, p.carried_from, p.policy) for p in frontier.points
    ]


def list_rows(comparison: vulcan.Comparison) -> list[Any]:
    return [
        (row.name, row.certificate, row.upper_bound, row.error, row.result and row.result.policy)
        for row in comparison
    ]


def solve_seeds(executor: Executor | None) -> list[Any]:
    best = vulcan.solve(SMALL, LocalVulcan(), seeds=SEEDS, bound=True, executor=executor, **FEW)
    assert best.policy.reader.model is SMALL.model
    runs = [(run.seed, run.reward, run.risk, run.safe, run.samples) for run in best.spread]
    return [best.policy, best.certificate, best.upper_bound, best.price, runs]


def compare(executor: Executor | None) -> list[Any]:
    solvers = [LocalVulcan(), Pareto(), vulcan.UCT()]
    compared = vulcan.compare(SMALL, solvers, executor=executor, **FEW)
    return [*list_rows(compared), compared.upper_bound, compared.randomised_upper_bound]


def trace(executor: Executor | None) -> list[Any]:
    traced = vulcan.trace_frontier(SMALL, levels=Span(), points=12, executor=executor)
    return [*list_points(traced), traced.lines]


def trace_samples(executor: Executor | None) -> list[Any]:
    options = {"solver": LocalVulcan(), "samples": 300, "executor": executor}
    model = Bandit(horizon=6)
    spanned = vulcan.trace_frontier(model, levels=Span(), points=9, **options)
    listed = vulcan.trace_frontier(model, levels=[0.004, 0.0045, 0.005, 0.007], **options)
    return [*list_points(spanned), *list_points(listed)]


@pytest.mark.parametrize("sweep", [solve_seeds, compare, trace, trace_samples])
def test_results_do_not_depend_on_the_number_of_threads(sweep):
    alone = sweep(None)
    assert sweep(Threads(1)) == sweep(Threads(3)) == alone


def test_results_do_not_depend_on_processes():
    assert trace(Processes(2)) == trace(None)


def test_results_do_not_depend_on_ray(ray_executor):
    assert solve_seeds(ray_executor) == solve_seeds(None)


# Seeds.


def test_each_seed_is_what_it_is_alone_and_the_best_is_returned():
    best = vulcan.solve(SMALL, LocalVulcan(), seeds=SEEDS, **FEW)
    results = [vulcan.solve(SMALL, LocalVulcan(), seed=seed, **FEW) for seed in SEEDS]
    rewards = [result.certificate.reward for result in results]
    assert [run.reward for run in best.spread] == rewards
    assert len(set(rewards)) > 2
    assert best.policy == results[rewards.index(max(rewards))].policy
    spread = best.spread
    assert (spread.best.reward, spread.worst.reward) == (max(rewards), min(rewards))
    assert spread.best.seed == rewards.index(max(rewards))
    assert spread.mean == pytest.approx(sum(rewards) / 5)
    assert (spread.failed, spread.unsafe, spread.left_out, spread.lost_workers) == ((), (), (), 0)
    assert f"to {max(rewards):.6f} (seed {spread.best.seed}), mean" in str(best)
    assert str(spread).count("✓") == len(spread) == 5
    assert results[0].spread is None


def test_no_policy_that_is_not_safe_is_better_than_one_that_is():
    problem = Problem(SMALL.model, vulcan.Constant(0.0029))
    best = vulcan.solve(problem, vulcan.UCT(), samples=8, seeds=range(12))
    safe = [run for run in best.spread if run.safe]
    assert 0 < len(safe) < 12
    assert len(best.spread.unsafe) == 12 - len(safe)
    assert best.safe
    assert best.certificate.reward == max(run.reward for run in safe)
    assert max(run.reward for run in best.spread) > best.certificate.reward


def test_a_seed_that_fails_stops_no_others():
    best = vulcan.solve(SMALL, Moody(seed=2), seeds=SEEDS, executor=Threads(2), **FEW)
    (failed,) = best.spread.failed
    assert (failed.seed, failed.error, failed.reward) == (2, "RuntimeError: not in the mood", None)
    assert [run.seed for run in best.spread if run.safe] == [0, 1, 3, 4]
    assert "seed 2        failed: RuntimeError: not in the mood" in str(best)
    with pytest.raises(RuntimeError, match="not in the mood"):
        vulcan.solve(SMALL, Moody(seed=2), seeds=[2], **FEW)


def test_seeds_are_resumed_each_from_a_file_of_its_own(tmp_path):
    file = tmp_path / "plan.ckpt"
    options = {"seeds": [3, 5], "checkpoint": file, "checkpoint_every": 0}
    vulcan.solve(SMALL, LocalVulcan(), samples=7, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan-3.ckpt", "plan-5.ckpt"]
    with pytest.raises(vulcan.CheckpointError, match=r"plan-3\.ckpt exists already"):
        vulcan.solve(SMALL, LocalVulcan(), **options, **FEW)
    resumed = vulcan.solve(SMALL, LocalVulcan(), **options, resume=True, **FEW)
    whole = vulcan.solve(SMALL, LocalVulcan(), seeds=[3, 5], **FEW)
    assert [run.reward for run in resumed.spread] == [run.reward for run in whole.spread]
    assert resumed.policy == whole.policy
    vulcan.solve(SMALL, LocalVulcan(), **options, overwrite=True, **FEW)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": 20}, r"as in range\(20\), not 20"),
        ({"seeds": []}, "at least one"),
        ({"seeds": [1, 1]}, "must be different"),
        ({"seeds": [-1]}, "seed must be a whole number"),
        ({"seeds": [1], "seed": 2}, "seed or seeds, not both"),
        ({"seeds": [1], "keep": True}, "keep is for one search"),
        ({"seeds": [1], "solver": Pareto()}, "Pareto takes no samples"),
        ({"seeds": [1], "workers": 0}, "at least 1"),
        ({"seeds": [1], "executor": "cloud"}, "executor must be one of"),
        ({"seeds": [1], "executor": Threads(2), "workers": 3}, "workers=3 contradicts"),
    ],
)
def test_seeds_that_can_not_be_used(options, message):
    with pytest.raises(OptionError, match=message):
        vulcan.solve(SMALL, **{"solver": LocalVulcan(), **options})


# What fails, and who is lost.


def test_a_point_that_fails_stops_no_others():
    levels = [0.001, 0.002, 0.003]
    traced = vulcan.trace_frontier(SMALL.model, solver=Moody(level=0.002), levels=levels, **FEW)
    assert [point.level for point in traced] == [0.001, 0.003]
    (failure,) = traced.failures
    assert (failure.at, failure.error) == (0.002, "RuntimeError: not in the mood")
    with pytest.raises(RuntimeError, match="not in the mood"):
        vulcan.trace_frontier(SMALL.model, solver=Moody(level=0.002), levels=[0.002], **FEW)


def test_a_killed_worker_is_replaced_and_what_it_was_at_is_done_again(tmp_path):
    solver = Mortal(str(tmp_path))
    best = vulcan.solve(SMALL, solver, seeds=SEEDS, workers=2, **FEW)
    whole = vulcan.solve(SMALL, LocalVulcan(), seeds=SEEDS, **FEW)
    assert best.spread.lost_workers == 1
    assert [run.reward for run in best.spread] == [run.reward for run in whole.spread]
    assert best.policy == whole.policy
    assert "1 died on the way; others did their work" in str(best)


@pytest.mark.slow
def test_a_search_that_kills_its_workers_or_can_not_be_sent_stops_no_others(tmp_path):
    solvers = {
        "mortal": Mortal(str(tmp_path), seed=0, again=True),
        "mine": Refusing(),
        "penalty": Penalty(),
    }
    compared = vulcan.compare(SMALL, solvers, executor=Processes(1), **FEW)
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
def test_ctrl_c_leaves_what_searches_under_way_have(tmp_path, executor):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    last = 0 if executor is None else 1
    thread = interrupt_when(*(tmp_path / f"begun-{seed}" for seed in range(last + 1)))
    best = vulcan.solve(SMALL, Patient(str(tmp_path)), seeds=SEEDS, executor=executor)
    thread.join()
    assert best.stopped_by == "Ctrl-C"
    assert best.safe
    assert [run.seed for run in best.spread] == list(range(last + 1))
    assert all(run.safe and run.stopped_by == "Ctrl-C" for run in best.spread)
    assert best.spread.left_out == tuple(range(last + 1, 5))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_leaves_the_points_and_rows_under_way(tmp_path):
    thread = interrupt_when(tmp_path / "begun-0")
    levels = [0.001, 0.002, 0.003, 0.004]
    solver = Patient(str(tmp_path))
    traced = vulcan.trace_frontier(SMALL.model, solver=solver, levels=levels, executor=Threads(2))
    thread.join()
    assert traced.stopped_by == "Ctrl-C"
    assert 1 <= len(traced) <= 2
    (tmp_path / "begun-0").unlink()
    thread = interrupt_when(tmp_path / "begun-0")
    solvers = {"first": Penalty(), "second": solver, "third": solver, "fourth": solver}
    compared = vulcan.compare(SMALL, solvers, executor=Threads(2))
    thread.join()
    assert compared.stopped_by == "Ctrl-C"
    assert [row.name for row in compared][:2] == ["first", "second"]
    assert len(compared) < 4


# Progress.


def test_progress_is_that_of_all_searches():
    told: list[vulcan.Progress] = []
    problem = Problem(Bandit(9), SMALL.risk_bound)
    options = {"samples": 20_000, "seeds": range(3), "on_progress": told.append}
    result = vulcan.solve(problem, LocalVulcan(), executor=Threads(2), **options)
    fractions = [progress.fraction for progress in told]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1
    assert len(told) > 3
    assert max(progress.samples for progress in told[:-1]) > 0
    assert [progress.seconds for progress in told] == sorted(p.seconds for p in told)
    assert result.spread.runs[0].samples == 20_000
