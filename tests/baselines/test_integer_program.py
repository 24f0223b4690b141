"""The integer program: the best deterministic policy."""

from __future__ import annotations

import math
import re
import signal
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.programs import Choose, is_open, make_edged
from tests.helpers.tables import SEEDS, Table, bounds, one_action, tables
from tests.oracles.brute_force import enumerate_plans
from tests.oracles.hulls import Point
from vulcan import Outcome
from vulcan.baselines import integer_program
from vulcan.baselines.integer_program import IntegerProgram
from vulcan.baselines.programs import LinearProgram
from vulcan.domains import Bandit
from vulcan.exact.pipeline import Lagrangian, Pareto
from vulcan.planning import Status


def enumerate_functions(table: Table) -> list[Point]:
    """Return reward and risk of every function of state and step."""
    places, pending = [], [(table.start, 0)]
    while pending:
        state, step = pending.pop()
        actions = table.table.get(state, {}) if step < table.horizon else {}
        if actions and (state, step) not in places:
            places.append((state, step))
            for outcomes in actions.values():
                pending += [(o.state, step + 1) for o in outcomes if not o.fails]
    places.sort(key=lambda place: -place[1])
    found = []
    for names in product(*(table.table[state] for state, _ in places)):
        values: dict[object, Point] = {}
        for (state, step), name in zip(places, names, strict=True):
            reward = risk = 0.0
            for o in table.table[state][name]:
                g, x = (0.0, 1.0) if o.fails else values.get((o.state, step + 1), (0.0, 0.0))
                reward += o.probability * (table.discount**step * o.reward + g)
                risk += o.probability * x
            values[state, step] = (reward, risk)
        found.append(values.get((table.start, 0), (0.0, 0.0)))
    return found


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


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_trees_that_grow(table: Table, bound: vulcan.RiskBound) -> None:
    points = [(plan.reward, plan.risk) for plan in enumerate_plans(table)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(integer_program, "FIRST_EDGES", 2)
        check(solve(table, bound), points, bound)


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
    few = vulcan.solve(HARD, IntegerProgram(), limits=vulcan.Limits(memory=2_000_000))
    assert few.stopped_by == "limit of memory"
    dual = vulcan.solve(HARD, Lagrangian())
    for on in ("graph", "tree"):
        result = vulcan.solve(HARD, IntegerProgram(on), time_limit=1.5)
        assert result.status is Status.STOPPED
        assert result.stopped_by == "time limit"
        assert result.safe
        assert result.certificate.reward <= BEST_OF_HARD + 1e-8
        assert result.upper_bound >= BEST_OF_HARD
        assert result.upper_bound <= dual.upper_bound + 1e-9


def test_ctrl_c_reaches_highs() -> None:
    pressed = []

    def press(progress: vulcan.planning.Progress) -> None:
        if progress.reward is not None and not pressed:
            pressed.append(progress.seconds)
            signal.raise_signal(signal.SIGINT)

    result = vulcan.solve(HARD, IntegerProgram(), progress=press)
    assert pressed
    assert result.status is Status.STOPPED
    assert result.stopped_by == "Ctrl-C"
    assert result.safe
    assert result.upper_bound >= BEST_OF_HARD
    assert result.statistics.search_seconds - pressed[0] < 5


def test_options_are_checked() -> None:
    with pytest.raises(vulcan.errors.OptionError, match="'graph' or 'tree'"):
        IntegerProgram("forest")  # type: ignore[arg-type]
    with pytest.raises(vulcan.errors.OptionError, match="no limit 'samples'"):
        solve(Bandit(2), LINEAR, samples=5)
