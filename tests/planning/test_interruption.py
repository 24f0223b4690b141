"""Ctrl-C and SIGTERM at random moments: every kind of search answers soon."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

import vulcan
from tests.sampling.test_growth import Endless, Well
from vulcan.domains import Bandit, Exploration
from vulcan.runtime.limits import DEFAULT_SECONDS, Limits

LEAST_SECONDS, MOST_SECONDS = 0.01, 1.5
"""When the interruption comes."""

ANSWER_SECONDS = 2.5
"""Processor time until the answer, on a busy machine twice that of an idle one."""

EXPLORATION = "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)"


class SlowBandit(Bandit):
    """A bandit that is read, not compiled."""

    compiled = None


def on(model: Any, bound: str, solver: Any = None, **limits: Any) -> Callable[[], Any]:
    """Return a search."""
    return lambda: vulcan.solve(vulcan.Problem(model, bound), solver, **limits)


def act() -> None:
    """Act until the end, at many small steps."""
    controller = vulcan.Controller(
        vulcan.Problem(Well(horizon=12), "0.012*x"), samples_per_step=10_000
    )
    while not controller.finished:
        controller.observe(0)


PLANNED = cache(on(Bandit(horizon=20), "0.002*x"))

KINDS: dict[str, Callable[[], Any]] = {
    "exact": on(Bandit(horizon=60), "0.002*x", gap=0),
    "fronts": on(Bandit(horizon=40), "0.002*x", vulcan.Pareto(), gap=0),
    "local test": on(Bandit(horizon=12), "0.002*x", vulcan.ForwardSearch()),
    "linear program": on(Bandit(horizon=60), "0.002*x", vulcan.baselines.LinearProgram()),
    "histories by default": on(Well(horizon=12), "0.012*x"),
    "growing": on(Well(horizon=12), "0.012*x", vulcan.Growth()),
    "growing without an end": on(Endless(horizon=12), "0.012*x"),
    "sampling histories": on(Well(horizon=12), "0.012*x", vulcan.Vulcan(), samples=1_000),
    "sampling": on(Exploration(horizon=7), EXPLORATION, vulcan.Vulcan()),
    "the paper's": on(SlowBandit(horizon=12), "0.002*x", vulcan.LocalVulcan()),
    "acting": act,
    "compare": lambda: vulcan.compare(
        vulcan.Problem(Bandit(horizon=40), "0.002*x"), ["pareto", "linear-program", "vulcan"]
    ),
    "frontier": lambda: vulcan.trace_frontier(
        vulcan.Problem(Well(horizon=12), "0.012*x"), scales=[0.5, 1.0, 2.0]
    ),
    "simulate": lambda: vulcan.simulate(
        PLANNED().policy, SlowBandit(horizon=20), episodes=1_000_000
    ),
}


def interrupt(search: Callable[[], Any], seconds: float, number: int) -> float | None:
    """Return the processor time from a signal to the answer; None if the search ended before."""
    sent: list[float] = []
    ended = threading.Event()

    def send() -> None:
        over = ended.wait(seconds)
        while not over and signal.getsignal(number) is signal.SIG_DFL:  # it would end this process
            over = ended.wait(1e-3)
        if not over:
            sent.append(time.process_time())
            os.kill(os.getpid(), number)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        search()
    except (KeyboardInterrupt, SystemExit, vulcan.VulcanError):
        pass
    finally:
        answered = time.process_time()
        ended.set()
        thread.join()
    return answered - sent[0] if sent else None


@pytest.fixture
def usual_signals() -> Iterator[None]:
    """Give SIGTERM its usual meaning: Ray, once started in this process, handles it."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.slow
@pytest.mark.usefixtures("usual_signals")
@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_search_answers_soon(kind: str) -> None:
    draw = random.Random(kind)
    search = KINDS[kind]
    interrupt(search, 10 * MOST_SECONDS, signal.SIGINT)  # kernels are compiled, or loaded
    times = []
    for number in 5 * (signal.SIGINT, signal.SIGTERM):
        seconds = draw.uniform(LEAST_SECONDS, MOST_SECONDS)
        try:
            times.append(interrupt(search, seconds, number))
        except KeyboardInterrupt:  # it came when the search had just ended
            continue
    answered = [taken for taken in times if taken is not None]
    assert len(answered) >= 5
    assert max(answered) < ANSWER_SECONDS


def test_without_limits_a_growing_search_has_some() -> None:
    limits = Limits().by_default(spent=3.0)
    assert limits.time_limit == 3.0 + DEFAULT_SECONDS
    assert limits.memory is not None
    assert limits.memory <= 2 << 30
    assert Limits(samples=9).by_default() == Limits(samples=9, memory=limits.memory)
    given = Limits(time_limit=7.0, memory=10**9)
    assert given.by_default() == given


def test_a_last_plan_over_histories_keeps_to_the_memory() -> None:
    limits = Limits(samples=1_000, memory=40_000_000)
    result = vulcan.solve(
        vulcan.Problem(Well(horizon=12), "0.012*x"), vulcan.Vulcan(), limits=limits
    )
    assert result.statistics.evaluations < 2_000_000  # of 5**12 histories


def test_samples_over_histories_let_a_plan_grow() -> None:
    result = vulcan.solve(vulcan.Problem(Well(horizon=12), "0.012*x"), samples=20_000)
    assert result.safe
    assert result.statistics.evaluations < 20_100
    assert "grown" in result.explanation


class Ticking(Well):
    """Every answer takes a tenth of a second, by a clock that only answers move."""

    def outcomes(self, state: Any, action: str) -> Any:
        time.perf_counter.now += 0.1  # type: ignore[attr-defined]
        return super().outcomes(state, action)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("name", ["vulcan", "growth", "local-vulcan", "uct"])
def test_a_search_without_limits_ends_by_itself_and_says_how_to_go_on(name: str) -> None:
    began, limits = time.perf_counter(), Limits(memory=200_000_000)
    result = vulcan.solve(vulcan.Problem(Ticking(horizon=14), "0.012*x"), name, limits=limits)
    assert result.stopped_by == vulcan.planning.StopReason.TIME
    assert time.perf_counter() - began < 1.2 * DEFAULT_SECONDS
    assert "20 s by default, time_limit=60 goes on for longer" in result.explanation
