"""The models in `examples/` are models, and say what their pages say of them."""

from __future__ import annotations

from typing import Any

import pytest

from examples.drone import Drone
from examples.rover import Rover
from examples.treatment import Treatment
from vulcan.testing import check_model


@pytest.mark.parametrize(
    "model", [Drone(size=7, minutes=6), Rover(), Treatment()], ids=lambda model: repr(model)
)
def test_an_example_keeps_every_rule(model: Any) -> None:
    report = check_model(model)
    assert report.ok, report
    assert report.finished


def test_gusts_fell_the_drone_beside_towers_only() -> None:
    drone = Drone()
    start = drone.initial_state()._replace(windy=True)
    risks = {
        place: sum(
            outcome.probability
            for outcome in drone.outcomes(start._replace(row=place[0], column=place[1]), "hover")
            if outcome.fails
        )
        for place in drone.streets
    }
    threatened = {place for place, risk in risks.items() if risk > 0}
    beside = {
        (row, column) for row, column in drone.streets if (row, column + 1) not in drone.streets
    }
    assert threatened == beside
    assert len(beside) == 3 * 8 + drone.size  # towers are two rows high; the edge is one of them


def test_the_last_bar_of_the_battery_is_the_last() -> None:
    drone = Drone()
    start = drone.initial_state()._replace(row=4, column=3, bars=1)
    assert [o.probability for o in drone.outcomes(start, "hover") if o.fails] == [
        pytest.approx(0.06)
    ]


def test_a_town_needs_room() -> None:
    with pytest.raises(ValueError, match="at least 7 rows and columns, not 5"):
        Drone(size=5)


def test_a_treatment_has_indistinguishable_outcomes() -> None:
    treatment = Treatment()
    patient = treatment.initial_state()._replace(severity=0)
    outcomes = treatment.outcomes(patient, "tablets")
    states = [outcome.state for outcome in outcomes if not outcome.fails]
    assert len(set(states)) < len(states)
    assert all(outcome.label is None for outcome in outcomes)
