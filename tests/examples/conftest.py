"""Journeys to draw, and no windows to draw them in."""

import pytest

from examples.exploration import drawing
from tests.helpers.figures import no_windows
from tests.helpers.rule_policies import (
    MISSION,
    cross_wall,
    enumerate_histories,
    go_east,
    plan_by_rule,
)
from vulcan.domains.exploration import Exploration

__all__ = ["journeys", "no_windows", "policy", "short", "truth"]


@pytest.fixture(scope="module")
def policy():
    return plan_by_rule(MISSION, cross_wall)


@pytest.fixture(scope="module")
def journeys(policy):
    return drawing.follow_policy(policy, MISSION)


@pytest.fixture(scope="module")
def truth():
    return enumerate_histories(MISSION, cross_wall)


@pytest.fixture(scope="module")
def short():
    """A mission of one move, which is drawn faster."""
    mission = Exploration(map="wide", horizon=1, degree=2)
    return drawing.follow_policy(plan_by_rule(mission, go_east), mission)
