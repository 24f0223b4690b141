"""The reproduction as a whole: resuming, redrawing, errors, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reproduction import reproduce
from reproduction.parts import PARTS
from reproduction.runner import Advance
from reproduction.store import Store
from vulcan.errors import OptionError


def test_what_was_run_is_not_run_again(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (folder / "data-quick").iterdir()}
    told: list[Advance] = []
    reproduce(folder, quick=True, only=["penalty", "policy-space"], on_advance=told.append)
    assert [(advance.done, advance.total) for advance in told] == [(0, 0)]
    assert {path: path.stat().st_mtime_ns for path in (folder / "data-quick").iterdir()} == before


def test_figures_are_drawn_again_without_running(folder: Path) -> None:
    figure = next((folder / "figures").glob("*.png"))
    content = figure.read_bytes()
    figure.unlink()
    reproduce(folder, quick=True, redraw=True)
    assert figure.read_bytes() == content


def test_every_part_can_be_told_apart() -> None:
    names = [part.name for part in PARTS]
    assert len(set(names)) == len(names)
    for part in PARTS:
        for quick in (True, False):
            tasks = part.tasks(quick)
            texts = [json.dumps(dict(task), sort_keys=True) for task in tasks]
            assert len(set(texts)) == len(texts) > 0
            assert [json.loads(text) for text in texts] == [dict(task) for task in tasks]
            assert all(part.estimate(task) > 0 for task in tasks)
        quick_work = sum(part.estimate(task) for task in part.tasks(True))
        assert quick_work <= sum(part.estimate(task) for task in part.tasks(False))


def test_errors_say_what_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no part 'penalti'; did you mean 'penalty'"):
        reproduce(tmp_path, only=["penalti"])
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match="no folder can be made there"):
        reproduce(tmp_path / "file" / "report")
    command = [sys.executable, "-m", "reproduction", "--only", "nothing", "-o", str(tmp_path)]
    found = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout) == (2, "")
    assert "no part 'nothing'" in found.stderr


def test_quick_and_full_reports_have_folders_of_their_own(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="has a quick reproduction in it"):
        reproduce(folder, redraw=True)
    with pytest.raises(OptionError, match="no data of such a reproduction"):
        reproduce(tmp_path, quick=True, redraw=True)


def test_ctrl_c_keeps_what_was_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "reproduction", "--quick", "--workers", "1"]
    command += ["--only", "penalty", "--only", "convergence", "-o", str(tmp_path)]
    run = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    data = tmp_path / "data-quick"
    deadline = time.monotonic() + 60
    while not any(data.glob("*.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(run.pid, signal.SIGINT)
    output, errors = run.communicate(timeout=30)
    assert run.returncode == 130, errors
    parts = [part for part in PARTS if part.name in ("penalty", "convergence")]
    store, total = Store(data), sum(len(part.tasks(True)) for part in parts)
    done = total - sum(len(store.missing(part, part.tasks(True))) for part in parts)
    assert 0 < done < total
    assert f"interrupted: {done:,} of {total:,} tasks were run and are kept".encode() in output
    assert "tasks were run" in (tmp_path / "index.html").read_text()
    told: list[Advance] = []

    def stop(advance: Advance) -> None:
        told.append(advance)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path, quick=True, only=["penalty", "convergence"], workers=1, on_advance=stop)
    assert told[0].total == total - done  # what was run is not run again
