"""Measured values take the place of nodes, and are what a Gaussian process is conditioned on."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.plain_models import PlainExploration
from vulcan.domains.exploration.evidence import MeasuredExploration
from vulcan.domains.exploration.history import History
from vulcan.domains.exploration.model import Exploration
from vulcan.model.reader import ModelReader
from vulcan.planning.rest import begin_at
from vulcan.testing import check_compiled

MISSION = Exploration(map="wide", horizon=5, first_sample=1.7)
PATH = ((2, 4), (3, 4), (2, 4), (3, 5))
STATE = History(PATH, (2, 0))  # the start is visited again, so that two samples were taken
MEASURED = (1.31, None, 1.9)


def condition(mission: Exploration, cells: list[tuple[int, int]], values: list[float]) -> float:
    """Return the mean of the field in the last cell, given the values in the others."""
    places = [mission.area.locate(cell) for cell in cells]
    kernel = np.array([[mission.field.kernel(a, b) for b in places] for a in places])
    means = np.array([mission.field.mean(place) for place in places])
    weights = np.linalg.solve(kernel[:-1, :-1], kernel[:-1, -1])
    return float(means[-1] + weights @ (np.array(values) - means[:-1]))


def test_what_comes_is_the_posterior_given_the_true_values() -> None:
    area = MISSION.area
    assert PATH[0] == area.start
    given = MISSION.given(STATE, MEASURED)
    outcomes = [o for o in given.outcomes(STATE, "E") if not o.fails]
    mean = sum(o.probability * o.reward for o in outcomes) / sum(o.probability for o in outcomes)
    cells = [PATH[0], PATH[1], PATH[3], (4, 5)]
    assert mean == pytest.approx(condition(given, cells, [1.7, 1.31, 1.9]), abs=1e-12)
    before = [o for o in MISSION.outcomes(STATE, "E") if not o.fails]
    assert [o.state for o in outcomes] == [o.state for o in before]
    assert [o.probability for o in outcomes] == [o.probability for o in before]
    assert [o.reward for o in outcomes] != [o.reward for o in before]


def test_a_sample_that_was_told_as_an_outcome_is_its_node() -> None:
    given = MISSION.given(STATE, (1.31, None, None))
    assert isinstance(given, MeasuredExploration)
    assert given.evidence[1] == MISSION.quadrature[0][STATE.nodes[1]]


def test_measured_nodes_change_nothing() -> None:
    state, measured = MISSION.initial_state(), []
    for move in ("E", "NE", "N"):
        outcome = MISSION.outcomes(state, move)[1]
        measured.append(outcome.reward)
        state = outcome.state
    assert MISSION.given(state, measured) == MISSION
    assert MISSION.given(state, [None] * 3) == MISSION
    other = MISSION.given(state, [measured[0] + 0.1, None, None])
    assert other != MISSION
    assert other.given(state, measured) == MISSION


def test_the_compiled_rest_of_a_measured_mission_answers_like_the_plain_one() -> None:
    given = MISSION.given(STATE, MEASURED)
    assert given.compiled is None
    report = check_compiled(begin_at(ModelReader(given), STATE, 3, 3))
    assert report.ok, report
    assert report.finished


def test_a_mission_that_may_answer_otherwise_takes_no_evidence() -> None:
    mission = PlainExploration(map="wide", horizon=5)
    assert mission.given(STATE, MEASURED) is mission
