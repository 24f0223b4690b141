"""Limits from independent episodes: known values, coverage, and what a certificate says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import vulcan
from vulcan.certificate.confidence import (
    MeanLimit,
    Tally,
    bet_on_risk,
    limit_risk,
    limit_risk_always,
    round_up,
)


def test_known_limits():
    assert limit_risk(80, 10_000, 0.05)[1] == pytest.approx(0.009627, abs=5e-7)
    assert limit_risk(0, 299, 0.05)[1] <= 0.01 < limit_risk(0, 298, 0.05)[1]
    assert limit_risk(0, 10, 0.05)[0] == 0.0
    assert limit_risk(10, 10, 0.05)[1] == 1.0


@given(st.integers(1, 200), st.data(), st.sampled_from([0.1, 0.05, 0.001]))
def test_fixed_limits_are_where_the_binomial_distribution_puts_them(n, data, level):
    k = data.draw(st.integers(0, n))
    low, high = limit_risk(k, n, level)
    assert k == n or binom.cdf(k, n, high) == pytest.approx(level, rel=1e-6)
    assert k == 0 or binom.sf(k - 1, n, low) == pytest.approx(level, rel=1e-6)
    always = limit_risk_always(k, n, level)
    assert always[0] <= low <= k / n <= high <= always[1]  # looking all the time costs something


@given(st.integers(1, 60), st.floats(0.01, 0.99), st.booleans())
def test_bets_on_a_risk_are_fair_at_it_and_never_better_beyond(n, q, above):
    k = np.arange(n + 1)
    capital = np.exp(bet_on_risk(k, np.full(n + 1, n), np.full(n + 1, q), above=above))
    assert binom.pmf(k, n, q) @ capital == pytest.approx(1, rel=1e-6)
    beyond = q / 2 if above else (1 + q) / 2
    assert binom.pmf(k, n, beyond) @ capital <= 1 + 1e-9


@pytest.mark.parametrize("planned", [0, 300])
def test_the_limit_of_a_mean_holds_at_all_times(planned):
    rng = np.random.default_rng(3)
    for draw, mean in (
        (lambda shape: rng.random(shape) < 0.3, 0.3),
        (lambda shape: rng.beta(2, 5, shape), 2 / 7),
        (lambda shape: np.where(rng.random(shape) < 0.02, 1.0, 0.1), 0.118),
    ):
        limit = MeanLimit(0.1, planned, (400,), 100)
        for x in draw((300, 400)):
            limit.add(x)
        # The limit never falls: what it is at the end, it has been at worst.
        assert (limit.value > mean).mean() <= 0.1 + 3 * (0.1 * 0.9 / 400) ** 0.5
        assert limit.value.mean() > 0.6 * mean


def test_a_sure_mean_is_soon_known():
    limit = MeanLimit(0.05, 1000)
    for _ in range(1000):
        limit.add(0.5)
    assert 0.48 < limit.value <= 0.5


def tally(bound, failures, episodes, reward=0.5, reward_range=None, **options):
    found = Tally(vulcan.parse(bound), reward_range, 0.95, **options)
    for number in range(episodes):
        found.add(reward, number < failures)
    return found


def test_a_constant_bound_leaves_all_of_the_error_to_the_risk():
    assert tally("0.01", 0, 299, planned=299).judge().safe is True
    assert tally("0.01", 0, 298, planned=298).judge().safe is None
    assert tally("0.01", 12, 298, planned=298).judge().safe is False


def test_a_bound_that_grows_with_the_reward_uses_its_lower_limit():
    found = tally("0.1*x", 5, 500, planned=500, reward_range=(0.0, 1.0)).judge()
    assert found.reward_low <= 0.5 <= found.reward_high
    assert found.allowed == pytest.approx(0.1 * found.reward_low)
    assert found.risk_high == pytest.approx(limit_risk(5, 500, 0.025)[1])
    assert found.safe is True
    assert tally("0.03*x", 5, 500, planned=500, reward_range=(0, 1)).judge().safe is None
    assert tally("0.001*x", 50, 500, planned=500, reward_range=(0, 1)).judge().safe is False


def test_an_episode_outside_the_range_voids():
    found = tally("0.5", 0, 100, reward=1.5, reward_range=(0.0, 1.0), planned=100)
    assert "episode 1 had reward 1.5" in found.void
    assert found.judge().safe is None
    assert found.decide() is None


def test_an_episode_that_strays_failed_with_the_least_reward():
    found = Tally(vulcan.parse("0.1*x"), (-2.0, 3.0), 0.95)
    found.add(3.0, False, True)
    assert (found.failures, found.strayed, found.collected) == (1, 1, -2.0)


@pytest.mark.parametrize(("failures", "planned"), [(0, 100), (1, 100), (3, 0), (30, 0)])
def test_the_estimate_of_more_episodes_is_about_right(failures, planned):
    found = tally("0.1", failures, 100 if failures < 30 else 200, planned=planned)
    more = found.estimate_more()
    assert more is not None
    assert more > 0
    rate, n = failures / found.episodes, found.episodes + more
    limits = (limit_risk if planned else limit_risk_always)(rate * n * 1.02, n * 1.02, 0.05)
    assert limits[1] <= 0.1 or limits[0] > 0.1


def test_estimates_are_rounded_up_to_one_digit():
    assert [round_up(n) for n in (1, 9, 11, 2001, 3000)] == [1, 9, 20, 3000, 3000]
