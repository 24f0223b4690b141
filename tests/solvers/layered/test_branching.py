"""A bound on deterministic policies by cases of histories: sound, and sharp where it matters."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given, settings

import vulcan
from tests.helpers.tables import Table, bounds, tables
from tests.oracles.best_policies import acceptable
from tests.oracles.brute_force import enumerate_plans
from vulcan import Outcome
from vulcan.domains import TreasureGrid
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.layered.branching import branch
from vulcan.solvers.layered.dual import Dual
from vulcan.solvers.layered.run import LayeredRun


def relax(problem: vulcan.Problem) -> tuple[LayeredRun, Dual]:
    """Return a run with its dual bound."""
    reader = ModelReader(problem.model)
    run = LayeredRun(problem, reader, Monitor(Limits()), vulcan.Pareto())
    assert run.unroll()
    return run, run.find_relaxed()


def bound(problem: vulcan.Problem) -> tuple[LayeredRun, float]:
    """Return a run with the bound of cases, and the dual bound."""
    run, dual = relax(problem)
    if len(run.levels):
        branch(run, dual)
    return run, dual.upper_bound


@given(tables(), bounds())
@settings(max_examples=60, deadline=None)
def test_no_deterministic_policy_earns_more(model: Table, risk_bound: vulcan.RiskBound) -> None:
    run, dual = bound(vulcan.Problem(model, risk_bound))
    assume(dual > -math.inf)
    assert run.upper <= dual
    best = max(
        (plan.reward for plan in acceptable(enumerate_plans(model), risk_bound)), default=None
    )
    if best is not None:
        assert best <= run.upper + 1e-9 * max(1.0, abs(best))
    if run.best is not None:
        proof = vulcan.certify(vulcan.Problem(model, risk_bound), run.write_out(run.best))
        assert proof.safe
        assert proof.reward == pytest.approx(run.best.reward, rel=1e-9, abs=1e-9)
        assert proof.risk == pytest.approx(run.best.risk, abs=1e-12)


def test_a_first_step_that_is_too_risky_earns_nothing() -> None:
    """Lots may be drawn for it, but nothing is left to chance before."""
    model = TreasureGrid(horizon=20, map="BTG")
    run, dual = bound(vulcan.Problem(model, 0.15))
    assert dual > 0.5
    assert run.upper == pytest.approx(0.0, abs=1e-10)
    result = vulcan.solve(vulcan.Problem(model, 0.15))
    assert result.status is vulcan.Status.SOLVED
    assert result.certificate.reward == 0.0
    assert result.gain_of_randomising > 1


def test_certain_ways_are_compared_with_what_they_pay() -> None:
    risky = [Outcome(0.5, 9.0, "end"), Outcome.failure(0.5)]
    table = {
        0: {"wait": [Outcome(1.0, 0.0, 0)], "work": [Outcome(1.0, 1.0, 1)], "dare": risky},
        1: {"work": [Outcome(1.0, 2.0, 2)], "dare": risky},
    }
    run, dual = bound(vulcan.Problem(Table(table, horizon=3), 0.2))
    assert dual == pytest.approx(3.0 + 0.4 * 2.5)
    assert run.upper == pytest.approx(3.0, rel=1e-12)


def test_a_bound_is_not_asked_below_what_the_safest_policy_earns() -> None:
    """A root has no value there, and no case needs one."""
    risky = [Outcome(0.5, 3.0, "end"), Outcome.failure(0.5)]
    rows = {k: {"work": [Outcome(1.0, 0.1, k + 1)], "dare": risky} for k in range(2)}
    root = vulcan.Concave(lambda reward: 0.1 * math.sqrt(reward))
    run, dual = bound(vulcan.Problem(Table(rows, horizon=2), root))
    assert dual > 0.3
    assert run.upper == pytest.approx(0.2)


def test_what_is_decided_in_a_history_that_is_avoided_costs_nothing() -> None:
    """The best policy may never come to where two prices disagree."""
    risky = [Outcome(0.5, 4.0, "end"), Outcome.failure(0.5)]
    table = {
        0: {"left": [Outcome(0.5, 0.0, 1), Outcome(0.5, 0.0, 2)], "right": [Outcome(1.0, 0.9, 2)]},
        1: {"dare": risky, "stop": [Outcome(1.0, 0.0, "end")]},
        2: {"stop": [Outcome(1.0, 0.1, "end")]},
    }
    run, dual = bound(vulcan.Problem(Table(table, horizon=2), 0.25))
    assert dual >= run.upper >= 1.05 - 1e-12
    assert run.best is not None
    assert run.best.reward == pytest.approx(1.05)


def test_limits_are_looked_at_before_every_dynamic_program(monkeypatch: Any) -> None:
    run, dual = relax(vulcan.Problem(TreasureGrid(horizon=20, map="BTG"), 0.15))
    needed, asked = [], 3

    def may_go_on(memory: int = 0) -> bool:
        needed.append(memory)
        return len(needed) < asked

    monkeypatch.setattr(run, "may_go_on", may_go_on)
    branch(run, dual)
    assert len(needed) == asked
    assert min(needed) > 70 * 16 * len(run.levels)
    assert run.upper == dual.upper_bound


def test_a_lake_is_closed_that_thin_fronts_leave_open() -> None:
    """Slips of a third each draw lots badly: the dual bound is 1.4 % too high."""
    gymnasium = pytest.importorskip("gymnasium")
    assert gymnasium
    model = vulcan.formats.from_gymnasium("FrozenLake-v1", horizon=20)
    result = vulcan.solve(vulcan.Problem(model, 0.01))
    assert result.relaxed > 1.01 * result.certificate.reward
    assert result.gap < 1e-3
