"""Frontiers under further constraints, against enumeration of all policies."""

from __future__ import annotations

from itertools import pairwise

import matplotlib
import pytest

import vulcan
from tests.oracles.several import RandomModel, list_worths
from vulcan.constraints import Cost, Risk, RiskAhead
from vulcan.numerics import TOLERANCE
from vulcan.plotting import plot_frontier

matplotlib.use("Agg")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "limit",
    [Cost("fuel", 2), Cost("fuel", "0.5 + 0.2*x"), Risk(0.2, event="late"), RiskAhead(0.3)],
    ids=str,
)
def test_no_policy_within_the_constraint_is_above_the_limit(seed, limit):
    problem = vulcan.Problem(RandomModel(seed, horizon=2), constraints=[limit])
    frontier = vulcan.trace_frontier(problem, points=5)
    known = []
    for reward, charges, risk, ahead in list_worths(problem):
        value = ahead if isinstance(limit, RiskAhead) else charges[0]
        if value <= limit.bound(float(reward)) + TOLERANCE:
            known.append((float(risk), float(reward)))
    for place in [point.at for point in frontier] + [0.01 * k for k in range(60)]:
        best = max((reward for risk, reward in known if risk <= place), default=-float("inf"))
        assert frontier.find_limit(place) >= best - 1e-9
        assert frontier.find_reward(place) <= best + 1e-9
    for point in frontier:
        if point.safe:
            assert [c.quantity for c in point.certificate.constraints] == [limit.quantity]


def test_a_stricter_limit_never_earns_more_and_curves_are_drawn():
    model = RandomModel(3, horizon=3)
    frontiers = [
        vulcan.trace_frontier(
            vulcan.Problem(model, constraints=[Cost("fuel", most)]), levels=[0.0, 0.1, 0.3], gap=0
        )
        for most in (1, 2, 4)
    ]
    for strict, loose in pairwise(frontiers):
        for place in (0.0, 0.1, 0.3):
            assert strict.find_reward(place) <= loose.find_limit(place) + 1e-9
    ax = plot_frontier(frontiers)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["fuel <= 1.0", "fuel <= 2.0", "fuel <= 4.0", "no policy earns more"]
