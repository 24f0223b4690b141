"""Margins: how wrong the model's risks may be."""

from __future__ import annotations

import math

import pytest

import vulcan
from tests.helpers.tables import Table, one_action
from vulcan import Outcome


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
