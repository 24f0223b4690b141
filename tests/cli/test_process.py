"""The command line as other programs and terminals meet it: a process with pipes or a terminal."""

import json
import os
import pty
import random
import signal
import subprocess
import sys

import pytest

import vulcan
from tests.helpers.model_files import write
from tests.helpers.processes import COMMAND, interrupt

SMALL = ("solve", "bandit", "--set", "horizon=2", "--bound", "0.002*x")

LONG = (
    *("solve", "bandit", "--set", "horizon=15", "--bound", "0.002*x"),
    *("--solver", "forward-search"),
)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "VULCAN_DEBUG", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def run(*arguments, **options):
    return start([*COMMAND, *arguments], **options)


def start(command, **options):
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=120, **options
    )


@pytest.mark.parametrize("solver", ["vulcan", "uct"])
def test_ctrl_c_at_a_random_moment_shows_the_best_so_far(solver):
    # Where states merge, pairs would prove the best policy before that.
    unmerged = ("bandit", "--set", "horizon=12", "--set", "merges=False", "--bound", "0.002*x")
    command = ("solve", *unmerged, "--solver", solver, "--json")
    document = json.loads(interrupt(command, delay=random.uniform(0.0, 1.0)))
    assert document["stopped_by"] == "Ctrl-C"
    assert document["certificate"]["complete"]
    assert document["safe"] or solver == "uct"


def test_workers_know_classes_of_files_and_print_nothing_into_the_answer(tmp_path):
    write(
        tmp_path / "ferry.py",
        "from dataclasses import dataclass\n"
        "from vulcan import Outcome\n"
        "from depot import PRICE\n"
        "print('loaded')\n"
        "@dataclass(frozen=True)\n"
        "class Place:\n"
        "    name: int\n"
        "class Ferry:\n"
        "    horizon = 2\n"
        "    def initial_state(self): return Place(0)\n"
        "    def actions(self, state): return ['go', 'wait']\n"
        "    def outcomes(self, state, action):\n"
        "        print('asked')\n"
        "        if action == 'wait': return [Outcome(1.0, 0.0, state)]\n"
        "        return [Outcome(0.5, PRICE, Place(state.name + 1)), Outcome.failure(0.5)]\n",
    )
    write(tmp_path / "depot.py", "PRICE = 2.0\n")
    file = f"{tmp_path / 'ferry.py'}:Ferry"
    processes = ("--parallel", "processes:1")
    answer = run("solve", file, "--bound", "0.5", *processes, "--json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["certificate"]["reward"] == 1.0
    assert answer.stderr.count("loaded") == 2
    assert "asked" in answer.stderr


def test_pipes_get_plain_text():
    answer = start([sys.executable, "-m", "vulcan", *SMALL])
    assert answer.returncode == 0
    assert "✓ safe" in answer.stdout
    assert "\x1b" not in answer.stdout + answer.stderr


def test_terminals_get_colour():
    leader, follower = pty.openpty()
    process = subprocess.Popen([*COMMAND, *SMALL], stdout=follower, stderr=follower)
    os.close(follower)
    shown = b""
    try:
        while part := os.read(leader, 1 << 16):
            shown += part
    except OSError:
        pass  # how Linux says that the other end was closed
    os.close(leader)
    assert process.wait(timeout=120) == 0
    assert "\x1b[1;32m✓ safe" in shown.decode()


ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def test_every_command_answers_in_ascii(tmp_path):
    """Names, labels and paths of a model that no such terminal can show."""
    folder = tmp_path / "für"
    folder.mkdir()
    (folder / "modell.py").write_text(UNICODE_MODEL, encoding="utf-8")
    model, plan = "modell.py:Runner", "plän.vulcan"
    commands = [
        (0, "solve", model, "--bound", "0.1", "-o", plan),
        (0, "frontier", model),
        (0, "compare", model, "--bound", "0.1", "--solvers", "pareto,lagrangian"),
        (0, "check", model),
        (0, "certify", plan, model, "--bound", "0.1"),
        (0, "explain", plan, model),
        (0, "simulate", plan, model, "--episodes", "1000"),
        (0, "show", plan, model),
        (0, "show", plan, model, "--table"),
        (0, "show", plan, "--json"),
        (0, "explore", plan, model, "-o", "plän.html"),
        (2, "solve", "ñichts.py:Runner", "--bound", "0.1"),
        (2, "solve", model, "--bound", "0.1·x"),
        (2, "certify", "ñichts.vulcan", model),
        (0, "--help"),
    ]
    for code, *command in commands:
        answer = run(*command, env={**os.environ, **ASCII}, cwd=folder)
        assert "UnicodeEncodeError" not in answer.stderr, command
        assert (answer.stdout + answer.stderr).isascii()
        assert answer.returncode == code, (command, answer.stderr)
        if code == 0 and command[0] in ("solve", "certify"):
            assert answer.stdout.startswith("+ safe"), command


UNICODE_MODEL = """
import vulcan

class Runner:
    horizon = 2

    def initial_state(self):
        return "→ Straße ☃"

    def actions(self, state):
        return ["gehe ✓", "bleibe …"]

    def outcomes(self, state, action):
        if action == "gehe ✓":
            return [vulcan.Outcome(0.99, 1.0, state, label="é"), vulcan.Outcome.failure(0.01, 0.0)]
        return [vulcan.Outcome(1.0, 0.5, state)]
"""


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_reader_that_leaves_early_loses_no_plan(tmp_path, form):
    path = tmp_path / "plan.vulcan"
    for command in ((*SMALL, "-o", path), ("show", path)):
        process = subprocess.Popen(
            [*COMMAND, *map(str, command), *form], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait(timeout=120) == 141
    assert len(vulcan.Policy.load(path)) == 3


def test_ctrl_c_shows_the_best_so_far():
    out = interrupt(LONG, when="reward so far")
    assert out.startswith("✓ safe  stopped by Ctrl-C after ")
    assert "% of the search: best policy so far" in out
    assert "  reward        3.750000\n" in out


@pytest.mark.parametrize("command", ["solve", "compare"])
def test_sigterm_shows_the_best_so_far_and_keeps_a_checkpoint(tmp_path, command):
    path = tmp_path / "run.ckpt"
    kept = ("--checkpoint", str(path)) if command == "solve" else ()
    only = ("--solver", "vulcan") if command == "solve" else ("--solvers", "vulcan")
    model = ("bandit", "--set", "horizon=12", "--set", "merges=False", "--bound", "0.002*x")
    arguments = (command, *model, *only, *kept, "--json", "--time-limit", "60")
    document = json.loads(interrupt(arguments, number=signal.SIGTERM))
    assert document["stopped_by"] == "SIGTERM"
    if command == "solve":
        assert document["certificate"]["complete"]
        assert path.exists()
