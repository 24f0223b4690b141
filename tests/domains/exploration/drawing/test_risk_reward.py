"""The figure of risk against reward."""

import math

import numpy as np
import pytest

import vulcan
from tests.helpers.figures import draw
from tests.helpers.rule_policies import (
    BOUND,
)
from vulcan.domains.exploration import drawing
from vulcan.domains.exploration.drawing.risk_reward import MOST_POINTS, merge_points


def test_risk_against_reward(journeys, truth):
    bound = vulcan.parse(BOUND)
    rewards, risks, share = merge_points(journeys)
    assert len(share) <= MOST_POINTS
    points = {}
    for rewarded, risked, probability in truth.histories.values():
        earned = sum(0.9**k * reward for k, reward in enumerate(rewarded))
        place = (round(earned, 6), round(1 - math.prod(1 - risk for risk in risked), 6))
        points[place] = points.get(place, 0) + probability
    merged = zip(rewards.round(6).tolist(), risks.round(6).tolist(), share, strict=True)
    assert {(x, y): p for x, y, p in merged} == pytest.approx(points)
    ax = drawing.plot_risk_reward(journeys, bound)
    lines = {line.get_label(): line for line in ax.lines}
    assert lines["the policy"].get_xydata().tolist() == [[journeys.reward, journeys.risk]]
    curve = lines[f"Δ(x) = {BOUND}"].get_xydata()
    assert curve[:, 1] == pytest.approx([bound(x) for x in curve[:, 0]])
    (scatter,) = ax.collections
    assert scatter.get_offsets().tolist() == [list(p) for p in zip(rewards, risks, strict=True)]
    above = sum(
        probability for (reward, risk), probability in points.items() if risk > bound(reward)
    )
    title = ax.get_title(loc="left").split("\n")
    assert title[1] == f"{len(journeys)} safe outcomes; {100 * above:.2g} % take more than " + (
        "Δ(their reward)"
    )
    draw(ax)


def test_many_outcomes_are_counted_in_bins(journeys, monkeypatch):
    monkeypatch.setattr("vulcan.domains.exploration.drawing.risk_reward.MOST_POINTS", 10)
    ax = drawing.plot_risk_reward(journeys)
    (mesh,) = ax.collections
    assert mesh.get_array().sum() == pytest.approx(1 - journeys.risk)
    draw(ax)


def test_a_bound_without_a_value_everywhere(journeys):
    middle = float(np.median(journeys.earned))
    root = vulcan.Concave(lambda x: math.sqrt(x - middle))
    draw(drawing.plot_risk_reward(journeys, root))
