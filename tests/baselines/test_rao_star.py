"""RAO*: heuristic search, and heuristics that lie."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.heuristics import CHAIN, Unknowing, Wrong
from tests.helpers.tables import Table, bounds, tables
from tests.oracles.best_policies import check_best
from tests.oracles.brute_force import enumerate_plans
from vulcan import Outcome
from vulcan.domains import Bandit
from vulcan.planning import Status

LINEAR = vulcan.Linear(0.002)


@pytest.mark.slow
def test_rao_star_asks_for_less_than_all() -> None:
    problem = vulcan.Problem(Bandit(8), LINEAR)
    guided, exact = (
        vulcan.solve(problem, s) for s in (vulcan.baselines.RAOStar(), vulcan.Pareto())
    )
    assert guided.certificate.reward == pytest.approx(exact.certificate.reward, abs=1e-12)
    assert guided.statistics.evaluations < 0.6 * exact.statistics.evaluations


def test_rao_star_solves_the_experiment_of_the_paper() -> None:
    result = vulcan.solve(
        vulcan.Problem(Bandit(10), vulcan.Constant(0.0125)), vulcan.baselines.RAOStar()
    )
    assert result.status is Status.SOLVED
    assert result.certificate.reward == pytest.approx(5.434855, abs=5e-7)
    assert result.certificate.risk == pytest.approx(0.01181, abs=5e-6)


def test_rao_star_that_is_stopped_has_an_upper_bound() -> None:
    told: list[vulcan.planning.Progress] = []
    result = vulcan.solve(
        vulcan.Problem(Bandit(12), LINEAR),
        vulcan.baselines.RAOStar(),
        time_limit=0.3,
        progress=told.append,
    )
    assert result.status is Status.STOPPED
    assert result.policy is None
    assert result.upper_bound >= 6.4751
    assert result.upper_bound <= 0.7 * 12


@dataclass
class Liar(Table):
    reward: float = 0.0
    risk: float = 0.0

    def reward_to_go_bound(self, state: object, step: int) -> float:
        return self.reward

    def risk_to_go_bound(self, state: object, action: str, step: int) -> float:
        return self.risk


def test_rao_star_refuses_heuristics_that_lie() -> None:
    bound = vulcan.Constant(0.02)
    honest = vulcan.solve(
        vulcan.Problem(Liar(CHAIN, 2, reward=5.0), bound), vulcan.baselines.RAOStar()
    )
    assert honest.certificate.reward == pytest.approx(5.5)
    with pytest.raises(vulcan.errors.ModelError, match=r"reward_to_go_bound says 1\.0 at step 1"):
        vulcan.solve(vulcan.Problem(Liar(CHAIN, 2, reward=1.0), bound), vulcan.baselines.RAOStar())
    with pytest.raises(vulcan.errors.ModelError, match=r"risk_to_go_bound says 0\.02 at step 1"):
        vulcan.solve(
            vulcan.Problem(Liar(CHAIN, 2, reward=5.0, risk=0.02), bound), vulcan.baselines.RAOStar()
        )
    for wrong in (math.nan, -0.1, 1.5, "no"):
        problem = vulcan.Problem(Liar(CHAIN, 2, reward=5.0, risk=wrong), bound)
        with pytest.raises(vulcan.errors.ModelError, match="from 0 to 1"):
            vulcan.solve(problem, vulcan.baselines.RAOStar())


def test_rao_star_expands_tips_that_only_a_deterministic_policy_reaches() -> None:
    # Drawing between a and d earns 4.6 at risk 0.02, more than b promises, but is not one policy.
    table = {
        0: {
            "a": [Outcome(1.0, 1.0, 3)],
            "b": [Outcome(1.0, 0.0, 1)],
            "d": [Outcome(0.95, 10.0, 3), Outcome.failure(0.05, 10.0)],
        },
        1: {"go": [Outcome(0.98, 4.0, 3), Outcome.failure(0.02, 4.0)]},
    }
    model = Liar(table, 2, reward=4.5, risk=0.02)
    result = vulcan.solve(vulcan.Problem(model, vulcan.Constant(0.02)), vulcan.baselines.RAOStar())
    assert result.status is Status.SOLVED
    assert result.certificate.reward == pytest.approx(4.0)
    assert result.statistics.evaluations == 4


@dataclass
class Guided(Table):
    """A table with heuristics: the true values, or looser by some amounts."""

    loose: float = 0.0
    timid: float = 1.0

    def reward_to_go_bound(self, state: object, step: int) -> float:
        return self._best_reward(self._last(state), step) + self.loose

    def risk_to_go_bound(self, state: object, action: str, step: int) -> float:
        return self.timid * self._least_risk(self._last(state), action, step)

    def _best_reward(self, state: object, step: int) -> float:
        actions = self.table.get(state, {}) if step < self.horizon else {}
        values = [
            sum(
                o.probability
                * (
                    o.reward
                    + (0 if o.fails else self.discount * self._best_reward(o.state, step + 1))
                )
                for o in outcomes
            )
            for outcomes in actions.values()
        ]
        return max(values, default=0.0)

    def _least_risk(self, state: object, action: str, step: int) -> float:
        if step == self.horizon:
            return 0.0
        total = 0.0
        for o in self.table[state][action]:
            actions = {} if o.fails or step + 1 == self.horizon else self.table.get(o.state, {})
            after = [self._least_risk(o.state, name, step + 1) for name in actions]
            total += o.probability * (1.0 if o.fails else min(after, default=0.0))
        return min(1.0, total)


@settings(max_examples=60)
@given(
    table=tables(),
    bound=bounds(),
    loose=st.sampled_from([0.0, 0.1, 2.0]),
    timid=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_rao_star_with_heuristics(
    table: Table, bound: vulcan.RiskBound, loose: float, timid: float
) -> None:
    plans = enumerate_plans(table)
    model = Guided(table.table, table.horizon, table.discount, loose=loose, timid=timid)
    result = vulcan.solve(vulcan.Problem(model, bound), vulcan.baselines.RAOStar())
    check_best(result, plans, bound)


@pytest.mark.parametrize("level", [0.005, 0.5])
def test_a_heuristic_may_be_infinite(level: float) -> None:
    problem = vulcan.Problem(Unknowing(CHAIN, 2), vulcan.Constant(level))
    result = vulcan.solve(problem, vulcan.baselines.RAOStar())
    assert result.status is Status.SOLVED
    assert result.certificate.reward == pytest.approx(5.5)
    with pytest.raises(vulcan.errors.ModelError, match="no upper bound"):
        vulcan.solve(
            vulcan.Problem(Wrong(CHAIN, 2), vulcan.Constant(level)), vulcan.baselines.RAOStar()
        )
