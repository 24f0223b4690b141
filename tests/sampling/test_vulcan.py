"""Vulcan: best policies, upper bounds, gaps, and merged states."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import vulcan
from benchmarks.random_problems import make_problem
from examples.treatment import Treatment
from tests.helpers.charts import CURVED, STEEP, draw_chart, solve
from tests.helpers.missions import BOUND
from tests.helpers.never_worse import TOLERATED_LOSS, compare_with_local, find_loss
from tests.helpers.tables import REWARDS, SEEDS, Table, bounds, random_table, tables
from tests.oracles.best_policies import acceptable, check_best
from tests.oracles.brute_force import Plan, enumerate_plans
from vulcan import Outcome, Start
from vulcan.domains import Bandit, Exploration, Grid, ThreeActions, TreasureGrid
from vulcan.planning import Status, automatic
from vulcan.sampling import plan as plans
from vulcan.sampling.plan import WorkLimit
from vulcan.sampling.tree import LARGEST

ENOUGH = 100_000


def find_best(problem: vulcan.Problem, seed: int = 0) -> vulcan.Result:
    return vulcan.solve(problem, vulcan.Vulcan(), samples=ENOUGH, seed=seed)


@settings(max_examples=60)
@given(table=tables(), bound=bounds(), merges=st.booleans(), seed=st.integers(0, 99))
def test_the_best_history_dependent_policy(table, bound, merges, seed):
    problem = vulcan.Problem(replace(table, merges=merges, calls={}), bound)
    check_best(find_best(problem, seed), enumerate_plans(table), bound)


@pytest.mark.parametrize("number", range(24))
def test_the_reward_of_all_fronts(number: int) -> None:
    problem = make_problem(number)
    exact, result = vulcan.solve(problem, vulcan.Pareto()), find_best(problem)
    assert result.status is exact.status
    assert result.upper_bound == pytest.approx(exact.upper_bound, abs=1e-9)
    if exact.certificate is not None:
        assert result.safe
        assert result.certificate.reward == pytest.approx(exact.certificate.reward, abs=1e-9)


# Bounds that allow nothing for small rewards, or have no value where no policy comes.


def refuse_below(least: float) -> vulcan.Concave:
    return vulcan.Concave(lambda x: 0.1 + 0.01 * x if x >= least else -math.inf)


def raise_outside(low: float, high: float) -> vulcan.Concave:
    def allow(x: float) -> float:
        if not low <= x <= high:
            raise ValueError("not evaluated here")
        return 0.05 * (x - low) / max(high - low, 1e-9)

    return vulcan.Concave(allow)


@settings(max_examples=40)
@given(table=tables(), share=st.floats(0, 1))
def test_bounds_that_refuse_small_rewards(table: Table, share: float) -> None:
    policies = enumerate_plans(table)
    low, high = min(p.reward for p in policies), max(p.reward for p in policies)
    least = low + share * (high - low)
    assume(all(abs(plan.reward - least) > 1e-9 for plan in policies))  # no matter of rounding
    bound = refuse_below(least)
    check_best(find_best(vulcan.Problem(table, bound)), policies, bound)


@settings(max_examples=40)
@given(table=tables())
def test_bounds_that_have_values_only_where_policies_are(table: Table) -> None:
    policies = enumerate_plans(table)
    room = 1e-9  # for roundings of sums
    rewards = [plan.reward for plan in policies]
    bound = raise_outside(min(rewards) - room, max(rewards) + room)
    check_best(find_best(vulcan.Problem(table, bound)), policies, bound)


# Several initial states.


def list_drawn_plans(table: Table, chances: list[float]) -> list[Plan]:
    """Return all policies of a table whose state k is drawn with chance k, without discount."""
    spread = [Outcome(chance, 0.0, state, f"start {state}") for state, chance in enumerate(chances)]
    first = Table({"start": {"start": spread}, **table.table}, table.horizon + 1, start="start")
    return enumerate_plans(first)


def draw_table(seed: int) -> Table:
    """Return a small model of two states and two steps, without discount."""
    random = Random(seed)
    while True:
        table = random_table(random, REWARDS, sure_failure=True)
        if table.horizon <= 2 and len(table.table) >= 2:
            return replace(table, discount=1.0)


@settings(max_examples=40)
@given(table=SEEDS.map(draw_table), bound=bounds(), chance=st.floats(0.1, 0.9))
def test_a_start_that_is_drawn(table: Table, bound: vulcan.RiskBound, chance: float) -> None:
    chances = [chance, 1 - chance]
    start = Start.draw([Outcome(p, 0.0, state) for state, p in enumerate(chances)])
    model = Table(table.table, table.horizon, start=start)
    check_best(find_best(vulcan.Problem(model, bound)), list_drawn_plans(table, chances), bound)


@settings(max_examples=40)
@given(table=SEEDS.map(draw_table), bound=bounds())
def test_a_start_that_is_chosen(table: Table, bound: vulcan.RiskBound) -> None:
    model = replace(table, start=Start.choose({"one": 0, "other": 1}), calls={})
    policies = [plan for k in (0, 1) for plan in enumerate_plans(replace(table, start=k))]
    check_best(find_best(vulcan.Problem(model, bound)), policies, bound)


# Little to decide.


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("merges", [True, False])
def test_a_mission_that_is_over_at_once(horizon: int, merges: bool) -> None:
    model = Table({0: {}}, horizon, merges=merges)
    result = find_best(vulcan.Problem(model, vulcan.Constant(0.0)))
    assert result.status is Status.SOLVED
    assert result.certificate.reward == 0
    refused = find_best(vulcan.Problem(model, vulcan.parse("-0.1")))
    assert refused.status is Status.INFEASIBLE
    assert refused.upper_bound == -math.inf


# Compiled models.


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("bound", [CURVED, STEEP, vulcan.Constant(0.01)], ids=str)
def test_compiled_models(seed: int, bound: vulcan.RiskBound) -> None:
    chart = draw_chart(seed, 3)
    exact = solve(chart.plain(), vulcan.Pareto(), bound)
    for model in (chart, chart.plain()):
        result = solve(model, vulcan.Vulcan(), bound, samples=ENOUGH)
        assert result.status is exact.status
        if exact.certificate is not None:
            assert result.safe
            assert result.certificate.reward == pytest.approx(exact.certificate.reward, abs=1e-9)


# A proof that was not carried through proves nothing.


@pytest.mark.parametrize("number", [2, 5])
def test_a_proof_that_is_cut_short_claims_nothing(number, monkeypatch):
    problem = make_problem(number)
    best = vulcan.solve(problem, vulcan.Pareto()).certificate.reward
    late = WorkLimit.late
    # The first plan of a proof is a poor one then.
    monkeypatch.setattr(plans, "COARSER", 1 << 14)
    monkeypatch.setattr(plans, "FEWEST_POINTS", 2)
    for allowed in range(20):
        asked = [0]

        def is_late(self: WorkLimit, asked: list[int] = asked, allowed: int = allowed) -> bool:
            asked[0] += 1
            return asked[0] > allowed

        monkeypatch.setattr(WorkLimit, "late", property(is_late))
        result = find_best(problem)
        monkeypatch.setattr(WorkLimit, "late", late)
        if result.status is Status.SOLVED:
            assert result.certificate.reward == pytest.approx(best, abs=1e-9)
        assert result.status is not Status.INFEASIBLE
        assert result.upper_bound is None or result.upper_bound >= best - 1e-9


@settings(max_examples=60)
@given(
    table=tables(),
    bound=bounds(),
    merges=st.booleans(),
    samples=st.sampled_from([0, 1, 3, 10, 30]),
    seed=st.integers(0, 99),
)
def test_no_policy_earns_more(table, bound, merges, samples, seed):
    problem = vulcan.Problem(replace(table, merges=merges, calls={}), bound)
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=samples, seed=seed)
    plans = enumerate_plans(table)
    best = max((p.reward for p in acceptable(plans, bound, -1e-11)), default=-math.inf)
    if result.upper_bound is not None:
        assert result.upper_bound >= best - 1e-9
    if result.policy is not None:
        assert result.safe
        most = max((p.reward for p in acceptable(plans, bound, 1e-11)), default=-math.inf)
        assert result.certificate.reward <= most + 1e-9


def test_a_target_gap_ends_the_search() -> None:
    problem = vulcan.Problem(Exploration(5), vulcan.parse(BOUND))
    result = vulcan.solve(problem, vulcan.Vulcan(), gap=0.01, samples=10**6)
    assert result.stopped_by == "target gap"
    assert result.gap <= 0.01
    assert result.statistics.samples < 10**6
    assert result.safe
    longer = vulcan.solve(problem, vulcan.Vulcan(), samples=20_000)
    assert result.upper_bound >= longer.certificate.reward - 1e-9


BEST = 2.7942161605594187
"""What the best policy of this bandit earns, by Pareto."""


@pytest.mark.parametrize("seed", range(6))
def test_no_seed_is_fooled(seed: int) -> None:
    problem = vulcan.Problem(Bandit(6, merges=False), vulcan.Constant(0.004))
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=4000, seed=seed)
    assert 0.995 * BEST <= result.certificate.reward <= BEST + 1e-9


@pytest.mark.parametrize("samples", [1, 100, 5000])
def test_treatment_is_complete_and_small(samples: int) -> None:
    problem = vulcan.Problem(Treatment(), vulcan.Constant(0.0115))
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=samples)
    assert result.safe
    assert result.statistics.memory < 20_000_000
    assert len(result.policy) < 1000
    assert result.upper_bound is not None
    assert result.certificate.reward > 0.9995 * result.upper_bound


def test_more_samples_do_not_earn_less() -> None:
    # With a sample or two, a plan of histories is found at once, and is a poor one.
    problem = vulcan.Problem(Bandit(7), vulcan.Linear(0.002))
    rewards = [
        vulcan.solve(problem, vulcan.Vulcan(), samples=samples).certificate.reward
        for samples in (0, 1, 100, 2000)
    ]
    assert rewards == sorted(rewards)


@pytest.mark.parametrize(
    ("model", "bound"),
    [(Bandit(6), 0.5), (Bandit(6), 0.0), (Bandit(6), "0.002*x")],
    ids=["without regard to risk", "no risk", "fronts"],
)
def test_sampling_ends_when_pairs_have_proved_the_best_policy(model, bound):
    problem = vulcan.Problem(model, bound)
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=100_000)
    assert result.status is vulcan.planning.Status.SOLVED
    assert result.explanation.startswith("best deterministic policy, proved")
    assert result.statistics.samples == 1024
    assert result.upper_bound >= result.certificate.reward
    assert result.gap <= 1e-9
    best = vulcan.solve(problem, vulcan.Pareto())
    assert result.certificate.reward == pytest.approx(best.certificate.reward, rel=1e-9)


def test_sampling_ends_when_pairs_have_proved_that_there_is_no_policy() -> None:
    problem = vulcan.Problem(Treatment(), vulcan.Constant(0.001))
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=100_000)
    assert result.status is vulcan.planning.Status.INFEASIBLE
    assert result.statistics.samples == 1024


def test_all_of_the_risk_is_spent_where_histories_differ() -> None:
    # A coin is tossed ten times. Then all is one state: only memory can tell the histories apart.
    tosses = {k: {"toss": [Outcome(0.5, 0.0, k + 1, label=f) for f in "ht"]} for k in range(10)}
    leap = [Outcome(0.9, 1.0, "end"), Outcome.failure(0.1, 1.0)]
    end = {10: {"leap": leap, "stay": [Outcome(1.0, 0.0, "end")]}}
    problem = vulcan.Problem(Table({**tosses, **end}, 11), vulcan.Constant(0.0333))
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=1)
    assert result.certificate.reward == pytest.approx(math.floor(0.333 * 1024) / 1024)
    assert result.upper_bound <= 0.333 + 1e-9


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


HUGE = 1e100


def table(first: list[Outcome], second: list[Outcome]) -> Table:
    """Return a model of two steps with one action each, or none to choose."""
    return Table({0: {"go": first}, 1: {"go": second, "stay": [Outcome(1.0, 0.0, 2)]}}, 2)


EASY = [Outcome(0.5, 1.0, 1), Outcome(0.5, 0.0, 2)]
MODELS = {
    "at once": table([Outcome(0.5, HUGE, 1), Outcome(0.5, 0.0, 2)], EASY),
    "later": table([Outcome(1.0, 0.0, 1)], [Outcome(1.0, HUGE, 2)]),
    "failing": table([Outcome(1.0, 0.0, 1)], [Outcome.failure(1.0, HUGE)]),
    "lost": table([Outcome(1.0, -HUGE, 1)], EASY),
    # No sample meets it, and yet it is what is expected.
    "rarely": table(EASY, [Outcome(1e-12, HUGE, 2), Outcome(1 - 1e-12, 1.0, 3)]),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("bound", [vulcan.Constant(0.1), vulcan.parse("1 - exp(-x)")], ids=str)
def test_what_single_precision_does_not_hold_is_refused(model, bound):
    problem = vulcan.Problem(model, bound)
    with pytest.raises(
        vulcan.errors.OptionError, match=r"at most 1e\+22; this model has .* Pareto"
    ):
        vulcan.solve(problem, vulcan.Vulcan(), samples=8)


def test_what_it_holds_is_searched() -> None:
    model = table([Outcome(0.5, LARGEST / 4, 1), Outcome(0.5, 0.0, 2)], [Outcome(1.0, 1e21, 2)])
    problem = vulcan.Problem(model, vulcan.Constant(0.0))
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=500)
    assert result.status is Status.SOLVED
    assert result.certificate.reward == LARGEST / 8 + 0.5e21


def test_automatic_finds_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = vulcan.Problem(MODELS["later"], vulcan.Constant(0.0))
    assert vulcan.solve(problem).certificate.reward == HUGE
    # The same if the problem is too large to be unrolled, and prices are too large for samples.
    monkeypatch.setattr(automatic.ExactSearch, "pays_to_unroll", lambda *_: False)
    result = vulcan.solve(problem)
    assert result.safe
    assert result.certificate.reward == HUGE


SEEDS = 2

PROBLEMS = {
    "three actions": (ThreeActions(), "0.004*x", 100),
    "bandit 4, tight": (Bandit(4), "0.0007*x", 2000),
    "bandit 4, unmerged": (Bandit(4, merges=False), "0.0012*x", 2000),
    "bandit 6": (Bandit(6), "0.002*x", 4000),
    "bandit 6, constant": (Bandit(6, merges=False), "0.004", 4000),
    "bandit 8, unmerged": (Bandit(8, merges=False), "0.002*x", 8000),
    "grid": (Grid(horizon=8), "0.001*x", 4000),
    "grid, saturating": (Grid(horizon=10), "0.02 * (1 - exp(-0.4*x))", 4000),
    "treasure": (TreasureGrid(horizon=8), "0.15", 4000),
    "treasure, long": (TreasureGrid(horizon=20), "0.15", 4000),
    "mission of 3, narrow": (Exploration(3), BOUND, 2000),
    "mission of 4, narrow": (Exploration(4), BOUND, 4000),
    "mission of 4, wide": (Exploration(4, map="wide"), f"0.5 * {BOUND}", 4000),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_earns_what_local_tests_earn(name: str, seed: int) -> None:
    model, bound, samples = PROBLEMS[name]
    problem = vulcan.Problem(model, vulcan.parse(bound))
    reward, local, result = compare_with_local(problem, samples, seed)
    assert result.statistics.samples <= samples
    assert find_loss(reward, local) <= TOLERATED_LOSS


@pytest.mark.parametrize("number", range(12))
def test_earns_it_on_random_problems(number: int) -> None:
    reward, local, _ = compare_with_local(make_problem(number), 2000, number)
    assert find_loss(reward, local) <= TOLERATED_LOSS
