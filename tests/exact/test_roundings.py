"""Claims of solvers where roundings decide, against all policies in fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import pytest
from hypothesis import example, given, settings

import vulcan
from tests.helpers.tables import SEEDS, Table, random_table
from tests.oracles.exact_policies import (
    Worth,
    accepts_exactly,
    best_exactly,
    best_mixture_exactly,
    enumerate_exactly,
)
from vulcan import Outcome
from vulcan.exact.search import ExactSearch
from vulcan.model.reader import ModelReader
from vulcan.numerics import EXACT_GAP
from vulcan.planning import Status
from vulcan.runtime.limits import Limits, Monitor

SIZES = {
    "usual": [-2.0, -1.0, -0.3, 0.0, 0.1, 0.5, 1.0, 3.0],
    "tiny": [0.0, 1e-9, 2e-9, -1e-9, 1e-12, 3e-10],
    "huge": [1e8, -1e8, 1e8 + 1, 0.1, -3.0, 1e6],
    "cancelling": [1e17, -1e17, 1.0, 3.0, 1e16, -1e16],
    "mixed": [1e-9, 1.0, 0.1, 1e8, -1e8, 0.3],
}


def random_hard_problem(random: Random) -> tuple[Table, vulcan.RiskBound, set[Worth]] | None:
    """Return a model, a bound beside one of its policies, and all policies; None if too many."""
    table = random_table(random, SIZES[random.choice(list(SIZES))], random.random() < 0.3)
    worths = enumerate_exactly(table)
    if worths is None or not table.table[table.start]:
        return None
    return table, random_steep_bound(random, sorted(worths)), worths


def random_steep_bound(random: Random, worths: list[Worth]) -> vulcan.RiskBound:
    """Return a bound that is steep where some policy earns what it does, or -inf before that."""
    reward, risk = random.choice(worths)
    slope = 10.0 ** random.uniform(5, 17)
    at = float(reward)
    for _ in range(random.choice([0, 0, 1, 2, 10])):
        at = math.nextafter(at, random.choice([-math.inf, math.inf]))
    level = float(risk) * random.choice([1.0, 1.0, 1.1, 0.9]) + random.choice([0.0, 0.0, 1e-12])
    match random.choice(["linear", "pieces", "narrow", "edge", "kink", "mild"]):
        case "linear":
            return vulcan.Linear(slope, level - slope * at)
        case "pieces":
            width = max(random.choice([0.1, 1.0]) / slope, 2 * math.ulp(at))
            return vulcan.PiecewiseLinear([(at - width, level - slope * width), (at, level)])
        case "narrow":
            width = max(random.uniform(1e-10, 9e-10), 4 * math.ulp(at))
            return vulcan.PiecewiseLinear([(at - width, level - 0.3), (at, level)])
        case "edge":
            return vulcan.Concave(lambda x: level if x >= at else -math.inf)
        case "kink":
            return vulcan.Concave(lambda x: min(level + slope * (x - at), level))
    mild = random.choice([1.0, 0.007])
    return vulcan.Linear(mild, float(risk - Fraction(mild) * reward))


SOLVERS = {
    "automatic": vulcan.Automatic(),
    "pareto": vulcan.Pareto(),
    "lagrangian": vulcan.Lagrangian(),
    "linear program": vulcan.baselines.LinearProgram(),
    "integer program": vulcan.baselines.IntegerProgram(),
    "rao": vulcan.baselines.RAOStar(update="exact"),
}
MIXING = ("linear program", "lagrangian")
FEW = 40
"""Policies of which all mixtures are looked at."""


def check_claims(
    name: str, result: vulcan.Result, bound: vulcan.RiskBound, worths: set[Worth]
) -> None:
    """Check that nothing is claimed that fractions contradict."""
    best, upper = best_exactly(bound, worths), result.upper_bound
    assert upper is not None
    if best is not None:
        mixes = name in MIXING and len(worths) <= FEW
        most = best_mixture_exactly(bound, worths) if mixes else best
        assert upper >= most
        assert result.status is not Status.INFEASIBLE
    if result.certificate is not None and result.policy is not None:
        exact = vulcan.certify(result.problem, result.policy, exact=True)
        assert exact.reward <= upper or not accepts_exactly(bound, (exact.reward, exact.risk))
    if result.status is Status.SOLVED:
        assert result.safe
        reward = Fraction(exact.reward)
        assert "within" in result.explanation
        if result.explanation.startswith("best"):
            assert upper - reward <= max(EXACT_GAP * abs(upper), result.rounding)


@pytest.mark.parametrize("name", SOLVERS)
@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
@example(seed=238)  # branching decides every history
def test_nothing_is_claimed_that_fractions_contradict(name: str, seed: int) -> None:
    made = random_hard_problem(Random(seed))
    if made is None:
        return
    table, bound, worths = made
    proof = {"gap": 0.0} if name == "automatic" else {}
    result = vulcan.solve(vulcan.Problem(table, bound), SOLVERS[name], **proof)
    check_claims(name, result, bound, worths)
    assert str(result)


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_rewards_and_risks_are_as_accurate_as_is_said(seed: int) -> None:
    made = random_hard_problem(Random(seed))
    if made is None:
        return
    table, bound, worths = made
    run = ExactSearch(vulcan.Problem(table, bound), ModelReader(table), Monitor(Limits()), None)
    assert run.unroll()
    for weights in ((1.0, 0.0), (1.0, 1.0), (0.0, 1.0)):
        point = run.sweep(*weights)
        low, high = (
            Fraction(change(point.reward))
            for change in (run.bound_test.lower_reward, run.bound_test.raise_reward)
        )
        share = Fraction(run.bound_test.risk_share)
        assert any(
            low <= reward <= high and abs(risk - Fraction(point.risk)) <= share * risk
            for reward, risk in worths
        )


CANCELLING = Table(
    {
        0: {
            "detour": [Outcome(1.0, 1e17, 1)],
            "wait": [Outcome(1.0, 0.0, 2)],
        },
        1: {
            "back": [Outcome(0.9, -1e17, 2), Outcome.failure(0.1, -1e17)],
        },
        2: {},
    },
    horizon=2,
)
"""On the detour 1e17 is earned and lost again, up to what the probabilities round."""


def test_rewards_that_cancel_leave_an_upper_bound_that_is_rounded_up() -> None:
    worths = enumerate_exactly(CANCELLING)
    for offset in (0.0, 0.2):
        bound = vulcan.Linear(0.007, offset)
        result = vulcan.solve(vulcan.Problem(CANCELLING, bound), vulcan.Pareto())
        assert result.upper_bound >= best_exactly(bound, worths)
        assert result.upper_bound < 1e5


def test_the_upper_bound_is_not_rounded_down_to_the_reward() -> None:
    """A third is no float, and the exact reward is above the one that is computed."""
    table = Table({0: {"go": [Outcome(1 / 3, 0.1, 1), Outcome(2 / 3, 0.7, 2)]}})
    problem = vulcan.Problem(table, vulcan.Constant(0.1))
    for solver in SOLVERS.values():
        result = vulcan.solve(problem, solver)
        exact = vulcan.certify(problem, result.policy, exact=True)
        assert result.upper_bound >= exact.reward
        assert result.upper_bound > result.certificate.reward
        assert result.gap <= EXACT_GAP
        assert "the best possible" in str(result)
        assert result.explanation.startswith("best ")


def test_waiting_is_the_best_although_other_rewards_are_rounded() -> None:
    """Nothing is earned for certain, and what is less than that is still added up."""
    table = Table(
        {
            0: {
                "wait": [Outcome(1.0, 0.0, 0)],
                "go": [Outcome(0.3, 0.1, 0), Outcome(0.6, 0.7, 0), Outcome.failure(0.1)],
            }
        },
        horizon=3,
    )
    result = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0.0)), vulcan.Pareto())
    assert result.status is Status.SOLVED
    assert result.certificate.reward == 0
    assert result.gap == 0
    assert "the best possible" in str(result)


def edge_table(reward: float) -> Table:
    """Return a model with one policy, of no risk, that earns a sum of rounded parts."""
    parts = [Outcome(0.1, reward, 1), Outcome(0.2, reward, 2), Outcome(0.7, reward, 3)]
    return Table({0: {"go": parts}})


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("reward", [1e-9, 0.3, 1e8])
def test_minus_infinity_beside_what_is_earned_is_no_proof(name: str, reward: float) -> None:
    """In floating point the policy earns a digit too little; whether it does is not known."""
    table = edge_table(reward)
    ((exact, _),) = enumerate_exactly(table)
    edge = float(exact)
    for _ in range(2):
        before = math.nextafter(edge, -math.inf)
        for bound in (
            vulcan.PiecewiseLinear([(before, -1.0), (edge, 0.1)]),
            vulcan.Concave(lambda x, edge=edge: 0.1 if x >= edge else -math.inf),
        ):
            result = vulcan.solve(vulcan.Problem(table, bound), SOLVERS[name])
            check_claims(name, result, bound, {(exact, Fraction(0))})
        edge = math.nextafter(edge, math.inf)


@pytest.mark.parametrize("width", [3e-10, 1e-10, 9e-10])
def test_a_piecewise_bound_of_no_width_is_solved_by_programs(width: float) -> None:
    table = Table(
        {
            0: {
                "dare": [Outcome(0.9, 1.0, 1), Outcome.failure(0.1, 1.0)],
                "wait": [Outcome(1.0, 0.5, 1)],
            }
        }
    )
    for at in (1.0, 0.5, 0.75):
        bound = vulcan.PiecewiseLinear([(at - width, 0.0), (at, 0.1)])
        for solver in (vulcan.baselines.LinearProgram(), vulcan.baselines.IntegerProgram()):
            result = vulcan.solve(vulcan.Problem(table, bound), solver)
            check_claims("linear program", result, bound, enumerate_exactly(table))
            assert str(result)


@pytest.mark.parametrize(
    ("solver", "options"),
    [
        (vulcan.Pareto(), {"gap": 0.0}),
        (vulcan.baselines.IntegerProgram(), {"gap": 0.0}),
        (vulcan.baselines.LinearProgram(), {}),
        (vulcan.Vulcan(), {"samples": 8}),
        (vulcan.Automatic(), {"gap": 0.0}),
    ],
    ids=lambda thing: type(thing).__name__ if isinstance(thing, vulcan.solvers.Solver) else "",
)
def test_a_search_ends_where_rewards_are_the_smallest_floats(solver, options):
    # A share of such a size is 0, which no number of doublings makes any larger.
    again = [Outcome(0.975609756097561, 5e-324, 0), Outcome.failure(0.02439024390243903)]
    table = Table({0: {"again": again, "end": [Outcome(1.0, 5e-324, 1)]}}, 5)
    problem = vulcan.Problem(table, vulcan.Constant(0.024390243926829275))
    result = vulcan.solve(problem, solver, **options)
    assert result.safe
    assert 0.0 <= result.certificate.reward <= result.upper_bound


@pytest.mark.parametrize("name", MIXING)
def test_slopes_found_from_rounded_values_cut_nothing_off(name: str) -> None:
    """Near a reward of 0 a slope is found from places a hundredth apart: 1e8 away that is much."""
    table = {0: {"fail": [Outcome.failure(1.0)], "pay": [Outcome(1.0, -1e8, 1)]}}
    bound = vulcan.Concave(lambda reward: min(1.0, 1e-9 * reward + 0.8))
    result = vulcan.solve(vulcan.Problem(Table(table), bound), SOLVERS[name])
    # w of failing is accepted if w <= 0.8 - 0.1 (1 - w), and earns -1e8 (1 - w).
    assert -2e8 / 9 <= result.upper_bound < -2e8 / 9 + 1
