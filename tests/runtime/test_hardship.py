"""Two searches on one checkpoint, several in one process, and a disk that is full."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import vulcan
from tests.helpers.processes import COMMAND
from vulcan.domains import Bandit
from vulcan.runtime.files import write_atomically

MODEL = ("bandit", "--set", "horizon=9", "--set", "merges=False", "--bound", "0.002*x")
SEARCH = ("solve", *MODEL, "--solver", "vulcan", "--samples", "4000", "--json")


def solve(samples=3000):
    problem = vulcan.Problem(Bandit(9, merges=False), vulcan.Linear(0.002))
    return vulcan.solve(problem, vulcan.Vulcan(), samples=samples)


def test_two_processes_write_one_checkpoint(tmp_path):
    path = tmp_path / "run.ckpt"
    kept = ("--checkpoint", str(path), "--checkpoint-every", "0", "--overwrite")
    started = [
        subprocess.Popen([*COMMAND, *SEARCH, *kept], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0, 0], answers
    assert os.listdir(tmp_path) == ["run.ckpt"]
    problem = vulcan.Problem(Bandit(9, merges=False), vulcan.Linear(0.002))
    resumed = vulcan.solve(problem, vulcan.Vulcan(), samples=4000, checkpoint=path, resume=True)
    assert resumed.safe
    assert resumed.statistics.samples >= 4000


def test_threads_of_one_process_plan_as_one_does():
    alone = solve()
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda _: solve(), range(4)))
    assert all(result.policy == alone.policy for result in together)
    assert all(result.certificate == alone.certificate for result in together)


def test_a_search_that_can_not_keep_its_copy_goes_on(tmp_path):
    """No file may have more than 4,000 bytes, which is how a disk is full for one process."""
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000)); "
        "from vulcan.cli import main; main()"
    )
    path, plan = tmp_path / "run.ckpt", tmp_path / "plan.vulcan"
    command = [sys.executable, "-c", program, *SEARCH, "--checkpoint", str(path), "-o", str(plan)]
    answer = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert "the checkpoint could not be written: [Errno 27] File too large" in answer.stderr
    assert "✓" in answer.stdout or '"safe": true' in answer.stdout
    assert answer.returncode == 2
    assert "File too large" in answer.stderr.splitlines()[-1]
    assert os.listdir(tmp_path) == []


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 kB, where the machine lets us have one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_leaves_the_old_file(small_disk):
    path = small_disk / "plan.vulcan"
    write_atomically(path, b"old")
    with pytest.raises(OSError, match="No space left on device"):
        write_atomically(path, os.urandom(100_000))
    assert path.read_bytes() == b"old"
    assert os.listdir(small_disk) == ["plan.vulcan"]
