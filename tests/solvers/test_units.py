"""The unit of rewards is the user's: no status, gap or policy depends on it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.tables import Table, tables
from vulcan import Outcome
from vulcan.domains import TreasureGrid
from vulcan.planning import Status

SOLVERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "default": (None, {}),
    "proof": (None, {"gap": 0.0}),
    "pareto": (vulcan.Pareto(), {}),
    "lagrangian": (vulcan.Lagrangian(), {}),
    "forward search": (vulcan.ForwardSearch(), {}),
    "vulcan": (vulcan.Vulcan(), {"samples": 200}),
}

HOPELESS = """
########
#.#T#.T#
#...#GT#
#TT...G#
#TG.TG##
#B#T#.##
#.#T#G##
########
""".strip()


def scale(table: Table, factor: float) -> Table:
    """Return the same model with all rewards multiplied."""

    def multiply(outcome: Outcome) -> Outcome:
        return Outcome(outcome.probability, factor * outcome.reward, outcome.state, outcome.label)

    scaled = {
        state: {action: list(map(multiply, outcomes)) for action, outcomes in actions.items()}
        for state, actions in table.table.items()
    }
    return replace(table, table=scaled, calls={})


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("factor", [2.0**-30, 2.0**30], ids=["small", "large"])
@settings(max_examples=25)
@given(
    table=tables(),
    offset=st.sampled_from([0.0, 0.01, 0.1]),
    slope=st.sampled_from([0.0, 0.01, 0.05]),
)
def test_scaled_rewards_change_nothing(name, factor, table, offset, slope):
    solver, options = SOLVERS[name]
    one = vulcan.solve(vulcan.Problem(table, vulcan.Linear(slope, offset)), solver, **options)
    bound = vulcan.Linear(slope / factor, offset)
    other = vulcan.solve(vulcan.Problem(scale(table, factor), bound), solver, **options)
    assert other.status is one.status
    if one.certificate is None:
        assert other.certificate is None
        return
    assert other.certificate.risk == one.certificate.risk
    assert float(other.certificate.reward) == factor * float(one.certificate.reward)
    assert (one.gap is None) == (other.gap is None)
    if one.gap is not None:
        assert other.gap == pytest.approx(one.gap, rel=1e-6, abs=1e-12)
    assert [m.action.tolist() for m in other.policy.members] == [
        m.action.tolist() for m in one.policy.members
    ]


@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1.0, 1e9])
def test_solved_means_within_the_gap(unit: float) -> None:
    table = {
        0: {
            "left": [Outcome(0.99, 0.75 * unit, 1), Outcome.failure(0.01)],
            "right": [Outcome(0.9, unit, 1), Outcome.failure(0.1)],
            "stay": [Outcome(1.0, 0.1 * unit, 1)],
        },
        1: {
            "on": [Outcome(0.5, unit, 2, "won"), Outcome(0.45, 0, 3, "lost"), Outcome.failure(0.05)]
        },
        2: {"on": [Outcome(0.9, 2 * unit, 3), Outcome.failure(0.1)], "end": [Outcome(1, 0, 3)]},
    }
    for bound in (0.05, 0.06, 0.09, 0.1, 0.12, 0.2):
        result = vulcan.solve(vulcan.Problem(Table(table, horizon=3), bound))
        assert result.status is Status.SOLVED
        assert result.gap <= 1e-4


def test_where_nothing_can_be_earned_only_roundings_are_left() -> None:
    result = vulcan.solve(vulcan.Problem(TreasureGrid(map=HOPELESS), 0.15))
    assert float(result.certificate.reward) == 0.0
    assert 0 <= result.upper_bound < 1e-9
    assert result.status is Status.SOLVED
    assert result.gap == result.absolute_gap == 0.0
    assert "up to roundings of" in result.explanation
    assert f"the best possible up to roundings of {result.upper_bound:.2g}" in str(result)
