"""What accounts allow keeps the bound, however it is used."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given

import vulcan
from tests.helpers.tables import SEEDS
from vulcan.exact.acceptance import ACCEPTED
from vulcan.execution.replan import Account, open_account
from vulcan.numerics import TOLERANCE
from vulcan.solvers.finding import Worth

BOUNDS = [
    vulcan.Constant(0.1),
    vulcan.Linear(0.05, 0.02),
    vulcan.PiecewiseLinear([(0, 0), (1, 0.1), (1.2, 0.11), (4, 0.15)]),
    vulcan.parse("0.1 * sqrt(x + 10)"),
    vulcan.Concave(lambda reward: 0.3 - 0.3 * math.exp(-3 * reward)),
]


def split(random: Random, share: float, value: float) -> tuple[float, float]:
    """Return two values whose mean is a value."""
    distance = random.choice([0.0, 0.1, 1.0]) * random.random()
    return value + distance / share, value - distance / (1 - share)


def play(
    random: Random, here: Worth, account: Account, depth: int, *, lossy: bool = False
) -> Worth:
    """Return the mean of what runs risk and earn that replan as far as their accounts allow.

    If they are lossy, they also give up reward, and move slack among outcomes.
    """
    for _ in range(random.choice([0, 1, 1, 2])):
        gain = random.choice([0.0, 0.0, 1.0, 5.0]) * random.random()
        if lossy:
            gain = max(-0.999 * account.spare, random.choice([-1.0, 1.0]) * gain)
            beyond = Worth(here.reward - account.spare - 1e-6, 0.0)
            if math.isfinite(account.spare):
                assert account.replace(here, beyond, lossy=True) is None
        most = here.risk + account.slack + account.rate * min(account.room, gain)
        saved = random.choice([0.0, 0.0, 0.1 * random.random()])
        new = Worth(here.reward + gain, most - saved)
        over = Worth(here.reward + gain, most + 1e-9)
        assert account.replace(here, over, lossy=lossy) is None
        following = account.replace(here, new, lossy=lossy)
        assert following is not None
        here, account = new, following
    if not depth:
        return here
    share = random.choice([0.01, 0.3, 0.5])
    risks, rewards = (split(random, share, value) for value in (here.risk, here.reward))
    slacks = account.slack, account.slack
    if lossy and account.slack > 0:
        first = random.uniform(0.0, account.slack / share)
        slacks = first, (account.slack - share * first) / (1 - share)
    ends = [
        play(random, Worth(*part), replace(account, slack=slack), depth - 1, lossy=lossy)
        for *part, slack in zip(rewards, risks, slacks, strict=True)
    ]
    return Worth(
        share * ends[0].reward + (1 - share) * ends[1].reward,
        share * ends[0].risk + (1 - share) * ends[1].risk,
    )


@given(seed=SEEDS)
def test_the_mean_over_all_runs_keeps_the_bound(seed: int) -> None:
    random = Random(seed)
    bound = random.choice(BOUNDS)
    reward = 4 * random.random()
    risk = bound(reward) - random.choice([0.0, 0.05, -0.02])
    before = Worth(reward, risk)
    after = play(random, before, open_account(bound, before), random.choice([0, 1, 3]))
    assert after.reward >= reward - 1e-9
    slack = min(0.0, bound(reward) - risk)
    assert after.risk <= bound(after.reward) - slack + 1e-9


@given(seed=SEEDS)
def test_the_bound_is_kept_where_reward_is_given_up_and_slack_is_moved(seed: int) -> None:
    random = Random(seed)
    bound = random.choice(BOUNDS)
    reward = 4 * random.random()
    before = Worth(reward, bound(reward) - random.choice([0.0, 0.05]))
    account = open_account(bound, before)
    after = play(random, before, account, random.choice([0, 1, 3]), lossy=True)
    assert after.risk <= bound(after.reward) + 1e-9


def test_reward_may_be_given_up_as_far_as_the_bound_is_straight() -> None:
    bent = vulcan.PiecewiseLinear([(0, 0), (1, 0.1), (4, 0.15)])
    assert open_account(bent, Worth(3.0, 0.0)).spare == pytest.approx(2.0)
    assert open_account(bent, Worth(0.5, 0.0)).spare == math.inf
    assert open_account(vulcan.Linear(0.1), Worth(3.0, 0.0)).spare == math.inf
    assert open_account(vulcan.parse("0.1 * sqrt(x)"), Worth(3.0, 0.0)).spare == 0.0


def test_a_worse_plan_is_never_allowed() -> None:
    account = Account(0.1, math.inf, 0.5)
    assert account.replace(Worth(1.0, 0.1), Worth(0.999, 0.0)) is None


def test_risk_is_exchanged_for_reward_until_there_is_no_room() -> None:
    account = Account(0.0, 1.0, 0.1).replace(Worth(1.0, 0.2), Worth(4.0, 0.25))
    assert account is not None
    assert (account.slack, account.room) == (pytest.approx(0.05), 0.0)
    assert account.replace(Worth(1.0, 0.2), Worth(9.0, 0.251)) is None


def test_the_rate_is_that_of_the_chord() -> None:
    bound = vulcan.parse("0.1 * sqrt(x)")
    account = open_account(bound, Worth(1.0, 0.05))
    assert account.slack == pytest.approx(0.05)
    assert account.rate == pytest.approx((bound(1 + account.room) - bound(1.0)) / account.room)
    assert account.rate < bound.tangent(1.0).slope


@pytest.mark.parametrize("bound", [vulcan.Constant(0.1), vulcan.Concave(lambda reward: -math.inf)])
def test_a_plan_beyond_its_bound_gets_no_slack(bound: vulcan.RiskBound) -> None:
    assert open_account(bound, Worth(1.0, 0.3)).slack == 0


def test_bounds_of_the_rest_say_what_the_account_allows() -> None:
    old, weight = Worth(2.0, 0.05), 0.5
    for account in (
        Account(0.01, 0.0, 0.0),
        Account(0.01, math.inf, 0.02),
        Account(-TOLERANCE / 4, 0.3, 0.02),
    ):
        bound = account.allow(old, weight)
        for gain in (0.0, 0.1, 0.3, 0.7, 5.0):
            most = bound((old.reward + gain) / weight)
            reward = old.reward + gain
            assert account.replace(old, Worth(reward, most - 1e-12)) is not None
            assert account.replace(old, Worth(reward, most + 2e-12)) is None
    assert Account(2.0, math.inf, 1.0).allow(old, weight) == vulcan.Constant(1.0)
    assert Account(0.0, 1.0, 1.0).allow(old, 0.0)(2.0) == pytest.approx(0.05, abs=TOLERANCE)


def test_what_a_search_may_use_of_its_tolerance_is_allowed() -> None:
    old, account = Worth(2.0, 0.05), Account(0.01, 0.0, 0.0)
    most = account.allow(old, 1.0)(2.0) + ACCEPTED
    assert most >= old.risk + account.slack
    assert account.replace(old, Worth(2.0, most)) is not None


def test_a_plan_that_used_up_the_tolerance_may_be_replaced_by_one_of_the_same_risk() -> None:
    old = Worth(2.0, 0.05)
    account = open_account(vulcan.Constant(0.05 - ACCEPTED), old)
    assert account.slack == pytest.approx(-ACCEPTED, rel=1e-3)
    following = account.replace(old, Worth(3.0, 0.05))
    assert following is not None
    assert following.slack >= account.slack
    assert account.replace(old, Worth(3.0, 0.05 + TOLERANCE / 100)) is None
