"""How long `vulcan --help` takes, and what first commands compile."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest

BARE = """
import typer

application = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)


@application.command()
def solve(model: str) -> None: ...


@application.command()
def show(plan: str) -> None: ...


application()
"""


def test_help_beside_a_bare_program(tmp_path: Path, report: Callable[[str, str], None]) -> None:
    program = tmp_path / "bare.py"
    program.write_text(BARE)
    ours = [sys.executable, "-m", "vulcan", "--help"]
    bare = [sys.executable, str(program), "--help"]
    ratios = [measure(ours) / measure(bare) for _ in range(11)]
    report("seconds of --help / those of a bare typer program", f"{median(ratios):.2f}")
    assert median(ratios) < 2


def measure(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


COMMANDS = {
    "solve": ["solve", "bandit", "--bound", "0.002*x"],
    "demo": ["solve", "bandit", "--set", "horizon=9", "--bound", "0.002*x", "--gap", "0"],
    "compare": ["compare", "bandit", "--bound", "0.002*x", "--time-limit", "1"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_first_commands(name: str, tmp_path: Path, report: Callable[[str, str], None]) -> None:
    first, again = (measure_processor(COMMANDS[name], tmp_path) for _ in range(2))
    report(f"CPU seconds of {name} on a new machine, and again", f"{first:.1f}, {again:.1f}")
    assert first > again


def measure_processor(command: list[str], cache: Path) -> float:
    """Return the CPU seconds of a command with a directory of compiled kernels."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "VULCAN_CACHE_DIR": str(cache)}
    subprocess.run(
        [sys.executable, "-m", "vulcan", *command], capture_output=True, env=environment, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
