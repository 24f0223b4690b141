"""Where a policy takes its risk, and whether it fails on purpose."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.convoys import CONVOY
from tests.helpers.tables import Table, bounds, one_action, tables
from vulcan import Outcome
from vulcan.certificates.explanation import SureFailure, describe_sure_failures
from vulcan.domains import Bandit


def explain(model: object, bound: object) -> vulcan.Explanation:
    problem = vulcan.Problem(model, bound)
    return vulcan.explain(problem, vulcan.solve(problem).policy)


@settings(max_examples=60)
@given(table=tables(), bound=bounds())
def test_the_parts_are_those_of_the_certificate(table: Table, bound: vulcan.RiskBound) -> None:
    problem = vulcan.Problem(table, bound)
    result = vulcan.solve(problem, vulcan.LinearProgram())  # whose policies are randomised
    if result.policy is None:
        return
    found = vulcan.explain(problem, result.policy)
    assert found.reward == pytest.approx(float(result.certificate.reward), abs=1e-9)
    assert found.risk == pytest.approx(float(result.certificate.risk), abs=1e-12)
    for parts in (found.choices, found.actions):
        assert math.fsum(part.risk for part in parts) == pytest.approx(found.risk, abs=1e-12)
        assert math.fsum(part.reward for part in parts) == pytest.approx(found.reward, abs=1e-9)
    assert 0 <= found.tempting + found.deliberate <= found.risk + 1e-12
    told = describe_sure_failures(result.policy)
    assert (told is not None) == bool(found.failures)


def test_failures_on_purpose_are_told_from_those_that_cannot_be_helped() -> None:
    found = explain(CONVOY, 1.0)
    assert [choice.action for choice in found.actions] == ["ditch", "ford"]
    assert found.failures == (
        SureFailure("ditch", "1", pytest.approx(0.7), "road", pytest.approx(0.02)),
        SureFailure("ditch", "2", pytest.approx(0.2), None, None),
    )
    assert found.deliberate == pytest.approx(0.7)
    # Fording costs something where it does not fail, and nothing where it does.
    assert found.tempting == pytest.approx(0.1)


def test_a_policy_that_means_well() -> None:
    found = explain(Bandit(4), "0.002*x")
    assert (found.deliberate, found.tempting, found.failures) == (0.0, 0.0, ())
    shares = [choice.risk for choice in found.choices]
    assert shares == sorted(shares, reverse=True)


def test_going_on_is_discounted() -> None:
    # Going on costs 1 now and brings 3 later, with a discount of 0.25 not enough for it.
    steps = {
        0: {"go": [Outcome(0.5, -1.0, 1), Outcome.failure(0.5)]},
        1: {"go on": [Outcome(1.0, 3.0, 2)]},
    }
    for discount, tempting in ((1.0, 0.0), (0.25, 0.5)):
        assert explain(Table(steps, horizon=2, discount=discount), 1.0).tempting == tempting


def test_another_model_is_refused() -> None:
    problem = vulcan.Problem(Bandit(3), 0.01)
    policy = vulcan.solve(problem).policy
    with pytest.raises(vulcan.MismatchError):
        vulcan.explain(vulcan.Problem(Bandit(4), 0.01), policy)
    with pytest.raises(vulcan.OptionError, match="a Problem is missing"):
        vulcan.explain(Bandit(3), policy)


def test_results_hint_at_sure_failures() -> None:
    rows = dict(vulcan.solve(vulcan.Problem(CONVOY, 1.0)).rows())
    assert rows["surely fails"].startswith("'ditch' in 2 of 3 decisions")
    safe = vulcan.solve(vulcan.Problem(one_action(Outcome(1.0, 1.0, 1)), 0.1))
    assert "surely fails" not in dict(safe.rows())
