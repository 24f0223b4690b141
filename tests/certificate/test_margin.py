"""Margins: how wrong the risks of the model may be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.certified import FORKED, PAYING, TRIP, Certified
from tests.helpers.plans import build
from tests.helpers.tables import SEEDS, Table, one_action, random_table
from tests.oracles.brute_force import Plan, enumerate_plans
from tests.oracles.fractions import find_worth
from vulcan import Outcome
from vulcan.certificate import margin
from vulcan.certificate.margin import PRECISION, find_margin
from vulcan.certificate.walk import Chain, follow_policy
from vulcan.model.reader import StrictReader
from vulcan.numerics import END, FAILED, TOLERANCE


@pytest.mark.parametrize("risk", [0.01, 0.2])
def test_margin_of_a_single_action(risk: float) -> None:
    # reward (1 - κ r) · 10 must allow 0.05 x >= κ r: the factor has a closed form.
    table = one_action(Outcome(1 - risk, 10.0, 1), Outcome.failure(risk))
    result = vulcan.solve(vulcan.Problem(table, vulcan.Linear(0.05)))
    assert result.certificate.margin == pytest.approx(0.5 / (1.5 * risk), rel=1e-6)


def test_margin_needs_no_bound_where_no_reward_is() -> None:
    table = one_action(Outcome(0.99, 2.0, 1), Outcome.failure(0.01, -100.0))
    result = vulcan.solve(vulcan.Problem(table, vulcan.parse("0.5 + 0.01*sqrt(x)")))
    # The reward reaches 0, and the bound its end, at κ · 0.01 · 102 = 2.
    assert result.certificate.margin == pytest.approx(2 / 1.02, rel=1e-6)


def test_margin_sees_risks_of_every_size() -> None:
    # The bound breaks a little above 1, long before the smallest risk has any effect.
    table = Table(
        {
            0: {"a": [Outcome(0.93, 1.0, 1), Outcome.failure(0.07)]},
            1: {"b": [Outcome(1 - 1e-9, 0.0, 2), Outcome.failure(1e-9)]},
        },
        horizon=2,
    )
    result = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0.0715)))
    assert result.certificate.margin == pytest.approx(0.0715 / 0.07, rel=1e-5)


def find_slack(table: Table, plan: Plan, bound: vulcan.RiskBound, factor: float) -> float:
    """Return the slack with all risks times a factor, by fractions."""
    reward, risk = find_worth(table, plan.choice, Fraction(factor))
    return float(bound.exact(reward) + Fraction(TOLERANCE) - risk)


def test_the_bound_may_break_between_factors_and_hold_again_beyond() -> None:
    # Failing in state 0 pays; in state 1 it takes what is earned there, until it is certain.
    table = Table(
        {
            0: {
                "go": [
                    Outcome(0.01, 0.0, 1),
                    Outcome(0.989, 0.0, 2),
                    Outcome.failure(0.001, 60000.0),
                ]
            },
            1: {"go": [Outcome(0.01, 20000.0, 2), Outcome.failure(0.99)]},
        },
        horizon=2,
    )
    bound = vulcan.PiecewiseLinear([(61.0, 0.0), (61.9, 0.5)])
    (plan,) = enumerate_plans(table)
    slacks = [find_slack(table, plan, bound, factor) for factor in (1.0, 1.007, 1.01, 1.02, 1.5)]
    assert [slack > 0 for slack in slacks] == [True, True, False, True, True]
    margin = vulcan.certify(vulcan.Problem(table, bound), build(table, plan)).margin
    assert 1.007 < margin < 1.0075
    assert abs(find_slack(table, plan, bound, margin)) < 1e-4


def test_nothing_is_claimed_below_one() -> None:
    # Less risk means less reward here, and the bound allows less for that.
    table = one_action(Outcome(0.8, 0.0, 1), Outcome.failure(0.2, 10.0))
    bound = vulcan.PiecewiseLinear([(1.0, 0.0), (1.5, 0.25)])
    (plan,) = enumerate_plans(table)
    assert find_slack(table, plan, bound, 0.5) < 0 < find_slack(table, plan, bound, 1.0)
    problem = vulcan.Problem(table, bound)
    assert vulcan.certify(problem, build(table, plan)).margin == pytest.approx(1.25, rel=1e-6)
    # Refused as it is, it would be so with less risk, though not with none of it.
    refusing = vulcan.Problem(table, vulcan.PiecewiseLinear([(-1.0, -0.01), (0.0, 0.001)]))
    assert vulcan.certify(refusing, build(table, plan)).margin == pytest.approx(0.005, rel=1e-6)


def test_no_factor_below_one_where_an_action_fails_surely() -> None:
    # With half the risk, half of what happens would be safe outcomes, of which there are none.
    table = Table(
        {
            0: {"go": [Outcome(0.5, 1.0, 1), Outcome(0.5, 0.0, 2)]},
            1: {"crash": [Outcome.failure(1.0, 9.0)]},
        },
        horizon=2,
    )
    (plan,) = enumerate_plans(table)
    policy = build(table, plan)
    refused = vulcan.certify(vulcan.Problem(table, 0.25), policy)
    assert (refused.passes, refused.margin) == (False, 0.0)
    # Larger risks than 1 there are none, so that from 1 on every factor is the same.
    assert vulcan.certify(vulcan.Problem(table, 0.5), policy).margin == math.inf


def random_mixed_bound(random: Random, reward: float, risk: float) -> vulcan.RiskBound:
    slope = random.choice([0.01, 0.3, 3.0, 1e3])
    level = risk * random.choice([0.7, 1.0001, 1.1, 1.5])
    width = random.choice([0.01, 0.2, 1.0])
    return vulcan.PiecewiseLinear([(reward - width, level - slope * width), (reward, level)])


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_the_bound_holds_for_every_factor_up_to_the_margin(seed: int) -> None:
    random = Random(seed)
    # With failures that pay, and costs on the way: rewards may fall and rise with the factor.
    table = random_table(
        random, [-5.0, -0.5, 0.0, 1.0, 8.0, 1e8, -1e8][: random.choice([5, 7])], False
    )
    plan = random.choice(enumerate_plans(table))
    if plan.choice is None:
        return
    worth = find_worth(table, plan.choice)
    bound = random_mixed_bound(random, float(worth.reward), float(worth.risk))
    certificate = vulcan.certify(vulcan.Problem(table, bound), build(table, plan))
    margin = certificate.margin
    if certificate.passes:
        assert margin >= 1
        claimed = [1.0, *np.geomspace(1.0, min(margin, 1e4), 60)[1:-1], min(margin, 1e6)]
    else:
        assert margin < 1
        claimed = np.linspace(0.0, margin, 60) if margin else []
    for factor in claimed:
        assert find_slack(table, plan, bound, float(factor)) >= 0
    largest = max(abs(o.reward) for a in table.table.values() for os in a.values() for o in os)
    if 0 < margin < math.inf and largest < 10:
        beyond = [find_slack(table, plan, bound, margin * (1 + 10.0**-k)) for k in range(1, 7)]
        # It is the largest, or the bound is so nearly touched that no proof was found in time.
        assert min(beyond) < 1e-3


FREE = vulcan.Constant(1.0)


def make_chain(*ways: tuple[int, int, float, float], sizes: Sequence[int] = (1,)) -> Chain:
    return Chain(sizes, zip(*ways, strict=True), [1] * len(sizes))


def risk_once(*risks: float) -> Chain:
    """Return the chain of an action that fails with each of some probabilities."""
    left = (0, END, 1 - math.fsum(risks), 1.0)
    return make_chain(left, *((0, FAILED, risk, 0.0) for risk in risks))


@pytest.mark.parametrize("edge", [1.5, 2.0, 3.7, 99.0])
def test_the_edge_is_found_to_the_precision(edge: float) -> None:
    margin = find_margin(risk_once(0.01), [1.0], vulcan.Constant(0.01 * edge), 1.0, True)
    assert margin == pytest.approx(edge, rel=PRECISION)
    assert margin <= edge * (1 + 1e-9)


def test_no_factor_breaks_what_holds_to_the_end() -> None:
    assert find_margin(risk_once(0.25), [1.0], FREE, 1.0, True) == math.inf
    assert find_margin(risk_once(1e-304), [1.0], FREE, 1.0, True) == 1e300  # risks go on growing
    assert find_margin(risk_once(0.0), [1.0], FREE, 1.0, True) == math.inf
    assert find_margin(risk_once(0.0), [1.0], FREE, 1.0, False) == 0


def test_what_is_no_bound_any_more_proves_nothing() -> None:
    # It falls between 2 and 3, which no policy as it is comes to; with more risk, this one does.
    def fall(reward: float) -> float:
        return 0.9 if reward < 2 else 0.9 - 0.1 * (reward - 2)

    ways = [(0, END, 0.9, 0.0), (0, FAILED, 0.1, 10.0)]
    bound = vulcan.Concave(fall)
    assert find_margin(make_chain(*ways), [1.0], bound, 1.0, True) == 1.0
    refused = vulcan.Concave(lambda x: fall(3 - x) - 0.85)
    assert find_margin(make_chain(*ways), [1.0], refused, 1.0, False) == 0.0
    flat = vulcan.Concave(lambda x: 0.9)
    assert find_margin(make_chain(*ways), [1.0], flat, 1.0, True) == pytest.approx(9, rel=1e-6)


def scale(case: Certified) -> margin._Scaled:
    """Return the policy of a case with its risks to be multiplied by factors."""
    chain, _ = follow_policy(case.policy, StrictReader(case.problem.model))
    start = np.array(case.policy.weights)
    return margin._Scaled(chain, start, case.problem.risk_bound, 1.0, 0.0)


def find_claims(
    scaled: margin._Scaled, lows: list[float], highs: list[float]
) -> list[tuple[float, float, float]]:
    """Return of each interval the largest risk, and the least and the largest reward."""
    claims: list[tuple[float, float, float]] = []

    def note(risk: float, low: float, high: float) -> float:
        claims.append((risk, low, high))
        return 0.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scaled, "_find_slack", note)
        list(map(scaled.test, lows, highs))
    return claims


def list_tables() -> list[Table]:
    return [Table(model.table, 4, model.discount) for model in (TRIP, PAYING, FORKED)]


@pytest.mark.parametrize("table", list_tables())
def test_what_is_claimed_of_factors_is_true(table: Table) -> None:
    plan = enumerate_plans(table)[0]
    scaled = scale(Certified(vulcan.Problem(table, vulcan.Linear(1e-3)), build(table, plan)))
    factors = [0.0, 0.5, 1.0, 1.5, 8.0, 40.0, 2000.0]
    lows = [0.0, 0.5, 1.0, 1.0, 8.0, 100.0, *factors]
    highs = [0.25, 1.0, 1.5, 8.0, 40.0, 2000.0, *factors]
    for low, high, claim in zip(lows, highs, find_claims(scaled, lows, highs), strict=True):
        risk, least, most = claim
        worths = [
            find_worth(table, plan.choice, Fraction(float(factor)))
            for factor in np.linspace(low, high, 5)
        ]
        assert worths[-1].risk <= risk <= worths[-1].risk + Fraction(1e-12)
        assert all(least <= worth.reward <= most for worth in worths)
        # Of a single factor it is exact.
        assert low < high or worths[-1].reward - Fraction(least) <= Fraction(2e-12)
    for factor, slack in zip(factors, map(scaled.test, factors, factors), strict=True):
        worth = find_worth(table, plan.choice, Fraction(factor))
        assert (slack >= -margin.ACCEPTED) == (Fraction(1, 1000) * worth.reward >= worth.risk)
