"""Parameters of missions, maps, fields and vehicles that are not allowed."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.helpers.missions import BLOCKED
from tests.oracles.counting import count_histories
from vulcan.domains.exploration.collision import Obstacle, Vehicle
from vulcan.domains.exploration.field import Field
from vulcan.domains.exploration.maps import Map
from vulcan.domains.exploration.model import Exploration
from vulcan.errors import OptionError


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Exploration(0), "horizon must be a whole number from 1 to 200, not 0"),
        (lambda: Exploration(horizon=2.5), "horizon must be a whole number"),
        (lambda: Exploration(degree=True), "degree must be a whole number from 1 to 32"),
        (lambda: Exploration(discount=1.5), "discount must be a number from 0 to 1, not 1.5"),
        (lambda: Exploration(discount=-1), "discount must be a finite number of at least 0"),
        (lambda: Exploration(map="wid"), "'narrow' or 'wide', not 'wid'; did you mean 'wide'?"),
        (lambda: Exploration(map=7), "map must be a Map, or 'narrow' or 'wide', not 7"),
        (lambda: Exploration(field=1), "field must be a Field, not 1"),
        (lambda: Exploration(vehicle=None), "vehicle must be a Vehicle, not None"),
        (lambda: Exploration(first_sample=math.nan), "first_sample must be a finite number"),
        (lambda: Exploration(collision_reward="0"), "collision_reward must be a finite number"),
        (lambda: Field(variance=0), "variance must be a finite number above 0, not 0"),
        (lambda: Field(length=-1), "length must be a finite number above 0, not -1"),
        (lambda: Field(slope=1), "slope must be a pair of numbers, not 1"),
        (lambda: Field(slope=(1, "2")), "slope, second must be a finite number, not '2'"),
        (lambda: Vehicle(-1), "covariance must be a finite number of at least 0, not -1"),
        (lambda: Vehicle(growth=[1]), "growth must be a number or two rows of two"),
        (lambda: Vehicle(((1, 2), (2, 1))), "without negative eigenvalues"),
        (lambda: Vehicle(((1, 0), (1, 1))), "symmetric"),
        (lambda: Map(0, 3, (0, 0)), "columns must be a whole number from 1 to 10,000, not 0"),
        (lambda: Map(3, 3, (0, 3)), "start, second must be a whole number from 0 to 2, not 3"),
        (lambda: Map(3, 3, 1), "start must be a pair of numbers, not 1"),
        (lambda: Map(3, 3, (0, 0.5)), "start, second must be a whole number from 0 to 2"),
        (lambda: Map(3, 3, (0, 0), spacing=0), "spacing must be a finite number above 0, not 0"),
        (lambda: Map(3, 3, (0, 0), [1]), "obstacles must be a list of Obstacle"),
        (
            lambda: replace(BLOCKED, start=(5, 5)),
            r"start must be outside .* \(5, 5\) is in number 1",
        ),
        (lambda: Obstacle([(0, 0), (1, 1)]), "at least three points"),
        (lambda: Obstacle("abc"), "at least three points"),
        (lambda: Obstacle([(0, 0), (1, 0), (2, 0)]), "corners of a convex polygon"),
        (lambda: Obstacle([(0, 0), (2, 0), (1, 0.5), (0, 2)]), "corners of a convex polygon"),
        (lambda: Obstacle([(0, 3), (2, -3), (-3, 1), (3, 1), (-2, -3)]), "convex polygon"),
        (lambda: Obstacle.rectangle(1, 0, 0, 1), "left < right and bottom < top"),
        (lambda: Obstacle.rectangle(0, math.inf, 0, 1), "right must be a finite number, not inf"),
        (lambda: count_histories(Exploration(12)), "at most 11 moves, not 12"),
    ],
)
def test_what_is_not_allowed(make, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make()
