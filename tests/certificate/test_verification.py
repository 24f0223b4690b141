"""Storm computes the reward and the risk of certificates once more."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

import vulcan
from tests.helpers.plans import edit
from tests.helpers.tables import REWARDS, Table, random_bound, random_table
from tests.oracles.several import draw_problem
from vulcan import Outcome
from vulcan.certificate import verify as verification
from vulcan.domains import Bandit
from vulcan.numerics import UNPLANNED


@pytest.fixture(autouse=True)
def stormpy() -> Any:
    """Return stormpy, or skip the test."""
    return pytest.importorskip("stormpy")


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("randomised", [False, True])
def test_random_tables(seed: int, randomised: bool) -> None:
    random = Random(seed)
    model = random_table(random, REWARDS, True)
    problem = vulcan.Problem(model, random_bound(random))
    policy = vulcan.solve(problem, vulcan.Lagrangian(randomised)).policy
    if policy is None:  # nothing is within the bound
        problem = vulcan.Problem(model, vulcan.Constant(1.0))
        policy = vulcan.solve(problem, vulcan.Lagrangian(randomised)).policy
    found = vulcan.verify(problem, policy)
    assert found.agrees
    assert found.reward == pytest.approx(float(found.certificate.reward), abs=1e-12)
    assert found.risk == pytest.approx(float(found.certificate.risk), abs=1e-12)


def test_large_policies_are_followed_by_arrays() -> None:
    problem = vulcan.Problem(Bandit(12), vulcan.Linear(0.002))
    policy = vulcan.solve(problem, vulcan.Lagrangian()).policy
    found = vulcan.verify(problem, policy)
    assert found.agrees
    assert found.states > 300


def test_incomplete_policies() -> None:
    problem = vulcan.Problem(Bandit(3), vulcan.Linear(0.002))
    whole = vulcan.solve(problem).policy
    assert isinstance(whole, vulcan.Policy)
    found = vulcan.verify(problem, edit(whole, first_child=UNPLANNED))
    assert found.agrees
    assert found.frontier == pytest.approx(0.4995)


def test_nothing_to_decide() -> None:
    problem = vulcan.Problem(Table({0: {}}, horizon=2), vulcan.Constant(0.0))
    policy = vulcan.solve(problem).policy
    found = vulcan.verify(problem, policy)
    assert (found.reward, found.risk, found.agrees) == (0, 0, True)


def test_known_numbers() -> None:
    """A chain that can be computed by hand: Storm's numbers are its own."""
    on = [Outcome(0.5, 1.0, 0), Outcome.failure(0.5, 3.0)]
    model = Table({0: {"on": on}}, horizon=3)
    model.discount = 0.5
    problem = vulcan.Problem(model, vulcan.Constant(1.0))
    policy = vulcan.solve(problem).policy
    found = vulcan.verify(problem, policy)
    assert found.reward == pytest.approx(2 + 0.5 * 0.5 * 2 + 0.25 * 0.25 * 2)
    assert found.risk == pytest.approx(0.875)
    assert found.states == 1 + 3 + 3


@pytest.mark.parametrize("name", ["reward", "risk", "frontier"])
def test_disagreement(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    problem = vulcan.Problem(Bandit(3), vulcan.Linear(0.002))
    policy = vulcan.solve(problem).policy
    certificate = vulcan.certify(problem, policy)
    for size, agrees in ((1e-10, True), (1e-8, False)):
        wrong = replace(certificate, **{name: getattr(certificate, name) + size})
        monkeypatch.setattr(verification, "certify", lambda *_, wrong=wrong: wrong)
        found = vulcan.verify(problem, policy)
        assert found.agrees is agrees
        assert found.difference == pytest.approx(size / max(1, getattr(found, name)), rel=1e-3)


def test_a_policy_of_another_model() -> None:
    policy = vulcan.solve(vulcan.Problem(Bandit(3), vulcan.Linear(0.002))).policy
    with pytest.raises(vulcan.errors.MismatchError):
        vulcan.verify(vulcan.Problem(Bandit(4), vulcan.Linear(0.002)), policy)


def test_the_chain_is_that_of_the_policy(stormpy: Any) -> None:
    problem = vulcan.Problem(Bandit(4), vulcan.Linear(0.002))
    policy = vulcan.solve(problem).policy
    found = vulcan.verify(problem, policy)
    assert found.states == len(policy) + 4
    assert found.transitions <= len(policy.label) + 2 * len(policy) + 4
    assert np.isfinite(found.difference)


@pytest.mark.parametrize("seed", range(12))
def test_costs_events_and_risk_ahead(seed: int) -> None:
    limits = ["fuel <= 9", "dose <= 9", "risk(late) <= 1", "risk(wet) <= 1", "risk ahead <= 1"]
    problem = vulcan.Problem(draw_problem(seed).model, 1.0, constraints=limits)
    policy = vulcan.solve(problem, vulcan.Automatic(randomised=seed % 2 == 0)).policy
    found = vulcan.verify(problem, policy)
    assert found.agrees
    assert found.constraints == pytest.approx(
        [float(limited.value) for limited in found.certificate.constraints], abs=1e-12
    )
    assert not replace(found, constraints=(*found.constraints[:-1], 2.0)).agrees
