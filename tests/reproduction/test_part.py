"""What all parts of the report share."""

from __future__ import annotations

import pytest

from reproduction.part import Part
from reproduction.parts.alpha import Alpha
from reproduction.parts.convergence import Convergence
from reproduction.parts.exploration import ExplorationMission
from reproduction.parts.heuristic_search import HeuristicSearch
from reproduction.parts.penalty import PenaltyExample
from reproduction.parts.planning_time import PlanningTime
from reproduction.parts.policy_space import PolicySpace
from reproduction.parts.slow_model import SlowModel
from tests.helpers.sections import check_drawn, check_section

ALL = [Alpha(), PlanningTime(), PenaltyExample(), PolicySpace()]


@pytest.mark.parametrize("part", ALL, ids=lambda part: part.name)
def test_a_section_of_nothing(part: Part) -> None:
    check_section(part.show([], quick=True))


PARTS = [Convergence(), HeuristicSearch(), SlowModel(), ExplorationMission()]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_section_without_records(part):
    section = part.show([], True)
    assert section.paper
    check_drawn(section)
