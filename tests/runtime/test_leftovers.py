"""What killed processes leave of the files that they were writing, and what is left alone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import vulcan
from vulcan.domains import Bandit
from vulcan.runtime.files import write_atomically
from vulcan.runtime.leftovers import open_temporary, remove_leftovers
from vulcan.solvers.tree.checkpoint import require_free

# It waits in the middle of writing, as a process does that is killed there.
WRITING = """
import sys, time
from vulcan.runtime import files

def wait(file):
    print("writing", flush=True)
    time.sleep(600)

files.os.fsync = wait
files.write_atomically(sys.argv[1], b"x" * 100_000)
"""


@pytest.fixture
def start_writing():
    """Start processes that write a file and come to no end."""
    started = []

    def start(path):
        command = [sys.executable, "-c", WRITING, str(path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "writing\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def kill(process):
    process.kill()
    process.wait()


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not(
    tmp_path, start_writing
):
    path = tmp_path / "run.ckpt"
    killed, living = start_writing(path), start_writing(path)
    kill(killed)
    assert len(os.listdir(tmp_path)) == 2
    require_free(path, resume=False, overwrite=False)
    assert len(os.listdir(tmp_path)) == 1
    kill(living)
    require_free(path, resume=False, overwrite=False)
    assert os.listdir(tmp_path) == []


def test_a_search_that_begins_removes_what_was_left(tmp_path, start_writing):
    path = tmp_path / "run.ckpt"
    kill(start_writing(path))
    problem = vulcan.Problem(Bandit(3, merges=False), vulcan.Linear(0.002))
    vulcan.solve(problem, vulcan.Vulcan(), samples=2, checkpoint=path)
    assert os.listdir(tmp_path) == ["run.ckpt"]


def test_whoever_writes_a_file_again_removes_what_was_left(tmp_path, start_writing):
    path = tmp_path / "plan.vulcan"
    kill(start_writing(path))
    write_atomically(path, b"new")
    assert os.listdir(tmp_path) == ["plan.vulcan"]


def test_other_files_stay(tmp_path):
    names = [
        *(".run.ckpt.0123456.tmp", ".run.ckpt.0123456g.tmp", ".run.ckpt.01234567", "run.ckpt"),
        *(".run.ckpt.old.01234567.tmp", ".another.ckpt.01234567.tmp", ".runxckpt.01234567.tmp"),
    ]
    for name in names:
        (tmp_path / name).write_text("")
    (tmp_path / ".run.ckpt.00000000.tmp").mkdir()
    (tmp_path / ".run.ckpt.00000001.tmp").symlink_to("run.ckpt")
    before = set(os.listdir(tmp_path))
    (tmp_path / ".run.ckpt.01234567.tmp").write_text("")
    remove_leftovers(tmp_path / "run.ckpt")
    assert set(os.listdir(tmp_path)) == before


def test_a_file_that_was_removed_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    from vulcan.runtime import leftovers

    lock, calls = leftovers._lock, []

    def lock_late(file):
        calls.append(file)
        if len(calls) == 1:
            remove_leftovers(tmp_path / "plan")  # by somebody else, who locks it first
        return lock(file)

    monkeypatch.setattr(leftovers, "_lock", lock_late)
    with open_temporary(tmp_path / "plan", 0o600) as stream:
        assert os.path.exists(stream.name)
    assert len(calls) == 3
