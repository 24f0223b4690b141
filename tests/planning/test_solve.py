"""The one way to solve: limits, progress, interruption, and checks of what was found."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time

import pytest

import vulcan
from tests.helpers.tables import Table
from vulcan import Outcome, Progress, Status
from vulcan.domains import Bandit
from vulcan.runtime.progress import Phase

LINEAR = vulcan.Linear(0.002)
FORWARD_SEARCH = vulcan.ForwardSearch()


def test_limit_of_histories_returns_the_best_so_far() -> None:
    problem = vulcan.Problem(Bandit(8), LINEAR)
    whole = vulcan.solve(problem, FORWARD_SEARCH)
    part = vulcan.solve(problem, FORWARD_SEARCH, histories=whole.statistics.histories // 2)
    assert part.status is Status.STOPPED
    assert "limit of histories" in part.explanation
    assert part.statistics.histories == pytest.approx(whole.statistics.histories // 2, abs=10)
    assert part.safe
    assert part.certificate.complete
    assert part.certificate.reward <= whole.certificate.reward
    # Stopping pays 0.25 a step and is tried first, so that even the first answer is that good.
    assert part.certificate.reward >= 0.25 * 8
    none = vulcan.solve(problem, FORWARD_SEARCH, histories=0)
    assert none.status is Status.STOPPED
    assert none.policy is None
    assert none.certificate is None
    assert "no complete policy yet" in none.explanation


def test_time_limit() -> None:
    began = time.perf_counter()
    result = vulcan.solve(vulcan.Problem(Bandit(13), LINEAR), FORWARD_SEARCH, time_limit=0.5)
    assert result.status is Status.STOPPED
    assert "time limit" in result.explanation
    assert result.safe
    assert time.perf_counter() - began < 60
    assert (
        vulcan.solve(vulcan.Problem(Bandit(9), LINEAR), FORWARD_SEARCH, time_limit=0).policy is None
    )


@pytest.mark.parametrize(
    "limits",
    [
        {"time_limit": -1},
        {"time_limit": float("nan")},
        {"time_limit": "soon"},
        {"histories": -1},
        {"histories": 2.5},
        {"histories": "3"},
    ],
)
def test_limits_that_make_no_sense(limits: dict[str, float]) -> None:
    with pytest.raises(vulcan.OptionError, match="at least 0"):
        vulcan.solve(vulcan.Problem(Bandit(2), LINEAR), **limits)


def test_terminals_do_not_keep_a_search_from_stopping() -> None:
    # Every action ends in a known terminal: nothing counts as a history, yet there is work.
    names = [f"end {k}" for k in range(300)]
    ends = {name: [Outcome(1.0, 0.0, "end")] for name in names}
    moves = {f"move {k}": [Outcome(1.0, 0.0, k)] for k in range(300)}
    table = Table({"root": moves, **{k: {**ends, **moves} for k in range(300)}}, 4, start="root")
    result = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0)), FORWARD_SEARCH, time_limit=1.0)
    assert result.stopped_by == "time limit"
    assert result.statistics.search_seconds < 60


@pytest.mark.parametrize("solver", [vulcan.ForwardSearch, "ForwardSearch", 5])
def test_solver_that_is_none(solver) -> None:
    with pytest.raises(vulcan.OptionError, match=r"such as Vulcan\(\)"):
        vulcan.solve(vulcan.Problem(Bandit(2), LINEAR), solver)
    with pytest.raises(vulcan.OptionError, match="SurvivalConstraint"):
        vulcan.ForwardSearch(solver)


def test_progress_is_told() -> None:
    told: list[Progress] = []
    vulcan.solve(
        vulcan.Problem(Bandit(13), LINEAR), FORWARD_SEARCH, time_limit=1.0, on_progress=told.append
    )
    for before, after in itertools.pairwise(told):
        assert after.seconds > before.seconds
        assert after.histories >= before.histories
        if before.phase is after.phase:  # the share is that of the phase
            assert 0 <= before.fraction <= after.fraction <= 1
    searching = [progress for progress in told if progress.phase is Phase.SEARCHING]
    assert len(searching) >= 3
    assert searching[0].histories < searching[-1].histories
    assert told[-1].reward is not None
    assert told[-1].evaluations > 0


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")]
)
def test_signals_return_the_best_so_far(number: int, name: str) -> None:
    usual = signal.getsignal(number)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), number))
    timer.start()
    result = vulcan.solve(vulcan.Problem(Bandit(14), LINEAR), FORWARD_SEARCH)
    timer.join()
    assert result.status is Status.STOPPED
    assert f"stopped by {name} after" in result.explanation
    assert result.safe
    assert signal.getsignal(number) is usual


def test_a_signal_that_somebody_handles_is_left_to_them() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    try:
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        result = vulcan.solve(vulcan.Problem(Bandit(14), LINEAR), FORWARD_SEARCH, time_limit=0.3)
        timer.join()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert result.stopped_by == "time limit"
    assert seen == [signal.SIGTERM]


def test_ctrl_c_elsewhere_than_in_a_search_is_left_alone() -> None:
    vulcan.solve(vulcan.Problem(Bandit(2), LINEAR), FORWARD_SEARCH)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_solving_in_another_thread() -> None:
    results: list[vulcan.Result] = []
    problem = vulcan.Problem(Bandit(4), LINEAR)
    thread = threading.Thread(target=lambda: results.append(vulcan.solve(problem, FORWARD_SEARCH)))
    thread.start()
    thread.join()
    assert results[0].safe


def test_model_that_raises_names_the_place() -> None:
    class Broken(Table):
        def outcomes(self, state, action):
            if state == 1:
                raise RuntimeError("sensor lost")
            return super().outcomes(state, action)

    table = Broken({0: {"go": [Outcome(1, 0, 1)]}, 1: {"on": [Outcome(1, 0, 1)]}}, horizon=2)
    with pytest.raises(vulcan.ModelError, match=r"sensor lost.*state 1, action 'on'") as caught:
        vulcan.solve(vulcan.Problem(table, vulcan.Constant(0)))
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert caught.value.violation.state == 1


def test_a_search_that_claims_too_much_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = vulcan.Problem(Bandit(3), vulcan.Linear(0.002))
    monkeypatch.setattr(
        "vulcan.solvers.tree.forward_run.ForwardSearchRun.reward", property(lambda self: 9.9)
    )
    with pytest.raises(vulcan.DisagreementError, match=r"9\.9"):
        vulcan.solve(problem, vulcan.ForwardSearch())


def test_a_bound_that_is_not_concave_gets_no_policy() -> None:
    convex = vulcan.Concave(lambda x: 0.001 * x * x)
    with pytest.raises(vulcan.BoundError, match="not concave"):
        vulcan.solve(vulcan.Problem(Bandit(4), convex))
    nowhere = vulcan.Concave(lambda x: 0.001 * x * x - 1)
    with pytest.raises(vulcan.BoundError, match="not concave"):
        vulcan.solve(vulcan.Problem(Bandit(4), nowhere))
    falling = vulcan.Concave(lambda x: 0.05 - 0.01 * x)
    with pytest.raises(vulcan.BoundError, match="decreas"):
        vulcan.solve(vulcan.Problem(Bandit(4), falling))


def test_a_second_ctrl_c_while_certifying_keeps_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    problem = vulcan.Problem(Bandit(4), vulcan.Linear(0.002))
    certified = vulcan.solve(problem)
    monkeypatch.setattr("vulcan.planning.solve.certify", interrupt)
    result = vulcan.solve(problem)
    assert result.policy == certified.policy
    assert result.certificate is None
    assert not result.safe
    assert result.status is vulcan.Status.STOPPED
    assert "certif" in result.explanation
    assert "certif" in str(result)


@pytest.mark.parametrize(
    ("most_ways", "explanation"),
    [(300_000, "roundings misled the search"), (0, "so close to what is allowed that roundings")],
)
@pytest.mark.parametrize("solver", [None, FORWARD_SEARCH, vulcan.Pareto()], ids=str)
def test_roundings_prove_nothing(
    solver: vulcan.Solver | None,
    most_ways: int,
    explanation: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("vulcan.certificates.certificate.MOST_WAYS", most_ways)
    rewards = [88180747.6, -20541439.5, -67639307.76666667]
    outcomes = [Outcome(0.3, reward, k) for k, reward in enumerate(rewards, 1)]
    outcomes.append(Outcome.failure(0.1))
    model = Table({0: {"go": outcomes}}, 1)
    result = vulcan.solve(vulcan.Problem(model, vulcan.Linear(1.0)), solver)
    assert not result.safe
    assert result.status is not Status.SOLVED
    if result.policy is not None:
        assert explanation in result.explanation
        assert result.gap is None
