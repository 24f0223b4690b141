"""What the benchmarks share: the C++ yardsticks, and a table of results at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

YARDSTICKS = Path(
    os.environ.get("VULCAN_YARDSTICKS", Path(__file__).parents[2] / "shared" / "yardsticks")
)
RESULTS: list[tuple[str, str]] = []

# Ray looks at it when it is imported: no cluster listens beyond loopback.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"


@pytest.fixture
def report() -> Callable[[str, str], None]:
    """Return a function that adds a line to the table of results."""
    return lambda name, value: RESULTS.append((name, value))


@pytest.fixture(scope="session")
def yardstick(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[str]]:
    """Return a function that runs a yardstick program and gives the words that it printed.

    A program is a file NAME.cpp, or NAME/NAME.cpp with what it reads beside it.
    """
    compiler = shutil.which("g++")
    if compiler is None or not YARDSTICKS.is_dir():
        pytest.skip(f"no g++, or no yardsticks in {YARDSTICKS}; set VULCAN_YARDSTICKS")
    folder = tmp_path_factory.mktemp("yardsticks")

    def run(name: str, *arguments: object) -> list[str]:
        program, home = folder / name, YARDSTICKS / name
        alone = not home.is_dir()
        if not program.exists():
            source = (YARDSTICKS if alone else home) / f"{name}.cpp"
            flags = ["-O2"] if alone else ["-O3", "-march=native", "-std=c++17"]
            subprocess.run([compiler, *flags, "-o", program, source], check=True)
        command = [str(program), *map(str, arguments)]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=None if alone else home
        ).stdout.split()

    return run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table of results."""
    terminalreporter.section("measured")
    for name, value in RESULTS:
        terminalreporter.line(f"{name:<66} {value}")
