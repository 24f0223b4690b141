"""The one way to solve: limits, progress, interruption and the result."""

from __future__ import annotations

import itertools
import logging
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import vulcan
from tests.tables import Table, one_action
from vulcan import Outcome, Progress, Status
from vulcan.domains import Bandit

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
    assert len(told) >= 3
    for before, after in itertools.pairwise(told):
        assert after.seconds > before.seconds
        assert after.histories > before.histories
        assert 0 <= before.fraction <= after.fraction <= 1
    assert told[-1].reward is not None
    assert told[-1].evaluations > 0


def test_ctrl_c_returns_the_best_so_far() -> None:
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    result = vulcan.solve(vulcan.Problem(Bandit(14), LINEAR), FORWARD_SEARCH)
    timer.join()
    assert result.status is Status.STOPPED
    assert "stopped by Ctrl-C after" in result.explanation
    assert result.safe
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


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


def test_problem_refuses_what_is_none() -> None:
    with pytest.raises(vulcan.BoundError, match=r"vulcan\.Constant.*vulcan\.parse"):
        vulcan.Problem(Bandit(2), 0.01)
    with pytest.raises(vulcan.ModelError, match="has no method initial_state"):
        vulcan.Problem(object(), LINEAR)


def test_result_reads_well() -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(3), LINEAR), FORWARD_SEARCH)
    text = str(result)
    for part in ("1.489224", "0.002748", "acceptable", "Δ(x) = 0.002 * x", "yes, 7 decisions"):
        assert part in text
    refused = vulcan.solve(
        vulcan.Problem(one_action(Outcome.failure(1.0)), vulcan.Constant(0.5)), FORWARD_SEARCH
    )
    assert "no policy exists" in str(refused)
    assert "reward" not in str(refused)


def test_policy_is_bound_to_the_model() -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(3), LINEAR), FORWARD_SEARCH)
    run = result.policy.start()
    while not run.finished:
        run.observe(0)
    assert len(run.history) == 3


def test_first_compilation_is_announced_and_cached(tmp_path) -> None:
    script = (
        "import vulcan\nfrom vulcan.domains import Bandit\n"
        "problem = vulcan.Problem(Bandit(2), vulcan.Linear(0.002))\n"
        "print(vulcan.solve(problem, vulcan.ForwardSearch()).safe)"
    )
    environment = {**os.environ, "VULCAN_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        for _ in range(2)
    ]
    assert [run.stdout for run in runs] == ["True\n", "True\n"]
    assert "compiling" in runs[0].stderr
    assert runs[1].stderr == ""


def test_cache_directory_that_cannot_be_written(tmp_path, monkeypatch, caplog) -> None:
    from vulcan.kernels import compile as compilation

    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    monkeypatch.setenv("VULCAN_CACHE_DIR", str(blocked))
    with caplog.at_level(logging.WARNING):
        directory = compilation.cache_directory.__wrapped__()
    assert directory.is_dir()
    assert not directory.is_relative_to(tmp_path)
