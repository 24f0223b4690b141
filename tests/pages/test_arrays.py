"""The arrays of a page say what steps and certificates say, and nothing else."""

from __future__ import annotations

import base64
import json
import zlib
from itertools import pairwise

import numpy as np
import pytest

import vulcan
from examples.treatment import Treatment
from tests.helpers.wide_trees import make_wide_plan
from vulcan import BeliefModel
from vulcan.domains import Bandit, Machine
from vulcan.model.reader import ModelReader
from vulcan.numerics import END, FAILED, NONE
from vulcan.pages.arrays import DRAW, OMITTED, STEADY, collect_arrays, pack_arrays
from vulcan.policy.walk import find_decision_points, find_values


def collect(problem, policy, most=None):
    reader = ModelReader(problem.model)
    points = find_decision_points(policy, reader)
    return collect_arrays(points, reader, most), points


@pytest.fixture(scope="module")
def treatment():
    problem = vulcan.Problem(Treatment(weeks=6), 0.01)
    return problem, vulcan.solve(problem)


def test_places_are_those_of_the_decision_points(treatment):
    problem, result = treatment
    places, points = collect(problem, result.policy)
    values = find_values(points, ModelReader(problem.model))
    assert len(places) == places.total == len(points.rows)
    assert places.reach.tolist() == points.rows["reach"].tolist()
    assert places.risk.tolist() == values["risk_ahead"].tolist()
    assert places.reward.tolist() == values["reward_ahead"].tolist()
    assert places.text(places.state[0]) == "moderate, strain 0"


def test_the_start_has_what_the_certificate_says(treatment):
    problem, result = treatment
    places, _ = collect(problem, result.policy)
    assert places.reward[0] == pytest.approx(result.certificate.reward, rel=1e-12)
    assert places.risk[0] == pytest.approx(result.certificate.risk, rel=1e-12)
    assert (places.reach * places.fails).sum() == pytest.approx(result.certificate.risk, rel=1e-9)


def test_arrivals_lead_back_along_the_likeliest_history(treatment):
    problem, result = treatment
    places, points = collect(problem, result.policy)
    owner = np.repeat(np.arange(len(places)), np.diff(places.first))
    for number in range(len(places)):
        told = []
        here = number
        while places.arrival[here] != NONE:
            row = places.arrival[here]
            assert places.child[row] == here
            told.append((places.text(places.action[owner[row]]), places.text(places.label[row])))
            here = owner[row]
        assert told[::-1] == [points.last_step(point) for point in points.list_path(number)[1:]]


def test_what_is_expected_of_outcomes_adds_up():
    problem = vulcan.Problem(Bandit(horizon=3), "0.002*x")
    places, _ = collect(problem, vulcan.solve(problem).policy)
    for place in range(len(places)):
        rows = places.outcomes(place)
        mean = sum(places.chance[row] * places.expected(row, place) for row in rows)
        assert mean == pytest.approx(places.reward[place])


def test_of_a_large_plan_the_likeliest_places_are_kept_with_the_way_there():
    problem, policy = make_wide_plan(horizon=4)
    places, _ = collect(problem, policy, most=20)
    assert 15 <= len(places) <= 20
    assert places.total == len(policy) == 85
    assert (places.child == OMITTED).any()
    assert (places.arrival[1:] >= 0).all()
    left_out = np.sort(collect(problem, policy)[0].reach)[: 85 - len(places)]
    assert places.reach.min() >= left_out.max() * (1 - 1e-12)


def test_the_draw_of_a_randomised_policy_is_its_first_decision():
    problem = vulcan.Problem(Bandit(horizon=4), 0.004)
    result = vulcan.solve(problem, vulcan.Lagrangian(randomised=True))
    assert len(result.policy.members) == 2
    places, _ = collect(problem, result.policy)
    assert places.text(places.action[0]) == DRAW
    assert places.chance[:2].tolist() == list(result.policy.weights)
    assert places.reward[0] == pytest.approx(result.certificate.reward)
    assert places.risk[0] == pytest.approx(result.certificate.risk)
    assert places.weights[:2] == [1.0, 1.0]


def unpack(text):
    """Read what a browser reads, in plain Python."""
    content = zlib.decompress(base64.b64decode(text))
    size = int.from_bytes(content[:4], "little")
    offset, arrays = 4 + size, {}
    for section in json.loads(content[4:offset]):
        kind = {"real": "<f4", "whole": "<i4", "byte": "u1"}[section["kind"]]
        width = np.dtype(kind).itemsize
        planes = np.frombuffer(content, "u1", width * section["count"], offset)
        array = np.ascontiguousarray(planes.reshape(width, -1).T).view(kind).ravel()
        arrays[section["name"]] = np.cumsum(array) if section["steps"] else array
        offset += len(planes)
    assert offset == len(content)
    return arrays


def test_what_is_packed_is_what_was_there():
    problem, policy = make_wide_plan(horizon=3)
    places, _ = collect(problem, policy)
    arrays = unpack(pack_arrays(places))
    for name in ("depth", "action", "state", "label", *STEADY):
        assert arrays[name].tolist() == getattr(places, name).tolist()
    for name in ("reach", "fails", "risk", "reward", "chance", "pay"):
        assert arrays[name] == pytest.approx(getattr(places, name), rel=1e-6)
    letters = arrays["letters"].tobytes()
    spans = pairwise([0, *arrays["ends"]])
    assert [letters[begin:end].decode() for begin, end in spans] == places.texts
    assert np.stack((arrays["x"], arrays["y"]), axis=1).tolist() == places.position.tolist()
    assert set(arrays["child"][arrays["child"] < 0].tolist()) == {END, FAILED}


@pytest.mark.parametrize("randomised", [False, True])
def test_beliefs_have_a_bar_for_each_likely_hidden_state(randomised):
    problem = vulcan.Problem(BeliefModel(Machine(4, horizon=5)), 0.05)
    policy = vulcan.solve(
        problem, vulcan.planning.automatic.Automatic(randomised=randomised)
    ).policy
    places, points = collect(problem, policy)
    drawn = len(policy.members) > 1
    assert drawn == randomised
    bars = places.beliefs
    order = np.argsort(points.rows["level"], kind="stable")
    for place, number in enumerate(points.rows["state"][order].tolist(), start=drawn):
        known = points.states[number].probabilities
        at = slice(*bars["bars"][bars["belief"][place] :][:2])
        names = map(places.text, bars["hidden"][at])
        shown = dict(zip(names, bars["weight"][at].tolist(), strict=True))
        assert shown == {str(state): chance for state, chance in list(known.items())[:12]}
    assert not drawn or bars["belief"][0] == NONE


def test_a_model_without_hidden_states_has_no_beliefs(treatment):
    problem, result = treatment
    assert collect(problem, result.policy)[0].beliefs == {}
