"""Rewards that are too large for the single precision of a tree of several prices."""

from __future__ import annotations

import pytest

import vulcan
from tests.helpers.tables import Table
from vulcan import Outcome, Status
from vulcan.solvers import automatic
from vulcan.solvers.tree.precision import LARGEST

HUGE = 1e100


def table(first: list[Outcome], second: list[Outcome]) -> Table:
    """Return a model of two steps with one action each, or none to choose."""
    return Table({0: {"go": first}, 1: {"go": second, "stay": [Outcome(1.0, 0.0, 2)]}}, 2)


EASY = [Outcome(0.5, 1.0, 1), Outcome(0.5, 0.0, 2)]
MODELS = {
    "at once": table([Outcome(0.5, HUGE, 1), Outcome(0.5, 0.0, 2)], EASY),
    "later": table([Outcome(1.0, 0.0, 1)], [Outcome(1.0, HUGE, 2)]),
    "failing": table([Outcome(1.0, 0.0, 1)], [Outcome.failure(1.0, HUGE)]),
    "lost": table([Outcome(1.0, -HUGE, 1)], EASY),
    # No sample meets it, and yet it is what is expected.
    "rarely": table(EASY, [Outcome(1e-12, HUGE, 2), Outcome(1 - 1e-12, 1.0, 3)]),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("bound", [vulcan.Constant(0.1), vulcan.parse("1 - exp(-x)")], ids=str)
def test_what_single_precision_does_not_hold_is_refused(
    model: Table, bound: vulcan.RiskBound
) -> None:
    problem = vulcan.Problem(model, bound)
    with pytest.raises(vulcan.OptionError, match=r"at most 1e\+22; this model has .* Pareto"):
        vulcan.solve(problem, vulcan.Vulcan(), samples=8)


def test_what_it_holds_is_searched() -> None:
    model = table([Outcome(0.5, LARGEST / 4, 1), Outcome(0.5, 0.0, 2)], [Outcome(1.0, 1e21, 2)])
    problem = vulcan.Problem(model, vulcan.Constant(0.0))
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=500)
    assert result.status is Status.SOLVED
    assert result.certificate.reward == LARGEST / 8 + 0.5e21


def test_automatic_finds_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = vulcan.Problem(MODELS["later"], vulcan.Constant(0.0))
    assert vulcan.solve(problem).certificate.reward == HUGE
    # The same if the problem is too large to be unrolled, and all that is left are samples.
    monkeypatch.setattr(automatic, "Growth", lambda graph, monitor: lambda reserve: False)
    result = vulcan.solve(problem)
    assert result.safe
    assert "cautious" in result.explanation
