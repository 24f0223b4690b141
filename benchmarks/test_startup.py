"""How long `vulcan --help` takes, beside a bare typer program."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

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
