"""Linear and integer programs: the best randomised policy, and the best deterministic one."""

from __future__ import annotations

import math
import re
import signal
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.tables import SEEDS, Table, bounds, one_action, tables
from tests.oracles.best_policies import Point, find_best_mixture
from tests.oracles.brute_force import enumerate_plans
from vulcan import Outcome
from vulcan.baselines import IntegerProgram, LinearProgram, integer_program
from vulcan.baselines.programs import cut_at
from vulcan.domains import Bandit
from vulcan.planning import Status
from vulcan.policy.policy import RandomisedPolicy

LINEAR = vulcan.Linear(0.002)
HARD = vulcan.Problem(Bandit(8), vulcan.Linear(0.0008))
BEST_OF_HARD = 2.73072891
KIND = "policy that depends on state and step only"
FORMS = pytest.mark.parametrize("on", ["graph", "tree"])


def randomise(model: object, bound: Any, on: Any = "graph", **options: Any) -> vulcan.Result:
    return vulcan.solve(vulcan.Problem(model, bound), LinearProgram(on), **options)


def solve(model: object, bound: Any, on: Any = "tree", **options: Any) -> vulcan.Result:
    return vulcan.solve(vulcan.Problem(model, bound), IntegerProgram(on), **options)


def list_points(table: Table) -> list[Point]:
    """Return reward and risk of every history-dependent policy."""
    return [(plan.reward, plan.risk) for plan in enumerate_plans(table)]


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


def make_edged(seed: int) -> vulcan.RiskBound:
    """Return a bound that is -inf for small rewards, some infinitely steep where it begins."""
    random = Random(seed)
    start = random.choice([-1.0, -0.5, 0.0, 0.5, 1.0])
    scale = random.choice([0.01, 0.1, 0.3, 1.0])
    function = random.choice(
        [
            lambda x: scale * math.sqrt(x - start),
            lambda x: scale * (x - start) ** 0.25 - 0.05,
            lambda x: 0.1 + scale * math.log(x - start) if x > start else -math.inf,
            lambda x: scale * (x - start) + 0.01,
        ]
    )
    return vulcan.Concave(lambda x: function(x) if x >= start else -math.inf)


def is_open(result: vulcan.Result, points: list[Point], bound: vulcan.RiskBound) -> bool:
    """Whether nothing was decided, as a policy earns what a bound begins with up to roundings.

    A function rounds what it is given, so that no arithmetic tells whether the policy is within.
    """
    begins = any(bound(g - 1e-9) == -math.inf < bound(g + 1e-9) for g, _ in points)
    if result.status is not Status.DONE or not begins:
        return False
    acceptable = [g for g, x in points if x <= bound(g)]
    assert result.upper_bound >= max(acceptable, default=-math.inf)
    return True


# Against enumeration.


def check_mixture(result: vulcan.Result, table: Table, bound: vulcan.RiskBound) -> None:
    points = list_points(table)
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
def test_the_best_mixture_of_all_policies(table: Table, bound: vulcan.RiskBound) -> None:
    for on in ("graph", "tree"):
        check_mixture(randomise(replace(table, calls={}), bound, on), table, bound)


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_the_best_of_all_policies(table: Table, bound: vulcan.RiskBound) -> None:
    points = list_points(table)
    for merges in (True, False):
        check(solve(replace(table, merges=merges, calls={}), bound), points, bound)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(integer_program, "FIRST_EDGES", 2)  # trees that grow
        check(solve(table, bound), points, bound)


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_the_best_function_of_state_and_step(table: Table, bound: vulcan.RiskBound) -> None:
    result = solve(table, bound, "graph")
    check(result, enumerate_functions(table), bound)
    acceptable = [g for g, x in list_points(table) if x <= bound(g)]
    assert result.upper_bound >= max(acceptable, default=-math.inf) - 1e-9
    if result.policy is None and acceptable:
        assert result.explanation == f"no {KIND} is within the risk bound, proved by HiGHS"


@settings(max_examples=60)
@given(table=tables(), seed=SEEDS)
def test_bounds_that_begin_somewhere(table: Table, seed: int) -> None:
    bound, points = make_edged(seed), list_points(table)
    result = randomise(table, bound)
    if not is_open(result, points, bound):
        check_mixture(result, table, bound)
    for on, possible in (("tree", points), ("graph", enumerate_functions(table))):
        result = solve(table, bound, on)
        if not is_open(result, possible, bound):
            check(result, possible, bound)


# Known values.


@pytest.mark.parametrize(
    ("horizon", "bound", "reward"),
    [
        (8, LINEAR, 4.2529),
        pytest.param(10, LINEAR, 5.3618, marks=pytest.mark.slow),
        (10, vulcan.Constant(0.0125), 5.43485),
    ],
)
def test_the_randomised_bandit(horizon: int, bound: vulcan.RiskBound, reward: float) -> None:
    result = randomise(Bandit(horizon), bound)
    assert result.status is Status.SOLVED
    assert result.explanation == "best randomised policy within the risk bound, proved"
    assert result.safe
    assert result.certificate.reward == pytest.approx(reward, abs=5e-5)
    assert result.upper_bound >= result.certificate.reward - 1e-12
    assert result.gap <= 1e-9
    members = len(result.policy.members)
    assert members == (1 if isinstance(bound, vulcan.Constant) else 2)
    assert isinstance(result.policy, RandomisedPolicy) == (members == 2)
    dual = vulcan.solve(result.problem, vulcan.Lagrangian())
    assert dual.upper_bound == pytest.approx(reward, abs=5e-5)
    assert dual.safe
    assert dual.gap < 1e-4


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


@pytest.mark.slow
def test_functions_of_state_and_step_earn_less() -> None:
    result = solve(Bandit(6), LINEAR, "graph")
    assert result.certificate.reward == pytest.approx(3.15145, abs=5e-6)
    assert result.safe
    assert result.status is Status.SOLVED
    assert result.explanation == f"best {KIND}, proved by HiGHS"
    # The bound holds for all policies, those that remember more and those that draw.
    assert result.upper_bound == pytest.approx(3.15219, abs=1e-5)
    assert solve(Bandit(6), LINEAR).certificate.reward > result.certificate.reward + 1e-4


@FORMS
def test_small_models(on: str) -> None:
    nothing, sure = Table({0: {}}, horizon=3), one_action(Outcome.failure(1.0, 5))
    edge = one_action(Outcome(0.9, 1, 0), Outcome.failure(0.1))
    for run in (randomise, solve):
        result = run(nothing, 0.1, on)
        assert (result.status, result.certificate.reward) == (Status.SOLVED, 0)
        assert len(result.policy) == 0
        result = run(nothing, vulcan.Constant(-0.1), on)
        assert (result.status, result.upper_bound) == (Status.INFEASIBLE, -math.inf)
        # One action, whose risk is exactly what is allowed; and one that surely fails.
        assert run(edge, 0.1, on).status is Status.SOLVED
        assert run(sure, 1.0, on).certificate.reward == 5
        assert run(sure, 0.999, on).status is Status.INFEASIBLE
    # Half of it, if there is another way.
    both = Table({0: {"go": [Outcome.failure(1.0, 5)], "stay": [Outcome(1, -1, 0)]}}, 1)
    result = randomise(both, 0.5, on)
    assert result.certificate.reward == pytest.approx(2, abs=1e-9)
    assert result.policy.weights == pytest.approx((0.5, 0.5))


def test_starts_and_discounts() -> None:
    table = {
        0: {"go": [Outcome(0.9, 1, 1), Outcome.failure(0.1)], "stay": [Outcome(1, 0.2, 0)]},
        1: {"go": [Outcome(0.8, 2, 0), Outcome.failure(0.2)], "stay": [Outcome(1, 0.1, 1)]},
    }
    half = [Outcome(0.5, 0, 0, "first"), Outcome(0.5, 0, 1, "second")]
    start = vulcan.Start({"draw": half, "right": [Outcome(1.0, 0, 1)]})
    problem = vulcan.Problem(Table(table, 3, 0.9, start), vulcan.Linear(0.05, 0.02))
    best = vulcan.solve(problem, vulcan.Pareto()).certificate.reward
    most = vulcan.solve(problem, vulcan.Lagrangian()).upper_bound
    for solver, reward in (
        (LinearProgram("graph"), most),
        (LinearProgram("tree"), most),
        (IntegerProgram("tree"), best),
    ):
        result = vulcan.solve(problem, solver)
        assert result.status is Status.SOLVED
        assert result.certificate.reward == pytest.approx(reward, abs=1e-9)
    graph = vulcan.solve(problem, IntegerProgram("graph"))
    assert graph.status is Status.SOLVED
    assert graph.certificate.reward <= best + 1e-9


# Cuts.


def test_cuts_where_the_bound_begins() -> None:
    bound = vulcan.Concave(lambda x: 0.02 * math.sqrt(x - 1) if x >= 1 else -math.inf)
    floor, line = cut_at(bound, 0.25, 3.0)
    assert floor[:3] == pytest.approx((0.0, 1.0, -1.0), abs=1e-15)
    for reward in (1.0, 1.01, 1.5, 3.0):
        assert line[0] * bound(reward) - line[1] * reward <= line[2]
    (line,) = cut_at(bound, 2.0, 3.0)
    assert line[1] == pytest.approx(0.01, rel=1e-3)


def test_a_second_tangent_leads_to_another_mixture() -> None:
    # The first tangent leads to a mixture of "walk" and "run", the answer mixes "wait" and "walk".
    actions = {
        "wait": [Outcome(1, 0, 1)],
        "walk": [Outcome(0.9, 1, 1), Outcome.failure(0.1, 1)],
        "run": [Outcome(0.5, 2, 1), Outcome.failure(0.5, 2)],
    }
    result = randomise(
        Table({0: actions}, 1), vulcan.PiecewiseLinear([(0, 0.02), (1, 0.09), (2, 0.12)])
    )
    assert result.status is Status.SOLVED
    assert result.certificate.reward == pytest.approx(2 / 3, abs=1e-9)
    assert result.upper_bound == pytest.approx(2 / 3, abs=1e-9)


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
    assert randomise(table, bound).safe


# Where tolerances decide.


@FORMS
def test_a_policy_that_fails_by_a_hair_is_refused(on: str) -> None:
    # HiGHS can't tell 0.5 from a trifle more, and the tangent does not cut it off either.
    for excess in (1.5e-12, 3e-12, 1e-11, 1e-9):
        daring = [Outcome(0.5 - excess, 1, 1), Outcome.failure(0.5 + excess, 1)]
        table = Table({0: {"dare": daring, "stay": [Outcome(1, 0.7, 1)]}}, 1)
        result = solve(table, vulcan.Constant(0.5), on)
        assert result.status is Status.SOLVED
        assert result.certificate.reward == 0.7
        assert result.certificate.passes


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1e6, 1e12])
def test_rewards_of_any_size(size: float) -> None:
    go = [Outcome(0.99, size, 1), Outcome.failure(0.01)]
    table = {
        0: {"go": go, "stay": [Outcome(1.0, size / 2, 1)]},
        1: {"on": [Outcome(0.5, -size, 0), Outcome(0.5, size, 0)]},
    }
    result = randomise(Table(table, horizon=3), vulcan.Constant(0.005))
    assert result.status is Status.SOLVED
    exact = vulcan.certify(result.problem, result.policy, exact=True)
    assert float(exact.risk) == pytest.approx(0.005, abs=2e-12)


def test_what_the_tolerance_of_the_bound_is_worth_is_stated() -> None:
    # To fail for certain is known up to 1e-12, so that a mixture stays that far away from it.
    for loss in (1e-9, 3e8):
        ways = {"fail": [Outcome.failure(1.0)], "pay": [Outcome(1.0, -loss, 1)]}
        result = randomise(Table({0: ways}), vulcan.Constant(1.0))
        assert result.status is Status.SOLVED
        assert -1e-11 * loss < result.certificate.reward <= 0.0  # failing for sure earns 0
        assert result.certificate.reward + result.rounding >= 0.0
        assert result.rounding < 1e-11 * loss
    faint = [Outcome(0.999999992, 0.0, 1), Outcome.failure(8e-9)]
    costly = [Outcome(0.2, -1e-9, 1, "a"), Outcome(0.2, -1e-9, 1, "b"), Outcome(0.6, 0.0, 2)]
    result = randomise(Table({0: {"faint": faint, "costly": costly}}), LINEAR)
    assert result.safe
    assert result.certificate.reward + result.rounding >= -4e-10


@pytest.mark.parametrize("reduced", [True, False])
def test_solutions_that_presolve_invents_rule_nothing_out(reduced: bool) -> None:
    """A campaign found it: HiGHS 1.15 drops a node with a solution that only presolve believes."""
    leap = [Outcome(0.0909, 0.5, 1), Outcome.failure(0.9091)]
    fall = [Outcome.failure(1.0)]
    table = {
        0: {"a": [Outcome(1.0, -2.0, 0)], "b": leap},
        1: {"a": [Outcome(1.0, -0.3, 1)], "b": fall},
    }
    start = vulcan.Start({"x": [Outcome(1.0, 0.1, 0)], "y": fall})
    model = Table(table, horizon=2, discount=0.001, start=start)
    bound = vulcan.parse("1.1 - 0.0238545 * max(0, 2.19291 - x) ** 2")
    result = vulcan.solve(vulcan.Problem(model, bound), IntegerProgram(reduced=reduced))
    best = 0.1 + 0.0909 * (0.5 - 0.3 * 0.001)
    assert result.safe
    assert result.certificate.reward == pytest.approx(best, abs=1e-12)
    assert result.upper_bound >= best


@pytest.mark.filterwarnings("ignore::vulcan.errors.BoundWarning")
def test_slopes_beyond_all_floats() -> None:
    model = one_action(Outcome(0.9, 1e20, 1), Outcome.failure(0.1))
    problem = vulcan.Problem(model, vulcan.Linear(1e300))
    result = vulcan.solve(problem, IntegerProgram(reduced=False))
    assert result.status is Status.SOLVED
    assert result.certificate.reward == pytest.approx(9e19)


def test_a_risk_that_is_minute_beside_a_bound_below_0_is_infeasible() -> None:
    model = one_action(Outcome(1.0, 0.0, 1), Outcome.failure(3e-300))
    assert randomise(model, vulcan.PiecewiseLinear([(0, -0.01), (1, -0.01)])).status is (
        Status.INFEASIBLE
    )


def test_rewards_that_highs_does_not_tell_from_nothing_are_not_called_proved() -> None:
    go = [Outcome(0.99999996, 1e-300, 0), Outcome.failure(4e-8)]
    model = Table({0: {"a": go, "b": [Outcome(1.0, 0.0, 1)]}}, horizon=2)
    result = solve(model, vulcan.Constant(6e-8))
    assert result.upper_bound >= 0.99999996e-300
    assert result.status is not Status.SOLVED or result.certificate.reward > 0


# As published.

STAY = {"stay": [Outcome(1.0, 0.23, 0)]}
LEAP = {"leap": [Outcome(0.3, -3.0, 1), Outcome.failure(0.7, 0.5)]}
STEPS = Table({0: STAY | LEAP, 1: STAY | LEAP}, 4)
FAINTER = Table({0: {"stay": [Outcome(1.0, 0.0, 0), Outcome.failure(2e-100)]}}, 4)
FAINT = {"go": [Outcome(0.9999999999999999, 4.0, 1), Outcome.failure(1e-16)]}
FAINT |= {"leap": [Outcome.failure(1.0)], "stay": [Outcome(1.0, 0.0, 1)]}


def make_rare(chance: float) -> Table:
    """Return a model with histories that are hardly ever met, some of a chance that is no float."""
    wait = [Outcome(1.0 - chance, 0.23, 0, "usual"), Outcome(chance, 1.0, 1, "rare")]
    actions = {"stay": wait, "leap": [Outcome.failure(1.0)]}
    return Table({0: actions, 1: actions}, 4)


@FORMS
@pytest.mark.parametrize(
    ("model", "bound"),
    [
        pytest.param(FAINTER, vulcan.Constant(-0.01), id="fainter"),
        pytest.param(Table({0: FAINT}), vulcan.Linear(9e-17), id="faint"),
        pytest.param(STEPS, vulcan.Constant(0.0), id="no risk"),
        # It has no value, or another shape, beyond what any policy earns.
        pytest.param(
            STEPS,
            vulcan.Concave(lambda g: 0.05 * math.sqrt(2 * g - g * g) if g > 0 else -math.inf),
            id="root",
        ),
        pytest.param(
            STEPS, vulcan.Concave(lambda g: 0.01 * g + 0.01 if g <= 2 else 0.0), id="bend"
        ),
        pytest.param(STEPS, vulcan.Concave(lambda g: g - 2 if g >= 1 else -math.inf), id="nothing"),
        pytest.param(Table({0: STAY}, 4), vulcan.Constant(0.1), id="no choice"),
        pytest.param(make_rare(1e-14), vulcan.Constant(0.0), id="rare"),
        pytest.param(make_rare(1e-200), vulcan.Constant(0.0), id="underflow"),
    ],
)
def test_the_published_program_agrees_where_numbers_are_awkward(on, model, bound):
    problem = vulcan.Problem(model, bound)
    ours = vulcan.solve(problem, vulcan.Pareto())
    found = vulcan.solve(problem, IntegerProgram(on, reduced=False))
    assert found.safe == ours.safe
    if ours.certificate is not None:
        assert found.certificate.reward == pytest.approx(ours.certificate.reward, abs=1e-9)
    if on == "tree":
        assert (found.status, found.upper_bound) == (ours.status, pytest.approx(ours.upper_bound))


# Limits.


@FORMS
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
    for run, few in ((randomise, 1000), (solve, 1_000_000)):
        assert run(Bandit(9), LINEAR, time_limit=0).policy is None
        stopped = run(Bandit(8), HARD.risk_bound, limits=vulcan.Limits(memory=few))
        assert stopped.status is Status.STOPPED
        assert stopped.stopped_by == "limit of memory"
    result = randomise(Bandit(7), LINEAR, "tree", time_limit=0.4)
    assert result.status is Status.STOPPED
    assert result.stopped_by == "time limit"
    dual = vulcan.solve(HARD, vulcan.Lagrangian())
    for on in ("graph", "tree"):
        result = vulcan.solve(HARD, IntegerProgram(on), time_limit=0.7)
        assert result.status is Status.STOPPED
        assert result.stopped_by == "time limit"
        if result.certificate is not None:  # how much is found depends on the machine
            assert result.safe
            assert result.certificate.reward <= BEST_OF_HARD + 1e-8
        if result.upper_bound is not None:
            assert BEST_OF_HARD <= result.upper_bound <= dual.upper_bound + 1e-9


@pytest.mark.parametrize(
    ("problem", "solver", "least"),
    [
        (vulcan.Problem(Bandit(7), LINEAR), LinearProgram("tree"), 3.7),
        (HARD, IntegerProgram(), BEST_OF_HARD),
    ],
)
def test_ctrl_c_reaches_highs(problem: vulcan.Problem, solver: Any, least: float) -> None:
    pressed = []

    def press(progress: vulcan.planning.Progress) -> None:
        if progress.reward is not None and not pressed:
            pressed.append(progress.seconds)
            signal.raise_signal(signal.SIGINT)

    result = vulcan.solve(problem, solver, progress=press)
    assert pressed
    assert result.status is Status.STOPPED
    assert result.stopped_by == "Ctrl-C"
    assert result.safe  # at worst a mixture of the most daring policy and the safest
    assert result.upper_bound >= least


@pytest.mark.parametrize("kind", [LinearProgram, IntegerProgram])
def test_options_are_checked(kind: Any) -> None:
    with pytest.raises(vulcan.errors.OptionError, match="'graph' or 'tree'"):
        kind(on="forest")
    with pytest.raises(vulcan.errors.OptionError, match="no limit 'samples'"):
        vulcan.solve(vulcan.Problem(Bandit(2), LINEAR), kind(), samples=5)
