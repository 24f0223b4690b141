"""Certificates of policies for models with hidden states, from these states alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

import vulcan
from tests.helpers.plans import edit
from tests.oracles.hidden import follow, start
from vulcan import BeliefModel, Transition
from vulcan.domains import Tiger
from vulcan.errors import MismatchError, OptionError
from vulcan.policy.policy import RandomisedPolicy


@dataclass(frozen=True)
class Angrier(Tiger):
    """A tiger whose failure probabilities are multiplied by a factor."""

    factor: float = 1.0

    def transitions(self, state: str, action: str) -> list[Transition]:
        """Return the transitions with another share of failures."""
        moves = super().transitions(state, action)
        risk = sum(move.probability for move in moves if move.fails)
        scaled = min(1.0, self.factor * risk)
        rest = (1 - scaled) / (1 - risk)
        return [
            Transition(scaled if m.fails else m.probability * rest, m.next_state, m.reward, m.fails)
            for m in moves
        ]

    @property
    def fingerprint(self) -> str:
        """The same for all factors."""
        return "Tiger"


@pytest.fixture(scope="module")
def result() -> Any:
    return vulcan.solve(vulcan.Problem(BeliefModel(Tiger(5)), 0.1))


def test_margin_scales_the_hidden_failures(result: Any) -> None:
    margin = result.certificate.margin
    assert 1 < margin < 2
    for factor, safe in ((margin, True), (1.001 * margin, False)):
        ways, risk = start(Angrier(5, factor=factor)), 0.0
        risk = float(follow(Angrier(5, factor=factor), result.policy, 0, ways)[1])
        assert (risk <= 0.1 + 1e-9) == safe


@pytest.mark.parametrize("other", [Tiger(5, accuracy=0.86), Tiger(5, claws=0.4), Tiger(6)])
def test_other_model_is_refused(result: Any, other: Tiger) -> None:
    with pytest.raises(MismatchError):
        vulcan.certify(vulcan.Problem(BeliefModel(other), 0.1), result.policy)


def test_other_record_is_refused(result: Any) -> None:
    policy, problem = result.policy, result.problem
    chance = policy.probability.copy()
    rows = policy.outcomes(1)
    assert len(rows) > 1
    chance[rows.start] += 1e-4
    chance[rows.start + 1] -= 1e-4
    with pytest.raises(MismatchError, match="probability was"):
        vulcan.certify(problem, edit(policy, probability=chance))
    reward = policy.reward.copy()
    reward[rows.start] += 0.1
    with pytest.raises(MismatchError, match="mean reward was"):
        vulcan.certify(problem, edit(policy, reward=reward))


def test_mixture_is_the_mean_of_its_members() -> None:
    model = Tiger(4)
    problem = vulcan.Problem(BeliefModel(model), 1.0)
    members = [vulcan.solve(vulcan.Problem(problem.model, b)).policy for b in (1.0, 0.01)]
    mixed = RandomisedPolicy(members, [0.25, 0.75])
    found = vulcan.certify(problem, mixed, exact=True)
    worths = [follow(model, member, 0, start(model)) for member in members]
    mean = [worths[0][k] / 4 + 3 * worths[1][k] / 4 for k in (0, 1)]
    assert [found.reward, found.risk] == mean
    assert worths[0] != worths[1]


def test_frontier_of_an_incomplete_policy_is_counted(result: Any) -> None:
    child = result.policy.child.copy()
    child[result.policy.outcomes(0).start] = -3
    cut = edit(result.policy, child=child)
    found = vulcan.certify(result.problem, cut, exact=True)
    assert not found.complete
    assert found.frontier == Fraction(1, 2) * (Fraction(0.85) + Fraction(1 - 0.85))


def test_risk_ahead_is_refused(result: Any) -> None:
    problem = vulcan.Problem(result.problem.model, 0.1, constraints=[vulcan.RiskAhead(0.5)])
    with pytest.raises(OptionError, match="can't be certified for hidden states"):
        vulcan.certify(problem, result.policy)


def test_storm_agrees(result: Any) -> None:
    assert vulcan.verify(result.problem, result.policy).agrees
