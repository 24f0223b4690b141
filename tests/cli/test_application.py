"""The command line as a whole: version, help, strings, screens, start."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from io import StringIO

import pytest
from rich.console import Console

import vulcan
from tests.helpers.command_line import SMALL
from tests.helpers.model_files import write
from vulcan.cli import ExitCode, output
from vulcan.cli.options import spell_out
from vulcan.cli.search import read_size
from vulcan.runtime.formatting import TextTable
from vulcan.solvers.base import load_solvers


def test_version(run):
    assert run("--version").out == f"vulcan {vulcan.__version__}\n"


@pytest.mark.parametrize("command", ["solve", "frontier", "compare", "check", "certify", "show"])
def test_every_option_is_documented_and_every_command_has_examples(run, command):
    answer = run(command, "--help")
    assert answer.code == 0
    assert f"Examples:\n    vulcan {command} " in answer.out
    options = answer.out.partition("Options:\n")[2].partition("\n\n")[0]
    for option in re.findall(r"^  (-.*)$", options, re.MULTILINE):
        assert re.search(r"\S  +\S", option) or len(option) > 26, option
    assert all(len(line) <= 80 for line in answer.out.splitlines())
    assert command in run("--help").out


def test_a_bound_that_refuses_nothing_is_told_in_a_line(run):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        answer = run("solve", *SMALL, "--bound", "5")
    assert answer.code == 0
    assert "Warning: every policy is acceptable under this bound" in answer.err
    assert ".py" not in answer.err


def test_help_lists_the_exit_codes_and_says_when_searches_end(run):
    overview = run("--help").out
    codes = [
        ExitCode.YES,
        ExitCode.NO,
        ExitCode.BAD_INPUT,
        ExitCode.OWN_BOUND,
        ExitCode.DEFECT,
        ExitCode.INTERRUPTED,
        ExitCode.TERMINATED,
    ]
    assert re.findall(r"\b\d+ ", overview.partition("Exit codes:")[2]) == [f"{c} " for c in codes]
    told = " ".join(run("solve", "--help").out.split())
    assert "searches that grow or sample end after about 20 s" in told


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("vulcan solve bandit --local-test ", ["A", "B"]),
        ("vulcan solve bandit --credit ", ["expected", "received"]),
        ("vulcan solve bandit --solver ", list(load_solvers())),
        ("vulcan frontier bandit --on ", ["graph", "tree"]),
        ("vulcan solve ban", ["bandit"]),
        ("vulcan fron", ["frontier"]),
        ("vulcan cert", ["certify"]),
    ],
)
def test_words_are_completed(run, monkeypatch, words, completions):
    monkeypatch.setenv("_VULCAN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    assert run().out.split() == completions


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1234", 1234),
        ("4GB", 4_000_000_000),
        ("1.5GiB", 3 << 29),
        ("500 mb", 500_000_000),
        ("2MiB", 2 << 20),
        (" 7 ", 7),
        ("0.3kB", 300),
    ],
)
def test_sizes(text, size):
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "4G", "-1", "1e9", "4,5GB", "nan", "٣", "9" * 99])
def test_what_is_no_size(text):
    with pytest.raises(vulcan.errors.OptionError, match="--memory is a number of bytes"):
        read_size(text)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("bandit --horizon 9 --json", "bandit --set horizon=9 --json"),
        ("bandit --horizon=9", "bandit --set horizon=9"),
        ("--horizon 9 --set slip=1", "--set horizon=9 --set slip=1"),
        ("bandit --horizon", "bandit --horizon"),
        ("bandit --horizons 9", "bandit --horizons 9"),
    ],
)
def test_the_horizon_is_a_setting(given, written):
    assert spell_out(given.split()) == written.split()


TABLE = TextTable(
    ["", "solver", "reward", "evaluations", ""],
    [["✓", "vulcan", "6.000000", "1,234,567", "best policy that constraint B admits"]],
    left=2,
)


def show(width, function, *arguments):
    console = Console(file=StringIO(), width=width, highlight=False, markup=False)
    function(console, *arguments)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [50, 80, 200])
def test_tables_fit_and_lose_nothing(width):
    lines = show(width, output.show_table, TABLE)
    assert all(len(line) <= width for line in lines)
    assert set(" ".join(TABLE.rows[0]).split()) <= set(" ".join(lines).split())


def test_help_loads_neither_numpy_nor_solvers() -> None:
    code = (
        "import sys; sys.argv = ['vulcan', '--help']\n"
        "from vulcan.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "names = {'numpy', 'numba', 'scipy', 'msgspec', 'rich'}\n"
        "names |= {'vulcan.solvers', 'vulcan.planning'}\n"
        "print(sorted(names & set(sys.modules)))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"
    for command in ("solve", "frontier", "compare", "check", "certify", "show"):
        assert f"\n  {command} " in run.stdout
    assert "Find the best policy within a risk bound, and certify it." in run.stdout


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


def run_in(command, folder):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    answer = subprocess.run(
        command, check=False, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    assert "✓ safe" in answer.stdout
    assert not (folder / "run").exists()


def test_a_built_in_model_imports_nothing_from_here(command, folder):
    run_in((*command, *SOLVE), folder)


def test_a_module_from_here_does_not_bring_its_neighbours(command, folder):
    write(folder / "rover.py", ROVER)
    write(folder / "depot.py", "PRICE = 2.0\n")
    workers = ("--parallel", "processes:1")
    run_in((*command, "solve", "rover:Rover", "--bound", "0.8", *workers), folder)
