"""Simulated episodes beside exact values."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.plans import edit
from tests.helpers.tables import Table, bounds, tables
from vulcan import Outcome
from vulcan.domains import Bandit
from vulcan.execution.simulation import CHUNK, ERROR_LEVEL, expect, play, weigh_count, weigh_mean
from vulcan.numerics import FAILED

PROBLEM = vulcan.Problem(Bandit(horizon=4), "0.002*x")


@pytest.fixture(scope="module")
def policy() -> vulcan.Policy:
    return vulcan.solve(PROBLEM).policy


@settings(max_examples=30, deadline=None)
@given(table=tables(), bound=bounds())
def test_what_is_expected_is_the_certificate(table: Table, bound: vulcan.RiskBound) -> None:
    result = vulcan.solve(
        vulcan.Problem(table, bound), vulcan.baselines.LinearProgram()
    )  # randomised
    if result.policy is None:
        return
    found = vulcan.simulate(result.policy, table, episodes=1)
    exact = expect(result.policy, table.discount)
    assert exact.reward == pytest.approx(float(result.certificate.reward), abs=1e-9)
    assert exact.risk == pytest.approx(float(result.certificate.risk), abs=1e-12)
    assert math.fsum(exact.failures) == pytest.approx(exact.risk, abs=1e-12)
    assert found.reward.exact == float(result.certificate.reward)
    assert found.least >= exact.least - 1e-9
    assert found.most <= exact.most + 1e-9


def test_the_variance_is_that_of_all_histories(policy: vulcan.Policy) -> None:
    def follow(node: int, chance: Fraction, reward: Fraction):
        if node < 0:
            yield chance, reward
            return
        for row in policy.outcomes(node):
            now = chance * Fraction(float(policy.probability[row]))
            yield from follow(int(policy.child[row]), now, reward + Fraction(policy.reward[row]))

    histories = list(follow(0, Fraction(1), Fraction(0)))
    mean = sum(chance * reward for chance, reward in histories)
    variance = sum(chance * (reward - mean) ** 2 for chance, reward in histories)
    exact = expect(policy, 1.0)
    assert exact.deviation == pytest.approx(math.sqrt(variance), rel=1e-12)
    assert exact.least == float(min(reward for _, reward in histories))
    assert exact.most == float(max(reward for _, reward in histories))


def test_the_numbers_do_not_depend_on_the_number_of_threads(policy: vulcan.Policy) -> None:
    one, many = (
        vulcan.simulate(policy, episodes=3 * CHUNK + 5, seed=3, parallel=workers)
        for workers in (1, 5)
    )
    for name in ("reward", "risk", "deviation", "survival", "decisions"):
        assert getattr(one, name) == getattr(many, name)
    other = vulcan.simulate(policy, episodes=3 * CHUNK + 5, seed=4)
    assert other.reward != one.reward


@pytest.mark.slow
def test_intervals_hold_the_exact_values_as_often_as_they_say(policy: vulcan.Policy) -> None:
    held = {"reward": 0, "risk": 0}
    for seed in range(200):
        found = vulcan.simulate(policy, episodes=5000, seed=seed, confidence=0.9)
        for name in held:
            estimate = getattr(found, name)
            held[name] += estimate.low <= estimate.exact <= estimate.high
    # Under 90 % the number has a standard deviation of 4.2; Clopper and Pearson hold more often.
    assert 160 <= held["reward"] <= 197
    assert held["risk"] >= 165


def test_members_are_drawn_by_their_weights(policy: vulcan.Policy) -> None:
    safe = vulcan.solve(vulcan.Problem(PROBLEM.model, 0.0)).policy
    mixed = vulcan.policy.RandomisedPolicy([policy, safe], [0.3, 0.7])
    found = vulcan.simulate(mixed, PROBLEM.model, episodes=200_000)
    parts = [expect(member, 1.0) for member in mixed.members]
    assert found.risk.exact == pytest.approx(0.3 * parts[0].risk)
    assert found.agrees
    mean = 0.3 * parts[0].reward + 0.7 * parts[1].reward
    squares = sum(
        w * (p.deviation**2 + p.reward**2) for w, p in zip((0.3, 0.7), parts, strict=True)
    )
    assert found.exact_deviation == pytest.approx(math.sqrt(squares - mean**2))
    assert found.deviation == pytest.approx(found.exact_deviation, rel=0.02)


def test_an_incomplete_policy_leaves_its_plan(policy: vulcan.Policy) -> None:
    cut = edit(policy, first_child=-3)
    found = vulcan.simulate(cut, PROBLEM.model, episodes=50_000, confidence=0.9999)
    certificate = vulcan.certify(PROBLEM, cut)
    assert found.frontier.exact == certificate.frontier > 0
    assert found.frontier.low < found.frontier.exact < found.frontier.high
    assert "leaves the plan" in dict(found.rows())
    assert found.agrees


def test_survival_ends_with_the_failures(policy: vulcan.Policy) -> None:
    found = vulcan.simulate(policy, episodes=50_000)
    assert found.survival[0] == found.exact_survival[0] == 1
    assert found.survival[-1] == pytest.approx(1 - found.risk.value)
    assert found.exact_survival[-1] == pytest.approx(1 - found.risk.exact)
    assert list(found.survival) == sorted(found.survival, reverse=True)
    assert len(found.survival) == 5


def test_nothing_to_decide() -> None:
    table = Table({}, horizon=3)
    policy = vulcan.solve(vulcan.Problem(table, 0.1)).policy
    found = vulcan.simulate(policy, table, episodes=10)
    assert (found.reward.value, found.risk.value, found.decisions) == (0, 0, 0)
    assert found.agrees
    assert "reward" in str(found)


def test_a_start_is_not_discounted() -> None:
    start = vulcan.Start.draw([Outcome(0.5, 0.0, 0), Outcome(0.5, 0.0, 1)])
    steps = {s: {"go": [Outcome(1.0, 1.0, 2)]} for s in (0, 1)}
    steps[2] = {"go": [Outcome(1.0, 1.0, 3)]}
    table = Table(steps, 2, 0.5, start)
    policy = vulcan.solve(vulcan.Problem(table, 0.1)).policy
    assert vulcan.simulate(policy, episodes=100).reward.value == 1.5
    assert vulcan.simulate(edit(policy), episodes=100).reward.value == 1.5
    loose = edit(policy, origin={"initial_action": None})
    with pytest.raises(vulcan.errors.PolicyError, match=r"discount 0\.5"):
        vulcan.simulate(loose, episodes=100)
    assert vulcan.simulate(loose, table, episodes=100).reward.value == 1.5


def test_what_cannot_be_simulated_is_refused(policy: vulcan.Policy) -> None:
    for options in ({"episodes": 0}, {"workers": 0}, {"confidence": 1.0}):
        with pytest.raises(vulcan.errors.OptionError, match=next(iter(options))):
            vulcan.simulate(policy, **options)


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_they_say(policy: vulcan.Policy) -> None:
    exact = expect(policy, 1.0)
    for count in (1, 10, 1000):
        for seed in range(200):
            found = play(policy, 1.0, count, seed, 1)
            assert weigh_mean(float(found["reward"].mean()), count, exact) > ERROR_LEVEL
            assert weigh_count(int((found["end"] == FAILED).sum()), count, exact.risk) > ERROR_LEVEL
