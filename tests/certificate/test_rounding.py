"""Certificates say how far their numbers may be off, and are never misled by that."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations
from random import Random

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.builder import PolicyBuilder
from tests.helpers.certified import CERTIFIED
from tests.helpers.plans import about, build
from tests.helpers.tables import SEEDS, Table, one_action, random_table
from tests.oracles.brute_force import Plan, enumerate_plans
from tests.oracles.fractions import Worth, find_worth
from vulcan import Outcome
from vulcan.certificate import certify as certificates
from vulcan.certificate.certify import describe_certificate
from vulcan.cli.documents import describe
from vulcan.numerics import END, FAILED, TOLERANCE
from vulcan.policy.policy import Policy

# Tiny, ordinary, huge, of both signs, and such as nearly cancel.
ODD_REWARDS = [1e-9, -3e-10, 1e-300, 0.1, -0.3, 1 / 3, 1e8 / 3, -1e8 / 7, 1e17 / 3, -1e17 / 3]


def take(model: Table, outcomes: list[Outcome]) -> Policy:
    """Return the policy of a model with a single decision."""
    builder = PolicyBuilder(about(model))
    builder.decide("go", outcomes, [FAILED if o.fails else END for o in outcomes])
    return builder.build()


def certify_cancelling(rewards: list[float], slope: float) -> vulcan.Certificate:
    """Return the certificate of an action whose rewards cancel, with a risk of 0.1."""
    outcomes = [Outcome(0.3, reward, k + 1, str(k)) for k, reward in enumerate(rewards)]
    outcomes.append(Outcome.failure(0.1, label="failure"))
    model = one_action(*outcomes)
    return vulcan.certify(vulcan.Problem(model, vulcan.Linear(slope)), take(model, outcomes))


@pytest.mark.parametrize(
    ("rewards", "slope", "right"),
    [
        # Added up in floating point these allow 0.1000000015, and 0.112.
        ([88180747.6, -20541439.5, -67639307.76666667], 1.0, 0.09999999850988388),
        ([9.802687914432584e16, -2.535195672637561e16, -7.267492241795019e16], 0.007, 0.084),
    ],
)
def test_rewards_that_cancel_are_judged_right(rewards, slope, right):
    certificate = certify_cancelling(rewards, slope)
    assert certificate.refined
    assert certificate.allowed == pytest.approx(right, rel=1e-12)
    assert not certificate.passes
    assert not certificate.undecided
    assert not certificate.safe


def random_steep_bound(random: Random, worth: Worth) -> vulcan.RiskBound:
    """Return a bound close to a policy's risk at its reward, gently sloped or very steep."""
    slope = random.choice([0.0, 0.01, 1.0, 1e5, 1e8, 1e12, 1e17])
    off = random.choice([0.0, 0.0, 1e-16, -1e-16, 1e-12, -1e-12, 1e-9, -1e-9, 1e-3, -1e-3])
    reward, risk = float(worth.reward), float(worth.risk) + off
    if random.random() < 0.5 or slope == 0:
        return vulcan.Linear(slope, risk - slope * reward)
    # As wide as it takes for such a slope.
    width = max(1e-3 / slope, 8 * math.ulp(reward))
    return vulcan.PiecewiseLinear([(reward - width, risk - slope * width), (reward, risk)])


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_floats_and_fractions_differ_by_no_more_than_the_stated_errors(seed: int) -> None:
    random = Random(seed)
    rewards = random.sample(ODD_REWARDS, random.choice([2, 4, 10]))
    table = random_table(random, rewards, sure_failure=True)
    plan = random.choice(enumerate_plans(table))
    if plan.choice is None:
        return
    worth = find_worth(table, plan.choice)
    bound = random_steep_bound(random, worth)
    allowed = bound.exact(worth.reward)
    problem, policy = vulcan.Problem(table, bound), build(table, plan)
    exact = vulcan.certify(problem, policy, exact=True)
    assert (exact.reward, exact.risk, exact.allowed) == (*worth, allowed)
    assert exact.reward_error == exact.risk_error == exact.allowed_error == 0
    assert exact.passes == (worth.risk <= allowed + Fraction(TOLERANCE))
    expect_within(vulcan.certify(problem, policy), exact)


def expect_within(certificate: vulcan.Certificate, exact: vulcan.Certificate) -> None:
    """Expect that a certificate is as exact as it says, and comes to the same verdict."""
    for name in ("reward", "risk", "allowed", "frontier"):
        number, error = getattr(certificate, name), getattr(certificate, f"{name}_error")
        assert isinstance(number, float)
        assert isinstance(error, float)
        assert abs(Fraction(number) - Fraction(getattr(exact, name))) <= Fraction(error)
    if not certificate.undecided:
        assert certificate.passes == exact.passes
    else:  # the floats that are told lie too close to the edge of the tolerance
        assert certificate.refined
        errors = Fraction(certificate.risk_error) + Fraction(certificate.allowed_error)
        assert abs(exact.slack + Fraction(TOLERANCE)) <= 2 * errors


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_without_fractions_nothing_is_called_what_it_is_not(seed: int) -> None:
    random = Random(seed)
    table = random_table(random, random.sample(ODD_REWARDS, 4), sure_failure=True)
    plan = random.choice(enumerate_plans(table))
    if plan.choice is None:
        return
    worth = find_worth(table, plan.choice)
    bound = random_steep_bound(random, worth)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "MOST_WAYS", 0)
        certificate = vulcan.certify(vulcan.Problem(table, bound), build(table, plan))
    assert not certificate.refined
    passes = worth.risk <= bound.exact(worth.reward) + Fraction(TOLERANCE)
    assert certificate.undecided or certificate.passes == passes


@pytest.mark.parametrize("name", CERTIFIED)
def test_errors_cover_what_is_true_and_little_more(name: str) -> None:
    problem, policy = CERTIFIED[name]
    certificate = vulcan.certify(problem, policy)
    exact = vulcan.certify(problem, policy, exact=True)
    expect_within(certificate, exact)
    for number in ("reward", "risk", "allowed", "frontier"):
        found, error = (getattr(certificate, each) for each in (number, f"{number}_error"))
        # A thousand roundings of the largest number that was added up, at the most.
        largest = max(1.0, abs(found))
        assert error < 1e-13 * largest or name.startswith(("cancelling", "steep", "buried"))
    assert certificate.decided in (None, exact.passes)
    assert (certificate.margin >= 1) == exact.passes


def test_a_function_at_the_edge_of_the_tolerance_is_too_close_to_say() -> None:
    outcomes = [Outcome(0.75, 1.0, 1, "on"), Outcome.failure(0.25, label="failure")]
    model = one_action(*outcomes)
    for level, verdict in ((0.25 - TOLERANCE, None), (0.25, True), (0.25 - 2 * TOLERANCE, False)):
        bound = vulcan.Concave(lambda x, level=level: level)
        certificate = vulcan.certify(vulcan.Problem(model, bound), take(model, outcomes))
        assert certificate.undecided is (verdict is None)
        assert certificate.passes is bool(verdict)


@pytest.mark.parametrize(
    ("probability", "times", "bound"),
    [
        (0.1, 3, vulcan.Constant(0.3)),
        (0.01, 1, vulcan.Constant(0.01)),
        (0.1, 7, vulcan.Linear(0.7)),
    ],
)
def test_ties_on_paper_are_safe(probability: float, times: int, bound: vulcan.RiskBound) -> None:
    # The risk of several ways to fail, and a bound that is meant to be the same.
    outcomes = [Outcome.failure(probability, label=str(k)) for k in range(times)]
    left = 1 - math.fsum(o.probability for o in outcomes)
    outcomes.insert(0, Outcome(left, 1 / left, 1, "on"))
    model = one_action(*outcomes)
    for exact in (False, True):
        certificate = vulcan.certify(
            vulcan.Problem(model, bound), take(model, outcomes), exact=exact
        )
        assert certificate.safe


@pytest.mark.parametrize("other", [0.2, 0.3, 0.6, 0.7])
def test_what_fractions_decide_is_not_lost_in_floats(other: float) -> None:
    # The risk is no float, and the last digit of one decides.
    failures = [Outcome.failure(risk, label=f"{risk}") for risk in (0.1, other)]
    outcomes = [Outcome(1 - 0.1 - other, 1.0, 1, "on"), *failures]
    model, risk = one_action(*outcomes), Fraction(0.1) + Fraction(other)
    level = float(risk - Fraction(TOLERANCE))
    for allowed in (math.nextafter(level, 0), level, math.nextafter(level, 1)):
        problem = vulcan.Problem(model, vulcan.Constant(allowed))
        certificate = vulcan.certify(problem, take(model, outcomes))
        assert certificate.refined
        assert not certificate.undecided
        assert certificate.passes is (Fraction(allowed) + Fraction(TOLERANCE) >= risk)
        assert certificate.decided is certificate.passes


def make_long(discount: float, horizon: int = 60) -> tuple[Table, Plan]:
    """Return a model that can be gone through in one way only, and its policy."""
    odd = [Outcome(0.3, 0.1, 0, "0"), Outcome(0.65, -7.7, 1, "1"), Outcome.failure(0.05)]
    even = [Outcome(1e-90, 1e90, 0, "0"), Outcome(1.0, 1 / 3, 1, "1")]
    table = Table({0: {"go": odd}, 1: {"go": even}}, horizon, discount)
    builder = PolicyBuilder(about(table))
    for step in range(horizon):
        for outcomes in (odd, even) if step else (odd,):
            first = 1 + 2 * step
            last = step + 1 == horizon
            children = [FAILED if o.fails else END if last else first + o.state for o in outcomes]
            builder.decide("go", outcomes, children)
    return table, builder.build()


@pytest.mark.parametrize("discount", [1.0, 0.1, 1e-30, 0.0])
def test_long_missions_with_products_too_small_for_floats(discount: float) -> None:
    table, policy = make_long(discount)
    problem = vulcan.Problem(table, vulcan.Constant(0.99))
    exact = vulcan.certify(problem, policy, exact=True)
    expect_within(vulcan.certify(problem, policy), exact)


@pytest.mark.parametrize("places", [20, 60, 512])
def test_fractions_that_are_cut_off_know_what_they_lack(places, monkeypatch):
    table, policy = make_long(0.9)
    free = vulcan.certify(vulcan.Problem(table, vulcan.Constant(1.0)), policy, exact=True)
    steep = vulcan.Linear(1e12, float(free.risk) - 1e12 * float(free.reward))
    problem = vulcan.Problem(table, steep)
    exact = vulcan.certify(problem, policy, exact=True)
    monkeypatch.setattr(certificates, "PLACES", (places,))
    certificate = vulcan.certify(problem, policy)
    assert certificate.refined
    assert certificate.undecided == (places < 512)
    for name in ("reward", "risk", "allowed"):
        off = abs(Fraction(getattr(certificate, name)) - getattr(exact, name))
        assert off <= Fraction(getattr(certificate, f"{name}_error"))


def test_fractions_of_the_model_are_not_rounded() -> None:
    third = Fraction(1, 3)
    outcomes = [Outcome(1 - third, 1.0, 1, "on"), Outcome.failure(third, label="failure")]
    model = one_action(*outcomes)
    policy = take(model, outcomes)
    steep = vulcan.PiecewiseLinear([(0.0, -1e12), (float(1 - third), 1 / 3)])
    problem = vulcan.Problem(model, steep)
    exact = vulcan.certify(problem, policy, exact=True)
    assert exact.reward == 1 - third
    expect_within(vulcan.certify(problem, policy), exact)


def test_a_reward_that_is_rounded_out_of_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    # In fractions the reward is a little above 0, where the root begins; in floats it is below,
    # in whatever order it is added up.
    rewards = [(0.3, 2934.0), (0.3, -6114.0), (0.4, 2385.0)]
    assert 0 < sum(Fraction(p) * Fraction(r) for p, r in rewards) < 1e-13
    assert all(sum(p * r for p, r in order) < 0 for order in permutations(rewards))
    outcomes = [Outcome(p, r, k, str(k)) for k, (p, r) in enumerate(rewards, 1)]
    model = one_action(*outcomes)
    problem, policy = vulcan.Problem(model, "sqrt(x)"), take(model, outcomes)
    certificate = vulcan.certify(problem, policy)
    assert certificate.safe
    assert certificate.refined
    monkeypatch.setattr(certificates, "MOST_WAYS", 2)  # and there are three
    with pytest.raises(vulcan.errors.BoundError, match="can't be evaluated at -"):
        vulcan.certify(problem, policy)


@pytest.mark.parametrize("sign", [1, -1])
def test_what_is_allowed_may_be_beyond_all_floats(sign: int) -> None:
    outcomes = [Outcome(0.9, sign * 1e20, 0), Outcome.failure(0.1)]
    model = Table({0: {"go": outcomes}})
    problem, policy = vulcan.Problem(model, vulcan.Linear(1e300)), take(model, outcomes)
    certificate = vulcan.certify(problem, policy)
    assert certificate.safe == (sign > 0)
    assert certificate.refined
    assert sign * certificate.allowed > 1e308
    exact = vulcan.certify(problem, policy, exact=True)
    assert exact.allowed == Fraction(1e300) * exact.reward
    infinite = f"{sign * math.inf:g}"
    assert f"allowed {infinite}, exact" in repr(exact)
    assert dict(describe_certificate(exact))["slack"].startswith(infinite)
    assert describe(exact)["allowed"] == infinite


def test_risks_as_small_as_floats_can_be_are_decided() -> None:
    """A campaign found it: 512 binary places are none where probabilities are 1e-300."""
    outcomes = [Outcome(1.0, 0.0, 0), Outcome.failure(3e-300, 1.0)]
    model = Table({0: {"go": outcomes}}, horizon=10, discount=1 / 3)
    result = vulcan.solve(vulcan.Problem(model, vulcan.Linear(5e285)), vulcan.Pareto())
    assert result.certificate.refined
    assert result.certificate.decided
    assert result.safe
