"""What lies in the current directory is run only if it is asked for."""

import os
import subprocess
import sys

import pytest

from tests.helpers.model_files import write

SOLVE = ("solve", "bandit", "--set", "horizon=2", "--bound", "0.002*x")

RUN = "from pathlib import Path\nPath(__file__).with_name('run').touch()\n"

ROVER = """
import numba  # the installed one
from depot import PRICE
from vulcan import Outcome

class Rover:
    horizon = 2
    def initial_state(self): return 0
    def actions(self, state): return ["go"]
    def outcomes(self, state, action): return [Outcome(0.5, PRICE, state + 1), Outcome.failure(0.5)]
"""


@pytest.fixture
def folder(tmp_path):
    """A directory with files that are called as modules are that Vulcan imports."""
    folder = tmp_path / "here"
    for name in ("numba", "numpy", "typer", "msgspec", "rich", "socket", "pickle"):
        write(folder / f"{name}.py", RUN)
    return folder


@pytest.fixture(params=["module", "script"])
def command(request, tmp_path):
    """The command line, as a module and as the script that is installed."""
    if request.param == "module":
        return (sys.executable, "-m", "vulcan")
    write(
        tmp_path / "bin" / "vulcan",
        "from vulcan.cli import main\nif __name__ == '__main__':\n    main()\n",
    )
    return (sys.executable, str(tmp_path / "bin" / "vulcan"))


def run(command, folder):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    answer = subprocess.run(
        command, check=False, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    assert "✓ safe" in answer.stdout
    assert not (folder / "run").exists()


def test_a_built_in_model_imports_nothing_from_here(command, folder):
    run((*command, *SOLVE), folder)


def test_a_module_from_here_does_not_bring_its_neighbours(command, folder):
    write(folder / "rover.py", ROVER)
    write(folder / "depot.py", "PRICE = 2.0\n")
    workers = ("--workers", "1", "--executor", "processes")
    run((*command, "solve", "rover:Rover", "--bound", "0.8", *workers), folder)
