"""Certificates: exact, complete, from the model alone, in words."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.builder import PolicyBuilder
from tests.helpers.plans import about, build
from tests.helpers.tables import Table, bounds, one_action, tables
from tests.oracles.brute_force import enumerate_plans
from vulcan import Outcome
from vulcan.certificate import certify as certificates
from vulcan.certificate.certify import describe_certificate, judge_certificate
from vulcan.domains import Bandit
from vulcan.numerics import END, FAILED, UNPLANNED


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_any_policy_is_certified_to_the_last_digit(table: Table, bound: vulcan.RiskBound) -> None:
    problem = vulcan.Problem(table, bound)
    plans = enumerate_plans(table)
    for plan in plans[:: max(1, len(plans) // 5)]:
        certificate = vulcan.certify(problem, build(table, plan))
        assert certificate.reward == pytest.approx(plan.reward, abs=1e-12)
        assert certificate.risk == pytest.approx(plan.risk, abs=1e-12)
        assert certificate.allowed == bound(certificate.reward)
        assert certificate.slack == certificate.allowed - certificate.risk
        assert certificate.passes == (certificate.risk <= certificate.allowed + 1e-12)
        assert certificate.complete
        assert certificate.frontier == 0
        exact = vulcan.certify(problem, build(table, plan), exact=True)
        assert isinstance(exact.risk, Fraction)
        assert float(exact.reward) == pytest.approx(certificate.reward, abs=1e-13)
        assert float(exact.risk) == pytest.approx(certificate.risk, abs=1e-13)


def test_exact_arithmetic_is_exact() -> None:
    third = Fraction(1, 3)
    table = Table(
        {0: {"go": [Outcome(1 - third, Fraction(1, 7), 0), Outcome.failure(third, 1)]}}, horizon=3
    )
    result = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0.8)))
    exact = vulcan.certify(result.problem, result.policy, exact=True)
    assert exact.risk == 1 - (1 - third) ** 3
    once = (1 - third) * Fraction(1, 7) + third
    assert exact.reward == once * (1 + (1 - third) + (1 - third) ** 2)
    assert exact.allowed == Fraction(0.8)
    assert exact.exact


def test_incomplete_policy_shows_its_frontier() -> None:
    table = Table(
        {
            0: {"go": [Outcome(0.5, 1.0, 1), Outcome(0.3, 2.0, 2), Outcome.failure(0.2)]},
            1: {"on": [Outcome(1.0, 5.0, 2)]},
        },
        horizon=2,
    )
    builder = PolicyBuilder(about(table))
    builder.add(
        "go", ["1", "2", "failure"], [0.5, 0.3, 0.2], [1.0, 2.0, 0.0], [UNPLANNED, END, FAILED]
    )
    certificate = vulcan.certify(vulcan.Problem(table, vulcan.Constant(0.5)), builder.build())
    assert not certificate.complete
    assert certificate.frontier == 0.5
    assert certificate.reward == pytest.approx(0.5 + 0.6)
    assert certificate.passes
    assert not certificate.safe


class Fickle(Table):
    """Answers differently once `changed` is set."""

    changed: Outcome | None = None

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        outcomes = super().outcomes(state, action)
        if self.changed is not None and state == 1:
            outcomes[0] = self.changed
        return outcomes


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (Outcome(1.0, 5.5, 2), r"'on' in state 1.*was \(1\.0, 5\.0, False\), is \(1\.0, 5\.5"),
        (Outcome.failure(1.0, 5.0, label="2"), r"is \(1\.0, 5\.0, True\)"),
        (Outcome(1.0, 5.0, 2, "b"), r"has the outcomes \['b'\]; the policy was made with \['2'\]"),
    ],
)
def test_changed_answer_is_an_error(changed: Outcome, message: str) -> None:
    table = Fickle(
        {0: {"go": [Outcome(1.0, 1.0, 1)]}, 1: {"on": [Outcome(1.0, 5.0, 2)]}}, horizon=2
    )
    problem = vulcan.Problem(table, vulcan.Constant(0.5))
    policy = vulcan.solve(problem).policy
    vulcan.certify(problem, policy)
    table.changed = changed
    with pytest.raises(vulcan.errors.MismatchError, match=message):
        vulcan.certify(problem, policy)


class Site:
    """A state that equals others whose strings differ."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Site)

    def __hash__(self) -> int:
        return 1

    def __str__(self) -> str:
        return self.name


def test_equal_states_may_have_different_texts() -> None:
    table = Table(
        {
            0: {"a": [Outcome(0.5, 1.0, Site("one")), Outcome(0.5, 2.0, 1)]},
            1: {"b": [Outcome(0.5, 1.0, Site("two")), Outcome(0.5, 3.0, 1)]},
        },
        horizon=2,
    )
    result = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0.0)))
    assert result.certificate.reward == pytest.approx(1.5 + 0.5 * 2)
    run = result.policy.start()
    run.observe("1")
    run.observe(0)
    assert run.finished


def test_numpy_numbers_are_exact_too() -> None:
    table = Table(
        {0: {"go": [Outcome(np.float32(0.75), np.int64(3), 0), Outcome.failure(np.float64(0.25))]}},
        horizon=30,
    )
    result = vulcan.solve(vulcan.Problem(table, vulcan.Constant(1.0)))
    exact = vulcan.certify(result.problem, result.policy, exact=True)
    assert exact.risk == 1 - Fraction(3, 4) ** 30


def test_large_rewards_that_cancel() -> None:
    table = Table(
        {
            0: {"go": [Outcome(0.3, 1e9 / 3, 1), Outcome(0.7, 7e8 / 9, 1)]},
            1: {"on": [Outcome(1.0, -1.544444e8, 2)]},
        },
        horizon=2,
    )
    assert vulcan.solve(vulcan.Problem(table, vulcan.Constant(0.0))).safe


def test_short_missions_under_a_long_horizon() -> None:
    table = Table({0: {"go": [Outcome(1.0, 1.0, 1)]}}, horizon=1_000_000)
    assert vulcan.solve(vulcan.Problem(table, vulcan.Constant(0.0))).certificate.reward == 1


def test_shared_nodes_are_certified_once_per_place() -> None:
    # One node per step of a two-state chain: histories can't be counted, places can.
    steps = 60
    half = [Outcome(0.5, 1.0, 0), Outcome(0.4, 0.0, 1), Outcome.failure(0.1)]
    table = Table({0: {"go": half}, 1: {"go": half}}, horizon=steps)
    builder = PolicyBuilder(about(table))
    for k in range(steps):
        child = k + 1 if k + 1 < steps else END
        builder.add(
            "go", ["0", "1", "failure"], [0.5, 0.4, 0.1], [1.0, 0.0, 0.0], [child, child, FAILED]
        )
    certificate = vulcan.certify(vulcan.Problem(table, vulcan.Constant(1.0)), builder.build())
    assert certificate.risk == pytest.approx(1 - 0.9**steps, abs=1e-12)
    assert certificate.reward == pytest.approx(0.5 * np.sum(0.9 ** np.arange(steps)), abs=1e-12)
    assert certificate.evaluations == 2


LINEAR = vulcan.Linear(0.002)


def test_problem_understands_numbers_and_strings() -> None:
    assert vulcan.Problem(Bandit(2), 0.01).risk_bound == vulcan.Constant(0.01)
    assert vulcan.Problem(Bandit(2), Fraction(1, 4)).risk_bound == vulcan.Constant(0.25)
    assert vulcan.Problem(Bandit(2), np.float32(0.5)).risk_bound == vulcan.Constant(0.5)
    assert vulcan.Problem(Bandit(2), "0.002*x").risk_bound == LINEAR
    assert vulcan.Problem(Bandit(2), LINEAR) == vulcan.Problem(Bandit(2), risk_bound="0.002*x")


@pytest.mark.parametrize("given", [None, True, [0.01], vulcan.Constant, float("nan"), "x**2 +"])
def test_problem_refuses_what_is_no_bound(given: object) -> None:
    with pytest.raises(vulcan.errors.BoundError):
        vulcan.Problem(Bandit(2), given)


def test_problem_refuses_what_is_no_model() -> None:
    with pytest.raises(vulcan.errors.ModelError, match="has no method initial_state"):
        vulcan.Problem(object(), LINEAR)


@pytest.mark.parametrize("search", [vulcan.solve, vulcan.compare, vulcan.certify])
def test_a_model_alone_is_no_problem(search: Callable[..., object]) -> None:
    with pytest.raises(vulcan.errors.OptionError, match=r"a Problem is missing.*this is Bandit"):
        search(Bandit(2), vulcan.Constant(0.1))


RISKY = one_action(Outcome(0.5, 1.0, 1), Outcome.failure(0.5))
CRASH = one_action(Outcome.failure(1.0, 1.0))
SAFE = one_action(Outcome(1.0, 1.0, 1))


@pytest.mark.parametrize(
    ("model", "level", "margin"),
    [
        (RISKY, 0.75, "still acceptable if every failure probability is up to 1.5 times as large"),
        (RISKY, 0.5, "not acceptable if failure probabilities grow at all"),
        (RISKY, 0.5002, "still acceptable if every failure probability grows by up to 0.04 %"),
        (RISKY, 0.25, "acceptable if every failure probability were 0.5 times as large"),
        (RISKY, -0.1, "not known to be acceptable for any smaller failure probabilities"),
        (RISKY, 1.0, "still acceptable if every risky action failed surely"),
        (CRASH, 1.0, "still acceptable if every risky action failed surely"),
        (CRASH, 0.25, "not known to be acceptable for any smaller failure probabilities"),
        (SAFE, 0.0, "no risk at all"),
    ],
)
def test_the_margin_in_words(model: object, level: float, margin: str) -> None:
    policy = vulcan.solve(vulcan.Problem(model, 1.0)).policy
    problem = vulcan.Problem(model, vulcan.Constant(level))
    rows = dict(describe_certificate(vulcan.certify(problem, policy), problem, len(policy)))
    assert rows["slack"].endswith(f"  {margin}")


def test_too_close_to_say_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "MOST_WAYS", 0)
    policy = vulcan.solve(vulcan.Problem(RISKY, 1.0)).policy
    problem = vulcan.Problem(RISKY, vulcan.Linear(1e9, 0.5 - 1e9 * 0.5))
    certificate = vulcan.certify(problem, policy)
    assert certificate.undecided
    assert not certificate.passes
    assert not certificate.safe
    assert "too close to say" in repr(certificate)
    assert judge_certificate(certificate)[0] == "✗ too close to say"
    rows = dict(describe_certificate(certificate, problem, len(policy)))
    assert rows["risk"].endswith("TOO CLOSE TO SAY")
    assert " ± " in rows["allowed risk"]
    assert rows["slack"].endswith("too close to decide in floating point")
    assert "too close to say" in certificate._repr_html_()


def test_errors_are_shown_where_they_matter() -> None:
    outcomes = [Outcome(0.5, 1e17 / 3, 1), Outcome(0.5, -1e17 / 3, 2)]
    model = one_action(*outcomes)
    result = vulcan.solve(vulcan.Problem(model, 0.0))
    rows = dict(describe_certificate(result.certificate, result.problem, 1))
    assert " ± " in rows["reward"]
    assert " ± " not in rows["risk"]
