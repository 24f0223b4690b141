"""How many histories a mission has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.helpers.missions import BLOCKED
from tests.oracles.counting import count_histories
from tests.oracles.exploration import walk
from vulcan.domains.exploration.collision import Vehicle
from vulcan.domains.exploration.maps import Map
from vulcan.domains.exploration.model import Exploration


@pytest.mark.parametrize(
    "mission",
    [
        Exploration(3),
        Exploration(4, "wide", degree=2),
        Exploration(5, Map(2, 2, (0, 1)), degree=3),
        Exploration(5, replace(BLOCKED, rows=4), vehicle=Vehicle(0.01, 0.03), degree=1),
    ],
)
def test_histories_are_counted_right(mission: Exploration) -> None:
    assert count_histories(mission) == walk(mission, mission.initial_state(), 0)


@pytest.mark.slow
def test_default_map_has_more_than_ten_to_the_thirteen_histories() -> None:
    count = count_histories(Exploration())
    assert count == (341_602_505_089, 8_454_777_046_176, 1_608_565_487_447)
    assert count.total > count.finished + count.failed > 10**13


def test_no_map_has_as_many_safe_histories() -> None:
    boundless = Exploration(map=Map(19, 19, (9, 9)))
    assert count_histories(boundless).finished == 8_465_096_344_736 < 10**13
