"""RAO*: heuristic search, and heuristics that lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from reproduction.rao_star import COIN, Tree, grow_tree, rao_star
from tests.helpers.heuristics import CHAIN, Liar, Valued
from tests.helpers.tables import Table, bounds, tables
from tests.oracles.best_policies import check_best
from tests.oracles.brute_force import enumerate_plans
from vulcan import Outcome
from vulcan.domains import Bandit
from vulcan.planning import Status

LINEAR = vulcan.Linear(0.002)
EXACT = vulcan.baselines.RAOStar(update="exact")
PUBLISHED = vulcan.baselines.RAOStar()


@pytest.mark.slow
def test_rao_star_evaluates_less_than_everything() -> None:
    problem = vulcan.Problem(Bandit(8), LINEAR)
    guided, exact = (vulcan.solve(problem, s) for s in (EXACT, vulcan.Pareto()))
    assert guided.certificate.reward == pytest.approx(exact.certificate.reward, abs=1e-12)
    assert guided.statistics.evaluations < 0.6 * exact.statistics.evaluations


@pytest.mark.parametrize("solver", [EXACT, PUBLISHED], ids=["exact", "as published"])
def test_rao_star_solves_the_experiment_of_the_paper(solver: vulcan.baselines.RAOStar) -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(10), vulcan.Constant(0.0125)), solver)
    assert result.safe
    assert result.status is (Status.SOLVED if solver is EXACT else Status.DONE)
    assert (result.upper_bound is None) == (solver is PUBLISHED)
    if solver is PUBLISHED:
        assert result.estimate == pytest.approx(float(result.certificate.reward), abs=1e-12)
    assert result.certificate.reward == pytest.approx(5.434855, abs=5e-7)
    assert result.certificate.risk == pytest.approx(0.01181, abs=5e-6)


def test_rao_star_that_is_stopped_has_an_upper_bound() -> None:
    told: list[vulcan.planning.Progress] = []
    result = vulcan.solve(
        vulcan.Problem(Bandit(12), LINEAR),
        EXACT,
        limits=vulcan.Limits(memory=1_000_000),
        progress=told.append,
    )
    assert result.status is Status.STOPPED
    assert result.policy is None
    assert result.upper_bound >= 6.4751
    assert result.upper_bound <= 0.7 * 12


def test_rao_star_refuses_heuristics_that_lie() -> None:
    bound = vulcan.Constant(0.02)
    honest = vulcan.solve(vulcan.Problem(Liar(CHAIN, 2, reward=5.0), bound), EXACT)
    assert honest.certificate.reward == pytest.approx(5.5)
    with pytest.raises(vulcan.errors.ModelError, match=r"reward_to_go_bound is 1\.0 at step 1"):
        vulcan.solve(vulcan.Problem(Liar(CHAIN, 2, reward=1.0), bound), EXACT)
    with pytest.raises(vulcan.errors.ModelError, match=r"risk_to_go_bound is 0\.02 at step 1"):
        vulcan.solve(vulcan.Problem(Liar(CHAIN, 2, reward=5.0, risk=0.02), bound), EXACT)
    for wrong in (math.nan, -0.1, 1.5, "no"):
        problem = vulcan.Problem(Liar(CHAIN, 2, reward=5.0, risk=wrong), bound)
        with pytest.raises(vulcan.errors.ModelError, match="from 0 to 1"):
            vulcan.solve(problem, EXACT)


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
    result = vulcan.solve(vulcan.Problem(model, vulcan.Constant(0.02)), EXACT)
    assert result.status is Status.SOLVED
    assert result.certificate.reward == pytest.approx(4.0)
    assert result.statistics.evaluations == 4


@dataclass
class Guided(Valued):
    """A table with heuristics: the true values, or looser by some amounts."""

    loose: float = 0.0
    timid: float = 1.0

    def reward_to_go_bound(self, state: object, step: int) -> float:
        return self.find_value(self._last(state), step, 0.0) + self.loose

    def risk_to_go_bound(self, state: object, action: str, step: int) -> float:
        return self.timid * self._least_risk(self._last(state), action, step)

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
def test_rao_star_with_heuristics(table, bound, loose, timid):
    plans = enumerate_plans(table)
    model = Guided(table.table, table.horizon, table.discount, loose=loose, timid=timid)
    result = vulcan.solve(vulcan.Problem(model, bound), EXACT)
    check_best(result, plans, bound)


@pytest.mark.parametrize("level", [0.005, 0.5])
def test_a_heuristic_may_be_infinite(level: float) -> None:
    problem = vulcan.Problem(Liar(CHAIN, 2, reward=math.inf), vulcan.Constant(level))
    result = vulcan.solve(problem, EXACT)
    assert result.status is Status.SOLVED
    assert result.certificate.reward == pytest.approx(5.5)
    wrong = Liar(CHAIN, 2, reward=-math.inf)
    with pytest.raises(vulcan.errors.ModelError, match="no upper bound"):
        vulcan.solve(vulcan.Problem(wrong, vulcan.Constant(level)), EXACT)


# As published.


def solve_as_published(model: object, level: float, **options: str) -> vulcan.Result:
    return vulcan.solve(
        vulcan.Problem(model, vulcan.Constant(level)), vulcan.baselines.RAOStar(**options)
    )


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize(("horizon", "actions"), [(2, 4), (3, 3)])
@pytest.mark.parametrize("mode", ["overall", "everywhere"])
def test_it_does_what_the_plain_algorithm_does(seed, horizon, actions, mode):
    level = (0.01, 0.03)[seed % 2]
    model = grow_tree(Random(seed), horizon, actions)
    value, risk, policy, nodes = rao_star(model, level, level if mode == "everywhere" else 1.0)
    result = solve_as_published(model, level, mode=mode)
    assert result.statistics.histories == nodes
    if not policy:
        assert (result.policy, result.status) == (None, Status.DONE)
        return
    assert result.safe
    assert float(result.certificate.reward) == pytest.approx(value, abs=1e-12)
    assert float(result.certificate.risk) == pytest.approx(risk, abs=1e-12)
    assert len(result.policy) == len(policy)


@settings(max_examples=60)
@given(
    table=tables(),
    level=st.sampled_from([-0.1, 0.0, 0.01, 0.05, 0.2, 1.0]),
    mode=st.sampled_from(["overall", "everywhere"]),
)
def test_it_never_exceeds_the_bound_nor_the_optimum(table: Table, level: float, mode: str) -> None:
    plans = [plan for plan in enumerate_plans(table) if plan.risk <= level + 1e-9]
    result = solve_as_published(
        Guided(table.table, table.horizon, table.discount), level, mode=mode
    )
    if result.policy is None:
        return
    assert result.safe
    best = max(plan.reward for plan in plans)
    assert result.certificate.reward <= best + 1e-9


def test_siblings_that_decide_together_lose_what_one_of_them_could_have() -> None:
    assert solve_as_published(COIN, 0.01).certificate.reward == pytest.approx(1.0)
    assert solve_as_published(COIN, 0.01, update="exact").certificate.reward == pytest.approx(9.5)
    assert solve_as_published(COIN, 0.02).certificate.reward == pytest.approx(10.0)


def test_everywhere_bounds_the_risk_ahead_of_every_history() -> None:
    # One of a hundred falls into a pit, and may leave it by a jump that fails half the time.
    jump = {
        "jump": [Outcome(0.5, 10.0, "out"), Outcome.failure(0.5)],
        "wait": [Outcome(1.0, 0.0, "out")],
    }
    walk = {"walk": [Outcome(0.99, 1.0, "out"), Outcome(0.01, 0.0, "pit")]}
    model = Tree({"": walk, "pit": jump}, 2)
    assert solve_as_published(model, 0.01).certificate.risk == pytest.approx(0.005)
    assert solve_as_published(model, 0.01, mode="everywhere").certificate.risk == 0


def test_a_dead_end_is_closed_or_left_without_a_plan() -> None:
    # What follows "go" looks harmless, and is not.
    table = {
        "": {"go": [Outcome(1.0, 1.0, "trap")], "stay": [Outcome(1.0, 0.5, "end")]},
        "trap": {"run": [Outcome(0.9, 1.0, "end"), Outcome.failure(0.1)]},
    }

    class Hopeful(Tree):
        def risk_to_go_bound(self, state: object, action: str, step: int) -> float:
            return 0.0

    closed = solve_as_published(Hopeful(table, 2), 0.05)
    assert closed.safe
    assert closed.certificate.reward == pytest.approx(0.5)
    left = solve_as_published(Hopeful(table, 2), 0.05, dead_ends="heuristic")
    assert not left.policy.complete
    assert left.certificate.frontier == pytest.approx(1.0)
    assert left.estimate == pytest.approx(2.0)  # a reward that no policy earns


def test_as_published_it_is_for_constant_bounds() -> None:
    problem = vulcan.Problem(Bandit(3), LINEAR)
    with pytest.raises(vulcan.errors.OptionError, match=r"constant risk bound, not 0\.002 \* x"):
        vulcan.solve(problem, PUBLISHED)
    for wrong in ({"mode": "somewhere"}, {"update": "exact", "mode": "everywhere"}):
        with pytest.raises(vulcan.errors.OptionError, match="mode"):
            vulcan.baselines.RAOStar(**wrong)


def test_as_published_it_can_be_stopped_at_any_time() -> None:
    problem = vulcan.Problem(Bandit(12), vulcan.Constant(0.0125))
    small = vulcan.solve(problem, PUBLISHED, limits=vulcan.Limits(memory=4_000_000))
    assert small.status is Status.STOPPED
    assert small.stopped_by is vulcan.planning.StopReason.MEMORY
    assert not small.policy.complete
    assert small.certificate.risk <= 0.0125
    late = vulcan.solve(problem, PUBLISHED, time_limit=0.3)
    assert late.status is Status.STOPPED
    assert late.stopped_by is vulcan.planning.StopReason.TIME
    found = late.certificate or late.planned  # planned is what could not be certified in time
    assert found is None or found.risk <= 0.0125


def test_as_published_it_refuses_heuristics_that_lie() -> None:
    problem = vulcan.Problem(Liar(CHAIN, 2, reward=1.0), vulcan.Constant(0.02))
    with pytest.raises(vulcan.errors.ModelError, match=r"reward_to_go_bound is 1\.0 at step 0"):
        vulcan.solve(problem, PUBLISHED)
