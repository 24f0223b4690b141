"""Risks of collision."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.helpers.missions import BLOCKED, MISSIONS
from vulcan.domains.exploration.collision import Obstacle, Vehicle
from vulcan.domains.exploration.history import History
from vulcan.domains.exploration.model import Exploration


@pytest.mark.parametrize("mission", MISSIONS)
def test_risks_agree_with_direct_formulas(mission: Exploration) -> None:
    stats, spatial = pytest.importorskip("scipy.stats"), pytest.importorskip("scipy.spatial")
    rng = np.random.default_rng(0)
    for _ in range(300):
        cell = (int(rng.integers(mission.map.columns)), int(rng.integers(mission.map.rows)))
        step = int(rng.integers(1, 10))
        covariance, growth = (
            np.array(c) if isinstance(c, tuple) else c * np.eye(2)
            for c in (mission.vehicle.covariance, mission.vehicle.growth)
        )
        spread = covariance + step * growth
        total = 0.0
        for obstacle in mission.map.obstacles:
            planes = spatial.ConvexHull(np.array(obstacle.vertices)).equations
            deviations = np.sqrt(np.einsum("ij,jk,ik->i", planes[:, :2], spread, planes[:, :2]))
            distances = planes[:, :2] @ mission.map.locate(cell) + planes[:, 2]
            total += stats.norm.sf(distances / deviations).min()
        assert mission.risk(cell, step) == pytest.approx(min(1.0, total), abs=1e-9, rel=1e-9)


def test_risk_is_at_least_the_probability_of_being_inside() -> None:
    stats = pytest.importorskip("scipy.stats")
    obstacle, spread = Obstacle.rectangle(0.0, 1.0, 0.0, 2.0), ((0.09, 0.0), (0.0, 0.04))
    for x, y in np.random.default_rng(1).uniform(-1, 3, (100, 2)).tolist():
        across = stats.norm.cdf([0.0, 1.0], x, 0.3)
        along = stats.norm.cdf([0.0, 2.0], y, 0.2)
        inside = (across[1] - across[0]) * (along[1] - along[0])
        assert inside <= obstacle.risk((x, y), spread) + 1e-15


def test_risk_of_a_vehicle_that_knows_its_place() -> None:
    mission = Exploration(map=BLOCKED, vehicle=Vehicle(0, 0))
    assert mission.risk((4, 4), 1) == 1
    assert mission.risk((3, 4), 1) == 0
    outcomes = mission.outcomes(mission.initial_state(), "NE")
    assert [(o.probability, o.reward, o.fails) for o in outcomes] == [(1.0, 0.0, True)]


def test_risk_grows_with_time() -> None:
    mission = Exploration(map="wide")
    risks = [mission.risk((5, 5), step) for step in range(1, 10)]
    assert risks == sorted(risks)
    assert risks[2] == pytest.approx(2 * 0.5 * math.erfc(0.16 / math.sqrt(0.0053) / math.sqrt(2)))
    assert mission.risk_to_go_bound(History(((2, 4), (3, 4), (4, 5)), (1, 1)), "E", 2) == risks[2]


def test_corners_may_go_round_either_way() -> None:
    corners = [(0, 0), (2, 0), (3, 2), (1, 3)]
    one, other = Obstacle(corners), Obstacle(corners[::-1])
    spread = ((0.1, 0.0), (0.0, 0.2))
    assert one.risk((1.2, -0.3), spread) == pytest.approx(other.risk((1.2, -0.3), spread))
    assert all(shape.contains((1.5, 1.0)) for shape in (one, other))
    assert not any(shape.contains((2.5, 0.2)) for shape in (one, other))
