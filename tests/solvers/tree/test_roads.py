"""More than one road leads to a policy, and the explanation names it."""

from __future__ import annotations

import pytest

import vulcan
from tests.helpers.missions import BOUND
from tests.helpers.tables import Table
from vulcan import Outcome
from vulcan.domains import Bandit, Exploration
from vulcan.solvers.tree.price_planner import PricePlanner

LINEAR = vulcan.Linear(0.002)


@pytest.mark.parametrize("merges", [True, False])
def test_without_regard_to_risk(merges: bool) -> None:
    problem = vulcan.Problem(Bandit(5, merges=merges), vulcan.Constant(0.9))
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=50_000)
    assert "the plan without regard to risk" in result.explanation
    free = vulcan.solve(problem, vulcan.Pareto()).certificate.reward
    assert result.certificate.reward == pytest.approx(free, abs=1e-9)


@pytest.mark.parametrize("merges", [True, False])
def test_prices_and_fronts(merges: bool) -> None:
    problem = vulcan.Problem(Bandit(6, merges=merges), LINEAR)
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=5000)
    assert "(prices and fronts" in result.explanation
    assert result.safe


RISKY = [Outcome(0.9, 5.0, 0), Outcome.failure(0.1)]
CAREFUL = [Outcome(0.999999, 0.0, 0), Outcome.failure(1e-6)]


@pytest.mark.parametrize("merges", [True, False])
@pytest.mark.parametrize("horizon", [2, 5, 9])
def test_only_the_least_risk_passes(merges: bool, horizon: int) -> None:
    least = 1 - 0.999999**horizon
    model = Table({0: {"risky": RISKY, "careful": CAREFUL}}, horizon, merges=merges)
    problem = vulcan.Problem(model, vulcan.Constant(1.01 * least))
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=3000)
    assert result.safe
    assert result.certificate.reward == 0
    assert result.certificate.risk == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize(
    "problem",
    [
        vulcan.Problem(Bandit(6), LINEAR),
        vulcan.Problem(Bandit(7, merges=False), LINEAR),
        vulcan.Problem(Exploration(5), vulcan.parse(BOUND)),
    ],
    ids=["merged", "unmerged", "compiled"],
)
def test_local_constraints_join_in_where_prices_find_nothing(
    problem: vulcan.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PricePlanner, "_plan", lambda *_: None)
    monkeypatch.setattr(PricePlanner, "_prove", lambda *_: None)
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=2000)
    assert "(local constraint B)" in result.explanation
    assert result.safe
    local = vulcan.solve(problem, vulcan.LocalVulcan(), samples=1024)
    assert result.certificate.reward >= 0.9 * local.certificate.reward
