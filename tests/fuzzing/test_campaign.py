"""A campaign is kept, goes on where it was, makes findings small, and survives its workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import vulcan
from fuzzing.campaign import Finding, run_problem
from fuzzing.checks.case import Means
from fuzzing.claims import Fault
from fuzzing.log import Log, find_last_log
from fuzzing.planners import Planner
from fuzzing.reproducers import shrink, write_reproducer
from fuzzing.runner import run_campaign
from fuzzing.statistics import Statistics
from fuzzing.summary import write_summary
from fuzzing.worker import BLOCK
from tests.fuzzing.test_planted import DEFECTS
from vulcan.domains import Bandit
from vulcan.solvers.base import load_solvers

ROOT = Path(__file__).parents[2]
UPPER = DEFECTS["an upper bound that is too low"][1]


def find_first(means: Means) -> Finding:
    for number in range(1000):
        for finding in run_problem(1, number, means, Statistics()):
            return finding
    raise AssertionError("nothing was found")


def test_a_finding_becomes_a_small_test_that_fails_as_long_as_the_defect_is_there(tmp_path):
    # Kernels are compiled before the clock of the campaign runs.
    vulcan.solve(vulcan.Problem(Bandit(3), "0.002*x"), vulcan.Vulcan(), samples=100)
    finding = find_first(UPPER)
    small = shrink(finding, UPPER, seconds=5.0)
    assert small.faults[0].check == finding.faults[0].check
    assert len(repr(small.case)) < len(repr(finding.case))
    path = write_reproducer(small, tmp_path)
    written: dict[str, Any] = {}
    exec(path.read_text(), written)
    assert written["CASE"] == small.case
    written["test_nothing_is_wrong"]()  # Vulcan itself is right
    written["judge"] = lambda case: [Fault("upper bound", "1.0")]
    with pytest.raises(AssertionError):
        written["test_nothing_is_wrong"]()


def test_counts_add_up_and_make_a_page() -> None:
    first, second, both = Statistics(), Statistics(), Statistics()
    for number in range(10):
        list(run_problem(2, number, Means(), first if number < 5 else second))
        list(run_problem(2, number, Means(), both))
    record = json.loads(json.dumps(second.to_record()))
    first.add_record(record)
    assert first.to_record() == both.to_record()
    page = write_summary(both, {"seed": 2, "version": "1", "python": "3", "revisions": ["a", "b"]})
    assert "10 problems" in page
    assert "## By solver" in page


def test_every_solver_is_drawn() -> None:
    from random import Random

    from fuzzing.planners import draw_planner

    drawn = {draw_planner(Random(seed)).name for seed in range(500)}
    # The paper's names are forward-search and local-vulcan with other defaults.
    assert drawn == set(load_solvers()) - {"vulcan-fs", "paper-vulcan"}
    assert isinstance(Planner("pareto").make_solver(), load_solvers()["pareto"])


def test_a_log_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "7.jsonl"
    log = Log(path, 7)
    log.add_block(0, Statistics().to_record())
    log.add_lost(60, "died / problem 60")
    with path.open("a") as stream:
        stream.write('{"block": 1, "prob')
    again = Log(path, 7)
    again.add_block(2, Statistics().to_record())
    last = Log(path, 7)
    assert (last.done, last.lost, last.statistics.found) == ({0, 2}, {60}, 1)
    assert find_last_log(tmp_path) == path


@pytest.mark.slow
def test_a_campaign_goes_on_and_survives_a_worker_that_dies(tmp_path: Path) -> None:
    log = Log(tmp_path / "3.jsonl", 3)
    killed = []

    def kill_one(progress: Any) -> None:
        children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
        started = [int(child) for child in children if _is_worker(int(child))]
        if started and not killed and progress.problems >= BLOCK:
            killed.append(started[0])
            os.kill(started[0], signal.SIGKILL)

    limits = {"workers": 1, "seconds": 600.0, "most_problems": 2 * BLOCK, "warm_ups": 1}
    assert run_campaign(log, tmp_path, on_progress=kill_one, **limits)
    assert killed
    assert log.done == {0, 1}
    assert len(log.lost) <= 1
    assert log.statistics.problems == 2 * BLOCK - len(log.lost)
    again = Log(tmp_path / "3.jsonl", 3)
    assert run_campaign(again, tmp_path, **limits)
    assert again.statistics.to_record() == log.statistics.to_record()


def _is_worker(process: int) -> bool:
    return b"spawn_main" in Path(f"/proc/{process}/cmdline").read_bytes()


def test_one_problem_is_done_again(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fuzzing", "--only", "1:2", "--folder", str(tmp_path)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout) == (0, "nothing is wrong\n"), answer.stderr
