"""Tree search that is interrupted, by the user or by its model, and what it tells before."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from typing import Any

import pytest

import vulcan
from tests.helpers.stopping import LARGE, NINE, SOLVERS, require_stopped
from vulcan import Outcome, Progress, Result, Status
from vulcan.domains import Bandit
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import Options

LINEAR = vulcan.Linear(0.002)


# Interruption.


@pytest.mark.parametrize("solver", SOLVERS)
def test_ctrl_c_returns_the_best_so_far(solver: Any) -> None:
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.4, press)
    timer.start()
    result = vulcan.solve(LARGE, solver)
    took = time.perf_counter() - pressed[0]
    timer.join()
    require_stopped(result, "Ctrl-C")
    assert result.certificate.complete or getattr(solver, "as_printed", False)
    assert result.certificate.passes or isinstance(solver, vulcan.UCT)
    assert took < 1.5
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_before_the_first_round() -> None:
    monitor = Monitor(Limits())
    monitor.request()
    finding = vulcan.LocalVulcan().search(NINE, ModelReader(NINE.model), monitor, Options())
    assert finding.status is Status.STOPPED
    assert finding.policy is None
    assert monitor.stopped_by == "Ctrl-C"


def test_solving_in_another_thread() -> None:
    results: list[Result] = []
    problem = vulcan.Problem(Bandit(4), LINEAR)
    thread = threading.Thread(
        target=lambda: results.append(vulcan.solve(problem, vulcan.LocalVulcan(), samples=10_000))
    )
    thread.start()
    thread.join()
    assert results[0].status is Status.SOLVED


class Failing(Bandit):
    """A bandit that raises at its third play of machine 1."""

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        if sum(state[:2]) == 2 and action == "play 1":
            raise RuntimeError("sensor lost")
        return super().outcomes(state, action)


def test_model_that_raises_leaves_the_best_so_far() -> None:
    problem = vulcan.Problem(Failing(9), LINEAR)
    result = vulcan.solve(problem, vulcan.LocalVulcan(), samples=100_000)
    require_stopped(result, "error in the model")
    assert "sensor lost" in str(result.error)
    assert isinstance(result.error.__cause__, RuntimeError)
    assert result.certificate.passes


def test_model_that_raises_late_leaves_the_policy_of_the_last_round() -> None:
    class Late(Bandit):
        """Answers no new question after a number of them."""

        known: set[Any] = set()  # noqa: RUF012
        most = 9_000

        def outcomes(self, state: Any, action: str) -> list[Outcome]:
            if len(self.known) == self.most and (state, action) not in self.known:
                raise RuntimeError("sensor lost")
            self.known.add((state, action))
            return super().outcomes(state, action)

    problem = vulcan.Problem(Late(9), LINEAR)
    result = vulcan.solve(problem, vulcan.LocalVulcan(), samples=300_000)
    require_stopped(result, "error in the model")
    assert isinstance(result.error.__cause__, RuntimeError)
    assert result.safe
    # The last round before was at 4,096 samples; completing that of 16,384 asks too much.
    assert result.statistics.samples == 16_384
    Late.most = 1_000_000
    last = vulcan.solve(problem, vulcan.LocalVulcan(), samples=4_096)
    assert result.policy == last.policy
    assert result.certificate == last.certificate


# Progress.


def test_progress_is_told() -> None:
    told: list[Progress] = []

    def tell(progress: Progress) -> None:
        told.append(progress)
        if len(told) > 3 and progress.judgement is not None:
            signal.raise_signal(signal.SIGINT)

    result = vulcan.solve(LARGE, vulcan.LocalVulcan(), time_limit=60, on_progress=tell)
    assert result.stopped_by == "Ctrl-C"
    for before, after in itertools.pairwise(told):
        assert after.seconds > before.seconds
        assert after.samples >= before.samples
        assert after.histories >= before.histories
        assert after.memory >= before.memory
        assert 0 <= before.fraction <= after.fraction <= 1
        if before.judgement is not None:
            assert after.reward >= before.reward
    last = told[-1]
    assert 0 < last.samples <= result.statistics.samples
    assert last.evaluations > 0
    assert last.judgement is not None
    assert last.judgement.safe
    assert last.reward == last.judgement.reward <= result.certificate.reward + 1e-12


def test_fraction_of_a_limit_of_samples() -> None:
    told: list[Progress] = []
    # Enough of them to take several times the interval between two reports.
    vulcan.solve(LARGE, vulcan.LocalVulcan(), samples=15_000, on_progress=told.append)
    assert told
    assert all(p.fraction == pytest.approx(p.samples / 15_000) for p in told)
    unlimited: list[Progress] = []
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    vulcan.solve(LARGE, vulcan.LocalVulcan(), on_progress=unlimited.append)
    timer.join()
    assert unlimited
    assert all(p.fraction is None for p in unlimited)


def test_model_that_raises_before_the_first_round_leaves_what_was_sampled() -> None:
    class Failing(Bandit):
        calls = 0

        def outcomes(self, state: Any, action: str) -> list[Outcome]:
            Failing.calls += 1
            if Failing.calls == 400:
                raise RuntimeError("sensor lost")
            return super().outcomes(state, action)

    result = vulcan.solve(vulcan.Problem(Failing(8), LINEAR), vulcan.LocalVulcan(), samples=10_000)
    assert result.stopped_by == "error in the model"
    assert isinstance(result.error.__cause__, RuntimeError)
    assert result.certificate.passes
    assert result.statistics.samples < 1024
