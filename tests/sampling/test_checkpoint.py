"""The same seed gives the same policy, also for a search that is stopped and resumed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import vulcan
from tests.helpers.missions import BOUND
from vulcan import Outcome
from vulcan.domains import Bandit, Exploration, TreasureGrid
from vulcan.kernels.paper_tree import CONTROL
from vulcan.sampling.checkpoint import SEAL, Snapshot

CURVED = vulcan.parse("(1 - exp(-0.1*x)) * 0.02")
PROBLEMS: dict[str, Any] = {
    "merged": (vulcan.Problem(TreasureGrid(20), 0.15), vulcan.Vulcan(), 6000),
    "unmerged": (vulcan.Problem(Bandit(7, merges=False), CURVED), vulcan.Vulcan(), 6000),
    "compiled": (vulcan.Problem(Exploration(5), vulcan.parse(BOUND)), vulcan.Vulcan(), 6000),
    "local": (vulcan.Problem(Bandit(9), CURVED), vulcan.LocalVulcan(), 20_000),
}


def solve(name: str, **options: Any) -> vulcan.Result:
    problem, solver, samples = PROBLEMS[name]
    return vulcan.solve(problem, solver, **{"samples": samples, "seed": 3, **options})


@cache
def search_unbroken(name: str) -> vulcan.Result:
    result = solve(name)
    # A search that is solved before would say little of one that goes on.
    assert result.stopped_by == "limit of samples"
    return result


def require_same(one: vulcan.Result, other: vulcan.Result) -> None:
    assert one.policy == other.policy
    assert one.certificate == other.certificate
    assert one.statistics.samples == other.statistics.samples


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_seed_repeats_a_search(name: str) -> None:
    again = solve(name)
    require_same(again, search_unbroken(name))
    assert again.statistics.histories == search_unbroken(name).statistics.histories
    assert again.upper_bound == search_unbroken(name).upper_bound


@pytest.mark.parametrize(
    "model", [Bandit(9, merges=False), Exploration(6)], ids=["unmerged", "compiled"]
)
def test_a_run_limited_by_time_can_be_repeated_by_its_samples(model: Any) -> None:
    problem = vulcan.Problem(model, vulcan.parse(BOUND))

    def is_repeated(limit: float) -> bool:
        timed = vulcan.solve(problem, vulcan.Vulcan(), time_limit=limit, seed=3)
        assert timed.stopped_by == "time limit"
        again = vulcan.solve(problem, vulcan.Vulcan(), samples=timed.statistics.samples, seed=3)
        return again.policy == timed.policy

    # If the clock cuts the last round off, it can't be repeated: on a busy machine it takes longer.
    assert any(map(is_repeated, (2.0, 4.0, 8.0)))


def test_threads_change_nothing() -> None:
    one, *others = (solve("compiled", samples=20_000, parallel=workers) for workers in (1, 2, 3))
    assert one.stopped_by == "limit of samples"
    for other in others:
        require_same(other, one)
        assert other.upper_bound == one.upper_bound


# Checkpoints. Searches are stopped between two batches of samples, as a clock stops them.


def samples_in(path: Path) -> int:
    """Return how many samples a checkpoint holds."""
    arrays = msgspec.msgpack.decode(SEAL.read(path), type=Snapshot).arrays
    if "control" in arrays:
        return int(np.frombuffer(arrays["control"], CONTROL)["samples"][0])
    return int(np.frombuffer(arrays["numbers"], np.float64)[0])


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("first", [1, 100, 1024, 4096])
def test_a_resumed_search_ends_where_an_unbroken_one_ends(tmp_path, name, first):
    path = tmp_path / "search"
    assert solve(name, samples=first, checkpoint=path).statistics.samples == first
    # A search that began anew would end there as well, so look at what it began with.
    assert samples_in(path) == first
    resumed = solve(name, checkpoint=vulcan.Checkpoint(path, resume=True))
    assert samples_in(path) == PROBLEMS[name][2]
    require_same(resumed, search_unbroken(name))
    assert resumed.statistics.histories == search_unbroken(name).statistics.histories
    assert resumed.statistics.memory == search_unbroken(name).statistics.memory
    assert resumed.upper_bound == search_unbroken(name).upper_bound


def test_threads_may_change_when_a_search_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "search"
    solve("compiled", samples=1024, checkpoint=path, parallel=2)
    require_same(
        solve("compiled", checkpoint=vulcan.Checkpoint(path, resume=True), parallel=1),
        search_unbroken("compiled"),
    )


SCRIPT = """
import sys, vulcan
from tests.sampling.test_checkpoint import KILLED
problem, samples = KILLED[sys.argv[3]]
checkpoint = vulcan.Checkpoint(sys.argv[1], every=0.02, resume=True)
options = dict(samples=samples, checkpoint=checkpoint)
vulcan.solve(problem, vulcan.Vulcan(), **options).policy.save(sys.argv[2])
"""
KILLED = {
    "plain": (vulcan.Problem(TreasureGrid(20), 0.15), 6000),
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


def test_no_file_yet_means_to_begin(tmp_path: Path) -> None:
    path = tmp_path / "search"
    assert (
        solve("local", checkpoint=vulcan.Checkpoint(path, resume=True)).policy
        == search_unbroken("local").policy
    )
    assert path.exists()


def test_checkpoint_of_another_search_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "search"
    solve("local", samples=100, checkpoint=path)
    other = "belongs to another search; what differs:"
    with pytest.raises(vulcan.errors.CheckpointError, match=rf"{other}\n  seed: 3 there, 4 here$"):
        solve("local", checkpoint=vulcan.Checkpoint(path, resume=True), seed=4)
    problem = vulcan.Problem(Bandit(6), 0.01)
    differences = (
        rf"{other}\n  model: it answers otherwise here\n"
        r"  risk bound: .*exp.* there, 0\.01 here\n  solver: LocalVulcan there, UCT here\n"
    )
    with pytest.raises(vulcan.errors.CheckpointError, match=differences):
        vulcan.solve(
            problem, vulcan.baselines.UCT(), checkpoint=vulcan.Checkpoint(path, resume=True), seed=3
        )


def test_a_checkpoint_is_resumed_or_overwritten_but_never_lost(tmp_path: Path) -> None:
    path = tmp_path / "search"
    solve("local", samples=100, checkpoint=path)
    written = path.read_bytes()
    for solver in (vulcan.LocalVulcan(), None):
        with pytest.raises(
            vulcan.errors.CheckpointError, match=r"exists already: resume=True .* overwrite"
        ):
            vulcan.solve(vulcan.Problem(Bandit(9), CURVED), solver, checkpoint=path)
    assert path.read_bytes() == written
    solve("local", samples=50, checkpoint=vulcan.Checkpoint(path, overwrite=True))
    assert samples_in(path) == 50


def test_a_checkpoint_does_not_change_what_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "search"
    problem = vulcan.Problem(Bandit(5), CURVED)
    told = vulcan.solve(problem, checkpoint=path)
    assert told.policy == vulcan.solve(problem).policy
    assert told.explanation.endswith("(no checkpoint: only a search that samples writes one)")
    assert not path.exists()
    # A limit of samples, and a search that was sampled before, are sampled.
    assert vulcan.solve(problem, checkpoint=path, samples=70).statistics.samples == 70
    assert (
        vulcan.solve(
            problem, checkpoint=vulcan.Checkpoint(path, resume=True), time_limit=60
        ).statistics.samples
        > 70
    )


def test_model_that_changed_is_refused(tmp_path: Path) -> None:
    class Fickle(Bandit):
        bonus = 0.0

        def outcomes(self, state: Any, action: Any) -> list[Outcome]:
            found = super().outcomes(state, action)
            if sum(count for count in state if isinstance(count, int)) < 2:
                return found
            return [Outcome(o.probability, o.reward + self.bonus, o.state, o.label) for o in found]

    problem = vulcan.Problem(Fickle(5), CURVED)
    options = {"checkpoint": tmp_path / "search", "seed": 3, "samples": 200}
    vulcan.solve(problem, vulcan.LocalVulcan(), **options)
    Fickle.bonus = 0.5
    options["checkpoint"] = vulcan.Checkpoint(tmp_path / "search", resume=True)
    with pytest.raises(vulcan.errors.CheckpointError, match="no longer answers"):
        vulcan.solve(problem, vulcan.LocalVulcan(), **options)


def test_options_that_make_no_sense(tmp_path: Path) -> None:
    with pytest.raises(vulcan.errors.OptionError, match="a path or a Checkpoint, not 7"):
        solve("local", checkpoint=7)
    with pytest.raises(vulcan.errors.OptionError, match="resume or overwrite, not both"):
        vulcan.Checkpoint(tmp_path / "search", resume=True, overwrite=True)
    problem = vulcan.Problem(Bandit(3), CURVED)
    with pytest.raises(vulcan.errors.OptionError, match="writes no checkpoints"):
        vulcan.solve(problem, vulcan.ForwardSearch(), checkpoint=tmp_path / "search")
    with pytest.raises(vulcan.errors.OptionError, match="at least 0"):
        vulcan.Checkpoint(tmp_path / "search", every=-1.0)


def test_another_function_of_the_same_name_is_refused(tmp_path: Path) -> None:
    def bound(slope: float) -> vulcan.Concave:
        return vulcan.Concave(lambda x: slope * x)

    options = {"checkpoint": tmp_path / "search", "seed": 1}
    model = Bandit(6)
    vulcan.solve(vulcan.Problem(model, bound(0.01)), vulcan.LocalVulcan(), samples=500, **options)
    again = vulcan.Problem(model, bound(0.01))
    options["checkpoint"] = vulcan.Checkpoint(tmp_path / "search", resume=True)
    vulcan.solve(again, vulcan.LocalVulcan(), samples=600, **options)
    other = vulcan.Problem(model, bound(0.002))
    with pytest.raises(vulcan.errors.CheckpointError, match="risk bound is not the one"):
        vulcan.solve(other, vulcan.LocalVulcan(), samples=700, **options)


def test_place_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere" / "search", tmp_path):
        with pytest.raises(vulcan.errors.CheckpointError, match="no file can be written"):
            solve("local", checkpoint=path)


def test_disk_that_fails_later_does_not_lose_the_search(tmp_path, monkeypatch, caplog):
    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("vulcan.runtime.files.write_atomically", fail)
    assert solve("local", checkpoint=tmp_path / "search").policy == search_unbroken("local").policy
    assert "disk full" in caplog.text
