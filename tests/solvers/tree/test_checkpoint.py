"""Checkpoints: killed at any moment, a search goes on as if nothing had happened."""

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
from vulcan import Outcome
from vulcan.domains import Bandit
from vulcan.kernels.tree_search import CONTROL
from vulcan.solvers.tree.checkpoint import SEAL, Snapshot
from vulcan.solvers.tree.sampling import TreeRun

CURVED = vulcan.parse("(1 - exp(-0.1*x)) * 0.02")
OPTIONS: dict[str, Any] = {"seed": 3, "samples": 20_000}


def solve(**options: Any) -> vulcan.Result:
    problem = vulcan.Problem(Bandit(9), CURVED)
    return vulcan.solve(problem, vulcan.LocalVulcan(), **{**OPTIONS, **options})


@pytest.fixture(scope="module")
def unbroken() -> vulcan.Result:
    result = solve()
    # A search that is solved before would say little of one that goes on.
    assert result.stopped_by == "limit of samples"
    return result


def samples_in(path: Path) -> int:
    """Return how many samples a checkpoint holds."""
    snapshot = msgspec.msgpack.decode(SEAL.read(path), type=Snapshot)
    return int(np.frombuffer(snapshot.arrays["control"], CONTROL)["samples"][0])


def test_resuming_takes_no_sample_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "search"
    solve(samples=7777, checkpoint=path)
    begun: list[int] = []
    restore = TreeRun.restore

    def watch(run: TreeRun, snapshot: Snapshot) -> None:
        restore(run, snapshot)
        begun.append(run.samples)

    monkeypatch.setattr(TreeRun, "restore", watch)
    solve(checkpoint=path, resume=True)
    assert begun == [7777]


@pytest.mark.parametrize("first", [1, 1000, 1024, 7777])
def test_a_resumed_search_ends_where_an_unbroken_one_ends(
    tmp_path: Path, unbroken: vulcan.Result, first: int
) -> None:
    path = tmp_path / "search"
    assert solve(samples=first, checkpoint=path).statistics.samples == first
    # A search that began anew would end there as well, so look at what it began with.
    assert samples_in(path) == first
    resumed = solve(checkpoint=path, resume=True)
    assert samples_in(path) == OPTIONS["samples"]
    assert resumed.policy == unbroken.policy
    assert resumed.certificate == unbroken.certificate
    assert resumed.statistics.histories == unbroken.statistics.histories
    assert resumed.statistics.samples == unbroken.statistics.samples
    assert resumed.statistics.memory == unbroken.statistics.memory


SCRIPT = """
import sys, vulcan
from vulcan.domains import Bandit
problem = vulcan.Problem(Bandit(10), vulcan.parse("(1 - exp(-0.1*x)) * 0.02"))
options = dict(seed=5, samples=100_000, checkpoint=sys.argv[1], checkpoint_every=0.05)
result = vulcan.solve(problem, vulcan.LocalVulcan(), resume=True, **options)
result.policy.save(sys.argv[2])
"""


@pytest.mark.slow
def test_kill_9_at_random_moments(tmp_path: Path) -> None:
    checkpoint, plan = tmp_path / "search", tmp_path / "plan"
    command = [sys.executable, "-c", SCRIPT, str(checkpoint), str(plan)]
    taken = [0]
    for _ in range(2):
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        # It has begun in earnest once it has written a checkpoint of its own.
        while not checkpoint.exists() or checkpoint.stat().st_mtime_ns == before:
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(random.uniform(0.05, 0.3))
        process.send_signal(signal.SIGKILL)
        process.wait()
        taken.append(samples_in(checkpoint))
    # Each went on from the one before, and none got to the end.
    assert taken == sorted(taken)
    assert 0 < taken[-1] < 100_000
    subprocess.run(command, check=True, capture_output=True)
    problem = vulcan.Problem(Bandit(10), CURVED)
    whole = vulcan.solve(problem, vulcan.LocalVulcan(), seed=5, samples=100_000)
    assert whole.stopped_by == "limit of samples"
    assert vulcan.Policy.load(plan) == whole.policy
    assert sorted(path.name for path in tmp_path.iterdir()) in (
        ["plan", "search"],
        sorted(["plan", "search", *(p.name for p in tmp_path.glob(".search.*"))]),
    )


def test_no_file_yet_means_to_begin(tmp_path: Path, unbroken: vulcan.Result) -> None:
    path = tmp_path / "search"
    assert solve(checkpoint=path, resume=True).policy == unbroken.policy
    assert path.exists()


def test_checkpoint_of_another_search_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "search"
    solve(samples=100, checkpoint=path)
    other = "belongs to another search; what differs:"
    with pytest.raises(vulcan.CheckpointError, match=rf"{other}\n  seed: 3 there, 4 here$"):
        solve(checkpoint=path, resume=True, seed=4)
    problem = vulcan.Problem(Bandit(6), 0.01)
    differences = (
        rf"{other}\n  model: it answers otherwise here\n"
        r"  risk bound: .*exp.* there, 0\.01 here\n  solver: LocalVulcan there, UCT here\n"
    )
    with pytest.raises(vulcan.CheckpointError, match=differences):
        vulcan.solve(problem, vulcan.UCT(), checkpoint=path, resume=True, **OPTIONS)


def test_a_checkpoint_is_resumed_or_overwritten_but_never_lost(tmp_path: Path) -> None:
    path = tmp_path / "search"
    solve(samples=100, checkpoint=path)
    written = path.read_bytes()
    for solver in (vulcan.LocalVulcan(), None):
        with pytest.raises(vulcan.CheckpointError, match=r"exists already: resume .* overwrite"):
            vulcan.solve(vulcan.Problem(Bandit(9), CURVED), solver, checkpoint=path)
    assert path.read_bytes() == written
    solve(samples=50, checkpoint=path, overwrite=True)
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
        vulcan.solve(problem, checkpoint=path, resume=True, time_limit=60).statistics.samples > 70
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
    options = {"checkpoint": tmp_path / "search", **OPTIONS, "samples": 200}
    vulcan.solve(problem, vulcan.LocalVulcan(), **options)
    Fickle.bonus = 0.5
    with pytest.raises(vulcan.CheckpointError, match="no longer answers"):
        vulcan.solve(problem, vulcan.LocalVulcan(), resume=True, **options)


def test_damaged_checkpoints_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "search"
    solve(samples=50, checkpoint=path)
    data = path.read_bytes()
    for broken in (data[:-1], data[: len(data) // 2], b"", data[:-40] + b"x" * 40, b"PK" + data):
        path.write_bytes(broken)
        with pytest.raises(vulcan.CheckpointError, match="search: "):
            solve(checkpoint=path, resume=True)


def test_options_that_make_no_sense(tmp_path: Path) -> None:
    with pytest.raises(vulcan.OptionError, match="resume needs a checkpoint"):
        solve(resume=True)
    with pytest.raises(vulcan.OptionError, match="overwrite needs a checkpoint"):
        solve(overwrite=True)
    with pytest.raises(vulcan.OptionError, match="resume or overwrite, not both"):
        solve(checkpoint=tmp_path / "search", resume=True, overwrite=True)
    problem = vulcan.Problem(Bandit(3), CURVED)
    with pytest.raises(vulcan.OptionError, match="writes no checkpoints"):
        vulcan.solve(problem, vulcan.ForwardSearch(), checkpoint=tmp_path / "search")
    with pytest.raises(vulcan.OptionError, match="at least 0"):
        solve(checkpoint=tmp_path / "search", checkpoint_every=-1.0)


def test_another_function_of_the_same_name_is_refused(tmp_path: Path) -> None:
    def bound(slope: float) -> vulcan.Concave:
        return vulcan.Concave(lambda x: slope * x)

    options = {"checkpoint": tmp_path / "search", "seed": 1}
    model = Bandit(6)
    vulcan.solve(vulcan.Problem(model, bound(0.01)), vulcan.LocalVulcan(), samples=500, **options)
    again = vulcan.Problem(model, bound(0.01))
    vulcan.solve(again, vulcan.LocalVulcan(), samples=600, resume=True, **options)
    other = vulcan.Problem(model, bound(0.002))
    with pytest.raises(vulcan.CheckpointError, match="risk bound is not the one"):
        vulcan.solve(other, vulcan.LocalVulcan(), samples=700, resume=True, **options)


def test_place_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere" / "search", tmp_path):
        with pytest.raises(vulcan.CheckpointError, match="no file can be written"):
            solve(checkpoint=path)


def test_disk_that_fails_later_does_not_lose_the_search(
    tmp_path: Path, unbroken: vulcan.Result, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("vulcan.runtime.files.write_atomically", fail)
    assert solve(checkpoint=tmp_path / "search").policy == unbroken.policy
    assert "disk full" in caplog.text
