"""A time limit holds, certificate included; what could not be certified in time says so."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest

import vulcan
from tests.conftest import Clock
from tests.helpers.tables import Table, one_action
from vulcan import Outcome
from vulcan.domains import Bandit, Exploration
from vulcan.planning import Status

MISSION_BOUND = "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)"


class Slow:
    """Walks on a square; each answer takes some time.

    Parameters
    ----------
    clock
        The clock that it moves.
    seconds
        What an answer takes when it is given for the first time, the second time and so on.
    actions
        How many actions each state has.
    horizon
        The horizon.
    """

    def __init__(self, clock: Clock, *seconds: float, actions: int = 2, horizon: int = 10) -> None:
        self.horizon = horizon
        self._clock, self._seconds, self._count = clock, seconds, actions
        self._asked: Counter[Any] = Counter()

    def initial_state(self) -> tuple[int, int]:
        return (0, 0)

    def actions(self, state: tuple[int, int]) -> list[int]:
        return list(range(self._count))

    def outcomes(self, state: tuple[int, int], action: int) -> list[Outcome]:
        times = self._asked[state, action]
        self._asked[state, action] += 1
        self._clock.now += self._seconds[min(times, len(self._seconds) - 1)]
        x, y = state
        return [
            Outcome(0.5, 1.0 + 0.1 * action, (x + 1, y)),
            Outcome(0.499, 0.5, (x, y + 1)),
            Outcome.failure(0.001),
        ]


def make_long(horizon: int) -> Table:
    """Return a model of one state and one action."""
    return one_action(Outcome(1 - 1e-9, 1.0, 0), Outcome.failure(1e-9), horizon=horizon)


def solve_slow(clock: Clock, model: Slow, **options: Any) -> tuple[vulcan.Result, float]:
    """Return what is found within a second, and the seconds that it took."""
    problem = vulcan.Problem(model, 0.2)
    vulcan.solve(vulcan.Problem(Bandit(2), 0.1), **options)  # kernels are loaded
    began = clock.now
    return vulcan.solve(problem, time_limit=1, **options), clock.now - began


@pytest.mark.parametrize("solver", [None, vulcan.Vulcan(), vulcan.Lagrangian()])
def test_a_slow_model(clock: Clock, solver: Any) -> None:
    result, seconds = solve_slow(clock, Slow(clock, 0.05), solver=solver)
    assert seconds < 1.3
    assert result.stopped_by == "time limit"
    assert not result.safe


@pytest.mark.parametrize("solver", [None, vulcan.Vulcan(), vulcan.ForwardSearch()])
def test_one_state_alone_takes_longer_than_the_limit(clock: Clock, solver: Any) -> None:
    result, seconds = solve_slow(clock, Slow(clock, 0.01, actions=300), solver=solver)
    assert seconds < 1.3
    assert result.stopped_by == "time limit"
    assert result.policy is None


@pytest.mark.parametrize("solver", [None, vulcan.Vulcan(), vulcan.Pareto()])
def test_a_policy_that_is_not_certified_in_time(clock: Clock, solver: Any) -> None:
    # The search evaluates once, in no time; the certificate evaluates again.
    model = Slow(clock, 0.0, 0.1)
    result, seconds = solve_slow(clock, model, solver=solver)
    assert seconds < 1.4
    assert result.status is Status.STOPPED
    assert result.stopped_by == "time limit"
    assert not result.safe
    assert result.certificate is None
    assert result.planned is not None
    assert result.explanation.count("not certified") == 1
    assert "not certified" in repr(result)
    text = str(result)
    assert "estimates of the search" in text
    assert "certificate: the policy is not reported as safe" in text
    assert "not certified" in result._repr_html_()
    # What was planned is no less a policy.
    assert result.policy is not None
    certificate = vulcan.certify(result.problem, result.policy)
    assert certificate.reward == pytest.approx(result.planned.reward)
    assert certificate.risk == pytest.approx(result.planned.risk)


@pytest.mark.usefixtures("processor_clock")
def test_a_long_horizon() -> None:
    steps, limit = 20_000, 4.0
    vulcan.solve(vulcan.Problem(make_long(10), 0.01))  # kernels are loaded
    began = time.process_time()
    result = vulcan.solve(vulcan.Problem(make_long(steps), 0.01), time_limit=limit)
    assert time.process_time() - began < 1.5 * limit
    assert result.status is Status.SOLVED
    assert result.safe
    survival = (1 - 1e-9) ** steps
    assert float(result.certificate.risk) == pytest.approx(1 - survival, rel=1e-6)
    assert float(result.certificate.reward) == pytest.approx((1 - survival) / 1e-9, rel=1e-6)


@pytest.mark.slow
def test_a_very_long_horizon() -> None:
    vulcan.solve(vulcan.Problem(make_long(10), 0.01))  # kernels are loaded
    began = time.perf_counter()
    result = vulcan.solve(vulcan.Problem(make_long(10**6), 0.01), time_limit=30)
    assert time.perf_counter() - began < 45
    assert result.policy is not None


@pytest.mark.slow
@pytest.mark.usefixtures("processor_clock")
def test_a_horizon_too_long_to_certify() -> None:
    limit = 5.0
    vulcan.solve(vulcan.Problem(make_long(10), 0.01))  # kernels are loaded
    began = time.process_time()
    result = vulcan.solve(vulcan.Problem(make_long(10**6), 0.01), time_limit=limit)
    assert time.process_time() - began < 1.2 * limit + 0.25
    assert result.status is Status.STOPPED
    assert result.stopped_by == "time limit"
    assert not result.safe
    assert result.planned is not None  # unrolling takes a second, a certificate ten


@pytest.mark.usefixtures("processor_clock")
def test_a_mission_too_large_to_certify() -> None:
    problem = vulcan.Problem(Exploration(), MISSION_BOUND)
    vulcan.solve(problem, time_limit=0.1)  # kernels are loaded
    began = time.process_time()
    result = vulcan.solve(problem, time_limit=0.1)
    assert time.process_time() - began < 1.5  # it has 87,000 decisions, which take many seconds
    assert result.stopped_by == "time limit"
    assert not result.safe


class Stale(Bandit):
    """Takes long for queries that were answered before."""

    clock: Clock
    asked: Counter[Any]
    seconds: tuple[float, ...]

    def outcomes(self, state: Any, action: Any) -> list[Outcome]:
        times = self.asked[state, action]
        self.asked[state, action] += 1
        self.clock.now += self.seconds[max(0, min(times, len(self.seconds) - 1))]
        return super().outcomes(state, action)


def test_an_earlier_policy_that_is_certified_wins(clock: Clock) -> None:
    model = Stale(8, merges=False)
    # Evaluations of the search, of its first certificate, and of its second one.
    model.clock, model.asked, model.seconds = clock, Counter(), (0.01, 0.0, 50.0)
    problem = vulcan.Problem(model, vulcan.Linear(0.002))
    result = vulcan.solve(problem, vulcan.LocalVulcan(), samples=4500, time_limit=1000)
    assert result.status is Status.STOPPED
    assert result.safe
    assert result.planned.reward > result.certificate.reward
    assert "a better policy than the one above" in str(result)


@pytest.mark.parametrize("seconds", [0.0, 10.0])
def test_a_plan_that_is_not_certified_is_not_followed(clock: Clock, seconds: float) -> None:
    model = Stale(6)
    model.clock, model.asked, model.seconds = clock, Counter(), (0.0,)
    problem = vulcan.Problem(model, "0.002*x")
    policy = vulcan.solve(problem, vulcan.LocalVulcan(), samples=10).policy
    run = policy.start()
    run.observe(0)
    # The state of the run is evaluated more often than by search and certificate.
    model.asked = Counter({(run.state, action): -10 for action in model.actions(run.state)})
    model.seconds = (0.0, seconds)
    replanned = vulcan.replan(run, time_limit=1)
    assert (replanned.result.planned is None) == replanned.changed == (seconds == 0)
