"""Answers that never come don't defeat the time limit, where anything can be done about it."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import pytest

import vulcan
from tests.helpers.silent_models import Silent
from vulcan.domains import Bandit
from vulcan.runtime import limits
from vulcan.runtime.limits import Monitor

BOUND = vulcan.Constant(0.5)
LONG = 1000.0


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Wait for a moment only, and forget what was asked before."""
    monkeypatch.setattr(limits, "LEAST_SECONDS", 0.2)
    monkeypatch.setattr(limits, "SHARE_OF_LIMIT", 0.0)
    monkeypatch.setattr(limits, "TIMES_THE_SLOWEST", 0.0)
    Silent.asked.clear()


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file that lets the time of a search run out when a model touches it."""
    file, monitors = tmp_path / "silent", []
    start_clock = Monitor.start_clock

    def start_and_note(self):
        start_clock(self)
        monitors.append(self)

    def hurry():
        while not file.exists() and not ended.wait(0.01):
            pass
        for monitor in monitors:
            monitor._began -= LONG
            monitor._set_alarm()

    monkeypatch.setattr(Monitor, "start_clock", start_and_note)
    ended = threading.Event()
    thread = threading.Thread(target=hurry)
    thread.start()
    yield str(file)
    ended.set()
    thread.join()


def solve(solver, way, file, **options):
    problem = vulcan.Problem(Silent(way, file), BOUND)
    return vulcan.solve(problem, solver, time_limit=LONG, **options)


def require_answer(result: vulcan.Result) -> None:
    assert result.stopped_by == "error in the model"
    assert "outcomes gave no answer in" in str(result.error)
    assert result.error.violation.action in ("rest", "work")
    # It may fall silent before there is a complete policy.
    assert result.certificate is None or result.certificate.passes


@pytest.mark.parametrize("way", ["in a loop", "asleep", "stubborn", "in a list"])
def test_a_model_in_this_process_is_interrupted(way, file):
    require_answer(solve(vulcan.Vulcan(), way, file))
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_workers_are_killed(file):
    require_answer(solve(vulcan.Vulcan(), "asleep", file, parallel=2))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("solver", [vulcan.Lagrangian(), vulcan.ForwardSearch()])
def test_a_solver_without_an_answer_says_where_it_waits(file, solver, workers):
    with pytest.raises(vulcan.errors.ModelError, match="gave no answer in"):
        solve(solver, "asleep", file, parallel=workers)


class Slow(Bandit):
    """Takes its time."""

    def outcomes(self, state: Any, action: str) -> list[vulcan.Outcome]:
        time.sleep(0.15)
        return super().outcomes(state, action)


def test_a_model_that_is_slow_is_waited_for(monkeypatch):
    monkeypatch.setattr(limits, "LEAST_SECONDS", 0.01)
    monkeypatch.setattr(limits, "TIMES_THE_SLOWEST", 3.0)
    problem = vulcan.Problem(Slow(2), vulcan.Linear(0.002))
    result = vulcan.solve(problem, vulcan.Vulcan(), time_limit=0.5)
    assert result.error is None


def test_who_has_an_alarm_keeps_it():
    rung = []
    signal.signal(signal.SIGALRM, lambda *_: rung.append(True))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        problem = vulcan.Problem(Bandit(9, merges=False), vulcan.Linear(0.002))
        vulcan.solve(problem, vulcan.Vulcan(), time_limit=0.3)
        assert rung
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
