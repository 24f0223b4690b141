"""The linear program: the best randomised policy."""

from __future__ import annotations

import math
import signal
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.programs import Choose, is_open, make_edged
from tests.helpers.tables import SEEDS, Table, bounds, one_action, tables
from tests.helpers.unrolled import unroll_layers
from tests.oracles.brute_force import enumerate_plans
from tests.oracles.hulls import find_best_mixture
from vulcan import Outcome, Status
from vulcan.domains import Bandit
from vulcan.policies.randomised import RandomisedPolicy
from vulcan.solvers.baselines.flow_program import cut_at
from vulcan.solvers.baselines.linear_program import LinearProgram, peel
from vulcan.solvers.baselines.links import Links, judge
from vulcan.solvers.layered.lagrangian import Lagrangian

LINEAR = vulcan.Linear(0.002)
CONCAVE = "(1 - exp(-0.4*x)) * (0.005 + 0.001*x)"


def solve(model: object, bound: vulcan.RiskBound, on: str = "graph", **options) -> vulcan.Result:
    return vulcan.solve(vulcan.Problem(model, bound), LinearProgram(on=on), **options)


@pytest.mark.parametrize(
    ("horizon", "bound", "reward"),
    [(8, LINEAR, 4.2529), (10, LINEAR, 5.3618), (10, vulcan.Constant(0.0125), 5.43485)],
)
def test_the_bandit_of_the_paper(horizon: int, bound: vulcan.RiskBound, reward: float) -> None:
    result = solve(Bandit(horizon), bound)
    assert result.status is Status.SOLVED
    assert result.explanation == "best randomised policy within the risk bound, proved"
    assert result.safe
    assert result.certificate.reward == pytest.approx(reward, abs=5e-5)
    assert result.upper_bound >= result.certificate.reward - 1e-12
    assert result.gap <= 1e-9
    members = len(result.policy.members)
    assert members == (1 if isinstance(bound, vulcan.Constant) else 2)
    assert isinstance(result.policy, RandomisedPolicy) == (members == 2)


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("bound", ["0.002*x", "0.004", CONCAVE])
def test_histories_gain_nothing(horizon: int, bound: str) -> None:
    graph, tree = (solve(Bandit(horizon), vulcan.parse(bound), on) for on in ("graph", "tree"))
    assert graph.status is tree.status is Status.SOLVED
    assert tree.certificate.reward == pytest.approx(graph.certificate.reward, abs=1e-9)
    assert tree.statistics.nodes >= graph.statistics.nodes


@pytest.mark.parametrize("bound", ["0.001*x", "0.003", "0.004*sqrt(x)", CONCAVE])
@pytest.mark.parametrize("horizon", [4, 7])
def test_it_agrees_with_the_dual_search(horizon: int, bound: str) -> None:
    problem = vulcan.Problem(Bandit(horizon), vulcan.parse(bound))
    linear, dual = (
        vulcan.solve(problem, LinearProgram()),
        vulcan.solve(problem, Lagrangian()),
    )
    assert linear.status is Status.SOLVED
    assert linear.certificate.reward == pytest.approx(dual.upper_bound, abs=1e-8)
    assert linear.upper_bound == pytest.approx(dual.upper_bound, abs=1e-8)


def check(result: vulcan.Result, table: Table, bound: vulcan.RiskBound) -> None:
    points = [(plan.reward, plan.risk) for plan in enumerate_plans(table)]
    best = find_best_mixture(points, bound)
    if best == -math.inf:
        assert result.policy is None
        assert result.status is Status.INFEASIBLE
        assert result.upper_bound == -math.inf
        return
    assert result.status is Status.SOLVED
    assert result.safe
    assert result.certificate.reward == pytest.approx(best, abs=1e-8)
    assert result.upper_bound >= max(best, result.certificate.reward) - 1e-8
    acceptable = [g for g, x in points if x <= bound(g)]
    assert result.upper_bound >= max(acceptable, default=-math.inf) - 1e-9


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_it_finds_the_best_mixture_of_all_policies(table: Table, bound: vulcan.RiskBound) -> None:
    for on in ("graph", "tree"):
        check(solve(replace(table, calls={}), bound, on), table, bound)


@settings(max_examples=80)
@given(table=tables(), seed=SEEDS)
def test_bounds_that_begin_somewhere(table: Table, seed: int) -> None:
    bound = make_edged(seed)
    result = solve(table, bound)
    if not is_open(result, [(p.reward, p.risk) for p in enumerate_plans(table)], bound):
        check(result, table, bound)


def test_cuts_where_the_bound_begins() -> None:
    bound = vulcan.Concave(lambda x: 0.02 * math.sqrt(x - 1) if x >= 1 else -math.inf)
    floor, line = cut_at(bound, 0.25, 3.0)
    assert floor.risk == 0
    assert -floor.limit / floor.reward == pytest.approx(1.0, abs=1e-15)
    for reward in (1.0, 1.01, 1.5, 3.0):
        assert line.risk * bound(reward) - line.reward * reward <= line.limit
    (line,) = cut_at(bound, 2.0, 3.0)
    assert line.reward == pytest.approx(0.01, rel=1e-3)


def test_a_bound_without_derivative_is_closed_as_well() -> None:
    bound = vulcan.Concave(lambda x: 0.01 * (1 - math.exp(-x)))
    result = solve(Bandit(6), bound)
    assert result.status is Status.SOLVED
    exact = solve(Bandit(6), vulcan.parse("0.01 * (1 - exp(-x))"))
    assert result.certificate.reward == pytest.approx(exact.certificate.reward, abs=1e-9)


def test_a_flow_is_peeled_into_its_policies() -> None:
    layers = unroll_layers(Bandit(3))
    links = Links(layers)
    random = np.random.default_rng(5)
    nodes = layers.arrays.nodes
    policies = [
        (nodes["first_edge"] + random.integers(nodes["edge_count"])).astype(np.int32)
        for _ in range(3)
    ]
    flow = np.zeros(len(layers.arrays.edges))
    for weight, policy in zip((0.6, 0.3, 0.1), policies, strict=True):
        flow[policy] += weight * links.reach(policy)
    peeled = peel(layers, links, flow, nodes["first_edge"].astype(np.int32))
    assert len(peeled) <= 8
    # Each peeled policy stays within the flow, and the flow's value is between theirs.
    for policy in peeled:
        assert np.all(flow[policy][links.reach(policy) > 0] > 0)
    reward = float(flow @ layers.arrays.edges["reward"])
    values = [judge(layers, policy)[0] for policy in peeled]
    assert min(values) <= reward + 1e-12
    assert max(values) >= reward - 1e-12


def test_the_tolerance_ends_the_search() -> None:
    # The first tangent leads to a mixture of "walk" and "run", the answer mixes "wait" and "walk".
    actions = {
        "wait": [Outcome(1, 0, 1)],
        "walk": [Outcome(0.9, 1, 1), Outcome.failure(0.1, 1)],
        "run": [Outcome(0.5, 2, 1), Outcome.failure(0.5, 2)],
    }
    bound = vulcan.PiecewiseLinear([(0, 0.02), (1, 0.09), (2, 0.12)])
    problem = vulcan.Problem(Table({0: actions}, 1), bound)
    rough = vulcan.solve(problem, LinearProgram(tolerance=0.5))
    assert rough.status is Status.SOLVED
    assert rough.explanation == "within 31 % of the best randomised policy, proved"
    assert rough.safe
    exact = vulcan.solve(problem, LinearProgram(tolerance=0.0))
    assert exact.status is Status.SOLVED
    assert exact.certificate.reward == pytest.approx(2 / 3, abs=1e-9)
    assert exact.upper_bound == pytest.approx(2 / 3, abs=1e-9)
    assert rough.certificate.reward <= exact.certificate.reward <= rough.upper_bound


@pytest.mark.parametrize("on", ["graph", "tree"])
def test_small_models(on: str) -> None:
    nothing = Table({0: {}}, horizon=3)
    result = solve(nothing, vulcan.Constant(0.1), on)
    assert (result.status, result.certificate.reward, len(result.policy)) == (Status.SOLVED, 0, 0)
    result = solve(nothing, vulcan.Constant(-0.1), on)
    assert result.status is Status.INFEASIBLE
    assert result.upper_bound == -math.inf
    # One action, whose risk is exactly what is allowed; and one that surely fails.
    result = solve(one_action(Outcome(0.9, 1, 0), Outcome.failure(0.1)), vulcan.Constant(0.1), on)
    assert result.status is Status.SOLVED
    sure = one_action(Outcome.failure(1.0, 5))
    assert solve(sure, vulcan.Constant(1.0), on).certificate.reward == 5
    assert solve(sure, vulcan.Constant(0.999), on).status is Status.INFEASIBLE
    # Half of it, if there is another way.
    both = Table({0: {"go": [Outcome.failure(1.0, 5)], "stay": [Outcome(1, -1, 0)]}}, 1)
    result = solve(both, vulcan.Constant(0.5), on)
    assert result.certificate.reward == pytest.approx(2, abs=1e-9)
    assert result.policy.weights == pytest.approx((0.5, 0.5))


def test_rewards_of_any_size() -> None:
    for size in (1e-9, 1e-3, 1e6, 1e12):
        table = Table(
            {
                0: {
                    "go": [Outcome(0.99, size, 1), Outcome.failure(0.01)],
                    "stay": [Outcome(1.0, size / 2, 1)],
                },
                1: {"on": [Outcome(0.5, -size, 0), Outcome(0.5, size, 0)]},
            },
            horizon=3,
        )
        result = solve(table, vulcan.Constant(0.005))
        assert result.status is Status.SOLVED
        exact = vulcan.certify(result.problem, result.policy, exact=True)
        assert float(exact.risk) == pytest.approx(0.005, abs=2e-12)


def test_starts_and_discounts() -> None:
    table = {
        0: {"go": [Outcome(0.9, 1, 1), Outcome.failure(0.1)], "stay": [Outcome(1, 0.2, 0)]},
        1: {"go": [Outcome(0.8, 2, 0), Outcome.failure(0.2)], "stay": [Outcome(1, 0.1, 1)]},
    }
    problem = vulcan.Problem(Choose(table, 3, 0.9), vulcan.Linear(0.05, 0.02))
    results = [vulcan.solve(problem, LinearProgram(on)) for on in ("graph", "tree")]
    dual = vulcan.solve(problem, Lagrangian())
    for result in results:
        assert result.status is Status.SOLVED
        assert result.certificate.reward == pytest.approx(dual.upper_bound, abs=1e-9)


def test_what_is_left_open_near_0_is_stated() -> None:
    # To fail for certain is known up to 1e-12, so that a mixture stays that far away from it.
    ways = {"fail": [Outcome.failure(1.0)], "pay": [Outcome(1.0, -1e-9, 1)]}
    result = solve(Table({0: ways}), vulcan.Constant(1.0))
    assert result.status is Status.SOLVED
    assert -1e-20 < result.certificate.reward < 0.0
    assert result.certificate.reward + result.rounding >= 0.0
    assert result.rounding < 1e-20


def test_what_the_tolerance_of_the_bound_is_worth_is_stated() -> None:
    table = {0: {"stay": [Outcome(1.0, -3e8, 0)], "fail": [Outcome.failure(1.0)]}}
    problem = vulcan.Problem(Table(table), vulcan.parse("1.3 - 0.3 * exp(-0 * x)"))
    result = vulcan.solve(problem, vulcan.LinearProgram())
    assert result.status is vulcan.Status.SOLVED
    assert result.certificate.reward + result.rounding >= 0.0  # failing for sure earns 0


def test_the_same_is_stated_where_nothing_is_mixed() -> None:
    faint = [Outcome(0.999999992, 0.0, 1), Outcome.failure(8e-9)]
    costly = [Outcome(0.2, -1e-9, 1, "a"), Outcome(0.2, -1e-9, 1, "b"), Outcome(0.6, 0.0, 2)]
    result = solve(Table({0: {"faint": faint, "costly": costly}}), vulcan.Linear(0.002))
    assert result.safe
    assert result.certificate.reward + result.rounding >= -4e-10


def test_limits_and_interruption() -> None:
    assert solve(Bandit(9), LINEAR, time_limit=0).policy is None
    few = solve(Bandit(9), LINEAR, memory=1000)
    assert few.status is Status.STOPPED
    assert few.stopped_by == "limit of memory"
    result = solve(Bandit(7), LINEAR, "tree", time_limit=0.8)
    assert result.status is Status.STOPPED
    assert result.stopped_by == "time limit"
    assert result.statistics.search_seconds < 5
    pressed = []

    def press(progress: vulcan.Progress) -> None:
        if progress.reward is not None and not pressed:
            pressed.append(progress.seconds)
            signal.raise_signal(signal.SIGINT)

    result = solve(Bandit(7), LINEAR, "tree", on_progress=press)
    assert pressed
    assert result.status is Status.STOPPED
    assert result.stopped_by == "Ctrl-C"
    assert result.safe  # a mixture of the most daring policy and the safest
    assert result.upper_bound >= 3.7
    assert result.statistics.search_seconds - pressed[0] < 3


def test_what_is_raised_while_highs_runs_is_passed_on() -> None:
    def fail(progress: vulcan.Progress) -> None:
        if progress.reward is not None:
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        solve(Bandit(7), LINEAR, "tree", on_progress=fail)


def test_highs_is_left_to_others_as_it_was() -> None:
    highspy = pytest.importorskip("highspy")
    for _ in range(2):
        other = highspy.Highs()
        other.silent()
        other.setOptionValue("threads", 2)
        other.addVariable(0, 1, -1)
        assert other.run() == highspy.HighsStatus.kOk
        assert solve(Bandit(3), LINEAR).status is Status.SOLVED


@pytest.mark.parametrize("options", [{"on": "forest"}, {"tolerance": -1}, {"tolerance": math.nan}])
def test_options_are_checked(options: dict) -> None:
    with pytest.raises(vulcan.OptionError):
        LinearProgram(**options)
    with pytest.raises(vulcan.OptionError, match="no limit 'samples'"):
        solve(Bandit(2), LINEAR, samples=5)
