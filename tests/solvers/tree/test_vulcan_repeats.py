"""The same seed and samples give the same policy: with any clock, threads, or interruption."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import vulcan
from tests.helpers.merging import Treasure
from tests.helpers.missions import BOUND
from vulcan.domains import Bandit, Exploration
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits, StopReason
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import Options
from vulcan.solvers.tree.checkpoint import SEAL, Snapshot
from vulcan.solvers.tree.price_planner import PricePlanner

CURVED = vulcan.parse("(1 - exp(-0.1*x)) * 0.02")
PROBLEMS = {
    "merged": vulcan.Problem(Treasure(20), 0.15),
    "unmerged": vulcan.Problem(Bandit(7, merges=False), CURVED),
    "compiled": vulcan.Problem(Exploration(5), vulcan.parse(BOUND)),
}
SAMPLES = 6000


def solve(name: str, **options: Any) -> vulcan.Result:
    return vulcan.solve(PROBLEMS[name], vulcan.Vulcan(), **{"samples": SAMPLES, **options})


@pytest.fixture(scope="module")
def unbroken() -> dict[str, vulcan.Result]:
    results = {name: solve(name) for name in PROBLEMS}
    # A search that is solved before would say little of one that goes on.
    assert all(result.stopped_by == "limit of samples" for result in results.values())
    return results


def require_same(one: vulcan.Result, other: vulcan.Result) -> None:
    assert one.policy == other.policy
    assert one.certificate == other.certificate
    assert one.statistics.samples == other.statistics.samples


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_seed_repeats_a_search(name: str, unbroken: dict[str, vulcan.Result]) -> None:
    again = solve(name)
    require_same(again, unbroken[name])
    assert again.statistics.histories == unbroken[name].statistics.histories
    assert again.upper_bound == unbroken[name].upper_bound


def test_other_seeds_search_otherwise(unbroken: dict[str, vulcan.Result]) -> None:
    histories = {solve("unmerged", seed=seed).statistics.histories for seed in (1, 2)}
    assert unbroken["unmerged"].statistics.histories not in histories
    assert len(histories) == 2


@pytest.mark.parametrize("name", ["unmerged", "compiled"])
def test_a_run_limited_by_time_can_be_repeated_by_its_samples(name: str) -> None:
    timed = solve(name, samples=None, time_limit=0.4, seed=3)
    assert timed.stopped_by == "time limit"
    assert timed.statistics.samples > 0
    require_same(solve(name, samples=timed.statistics.samples, seed=3), timed)


class StopsAfterRound(Monitor):
    """Stops a search that has just gone on after its first round."""

    asked = 0

    def wants_stop(self, histories: int, samples: int = 0, reserve: float = 0.0) -> bool:
        self.asked += samples == 1024
        if self.asked == 2:
            self.stopped_by = StopReason.TIME
        return self.stopped_by is not None


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_run_that_is_stopped_right_after_a_round_can_be_repeated(name: str) -> None:
    problem, monitor = PROBLEMS[name], StopsAfterRound(Limits())
    stopped = vulcan.Vulcan().search(problem, ModelReader(problem.model), monitor, Options())
    assert stopped.statistics.samples == 1024
    assert stopped.policy == solve(name, samples=1024).policy


def test_threads_change_nothing() -> None:
    one, *others = (
        vulcan.solve(PROBLEMS["compiled"], vulcan.Vulcan(), samples=20_000, workers=workers)
        for workers in (1, 2, 3)
    )
    assert one.stopped_by == "limit of samples"
    for other in others:
        require_same(other, one)
        assert other.upper_bound == one.upper_bound


# Checkpoints. Searches are stopped between two batches of samples, as a clock stops them.


def samples_in(path: Path) -> int:
    """Return how many samples a checkpoint holds."""
    snapshot = msgspec.msgpack.decode(SEAL.read(path), type=Snapshot)
    return int(np.frombuffer(snapshot.arrays["numbers"], np.float64)[0])


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("first", [1, 100, 4096])
def test_a_resumed_search_ends_where_an_unbroken_one_ends(
    tmp_path: Path, unbroken: dict[str, vulcan.Result], name: str, first: int
) -> None:
    path = tmp_path / "search"
    assert solve(name, samples=first, checkpoint=path).statistics.samples == first
    # A search that began anew would end there as well, so look at what it began with.
    assert samples_in(path) == first
    resumed = solve(name, checkpoint=path, resume=True)
    assert samples_in(path) == SAMPLES
    require_same(resumed, unbroken[name])
    assert resumed.statistics.histories == unbroken[name].statistics.histories
    assert resumed.statistics.memory == unbroken[name].statistics.memory
    assert resumed.upper_bound == unbroken[name].upper_bound


@pytest.mark.parametrize("name", ["unmerged", "compiled"])
def test_a_policy_of_the_local_constraint_is_not_lost(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PricePlanner, "_plan", lambda *_: None)
    path = tmp_path / "search"
    whole = solve(name)
    assert "(local constraint B)" in whole.explanation
    solve(name, samples=2000, checkpoint=path)
    resumed = solve(name, checkpoint=path, resume=True)
    assert resumed.explanation == whole.explanation
    require_same(resumed, whole)


def test_threads_may_change_when_a_search_goes_on(
    tmp_path: Path, unbroken: dict[str, vulcan.Result]
) -> None:
    path = tmp_path / "search"
    solve("compiled", samples=1024, checkpoint=path, workers=2)
    require_same(solve("compiled", checkpoint=path, resume=True, workers=1), unbroken["compiled"])


SCRIPT = """
import sys, vulcan
from tests.solvers.tree.test_vulcan_repeats import KILLED
problem, samples = KILLED[sys.argv[3]]
options = dict(samples=samples, checkpoint=sys.argv[1], checkpoint_every=0.02, resume=True)
vulcan.solve(problem, vulcan.Vulcan(), **options).policy.save(sys.argv[2])
"""
KILLED = {
    "plain": (vulcan.Problem(Treasure(20), 0.15), 6000),
    "compiled": (vulcan.Problem(Exploration(7), vulcan.parse(BOUND)), 16_000),
}
"""What is searched, with how many samples: enough to be killed among them."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KILLED)
def test_kill_9_at_a_random_moment(tmp_path: Path, kind: str) -> None:
    checkpoint, plan = tmp_path / "search", tmp_path / "plan"
    problem, samples = KILLED[kind]
    command = [sys.executable, "-c", SCRIPT, str(checkpoint), str(plan), kind]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not checkpoint.exists():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(random.uniform(0.0, 0.1))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert 0 < samples_in(checkpoint) < samples
    subprocess.run(command, check=True, capture_output=True)
    whole = vulcan.solve(problem, vulcan.Vulcan(), samples=samples)
    assert whole.stopped_by == "limit of samples"
    assert vulcan.Policy.load(plan) == whole.policy


def test_damaged_checkpoints_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "search"
    solve("unmerged", samples=50, checkpoint=path)
    data = path.read_bytes()
    for broken in (data[:-1], data[: len(data) // 2], b"", data[:-40] + b"x" * 40, b"PK" + data):
        path.write_bytes(broken)
        with pytest.raises(vulcan.CheckpointError, match="search: "):
            solve("unmerged", checkpoint=path, resume=True)


@pytest.mark.parametrize(
    ("first", "then"),
    [(vulcan.LocalVulcan(), vulcan.Vulcan()), (vulcan.Vulcan(), vulcan.LocalVulcan())],
    ids=["local first", "prices first"],
)
def test_the_checkpoint_of_another_planner_is_refused(
    tmp_path: Path, first: Any, then: Any
) -> None:
    path = tmp_path / "search"
    problem = PROBLEMS["unmerged"]
    vulcan.solve(problem, first, samples=100, checkpoint=path)
    with pytest.raises(vulcan.CheckpointError, match=r"solver: .*Vulcan there, .*Vulcan here"):
        vulcan.solve(problem, then, samples=200, checkpoint=path, resume=True)


def test_another_risk_bound_is_refused(tmp_path: Path) -> None:
    def bound(slope: float) -> vulcan.Concave:
        return vulcan.Concave(lambda x: slope * x)

    options: dict[str, Any] = {"checkpoint": tmp_path / "search", "samples": 2000}
    model = Bandit(7, merges=False)
    vulcan.solve(vulcan.Problem(model, bound(0.01)), vulcan.Vulcan(), **options)
    with pytest.raises(vulcan.CheckpointError, match="risk bound is not the one"):
        vulcan.solve(vulcan.Problem(model, bound(0.002)), vulcan.Vulcan(), resume=True, **options)
