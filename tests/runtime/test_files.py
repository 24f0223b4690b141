"""Files are replaced at once, plain files only; files left by killed processes are removed."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import vulcan
from tests.helpers.processes import COMMAND
from vulcan.domains import Bandit
from vulcan.runtime.files import remove_stale_files, write_atomically


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    """A mask that no machine has by default."""
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_a_new_file_has_the_mode_of_new_files(tmp_path):
    write_atomically(tmp_path / "plan", b"new")
    assert mode_of(tmp_path / "plan") == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o660, 0o666, 0o755])
def test_a_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "plan"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert mode_of(path) == mode


def test_a_link_stays_and_its_file_is_written(tmp_path):
    (tmp_path / "store").mkdir()
    file, link = tmp_path / "store" / "plan", tmp_path / "latest"
    link.symlink_to(file)
    for content in (b"one", b"two"):  # at first the link leads nowhere
        write_atomically(link, content)
        assert link.is_symlink()
        assert file.read_bytes() == content
    assert os.listdir(tmp_path / "store") == ["plan"]


def test_links_that_lead_in_a_circle_are_refused(tmp_path):
    (tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    with pytest.raises(OSError, match="symbolic links"):
        write_atomically(tmp_path / "one", b"new")
    assert (tmp_path / "one").is_symlink()


def test_pipes_and_sockets_are_refused_and_stay(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="only plain files are written"):
            write_atomically(tmp_path / name, b"new")
    with socket.socket(socket.AF_UNIX) as listener:
        folder = os.open(tmp_path, os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{folder}/socket")  # such addresses are short
        os.close(folder)
        with pytest.raises(OSError, match="only plain files are written"):
            write_atomically(tmp_path / "socket", b"new")
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe", "socket"]
    assert (tmp_path / "pipe").is_fifo()


def test_directories_are_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path, b"new")
    assert tmp_path.is_dir()


def test_what_is_missing_or_protected_is_named(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_atomically(tmp_path / "nowhere" / "plan", b"new")
    path = tmp_path / "plan"
    path.write_bytes(b"old")
    monkeypatch.setattr("vulcan.runtime.files.os.access", lambda name, _: Path(name) != path)
    with pytest.raises(PermissionError, match="plan"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_a_failure_on_the_way_leaves_the_old_content_and_nothing_else(tmp_path, monkeypatch, step):
    def fail(*_):
        raise OSError("no space left")

    path = tmp_path / "plan"
    path.write_bytes(b"old")
    monkeypatch.setattr(f"vulcan.runtime.files.os.{step}", fail)
    with pytest.raises(OSError, match="no space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["plan"]


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


def test_files_of_killed_processes_are_removed_and_those_of_living_ones_stay(
    tmp_path, start_writing
):
    path = tmp_path / "run.ckpt"
    killed, living = start_writing(path), start_writing(path)
    kill(killed)
    assert len(os.listdir(tmp_path)) == 2
    remove_stale_files(path)
    assert len(os.listdir(tmp_path)) == 1
    kill(living)
    write_atomically(path, b"new")
    assert os.listdir(tmp_path) == ["run.ckpt"]


def test_other_files_stay(tmp_path):
    names = [
        *(".run.ckpt.0123456.tmp", ".run.ckpt.0123456g.tmp", ".run.ckpt.01234567", "run.ckpt"),
        *(".run.ckpt.old.01234567.tmp", ".another.ckpt.01234567.tmp", ".runxckpt.01234567.tmp"),
    ]
    for name in names:
        (tmp_path / name).write_text("")
    (tmp_path / ".run.ckpt.00000000.tmp").mkdir()
    before = set(os.listdir(tmp_path))
    write_atomically(tmp_path / "run.ckpt", b"new")
    assert set(os.listdir(tmp_path)) == before


MODEL = ("bandit", "--set", "horizon=9", "--set", "merges=False", "--bound", "0.002*x")
SEARCH = ("solve", *MODEL, "--solver", "vulcan", "--samples", "4000", "--json")


def solve(samples=3000):
    problem = vulcan.Problem(Bandit(9, merges=False), vulcan.Linear(0.002))
    return vulcan.solve(problem, vulcan.Vulcan(), samples=samples)


def test_two_processes_write_one_checkpoint(tmp_path):
    path = tmp_path / "run.ckpt"
    kept = ("--checkpoint", str(path), "--overwrite")
    started = [
        subprocess.Popen([*COMMAND, *SEARCH, *kept], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0, 0], answers
    assert os.listdir(tmp_path) == ["run.ckpt"]
    problem = vulcan.Problem(Bandit(9, merges=False), vulcan.Linear(0.002))
    resumed = vulcan.solve(
        problem, vulcan.Vulcan(), samples=4000, checkpoint=vulcan.Checkpoint(path, resume=True)
    )
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
