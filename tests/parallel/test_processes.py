"""Processes: how they start, die, and are told of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.helpers.workers import Held, Slow
from vulcan.errors import OptionError
from vulcan.parallel.executors import WorkerLostError
from vulcan.parallel.pool import WorkerPool
from vulcan.parallel.processes import Processes

SCRIPT = """
from vulcan.parallel.pool import WorkerPool
from vulcan.parallel.processes import Processes

class Mine:
    def __init__(self, channel): pass
    def add(self, number): return number + 1

def main():
    with WorkerPool(Processes(1), Mine) as pool:
        print(pool.map("add", [1]))

{guard}main()
"""


def count_open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until_gone(pid: int) -> bool:
    until = time.monotonic() + 10
    while exists(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not exists(pid)


def test_calls_are_answered_in_their_order_and_a_stop_is_for_all_of_them() -> None:
    worker = Processes(1).start_worker(Slow, 1)  # stopped before it is even made
    futures = [worker.call("search", 30.0), worker.call("search", 30.0)]
    worker.stop()
    later = worker.call("search", 0.0)
    assert [future.result(20) for future in (*futures, later)] == [True, True, False]
    assert worker.call("threads").result(20) == "1"
    worker.close()
    assert isinstance(worker.call("add", 1).exception(20), WorkerLostError)
    worker.stop()


def test_nothing_is_left_of_a_pool_that_was_closed(tmp_path: Path) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("files can't be counted here")
    with WorkerPool(Processes(1), Held) as pool:  # whatever stays for ever is there now
        pool.map("add", [1])
    time.sleep(0.1)
    files, threads = count_open_files(), threading.active_count()
    with WorkerPool(Processes(2), Held) as pool:
        pids = set(pool.map("pid", range(20)))
        pool.submit("search", 30.0)
        pool.submit("die_once", str(tmp_path / "died"))
        pool.wait()
        pool.wait()
    assert all(wait_until_gone(pid) for pid in pids)
    until = time.monotonic() + 5
    while threading.active_count() > threads and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() == threads
    del pool
    assert count_open_files() <= files


def test_a_worker_that_is_killed_while_it_works_is_lost() -> None:
    worker = Processes(1).start_worker(Held)
    pid = worker.call("pid").result(20)
    future = worker.call("search", 30.0)
    os.kill(pid, signal.SIGKILL)
    error = future.exception(10)
    assert isinstance(error, WorkerLostError)
    assert str(error) == "its process ended (exit code -9)"
    worker.close()


def test_ctrl_c_is_left_to_the_parent() -> None:
    worker = Processes(1).start_worker(Held)
    os.kill(worker._process.pid, signal.SIGINT)  # while it starts
    pid = worker.call("pid").result(20)
    os.kill(pid, signal.SIGINT)
    assert worker.call("add", 1).result(20) == 1
    worker.close()


def run_script(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    path = folder / "script.py"
    path.write_text(text)
    return subprocess.run(
        [sys.executable, path], check=False, capture_output=True, text=True, timeout=120
    )


def test_a_script_that_starts_workers_when_it_is_imported_is_told_what_to_write(tmp_path):
    done = run_script(tmp_path, SCRIPT.format(guard=""))
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert 'if __name__ == "__main__":' in last
    assert "OptionError" in last
    assert "bootstrapping" not in done.stderr  # what multiprocessing says
    done = run_script(tmp_path, SCRIPT.format(guard='if __name__ == "__main__":\n    '))
    assert (done.returncode, done.stdout) == (0, "[2]\n")


def test_what_a_prompt_defines_can_not_be_imported_elsewhere() -> None:
    text = SCRIPT.format(guard="")
    done = subprocess.run(
        [sys.executable, "-c", text], check=False, capture_output=True, text=True, timeout=60
    )
    assert "OptionError: calls and answers must be picklable, and importable" in done.stderr
    assert "Mine" in done.stderr


def start_worker_inside(channel: object) -> None:
    Processes(1).start_worker(Held)


def test_a_worker_can_not_start_processes() -> None:
    with (
        WorkerPool(Processes(1), start_worker_inside) as pool,
        pytest.raises(OptionError, match="its own"),
    ):
        pool.map("add", [1])


ORPHANS = """
import os, sys
from tests.helpers.workers import Held
from vulcan.parallel.pool import WorkerPool
from vulcan.parallel.processes import Processes

if __name__ == "__main__":
    pool = WorkerPool(Processes(2), Held)
    print(*set(pool.map("pid", range(8))), flush=True)
    pool.submit("search", 60.0)
    pool.wait()
    os.kill(os.getpid(), 9)
"""


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "orphans.py"
    path.write_text(ORPHANS)
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([root, *sys.path])}
    done = subprocess.run(
        [sys.executable, path],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        check=False,
    )
    assert done.returncode == -9
    pids = list(map(int, done.stdout.split()))
    assert pids
    assert all(wait_until_gone(pid) for pid in pids)


def test_the_environment_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    Processes(1).start_worker(Held).close()
    assert os.environ["OMP_NUM_THREADS"] == "5"
    assert "OPENBLAS_NUM_THREADS" not in os.environ
