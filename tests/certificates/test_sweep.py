"""Certificates of large policies, level by level at once: the same as the plain ones."""

from __future__ import annotations

import gc
import weakref
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.tables import Table, bounds, tables
from vulcan import Outcome
from vulcan.certificates import certificate, sweep
from vulcan.domains import Bandit, Grid
from vulcan.model import careful
from vulcan.model.reader import ModelReader
from vulcan.policies.policy import Policy

PLAIN, SWEPT = 1 << 60, 0
NUMBERS = ("reward", "risk", "allowed", "frontier", "margin")


def certify_both(problem: vulcan.Problem, policy: vulcan.AnyPolicy) -> list[vulcan.Certificate]:
    """Return the certificate in plain Python and by arrays."""
    with pytest.MonkeyPatch.context() as patch:
        found = []
        for large in (PLAIN, SWEPT):
            patch.setattr(certificate, "LARGE", large)
            found.append(vulcan.certify(problem, policy))
    return found


def expect_the_same(problem: vulcan.Problem, policy: vulcan.AnyPolicy) -> None:
    plain, swept = certify_both(problem, policy)
    for name in NUMBERS:
        assert getattr(swept, name) == pytest.approx(getattr(plain, name), rel=1e-6, abs=1e-12)
    assert (swept.complete, swept.evaluations) == (plain.complete, plain.evaluations)


@given(tables(), bounds())
@settings(max_examples=40, deadline=None)
def test_random_policies(model: Table, bound: vulcan.RiskBound) -> None:
    problem = vulcan.Problem(model, bound)
    for solver in (vulcan.Lagrangian(), vulcan.Lagrangian(randomised=True), vulcan.Pareto()):
        result = vulcan.solve(problem, solver)
        if result.policy is not None:
            expect_the_same(problem, result.policy)


@pytest.mark.parametrize("solver", [vulcan.Lagrangian(), vulcan.Lagrangian(randomised=True)])
def test_large_policies_are_swept(solver: vulcan.Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = vulcan.Problem(Grid(horizon=100), vulcan.Constant(0.05))
    result = vulcan.solve(problem, solver)
    assert result.policy is not None
    assert len(result.policy) > certificate.LARGE
    expect_the_same(problem, result.policy)
    # Nothing is left to the plain walk.
    monkeypatch.setattr(certificate, "PolicyWalk", None)
    assert vulcan.certify(problem, result.policy).safe


def test_members_that_meet_the_same_states_of_a_model_that_never_merges() -> None:
    problem = vulcan.Problem(Bandit(4, merges=False), vulcan.Linear(0.002))
    result = vulcan.solve(problem, vulcan.Lagrangian(randomised=True))
    assert result.policy is not None
    assert len(result.policy.members) == 2
    plain, swept = certify_both(problem, result.policy)
    assert swept.reward == pytest.approx(plain.reward, abs=1e-12)
    assert swept.risk == pytest.approx(plain.risk, abs=1e-12)
    assert swept.evaluations < plain.evaluations  # what both members take is asked once


def test_an_incomplete_policy() -> None:
    problem = vulcan.Problem(Bandit(6), vulcan.Linear(0.002))
    result = vulcan.solve(problem, vulcan.LocalVulcan(), samples=300, complete=False)
    assert result.policy is not None
    assert not result.policy.complete
    expect_the_same(problem, result.policy)


def test_a_model_that_changed_is_refused_in_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(later: float, reached: int = 2) -> Table:
        start = [Outcome(1.0, 1.0, 1)]
        table = {
            0: {"a": start},
            1: {"a": [Outcome(1 - later, 1.0, reached), Outcome.failure(later)]},
        }
        return Table({**table, 2: {"a": [Outcome(1.0, 0.0, 0)]}}, horizon=3)

    policy = vulcan.solve(vulcan.Problem(make(0.1), 0.5), vulcan.Lagrangian()).policy
    assert policy is not None
    for model in (make(0.2), make(0.1, reached=3)):
        messages = []
        for large in (PLAIN, SWEPT):
            monkeypatch.setattr(certificate, "LARGE", large)
            with pytest.raises(vulcan.MismatchError) as caught:
                vulcan.certify(vulcan.Problem(model, 0.5), policy)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


def test_decisions_need_not_be_numbered_level_by_level() -> None:
    start = {"a": [Outcome(0.5, 1.0, 1), Outcome(0.5, 0.0, 2)]}
    table = {0: start, 1: {"a": [Outcome(1.0, 2.0, 3)]}, 2: {"a": [Outcome(1.0, 3.0, 4)]}}
    last = {k: {"a": [Outcome(1.0, 1.0, 9)]} for k in (3, 4)}
    problem = vulcan.Problem(Table({**table, **last}, horizon=3), 0.0)
    policy = vulcan.solve(problem, vulcan.Lagrangian()).policy
    assert isinstance(policy, Policy)
    assert policy.child.tolist() == [1, 2, 3, 4, -1, -1]
    order = [0, 1, 3, 2, 4]  # depth first
    numbers = np.argsort(order).astype(np.int32)
    by_node = [policy.outcomes(node) for node in order]
    rows = np.concatenate([np.array(span) for span in by_node])
    child = np.array([c if c < 0 else numbers[c] for c in policy.child[rows]], np.int32)
    other = Policy(
        policy.about,
        policy.labels,
        policy.action[order],
        np.concatenate(([0], np.cumsum([len(span) for span in by_node]))),
        policy.label[rows],
        policy.probability[rows],
        policy.reward[rows],
        child,
    )
    assert sweep.sweep_policy([other], ModelReader(problem.model), lambda share: None) is not None
    expect_the_same(problem, other)


class Day:
    """A state that knows how many of them are alive."""

    alive: ClassVar[weakref.WeakSet[Day]] = weakref.WeakSet()
    most = 0

    def __init__(self, number: int) -> None:
        self.number = number
        Day.alive.add(self)
        Day.most = max(Day.most, len(Day.alive))


class Days:
    """A year whose days are all different, three of which may follow each."""

    horizon = 7
    merges = False

    def initial_state(self) -> Day:
        return Day(0)

    def actions(self, state: Day) -> list[str]:
        return ["live"]

    def outcomes(self, state: Day, action: str) -> list[Outcome]:
        days = (Outcome(0.25, 1.0, Day(3 * state.number + k), label=str(k)) for k in range(3))
        return [*days, Outcome.failure(0.25)]


def test_states_that_nobody_comes_to_again_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = vulcan.Problem(Days(), vulcan.Constant(1.0))
    policy = vulcan.solve(problem, vulcan.LocalVulcan(), samples=10_000).policy
    assert policy is not None
    assert len(policy) == sum(3**level for level in range(7))
    monkeypatch.setattr(certificate, "LARGE", SWEPT)
    monkeypatch.setattr(careful, "SAMPLED_STATES", 1)  # of which more are kept, to look twice
    gc.collect()
    before, Day.most = len(Day.alive), 0
    vulcan.certify(problem, policy)
    # A level of 3^6 = 729 states with the 2,187 after it, and not the 364 before.
    assert 2_187 < Day.most - before < 729 + 2_187 + 100


def test_watching_a_certificate_goes_from_the_first_level_to_the_last() -> None:
    problem = vulcan.Problem(Grid(horizon=60), vulcan.Constant(0.05))
    policy = vulcan.solve(problem, vulcan.Lagrangian()).policy
    assert policy is not None
    for large in (PLAIN, SWEPT):
        shares: list[float] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(certificate, "LARGE", large)
            vulcan.certify(problem, policy, watch=shares.append)
        assert shares == sorted(shares)
        assert shares[-1] == 1.0
        assert len(shares) == 60


def test_the_numbers_of_a_certificate_are_all_compared() -> None:
    errors = {f"{name}_error" for name in ("reward", "risk", "allowed", "frontier")}
    others = {"complete", "exact", "refined", "decided", "evaluations"}
    assert set(NUMBERS) | errors | others == set(vulcan.Certificate.__dataclass_fields__)
