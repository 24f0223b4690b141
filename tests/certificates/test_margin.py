"""Margins: how wrong the model's risks may be."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.plans import build
from tests.helpers.tables import SEEDS, Table, one_action, random_table
from tests.oracles.brute_force import Plan, enumerate_plans
from tests.oracles.fractions import find_worth
from vulcan import Outcome
from vulcan.certificates.chain import Chain
from vulcan.certificates.margin import MOST_ROUNDS
from vulcan.tolerance import TOLERANCE


@pytest.mark.parametrize("risk", [0.01, 0.2])
def test_margin_of_a_single_action(risk: float) -> None:
    # reward (1 - κ r) · 10 must allow 0.05 x >= κ r: the factor has a closed form.
    table = one_action(Outcome(1 - risk, 10.0, 1), Outcome.failure(risk))
    result = vulcan.solve(vulcan.Problem(table, vulcan.Linear(0.05)))
    assert result.certificate.margin == pytest.approx(0.5 / (1.5 * risk), rel=1e-6)


def test_margin_at_its_ends() -> None:
    safe = one_action(Outcome(1.0, 1.0, 1))
    assert vulcan.solve(vulcan.Problem(safe, vulcan.Constant(0.0))).certificate.margin == math.inf
    risky = one_action(Outcome(0.5, 1.0, 1), Outcome.failure(0.5))
    everything = vulcan.solve(vulcan.Problem(risky, vulcan.Constant(1.0)))
    assert everything.certificate.margin == math.inf
    policy = everything.policy
    assert vulcan.certify(vulcan.Problem(risky, vulcan.Constant(0.25)), policy).margin == (
        pytest.approx(0.5, rel=1e-6)
    )
    refused = vulcan.certify(vulcan.Problem(risky, vulcan.Constant(-0.1)), policy)
    assert refused.margin == 0
    assert not refused.passes
    assert not refused.safe


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


def test_the_margin_is_found_in_a_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []
    spread = Chain.spread

    def count(self: Chain, *arguments: object) -> object:
        rounds.append(1)
        return spread(self, *arguments)

    monkeypatch.setattr(Chain, "spread", count)
    table = Table(
        {
            0: {"go": [Outcome(0.3, -1.0, 0), Outcome(0.6, 2.0, 1), Outcome.failure(0.1, 5.0)]},
            1: {"go": [Outcome(0.98, 1.0, 0), Outcome.failure(0.02, -3.0)]},
        },
        horizon=6,
    )
    for level in np.linspace(0.05, 1.0, 20):
        plan = enumerate_plans(table)[0]
        rounds.clear()
        vulcan.certify(vulcan.Problem(table, f"{level} + 0.001*x"), build(table, plan))
        assert len(rounds) <= MOST_ROUNDS + 2
