"""The integer program: the best deterministic policy."""

from __future__ import annotations

import math
import re
import signal
import threading
from dataclasses import replace

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.programs import Choose, is_open, make_edged
from tests.helpers.tables import SEEDS, Table, bounds, one_action, tables
from tests.oracles.brute_force import enumerate_plans
from tests.oracles.hulls import Point
from tests.oracles.step_functions import enumerate_functions
from vulcan import Outcome, Status
from vulcan.domains import Bandit
from vulcan.solvers.baselines import integer_program
from vulcan.solvers.baselines.flow_program import Ending, FlowProgram
from vulcan.solvers.baselines.integer_program import IntegerProgram
from vulcan.solvers.baselines.linear_program import LinearProgram
from vulcan.solvers.layered.lagrangian import Lagrangian
from vulcan.solvers.layered.pareto import Pareto

LINEAR = vulcan.Linear(0.002)
HARD = vulcan.Problem(Bandit(8), vulcan.Linear(0.0008))
BEST_OF_HARD = 2.73072891
KIND = "policy that depends on state and step only"


def solve(model: object, bound: vulcan.RiskBound, on: str = "tree", **options) -> vulcan.Result:
    return vulcan.solve(vulcan.Problem(model, bound), IntegerProgram(on), **options)


@pytest.mark.parametrize(
    ("horizon", "reward"),
    [(2, 0.9906), (3, 1.5280), (4, 2.0627), (5, 2.6068), (6, 3.1518)],
)
def test_the_optimal_column_of_the_paper(horizon: int, reward: float) -> None:
    result = solve(Bandit(horizon), LINEAR)
    assert result.status is Status.SOLVED
    assert result.explanation == "best policy within the risk bound, proved by HiGHS"
    assert result.safe
    assert result.certificate.reward == pytest.approx(reward, abs=5e-5)
    assert result.gap <= 1e-9


def test_functions_of_state_and_step_earn_less() -> None:
    result = solve(Bandit(6), LINEAR, "graph")
    assert result.certificate.reward == pytest.approx(3.15145, abs=5e-6)
    assert result.safe
    assert result.status is Status.SOLVED
    assert result.explanation == f"best {KIND}, proved by HiGHS"
    # The bound holds for all policies, those that remember more and those that draw.
    assert result.upper_bound == pytest.approx(3.15219, abs=1e-5)
    assert solve(Bandit(6), LINEAR).certificate.reward > result.certificate.reward + 1e-4


@pytest.mark.parametrize("bound", ["0.002*x", "0.008", "0.012 * (1 - exp(-0.5*x))"])
def test_it_agrees_with_fronts(bound: str) -> None:
    problem = vulcan.Problem(Bandit(7), vulcan.parse(bound))
    integer, fronts = (
        vulcan.solve(problem, IntegerProgram()),
        vulcan.solve(problem, Pareto()),
    )
    assert integer.status is fronts.status is Status.SOLVED
    assert integer.certificate.reward == pytest.approx(fronts.certificate.reward, abs=1e-9)


def check(result: vulcan.Result, points: list[Point], bound: vulcan.RiskBound) -> None:
    # Policies that pass or fail by a rounding may be seen either way.
    surely = [g for g, x in points if x <= bound(g) - 1e-11]
    maybe = [g for g, x in points if x <= bound(g) + 1e-11]
    if not maybe:
        assert result.policy is None
        assert result.status is Status.INFEASIBLE
    if surely:
        assert result.status is Status.SOLVED
        assert result.safe
        assert max(surely) - 1e-9 <= result.certificate.reward <= max(maybe) + 1e-9
        assert result.upper_bound >= max(surely) - 1e-9


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_it_finds_the_best_of_all_policies(table: Table, bound: vulcan.RiskBound) -> None:
    points = [(plan.reward, plan.risk) for plan in enumerate_plans(table)]
    for merges in (True, False):
        check(solve(replace(table, merges=merges, calls={}), bound), points, bound)


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_it_finds_the_best_function_of_state_and_step(
    table: Table, bound: vulcan.RiskBound
) -> None:
    points = enumerate_functions(table)
    result = solve(table, bound, "graph")
    check(result, points, bound)
    everything = [(plan.reward, plan.risk) for plan in enumerate_plans(table)]
    acceptable = [g for g, x in everything if x <= bound(g)]
    assert result.upper_bound >= max(acceptable, default=-math.inf) - 1e-9
    if result.policy is None and acceptable:
        assert result.explanation == f"no {KIND} is within the risk bound, proved by HiGHS"


@settings(max_examples=60)
@given(table=tables(), seed=SEEDS)
def test_bounds_that_begin_somewhere(table: Table, seed: int) -> None:
    bound = make_edged(seed)
    for on, points in (
        ("tree", [(plan.reward, plan.risk) for plan in enumerate_plans(table)]),
        ("graph", enumerate_functions(table)),
    ):
        result = solve(table, bound, on)
        if not is_open(result, points, bound):
            check(result, points, bound)


@settings(max_examples=100)
@given(table=tables(), bound=bounds())
def test_trees_that_grow(table: Table, bound: vulcan.RiskBound) -> None:
    points = [(plan.reward, plan.risk) for plan in enumerate_plans(table)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(integer_program, "FIRST_EDGES", 2)
        check(solve(table, bound), points, bound)


def test_a_tree_that_grows_in_the_bandit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integer_program, "FIRST_EDGES", 50)
    result = solve(Bandit(6), LINEAR)
    assert result.status is Status.SOLVED
    assert result.certificate.reward == pytest.approx(3.151787314, abs=1e-9)


@pytest.mark.parametrize("on", ["graph", "tree"])
def test_a_policy_that_fails_by_a_hair_is_refused(on: str) -> None:
    # HiGHS can't tell 0.5 from a trifle more, and the tangent does not cut it off either.
    for excess in (1.5e-12, 3e-12, 1e-11, 1e-9):
        daring = [Outcome(0.5 - excess, 1, 1), Outcome.failure(0.5 + excess, 1)]
        table = Table({0: {"dare": daring, "stay": [Outcome(1, 0.7, 1)]}}, 1)
        result = solve(table, vulcan.Constant(0.5), on)
        assert result.status is Status.SOLVED
        assert result.certificate.reward == 0.7
        assert result.certificate.passes


@pytest.mark.parametrize("on", ["graph", "tree"])
def test_small_models(on: str) -> None:
    nothing = Table({0: {}}, horizon=3)
    result = solve(nothing, vulcan.Constant(0.1), on)
    assert (result.status, result.certificate.reward, len(result.policy)) == (Status.SOLVED, 0, 0)
    assert solve(nothing, vulcan.Constant(-0.1), on).status is Status.INFEASIBLE
    result = solve(one_action(Outcome(0.9, 1, 0), Outcome.failure(0.1)), vulcan.Constant(0.1), on)
    assert result.status is Status.SOLVED
    sure = one_action(Outcome.failure(1.0, 5))
    assert solve(sure, vulcan.Constant(1.0), on).certificate.reward == 5
    assert solve(sure, vulcan.Constant(0.999), on).status is Status.INFEASIBLE


def test_nothing_deterministic_is_acceptable_though_a_mixture_is() -> None:
    # Worth its risk half of the time only: the tangent of the bound alone does not show it.
    table = Table(
        {0: {"safe": [Outcome(1, 0, 1)], "go": [Outcome(0.6, 2, 1), Outcome.failure(0.4, 2)]}}, 1
    )
    bound = vulcan.PiecewiseLinear([(0, -0.1), (1, 0.3), (2, 0.35)])
    for on in ("graph", "tree"):
        result = solve(table, bound, on)
        assert result.status is Status.INFEASIBLE
        assert result.policy is None
    assert vulcan.solve(vulcan.Problem(table, bound), LinearProgram()).safe


def test_starts_and_discounts() -> None:
    table = {
        0: {"go": [Outcome(0.9, 1, 1), Outcome.failure(0.1)], "stay": [Outcome(1, 0.2, 0)]},
        1: {"go": [Outcome(0.8, 2, 0), Outcome.failure(0.2)], "stay": [Outcome(1, 0.1, 1)]},
    }
    problem = vulcan.Problem(Choose(table, 3, 0.9), vulcan.Linear(0.05, 0.02))
    result, fronts = (
        vulcan.solve(problem, IntegerProgram()),
        vulcan.solve(problem, Pareto()),
    )
    assert result.status is Status.SOLVED
    assert result.certificate.reward == pytest.approx(fronts.certificate.reward, abs=1e-9)
    graph = vulcan.solve(problem, IntegerProgram("graph"))
    assert graph.status is Status.SOLVED
    assert graph.certificate.reward <= result.certificate.reward + 1e-9


@pytest.mark.parametrize("on", ["graph", "tree"])
def test_a_target_gap(on: str) -> None:
    for model in (Bandit(5), Table({0: {"a": [Outcome(0.9, -1, 0), Outcome.failure(0.1)]}}, 2)):
        result = solve(model, vulcan.Linear(0.002, 0.2), on, gap=0.05)
        assert result.status is Status.SOLVED
        assert result.safe
    result = solve(Bandit(5), LINEAR, on, gap=0.005)
    assert result.status is Status.SOLVED
    assert result.explanation.startswith("within 0.")
    assert result.gap <= 0.005
    result = solve(Bandit(4), vulcan.Linear(0.001), on, gap=0.001)
    assert result.status is Status.SOLVED
    within = rf"within 0.\d+ % of the best {KIND}" if on == "graph" else "best policy .*"
    assert re.fullmatch(rf"{within}, proved by HiGHS", result.explanation)


def test_limits() -> None:
    assert solve(Bandit(9), LINEAR, time_limit=0).policy is None
    few = vulcan.solve(HARD, IntegerProgram(), memory=2_000_000)
    assert few.stopped_by == "limit of memory"
    dual = vulcan.solve(HARD, Lagrangian())
    for on in ("graph", "tree"):
        result = vulcan.solve(HARD, IntegerProgram(on), time_limit=1.5)
        assert result.status is Status.STOPPED
        assert result.stopped_by == "time limit"
        assert result.safe
        assert result.certificate.reward <= BEST_OF_HARD <= result.upper_bound
        assert result.upper_bound <= dual.upper_bound + 1e-9


def test_ctrl_c_reaches_highs() -> None:
    pressed = []

    def press(progress: vulcan.Progress) -> None:
        if progress.reward is not None and not pressed:
            pressed.append(progress.seconds)
            signal.raise_signal(signal.SIGINT)

    result = vulcan.solve(HARD, IntegerProgram(), on_progress=press)
    assert pressed
    assert result.status is Status.STOPPED
    assert result.stopped_by == "Ctrl-C"
    assert result.safe
    assert result.upper_bound >= BEST_OF_HARD
    assert result.statistics.search_seconds - pressed[0] < 5


def test_highs_that_fails_leaves_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FlowProgram, "solve", lambda program: Ending.FAILED)
    for on in ("graph", "tree"):
        result = solve(Bandit(4), LINEAR, on)
        assert result.status is Status.DONE
        assert result.explanation == "HiGHS ended without a proof"
        assert result.safe
        assert result.gap > 0


def test_solving_in_another_thread() -> None:
    results: list[vulcan.Result] = []
    thread = threading.Thread(target=lambda: results.append(solve(Bandit(4), LINEAR)))
    thread.start()
    thread.join()
    assert results[0].status is Status.SOLVED


def test_the_same_policy_each_time() -> None:
    first, second = (solve(Bandit(5), LINEAR) for _ in range(2))
    assert first.policy == second.policy


def test_options_are_checked() -> None:
    with pytest.raises(vulcan.OptionError, match="'graph' or 'tree'"):
        IntegerProgram("forest")  # type: ignore[arg-type]
    with pytest.raises(vulcan.OptionError, match="no limit 'samples'"):
        solve(Bandit(2), LINEAR, samples=5)
