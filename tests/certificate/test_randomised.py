"""Certificates of randomised policies."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.builder import PolicyBuilder
from tests.helpers.mixtures import CHOICE, mix, mix_bandit, take
from tests.helpers.plans import about, build
from tests.helpers.tables import SEEDS, Table, bounds, random_bound, tables
from tests.oracles.brute_force import Plan, enumerate_plans
from vulcan import Outcome
from vulcan.domains import Bandit
from vulcan.errors import MismatchError
from vulcan.numerics import END, FAILED, UNPLANNED
from vulcan.policy.policy import RandomisedPolicy


def test_certificate_by_hand() -> None:
    certificate = vulcan.certify(vulcan.Problem(CHOICE, vulcan.Constant(0.1)), mix())
    assert certificate.reward == pytest.approx(0.25 * 8 + 0.75 * 1, abs=1e-15)
    assert certificate.risk == pytest.approx(0.05, abs=1e-15)
    assert certificate.margin == pytest.approx(2, rel=1e-6)
    assert certificate.safe
    assert certificate.frontier == 0
    assert certificate.evaluations == 2


def test_a_mixture_may_pass_although_a_member_does_not() -> None:
    problem = vulcan.Problem(CHOICE, vulcan.Constant(0.05))
    assert not vulcan.certify(problem, take("leap")).passes
    assert vulcan.certify(problem, mix(0.25)).safe
    assert not vulcan.certify(problem, mix(0.26)).passes


def test_margin_of_a_mixture_has_a_closed_form() -> None:
    # 0.05 κ of risk, for a reward of 0.75 + 0.25 · 10 (1 - 0.2 κ).
    certificate = vulcan.certify(vulcan.Problem(CHOICE, vulcan.Linear(0.03)), mix())
    assert certificate.margin == pytest.approx(0.03 * 3.25 / (0.05 + 0.03 * 0.5), rel=1e-6)
    refused = vulcan.certify(vulcan.Problem(CHOICE, vulcan.Constant(0.01)), mix())
    assert refused.margin == pytest.approx(0.2, rel=1e-6)


def mixtures(table: Table, random: Random) -> tuple[list[int], list[float]]:
    """Return which plans to mix, of all, and their weights."""
    count = len(enumerate_plans(table))
    numbers = [random.randrange(count) for _ in range(random.choice([1, 2, 2, 3]))]
    shares = [random.random() + 1e-3 for _ in numbers]
    return numbers, [share / math.fsum(shares) for share in shares]


def weigh(plans: list[Plan], weights: list[float]) -> tuple[float, float]:
    """Return reward and risk from all histories of the plans."""
    pairs = list(zip(weights, plans, strict=True))
    return math.fsum(w * p.reward for w, p in pairs), math.fsum(w * p.risk for w, p in pairs)


@settings(max_examples=60)
@given(table=tables(), bound=bounds(), seed=SEEDS)
def test_reward_and_risk_are_weighted_sums(table, bound, seed):
    plans = enumerate_plans(table)
    numbers, weights = mixtures(table, Random(seed))
    chosen = [plans[number] for number in numbers]
    policy = RandomisedPolicy([build(table, plan) for plan in chosen], weights)
    problem = vulcan.Problem(table, bound)
    reward, risk = weigh(chosen, weights)
    certificate = vulcan.certify(problem, policy)
    assert certificate.reward == pytest.approx(reward, abs=1e-12)
    assert certificate.risk == pytest.approx(risk, abs=1e-12)
    assert certificate.allowed == bound(certificate.reward)
    assert certificate.slack == certificate.allowed - certificate.risk
    assert certificate.complete
    alone = [vulcan.certify(problem, member) for member in policy.members]
    if all(member.passes for member in alone):
        assert certificate.slack >= -1e-11  # because the bound is concave
    exact = vulcan.certify(problem, policy, exact=True)
    assert isinstance(exact.risk, Fraction)
    assert float(exact.reward) == pytest.approx(reward, abs=1e-12)
    assert float(exact.risk) == pytest.approx(risk, abs=1e-12)
    least, most = min(member.risk for member in alone), max(member.risk for member in alone)
    assert least - 1e-12 <= exact.risk <= most + 1e-12


@given(table=tables(), seed=SEEDS)
def test_one_member_is_certified_like_the_policy_itself(table: Table, seed: int) -> None:
    policy = build(table, Random(seed).choice(enumerate_plans(table)))
    problem = vulcan.Problem(table, random_bound(Random(seed)))
    alone = RandomisedPolicy([policy], [1.0])
    for exact in (False, True):
        assert vulcan.certify(problem, alone, exact=exact) == vulcan.certify(
            problem, policy, exact=exact
        )


def test_exact_weights_sum_to_one() -> None:
    problem = vulcan.Problem(CHOICE, vulcan.Constant(0.5))
    leap = vulcan.certify(problem, take("leap"), exact=True)
    assert sum(map(Fraction, [0.1] * 10)) != 1
    tenths = vulcan.certify(problem, RandomisedPolicy([take("leap")] * 10, [0.1] * 10), exact=True)
    assert (tenths.reward, tenths.risk) == (leap.reward, leap.risk)
    parts = vulcan.certify(problem, mix(0.3), exact=True)
    assert parts.risk == Fraction(0.3) * Fraction(0.2)
    assert parts.reward == Fraction(0.3) * 10 * Fraction(0.8) + (1 - Fraction(0.3))


def test_exact_weights_stay_positive() -> None:
    # Together the weights are more than 1, by less than is tolerated and more than the last.
    weights = [0.5, 0.5 + 5e-13, 1e-13]
    policy = RandomisedPolicy([take("rest"), take("rest"), take("leap")], weights)
    certificate = vulcan.certify(vulcan.Problem(CHOICE, vulcan.Constant(0.5)), policy, exact=True)
    assert certificate.risk == Fraction(1e-13) * Fraction(0.2)


def test_frontier_is_weighted() -> None:
    table = Table(
        {
            0: {"go": [Outcome(0.5, 1.0, 1), Outcome(0.3, 2.0, 2), Outcome.failure(0.2)]},
            1: {"on": [Outcome(1.0, 5.0, 2)]},
        },
        horizon=2,
    )

    def begin(child: int) -> PolicyBuilder:
        builder = PolicyBuilder(about(table))
        rows = (["1", "2", "failure"], [0.5, 0.3, 0.2], [1.0, 2.0, 0.0], [child, END, FAILED])
        builder.add("go", *rows)
        return builder

    part, whole = begin(UNPLANNED), begin(1)
    whole.add("on", ["2"], [1.0], [5.0], [END])
    policy = RandomisedPolicy([part.build(), whole.build()], [0.2, 0.8])
    assert not policy.complete
    certificate = vulcan.certify(vulcan.Problem(table, vulcan.Constant(0.5)), policy)
    assert not certificate.complete
    assert not certificate.safe
    assert certificate.passes
    assert certificate.frontier == pytest.approx(0.2 * 0.5, abs=1e-15)
    assert certificate.reward == pytest.approx(1.1 + 0.8 * 0.5 * 5, abs=1e-15)


def walk(table: Table, choice: Any, state: int) -> set[tuple[int, str]]:
    """Return where a plan takes which action."""
    if choice is None:
        return set()
    name, below = choice
    safe = [outcome for outcome in table.table[state][name] if not outcome.fails]
    further = [walk(table, c, o.state) for c, o in zip(below, safe, strict=True)]
    return {(state, name)}.union(*further)


@given(table=tables(), seed=SEEDS)
def test_the_model_is_evaluated_once_over_all_members(table: Table, seed: int) -> None:
    random = Random(seed)
    plans = [random.choice(enumerate_plans(table)) for _ in range(3)]
    policy = RandomisedPolicy([build(table, plan) for plan in plans], [0.25, 0.25, 0.5])
    problem = vulcan.Problem(table, vulcan.Constant(0.5))
    table.calls.clear()
    together = vulcan.certify(problem, policy)
    assert set(table.calls.values()) == {1}
    taken = {pair for plan in plans for pair in walk(table, plan.choice, 0)}
    assert together.evaluations == len(taken)
    # The fingerprint asks about the other actions at the start.
    assert set(table.calls) == taken | {(0, name) for name in table.table[0]}


def test_certificate_refuses_other_models_and_members_that_do_not_fit():
    with pytest.raises(MismatchError, match=r"made for Bandit\(horizon=3\).*Bandit\(horizon=4\)"):
        vulcan.certify(vulcan.Problem(Bandit(4), vulcan.Linear(0.002)), mix_bandit())
    problem = vulcan.Problem(CHOICE, vulcan.Constant(1))
    nothing = PolicyBuilder(about(CHOICE)).build()
    for members in ([take("leap"), nothing], [nothing, take("leap")]):
        with pytest.raises(MismatchError, match="ends in state 0, which has actions"):
            vulcan.certify(problem, RandomisedPolicy(members, [0.5, 0.5]))
    fly = PolicyBuilder(about(CHOICE))
    fly.add("fly", ["1"], [1.0], [1.0], [END])
    with pytest.raises(MismatchError, match="takes 'fly' in state 0"):
        vulcan.certify(problem, RandomisedPolicy([take("rest"), fly.build()], [0.5, 0.5]))


def test_nothing_to_decide() -> None:
    table = Table({}, 1)
    policy = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0)), vulcan.ForwardSearch()).policy
    certificate = vulcan.certify(
        vulcan.Problem(table, vulcan.Constant(0)), RandomisedPolicy([policy] * 2, [0.5, 0.5])
    )
    assert (certificate.reward, certificate.risk, certificate.margin) == (0, 0, math.inf)
    assert certificate.safe
