"""The command line, run in this process."""

import shutil
import sys

import pytest

import vulcan
from tests.helpers.command_line import BOUND, HARBOUR, SMALL, Answer
from tests.helpers.plans import edit
from vulcan.cli import main
from vulcan.domains import Bandit


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command line in a directory of its own, leaving nothing behind in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.delenv("VULCAN_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    shutil.copy(HARBOUR, tmp_path)
    known = set(sys.modules)

    def run(*arguments):
        with pytest.raises(SystemExit) as ending:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Answer(ending.value.code or 0, captured.out, captured.err)

    yield run
    for name in ("harbour", "vulcan_model_harbour"):
        if name not in known:
            sys.modules.pop(name, None)


@pytest.fixture
def plan(run, tmp_path):
    path = tmp_path / "plan.vulcan"
    assert run("solve", *SMALL, *BOUND, "--output", path).code == 0
    return path


@pytest.fixture
def unsafe_plan(tmp_path):
    """A policy without decisions for the rest of its histories."""
    policy = vulcan.solve(vulcan.Problem(Bandit(horizon=3), vulcan.Linear(0.002))).policy
    path = tmp_path / "unsafe.vulcan"
    edit(policy, first_child=-3).save(path)
    return path
