"""The cautious policy: worth what it says, and there when nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings

import vulcan
from tests.helpers.tables import Table, tables
from tests.helpers.unrolled import allow_questions
from vulcan import Outcome
from vulcan.graphs.array_graph import open_graph
from vulcan.model.reader import ModelReader
from vulcan.solvers import automatic
from vulcan.solvers.base import describe_origin
from vulcan.solvers.finding import Finding, Statistics
from vulcan.solvers.layered.simple import find_cautious

FREE = vulcan.Constant(1.0)


@given(tables())
@settings(max_examples=60, deadline=None)
def test_it_is_worth_what_its_certificate_says(model: Table) -> None:
    problem, reader = vulcan.Problem(model, FREE), ModelReader(model)
    graph = open_graph(reader)
    corner = find_cautious(graph, lambda: True)
    assert corner is not None
    rows, children, _ = corner.plan.decide()
    assume(len(rows))
    policy = graph.policy(rows, children, describe_origin(problem, reader, None))
    certificate = vulcan.certify(problem, policy)
    assert certificate.complete
    assert float(certificate.reward) == pytest.approx(corner.reward, abs=1e-12)
    assert float(certificate.risk) == pytest.approx(corner.risk, abs=1e-12)


def make_ridge(length: int) -> Table:
    """Return a walk along a ridge, where haste fails, and going down pays at once."""
    haste = [Outcome(0.9, 1.0, 0), Outcome.failure(0.1)]
    table = {
        k: {
            "haste": [Outcome(0.9, 1.0, k + 1), Outcome.failure(0.1)],
            "care": [Outcome(0.5, 0.1, k + 1), Outcome(0.5, 0.1, k)],
        }
        for k in range(length)
    }
    return Table({**table, length: {"haste": haste}}, horizon=length)


def test_it_takes_the_least_risk_of_each_step_and_asks_only_where_it_comes() -> None:
    model = make_ridge(30)
    graph = open_graph(ModelReader(model))
    corner = find_cautious(graph, lambda: True)
    assert corner is not None
    assert corner.risk == 0.0
    assert corner.reward == pytest.approx(3.0)
    assert (30, "haste") not in model.calls


def test_it_stops_when_it_may_not_go_on() -> None:
    assert find_cautious(open_graph(ModelReader(make_ridge(5))), lambda: False) is None


def test_a_complete_policy_is_returned_whatever_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_questions(monkeypatch, -1)
    monkeypatch.setattr(automatic.Vulcan, "search", sample_nothing)
    result = vulcan.solve(vulcan.Problem(make_ridge(30), 0.01))
    assert result.safe
    assert result.certificate.reward == pytest.approx(3.0)
    assert "cautious" in result.explanation
    refused = vulcan.solve(vulcan.Problem(make_ridge(30), -0.5))
    assert refused.policy is None
    assert refused.status is vulcan.Status.DONE


def sample_nothing(*_: object) -> Finding:
    """Stand in for a search that finds nothing, and calls that a proof."""
    nothing = Statistics(0.0, 0, 0)
    return Finding(vulcan.Status.INFEASIBLE, "none admitted", None, 0.0, 0.0, (), nothing)
