"""Vulcan that must stop: it always has an answer, and the answer is certified."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
import tracemalloc
from typing import Any

import pytest

import vulcan
from tests.helpers.merging import Treasure
from tests.helpers.missions import BOUND
from tests.helpers.stopping import LARGE, require_stopped
from tests.helpers.tables import Table
from vulcan import Outcome, Progress
from vulcan.domains import Bandit, Exploration
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import describe_origin
from vulcan.solvers.tree.known import plan_known
from vulcan.solvers.tree.price_run import PriceRun

LINEAR = vulcan.Linear(0.002)
MISSION = vulcan.Problem(Exploration(6), vulcan.parse(BOUND))


def require_certified(result: vulcan.Result) -> None:
    assert result.safe
    assert vulcan.certify(result.problem, result.policy) == result.certificate


@pytest.mark.parametrize(
    "problem",
    [vulcan.Problem(Treasure(20), 0.15), vulcan.Problem(Bandit(9, merges=False), LINEAR)],
    ids=["merged", "unmerged"],
)
@pytest.mark.parametrize(
    ("limits", "by"),
    [
        ({"time_limit": 0}, "time limit"),
        ({"samples": 0}, "limit of samples"),
        ({"samples": 1}, "limit of samples"),
        ({"histories": 0}, "limit of histories"),
        ({"histories": 10}, "limit of histories"),
    ],
)
def test_next_to_no_time(problem: vulcan.Problem, limits: dict[str, int], by: str) -> None:
    result = vulcan.solve(problem, vulcan.Vulcan(), **limits)
    require_stopped(result, by)
    require_certified(result)


@pytest.mark.parametrize("merges", [True, False])
def test_next_to_no_memory(merges: bool) -> None:
    problem = vulcan.Problem(Table({0: {"a": [Outcome(1.0, 1.0, 0)]}}, merges=merges), LINEAR)
    require_certified(vulcan.solve(problem, vulcan.Vulcan(), memory=1))


@pytest.mark.parametrize("problem", [LARGE, MISSION], ids=["plain", "compiled"])
def test_time_limit(problem: vulcan.Problem) -> None:
    began = time.perf_counter()
    result = vulcan.solve(problem, vulcan.Vulcan(), time_limit=0.5)
    assert time.perf_counter() - began < 5
    require_stopped(result, "time limit")
    require_certified(result)
    assert result.statistics.samples > 0


@pytest.mark.parametrize("memory", [100_000, 500_000, 2_000_000])
@pytest.mark.parametrize("merges", [True, False])
def test_memory_is_never_exceeded(memory: int, merges: bool) -> None:
    problem = vulcan.Problem(Bandit(9, merges=merges), LINEAR)
    result = vulcan.solve(problem, vulcan.Vulcan(), memory=memory, samples=1_000_000)
    require_stopped(result, "limit of memory")
    require_certified(result)
    assert result.statistics.memory <= memory
    assert result.statistics.samples > 0


def test_memory_of_compiled_models() -> None:
    vulcan.solve(MISSION, vulcan.Vulcan(), samples=2000)  # what is loaded once is not counted
    tracemalloc.start()
    result = vulcan.solve(MISSION, vulcan.Vulcan(), memory=20_000_000, samples=1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    require_stopped(result, "limit of memory")
    require_certified(result)
    assert result.statistics.memory <= 20_000_000
    assert peak < 60_000_000  # with fronts and the certificate


def test_ctrl_c_returns_the_best_so_far() -> None:
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.4, press)
    timer.start()
    result = vulcan.solve(MISSION, vulcan.Vulcan())
    took = time.perf_counter() - pressed[0]
    timer.join()
    require_stopped(result, "Ctrl-C")
    require_certified(result)
    assert took < 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_progress_is_told() -> None:
    told: list[Progress] = []
    result = vulcan.solve(MISSION, vulcan.Vulcan(), time_limit=1.5, on_progress=told.append)
    assert len(told) >= 3
    for before, after in itertools.pairwise(told):
        assert after.seconds > before.seconds
        assert after.samples >= before.samples
        assert after.histories >= before.histories
        assert 0 <= before.fraction <= after.fraction <= 1
        if before.judgement is not None:
            assert after.reward >= before.reward
    last = told[-1]
    assert 0 < last.samples <= result.statistics.samples
    assert last.judgement is not None
    assert last.judgement.safe
    assert last.reward <= result.certificate.reward + 1e-12


# Models that fail.


class Failing(Bandit):
    """Answers no new question after a number of them."""

    known: set[Any] = set()  # noqa: RUF012
    most = 0

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        if len(self.known) >= self.most and (state, action) not in self.known:
            raise RuntimeError("sensor lost")
        self.known.add((state, action))
        return super().outcomes(state, action)


def test_a_model_that_raises_leaves_the_best_so_far() -> None:
    Failing.known, Failing.most = set(), 40_000
    problem = vulcan.Problem(Failing(9, merges=False), LINEAR)
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=1_000_000)
    require_stopped(result, "error in the model")
    assert "sensor lost" in str(result.error)
    assert isinstance(result.error.__cause__, RuntimeError)
    assert result.statistics.samples >= 1024
    assert result.safe


@pytest.mark.parametrize("merges", [True, False])
@pytest.mark.parametrize("most", [40, 400, 1500])
def test_a_model_that_raises_before_the_first_round_leaves_what_is_known(
    merges: bool, most: int
) -> None:
    Failing.known, Failing.most = set(), most
    problem = vulcan.Problem(Failing(9, merges=merges), LINEAR)
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=10_000)
    require_stopped(result, "error in the model")
    assert isinstance(result.error.__cause__, RuntimeError)
    assert result.statistics.samples <= 1024
    assert result.certificate.passes
    assert result.certificate.reward > 0


def test_what_is_known_may_be_a_complete_policy() -> None:
    Failing.known, Failing.most = set(), 100
    problem = vulcan.Problem(Failing(4), LINEAR)  # which has 140
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=10_000)
    require_stopped(result, "error in the model")
    require_certified(result)


def test_the_known_policy_is_worth_what_it_says() -> None:
    problem = vulcan.Problem(Bandit(6, merges=False), LINEAR)
    reader = ModelReader(problem.model)
    run = PriceRun(problem, reader, None, None, seed=0, exploration=0.1)
    run.prepare()
    run.sample(Monitor(Limits()), 500, 0.0, lambda: None, lambda: None)
    about = describe_origin(problem, reader, vulcan.Vulcan())
    certificates = []
    for draft in plan_known(run):
        certificate = vulcan.certify(problem, draft.write_out(run.graph, about))
        certificates.append(certificate)
        for name in ("reward", "risk", "allowed", "frontier"):
            assert getattr(draft, name) == pytest.approx(getattr(certificate, name), abs=1e-12)
    width = run.prices.shape[1]
    assert all(certificate.complete for certificate in certificates[:width])
    assert any(certificate.frontier > 0 for certificate in certificates[width:])
