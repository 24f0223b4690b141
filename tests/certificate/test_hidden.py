"""Certificates of policies for models with hidden states, from these states alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import vulcan
import vulcan_check
from tests.helpers.builder import build_policy
from tests.helpers.plans import about, edit
from tests.oracles.hidden import RandomHidden, enumerate_ahead, find_ahead, follow, start
from vulcan import BeliefModel, Policy, Transition
from vulcan.domains import Tiger
from vulcan.errors import MismatchError
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


@pytest.mark.parametrize("seed", range(24))
def test_risk_ahead_is_that_of_the_worst_history(seed: int) -> None:
    hidden = RandomHidden(seed, 2 + (seed % 4 == 0), exact=seed % 3 > 0, states=2 + seed % 2)
    worths = enumerate_ahead(hidden, start(hidden), None, hidden.horizon)
    caps = sorted({worst for _, _, worst in worths})
    cap = float(sum(caps[len(caps) // 3 :][:2]) / 2) if len(caps) > 1 else 0.5
    if any(abs(float(worst) - cap) < 1e-9 for worst in caps):
        return
    best = max((float(g) for g, _, worst in worths if worst <= cap), default=None)
    problem = vulcan.Problem(BeliefModel(hidden), 1.0, constraints=[vulcan.RiskAhead(cap)])
    result = vulcan.solve(problem)
    if best is None:
        assert result.policy is None or not result.certificate.safe
        return
    assert result.certificate.safe
    assert float(result.certificate.reward) == pytest.approx(best, abs=1e-9)
    worst = find_ahead(hidden, result.policy, 0, start(hidden))[1]
    (exact,) = vulcan.certify(problem, result.policy, exact=True).constraints
    assert exact.value - exact.value_error <= worst <= exact.value
    (limited,) = result.certificate.constraints
    assert abs(Fraction(limited.value) - worst) <= Fraction(limited.value_error)
    assert limited.value_error < 1e-9


def test_one_decision_for_two_beliefs_is_judged_by_the_worse() -> None:
    model = BeliefModel(Tiger(2))
    root, decisions = model.initial_state(), []
    for action, child in (("listen", 1), ("open left", -1)):  # whatever was heard
        found = model.outcomes(root, action)
        labels = [outcome.label or "failure" for outcome in found]
        children = [-2 if outcome.fails else child for outcome in found]
        numbers = [(float(outcome.probability), float(outcome.reward)) for outcome in found]
        decisions.append((action, labels, *zip(*numbers, strict=True), children))
    policy = build_policy(about(model), decisions)
    worst = find_ahead(Tiger(2), policy, 0, start(Tiger(2)))[1]
    assert float(worst) == pytest.approx(0.85 * 0.5)
    problem = vulcan.Problem(model, 1.0, constraints=[vulcan.RiskAhead(0.3)])
    for exact in (False, True):
        (limited,) = vulcan.certify(problem, policy, exact=exact).constraints
        assert limited.value - limited.value_error <= worst <= limited.value
        assert not limited.passes


def test_risk_ahead_beside_an_event() -> None:
    hidden = RandomHidden(3, 2, events=True)
    limits = [vulcan.RiskAhead(0.9), vulcan.Risk(0.9, event="late")]
    problem = vulcan.Problem(BeliefModel(hidden), 1.0, constraints=limits)
    policy = vulcan.solve(problem).policy
    ahead, late = vulcan.certify(problem, policy, exact=True).constraints
    assert late.value == follow(hidden, policy, 0, start(hidden))[2] > 0
    assert ahead.value == find_ahead(hidden, policy, 0, start(hidden))[1] > 0
    assert vulcan.simulate(policy, episodes=2_000, seed=1).agrees


def check(policy: Any, path: Path, *limits: str) -> tuple[int, dict[str, Any]]:
    """Return the answer of `vulcan-check` to a file, and what it found."""
    policy.save(path)
    found: dict[str, Any] = {}
    return vulcan_check.judge(str(path), "1", found, limits)[1], found


@pytest.mark.parametrize("seed", range(12))
def test_vulcan_check_computes_on_hidden_states(seed: int, tmp_path: Path) -> None:
    hidden = RandomHidden(
        seed, 3, events=seed % 2 > 0, exact=seed % 3 > 0, discount=1 - seed % 4 / 8
    )
    limits = [vulcan.Risk(0.99, event="late")] if hidden.events else []
    problem = vulcan.Problem(BeliefModel(hidden), 1.0, constraints=limits)
    policy = vulcan.solve(problem).policy
    exact = vulcan.certify(problem, policy, exact=True)
    code, found = check(policy, tmp_path / "plan", *(["late <= 0.99"] if limits else []))
    assert code == vulcan_check.SAFE
    # Probabilities of the file are floats.
    assert float(found["reward"]) == pytest.approx(float(exact.reward), abs=1e-13)
    assert float(found["risk"]) == pytest.approx(float(exact.risk), abs=1e-15)
    if limits:
        late = float(exact.constraints[0].value)
        assert float(found["'late <= 0.99'"]) == pytest.approx(late, abs=1e-15)
    again = Policy.load(tmp_path / "plan")
    assert again.unfolded == policy.unfolded
    assert check(again, tmp_path / "copy")[1] == check(policy, tmp_path / "plan")[1]


def test_vulcan_check_of_a_mixture_is_the_mean(tmp_path: Path) -> None:
    problem = vulcan.Problem(BeliefModel(Tiger(4, accuracy=0.75)), 1.0)
    members = [vulcan.solve(vulcan.Problem(problem.model, b)).policy for b in (1.0, 0.02)]
    mixed = RandomisedPolicy([member.attach(None) for member in members], [0.25, 0.75])
    exact = vulcan.certify(problem, mixed, exact=True)
    found = check(mixed, tmp_path / "plan")[1]
    assert [found["reward"], found["risk"]] == [exact.reward, exact.risk]


def test_vulcan_check_finds_a_wrong_bayes_rule(result: Any, tmp_path: Path) -> None:
    policy = result.policy
    rows = next(r for r in map(policy.outcomes, range(len(policy))) if -2 in policy.child[list(r)])
    failing = next(row for row in rows if policy.child[row] == -2)
    chance = policy.probability.copy()
    chance[failing] -= 1e-3
    chance[next(row for row in rows if row != failing)] += 1e-3
    wrong = edit(policy, probability=chance)
    assert check(wrong, tmp_path / "plan")[0] == vulcan_check.SAFE  # without hidden states
    wrong.unfolded = policy.unfolded
    with pytest.raises(vulcan_check.NoAnswerError, match="hidden states tell another risk"):
        check(wrong, tmp_path / "plan")
    # The risk ahead of a history is a mean over hidden states that the file does not tell.
    assert check(policy, tmp_path / "plan", "risk ahead <= 1")[0] == vulcan_check.CANNOT_SAY


@pytest.mark.parametrize("constraints", [(), ("risk ahead <= 0.1",)])
def test_storm_agrees(constraints: Any) -> None:
    pytest.importorskip("stormpy")
    problem = vulcan.Problem(BeliefModel(Tiger(5)), 0.1, constraints=constraints)
    assert vulcan.verify(problem, vulcan.solve(problem).policy).agrees
