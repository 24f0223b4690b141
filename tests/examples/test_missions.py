"""Drawings of missions: journeys, figures, and the script that draws them."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

import vulcan
from examples.exploration import drawing
from tests.helpers.plans import edit
from tests.helpers.rule_policies import (
    BOUND,
    MISSION,
    find_journey,
    plan_by_rule,
)
from vulcan import Problem
from vulcan.domains import Bandit
from vulcan.errors import MismatchError, OptionError
from vulcan.policy import RandomisedPolicy


def test_journeys_are_all_safe_histories(journeys, truth):
    assert len(journeys) == len(truth.histories)
    for state, (rewards, risks, probability) in truth.histories.items():
        number = find_journey(journeys, state.path, rewards)
        journey = journeys.journey(number)
        assert journey.path == state.path
        assert journey.risks == journeys.journey(number).risks == risks
        assert journey.probability == pytest.approx(probability, rel=1e-12)
        new = [cell not in state.path[:k] for k, cell in enumerate(state.path)][1:]
        assert journey.sampled == tuple(new)
        earned = sum(0.9**k * reward for k, reward in enumerate(rewards))
        survival = math.prod(1 - risk for risk in risks)
        assert journey.earned[-1] == pytest.approx(earned, rel=1e-12)
        assert journeys.earned[number] == pytest.approx(earned, rel=1e-12)
        assert journey.risked[-1] == pytest.approx(1 - survival, abs=1e-15)
        assert journeys.risked[number] == pytest.approx(1 - survival, abs=1e-15)
        assert len(journey.earned) == len(journey.risked) == 5
        assert (journey.earned[0], journey.risked[0]) == (0, 0)


def test_the_sums_are_those_of_the_certificate(policy, journeys, truth):
    certificate = vulcan.certify(Problem(MISSION, vulcan.parse(BOUND)), policy)
    assert journeys.reward == pytest.approx(certificate.reward, rel=1e-12)
    assert journeys.reward == pytest.approx(truth.reward, rel=1e-12)
    assert journeys.risk == pytest.approx(certificate.risk, rel=1e-12)
    assert journeys.probability.sum() + journeys.risk == pytest.approx(1, rel=1e-12)
    survival = 1 - journeys.risked
    mean = journeys.probability / survival @ journeys.risked
    assert journeys.risk == pytest.approx(mean, rel=1e-9)
    assert journeys.planned.all()


def test_visits_are_counted_once_and_exactly(journeys, truth):
    visits = journeys.visits
    shown = {tuple(cell): k for k, cell in enumerate(visits.cells.tolist())}
    assert set(shown) == set(truth.visits) | set(truth.collisions)
    for cell, number in shown.items():
        assert visits.probability[number] == pytest.approx(truth.visits[cell], rel=1e-12)
        assert visits.collision[number] == pytest.approx(truth.collisions[cell], rel=1e-12)
    assert visits.probability[shown[0, 2]] == 1  # the start, although some come back to it
    assert visits.collision.sum() == pytest.approx(journeys.risk, rel=1e-12)


def test_a_randomised_policy_before_the_draw(policy):
    straight = plan_by_rule(MISSION, lambda state: "E")
    mixed = RandomisedPolicy([policy, straight], [0.25, 0.75])
    journeys = drawing.follow_policy(mixed, MISSION)
    certificate = vulcan.certify(Problem(MISSION, vulcan.parse(BOUND)), mixed)
    assert journeys.reward == pytest.approx(certificate.reward, rel=1e-12)
    assert journeys.risk == pytest.approx(certificate.risk, rel=1e-12)
    start = journeys.visits.cells.tolist().index([0, 2])
    assert journeys.visits.probability[start] == 1
    assert journeys.probability.sum() + journeys.risk == pytest.approx(1, rel=1e-12)


def test_an_incomplete_policy_has_shorter_journeys(policy):
    child = policy.child.copy()
    child[0] = -3
    journeys = drawing.follow_policy(edit(policy, child=child), MISSION)
    (number,) = np.flatnonzero(~journeys.planned)
    assert journeys.lengths[number] == 1
    assert journeys.cells[number].tolist() == [[0, 2], *[[1, 2]] * 4]
    assert journeys.probability.sum() + journeys.risk == pytest.approx(1, rel=1e-12)
    assert drawing.describe_outcome(journeys, number).words.endswith("; not planned further")
    drawing.plot_mission(journeys.journey(number))


def test_what_does_not_belong_together_is_refused(policy):
    for other in (replace(MISSION, horizon=5), replace(MISSION, first_sample=2.0)):
        with pytest.raises(MismatchError, match="this policy was made for"):
            drawing.follow_policy(policy, other)
    reward = policy.reward.copy()
    reward[-1] += 1e-9
    with pytest.raises(MismatchError, match=r"action '\w+' in state .* has another outcome"):
        drawing.follow_policy(edit(policy, reward=reward), MISSION)
    child = policy.child.copy()
    child[np.flatnonzero(child == -1)[-1]] = 1
    with pytest.raises(MismatchError, match="acts beyond the horizon"):
        drawing.follow_policy(edit(policy, child=child), MISSION)
    child = policy.child.copy()
    child[0] = -1
    with pytest.raises(MismatchError, match=r"ends in state .* which has actions"):
        drawing.follow_policy(edit(policy, child=child), MISSION)
    with pytest.raises(OptionError, match=r"has to be an Exploration .*, not Bandit\(horizon=9\)"):
        drawing.follow_policy(policy, Bandit())


def test_an_animation_has_a_frame_per_step(short, tmp_path):
    path = tmp_path / "mission.GIF"
    outcome = drawing.choose_outcomes(short)[0]
    drawing.animate_mission(outcome, path)
    assert path.stat().st_size < 300_000
    with Image.open(path) as animation:
        assert animation.format == "GIF"
        assert animation.n_frames == short.mission.horizon + 1
        frames = []
        for number in range(animation.n_frames):
            animation.seek(number)
            frames.append(np.asarray(animation.convert("RGB")).astype(int))
    for before, after in pairwise(frames):
        assert before.shape == after.shape
        # The map changes; what is left of it and the legend below do not.
        changed = np.abs(before - after).sum(axis=2) > 60
        assert changed.any()
        height, width = changed.shape
        assert not changed[int(0.93 * height) :].any()
        assert not changed[:, : int(0.05 * width)].any()
