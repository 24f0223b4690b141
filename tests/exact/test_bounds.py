"""Dual bounds, branching and fronts against enumeration."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.charts import draw_chart
from tests.helpers.tables import Table, bounds, tables
from tests.helpers.unrolled import allow_evaluations
from tests.oracles.best_policies import acceptable, best_mixture
from tests.oracles.brute_force import enumerate_plans
from vulcan import Outcome
from vulcan.baselines.forward_search import ForwardSearchRun
from vulcan.domains import Bandit, Grid, TreasureGrid
from vulcan.exact.acceptance import BoundTest, find_extremes
from vulcan.exact.branch import branch
from vulcan.exact.dual import Dual
from vulcan.exact.fronts import DualGap, FrontArrays, bound_by_fronts, load_kernels
from vulcan.exact.search import ExactSearch
from vulcan.exact.sweeps import PolicyPoint, find_least_risk_policy
from vulcan.exact.thin_fronts import ThinFrontSearch, find_between
from vulcan.graph.levels import build_levels
from vulcan.graph.states import StateGraph, open_graph
from vulcan.model.reader import ModelReader
from vulcan.planning import Status, automatic
from vulcan.runtime.limits import Limits, Monitor
from vulcan.solvers.base import describe_origin
from vulcan.solvers.finding import Finding, Statistics


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_the_dual_bound_is_the_best_randomised_policy(table, bound):
    plans = enumerate_plans(table)
    best = best_mixture(plans, bound)
    result = vulcan.solve(vulcan.Problem(table, bound), vulcan.Lagrangian())
    upper = result.upper_bound
    assert upper is not None
    assert upper >= best - 1e-9  # the scan uses up the tolerance of risk, and a bound rounds it off
    # A mixture that only just passes may be missed by the scan.
    most = best_mixture(plans, lambda reward: bound(reward) + 1e-9)
    if best > -math.inf:
        assert upper <= most + 1e-6
    elif most == -math.inf:
        assert upper == -math.inf
        assert result.status is Status.INFEASIBLE
    if result.policy is not None:
        assert result.safe
        rewards = [plan.reward for plan in acceptable(plans, bound, 1e-11)]
        assert result.certificate.reward <= max(rewards) + 1e-9


def relax(problem: vulcan.Problem) -> tuple[ExactSearch, Dual]:
    """Return a run with its dual bound."""
    reader = ModelReader(problem.model)
    run = ExactSearch(problem, reader, Monitor(Limits()), vulcan.Pareto())
    assert run.unroll()
    return run, run.find_dual()


def bound(problem: vulcan.Problem) -> tuple[ExactSearch, float]:
    """Return a run with the bound of cases, and the dual bound."""
    run, dual = relax(problem)
    if len(run.levels):
        branch(run)
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
    assert result.status is vulcan.planning.Status.SOLVED
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


def test_a_bound_is_not_evaluated_below_the_reward_of_the_safest_policy() -> None:
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


@pytest.mark.parametrize("text", ["T.G#\nTTT.\nTGTB", ".TT#\nB#.G\nTT.G", "TTT#\nT.TG\nGB#T"])
def test_a_long_horizon_has_no_more_ways_to_wait_than_a_short_one(text: str) -> None:
    """Gaps were 11, 6 and 5 %: one can wait before each move."""
    problem = vulcan.Problem(TreasureGrid(40, map=text), 0.15)
    run, dual = bound(problem)
    assert run.best is not None
    assert run.gap < 0.02
    assert dual > 1.05 * run.upper
    # Open histories follow policies of different prices, all with their own decisions.
    proof = vulcan.certify(problem, run.write_out(run.best))
    assert proof.safe
    assert proof.reward == pytest.approx(run.best.reward, rel=1e-12)
    assert proof.risk == pytest.approx(run.best.risk, rel=1e-12)


def test_policies_that_may_stop_bound_those_that_must_go_on() -> None:
    """All steps after the gold are risky: who stops there earns more than who must go on."""
    dig = [Outcome(0.45, 2.0, "deep"), Outcome(0.3, 0.0, "deep"), Outcome(0.2, 0.0, "start")]
    climb = [Outcome(0.99, 0.1, "deep"), Outcome.failure(0.01)]
    rest = [Outcome(0.995, 0.0, "deep"), Outcome.failure(0.005)]
    rows = {
        "start": {"wait": [Outcome(1.0, 0.0, "start")], "dig": [*dig, Outcome.failure(0.05)]},
        "deep": {"climb": climb, "rest": rest},
    }
    for horizon, limit in product((2, 3, 4), (0.03, 0.06)):
        problem = vulcan.Problem(Table(rows, horizon, start="start"), limit)
        run, _ = bound(problem)
        plans = acceptable(enumerate_plans(problem.model), problem.risk_bound)
        best = max(plan.reward for plan in plans)
        assert run.upper >= best - 1e-12
        assert run.best is not None
        assert run.best.reward <= best + 1e-12


@pytest.mark.slow
def test_a_lake_is_closed_that_thin_fronts_leave_open() -> None:
    """Slips of a third each draw lots badly: the dual bound is 1.4 % too high."""
    gymnasium = pytest.importorskip("gymnasium")
    assert gymnasium
    model = vulcan.formats.from_gymnasium("FrozenLake-v1", horizon=20)
    result = vulcan.solve(vulcan.Problem(model, 0.01), time_limit=60, gap=1e-3)
    assert result.relaxed > 1.01 * result.certificate.reward
    assert result.gap < 1e-3


CAVE = TreasureGrid(horizon=30)
BOUND = vulcan.Constant(0.15)


class Search:
    """A run with its dual, for thin fronts."""

    def __init__(self, model: Any, bound: vulcan.RiskBound) -> None:
        self.problem = vulcan.Problem(model, bound)
        self.run, self.dual = relax(self.problem)

    def make(self) -> ThinFrontSearch:
        price = self.dual.multiplier
        rewards, risks = self.run.sweeps.follow(1.0, price)
        values = rewards - price * risks
        span = (min(self.dual.points, key=lambda c: c.risk).reward, self.dual.upper_bound)
        levels, bound_test = self.run.levels.arrays, BoundTest(self.problem.risk_bound)
        return ThinFrontSearch(levels, bound_test, price, values, span)

    def certify(self, point: PolicyPoint) -> vulcan.Certificate:
        return vulcan.certify(self.problem, self.run.write_out(point))


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_a_point_is_what_its_policy_attains_and_the_best_if_nothing_is_cut(table, bound):
    search = Search(table, bound)
    assume(search.dual.upper_bound > -math.inf and len(search.run.levels))
    best = max((plan.reward for plan in acceptable(enumerate_plans(table), bound)), default=None)
    found = {points: search.make().search(math.inf, points) for points in (1, 3, 1024)}
    for point in filter(None, found.values()):
        certificate = search.certify(point)
        assert certificate.reward == pytest.approx(point.reward, abs=1e-12)
        assert certificate.risk == pytest.approx(point.risk, abs=1e-12)
        assert certificate.safe
        assert certificate.complete
    if best is not None:
        # A front of 1024 points has everything that matters here, up to points that nearly agree.
        assert found[1024] is not None
        assert found[1024].reward >= best - 0.002 * max(1.0, abs(best))


@pytest.mark.parametrize(
    ("model", "text"),
    [
        *product([Bandit(7), Grid(horizon=40)], ["0.002*x", "0.01", "0.02 * (1 - exp(-0.4*x))"]),
        *product([CAVE], ["0.05 + 0.1*x", "0.15", "0.3 - 0.2 * exp(-x)"]),
    ],
    ids=str,
)
def test_each_policy_is_better_acceptable_and_certified(model: Any, text: str) -> None:
    search = Search(model, vulcan.parse(text))
    bound, upper = search.problem.risk_bound, search.dual.upper_bound
    last = -math.inf
    for point in find_between(search.make(), upper, None):
        assert last < point.reward <= upper + 1e-12
        last = point.reward
        certificate = search.certify(point)
        assert certificate.reward == pytest.approx(point.reward, abs=1e-12)
        assert certificate.risk == pytest.approx(point.risk, abs=1e-12)
        assert BoundTest(bound).accepts(point)
        assert certificate.complete
    assert last > -math.inf


def test_actions_of_the_last_step_count_though_a_compiled_model_does_not_store_them() -> None:
    model = draw_chart(14, 3)
    problem = vulcan.Problem(model, vulcan.parse("min(0.01*x, 0.05)"))
    run = ForwardSearchRun(problem, ModelReader(model), vulcan.ForwardSearch())
    assert run.advance(Monitor(Limits()))
    compiled = run.graph
    unstored = compiled.actions.array["first_outcome"][: compiled.actions.count] < 0
    assert unstored.any()
    plain = StateGraph(ModelReader(model.plain()))
    build_levels(plain)
    assert find_extremes(compiled) == find_extremes(plain)


FREE = vulcan.Constant(1.0)


@given(tables())
@settings(max_examples=60, deadline=None)
def test_it_is_worth_what_its_certificate_says(model: Table) -> None:
    problem, reader = vulcan.Problem(model, FREE), ModelReader(model)
    graph = open_graph(reader)
    point = find_least_risk_policy(graph, lambda: True)
    assert point is not None
    rows, children, _ = point.decide()
    assume(len(rows))
    policy = graph.policy(rows, children, describe_origin(problem, reader, None))
    certificate = vulcan.certify(problem, policy)
    assert certificate.complete
    assert float(certificate.reward) == pytest.approx(point.reward, abs=1e-12)
    assert float(certificate.risk) == pytest.approx(point.risk, abs=1e-12)


def make_ridge(length: int) -> Table:
    """Return a walk along a ridge, where haste fails, and going down pays at once."""
    haste = [Outcome(0.9, 1.0, 0), Outcome.failure(0.1)]
    table = {
        k: {
            "haste": [Outcome(0.9, 1.0, k + 1), Outcome.failure(0.1)],
            "care": [Outcome(0.5, 0.1, k + 1), Outcome(0.5, 0.1, k)],
        }
        for k in range(length)
    }
    return Table({**table, length: {"haste": haste}}, horizon=length)


def test_it_takes_the_least_risk_of_each_step_and_evaluates_only_reached_states() -> None:
    model = make_ridge(30)
    graph = open_graph(ModelReader(model))
    point = find_least_risk_policy(graph, lambda: True)
    assert point is not None
    assert point.risk == 0.0
    assert point.reward == pytest.approx(3.0)
    assert (30, "haste") not in model.calls


def test_it_stops_when_it_may_not_go_on() -> None:
    assert find_least_risk_policy(open_graph(ModelReader(make_ridge(5))), lambda: False) is None


def test_a_complete_policy_is_returned_whatever_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_evaluations(monkeypatch, -1)
    monkeypatch.setattr(automatic.Vulcan, "search", sample_nothing)
    result = vulcan.solve(vulcan.Problem(make_ridge(30), 0.01))
    assert result.safe
    assert result.certificate.reward == pytest.approx(3.0)
    assert "least immediate risk" in result.explanation
    refused = vulcan.solve(vulcan.Problem(make_ridge(30), vulcan.Constant(-0.5)))
    assert refused.policy is None
    assert refused.status is vulcan.planning.Status.DONE


def sample_nothing(*_: object) -> Finding:
    """Stand in for a search that finds nothing, and calls that a proof."""
    nothing = Statistics(0.0, 0, 0)
    return Finding(vulcan.planning.Status.INFEASIBLE, "none admitted", None, 0.0, 0.0, (), nothing)


def sweep(model: Table, reward_weight: float, risk_weight: float) -> PolicyPoint:
    """Return what the dynamic program over state–step pairs finds."""
    problem = vulcan.Problem(model, vulcan.Constant(1.0))
    run = ExactSearch(problem, ModelReader(model), Monitor(Limits()), None)
    assert run.unroll()
    return run.sweep(reward_weight, risk_weight)


@given(tables(), st.sampled_from([0.0, 0.3, 2.0, 40.0]))
@settings(max_examples=60, deadline=None)
def test_a_sweep_finds_the_best_of_all_policies(model: Table, price: float) -> None:
    plans = enumerate_plans(model)
    for reward_weight, risk_weight in ((1.0, price), (0.0, 1.0)):
        found = sweep(model, reward_weight, risk_weight)
        values = [reward_weight * plan.reward - risk_weight * plan.risk for plan in plans]
        value = reward_weight * found.reward - risk_weight * found.risk
        assert value == pytest.approx(max(values), abs=1e-9)
        points = [(plan.reward, plan.risk) for plan in plans]
        assert any((found.reward, found.risk) == pytest.approx(p, abs=1e-9) for p in points)


def test_among_equals_the_least_risk_and_then_the_most_reward_wins() -> None:
    safe = {name: [Outcome(1.0, k, 1)] for k, name in enumerate("abc")}
    risky = {"d": [Outcome(0.5, 4.0, 1), Outcome.failure(0.5, 0.0)]}
    least = sweep(Table({0: {**safe, **risky}}, 1), 0.0, 1.0)
    assert (least.reward, least.risk) == (2.0, 0.0)
    for actions in ({**risky, **safe}, {**safe, **risky}):
        equal = sweep(Table({0: actions}, 1), 1.0, 0.0)
        assert (equal.reward, equal.risk) == (2.0, 0.0)


@given(tables(), st.integers(0, 1 << 20))
@settings(max_examples=300)
def test_fronts_within_a_slack_claim_no_less_than_the_best(table: Table, number: int) -> None:
    # The bound is the risk of some policy, which is often the best and not on the convex hull.
    # Without merged states each pair is reached over one edge: an edge dropped wrongly is missed.
    plans = enumerate_plans(table)
    risk_bound = vulcan.Constant(min(1.0, plans[number % len(plans)].risk))
    best = max(acceptable(plans, risk_bound), key=lambda plan: plan.reward)
    run, dual = relax(vulcan.Problem(replace(table, merges=False), risk_bound))
    assume(len(run.levels) and dual.upper_bound > -math.inf)
    price = dual.multiplier
    most = max(plan.reward - price * plan.risk for plan in plans)
    dual_gap = most - (best.reward - price * best.risk)
    load_kernels()
    run.best = None
    given = (run, DualGap(run), FrontArrays(run.layers))
    for share, points in product((0.1, 1 + 1e-9, 1.3, 3.5), (2, 64)):
        dropped, kept = bound_by_fronts(*given, share * dual_gap + 1e-12, points) or (0.0, 0.0)
        # With enough slack the best policy is kept, so that nothing else need bound its reward.
        assert (max(dropped, kept) if share < 1 else kept) >= best.reward - 1e-9
