"""The price of risk, from the dual or from neighbours."""

import pytest

import vulcan
from tests.helpers.unrolled import allow_questions
from vulcan import Lagrangian, Linear, Problem
from vulcan.domains import Bandit
from vulcan.planning.frontier import trace_frontier

SMALL = Bandit(horizon=4)


def bend(model, solver, place, step, **kind):
    """The frontier at three places close to each other."""
    (name,) = kind
    places = [place - step, place, place + step]
    return trace_frontier(model, solver=solver, **{name: places}).points


@pytest.mark.parametrize("horizon", [4, 6])
@pytest.mark.parametrize("level", [0.0004, 0.0011, 0.0017, 0.0023, 0.0031, 0.0037, 0.0045])
def test_the_price_is_the_slope_of_the_frontier_of_randomised_policies(horizon, level):
    step = 1e-6
    before, here, after = bend(Bandit(horizon), Lagrangian(), level, step, levels=None)
    slopes = [
        (here.upper_bound - before.upper_bound) / step,
        (after.upper_bound - here.upper_bound) / step,
    ]
    assert here.price_from == "dual"
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-4), "not at a corner"
    assert here.price == pytest.approx(slopes[0], rel=1e-4)


@pytest.mark.parametrize("scale", [0.3, 0.7, 0.9, 1.05])
@pytest.mark.parametrize("text", ["0.002*x", "0.01*(1-exp(-0.25*x))", "0.003*x - 0.001"])
def test_the_price_of_a_scaled_bound(scale, text):
    """The allowance grows by Δ(reward) per unit of the scale."""
    step = 1e-6
    base = vulcan.parse(text)
    problem = Problem(SMALL, base)
    before, here, after = bend(problem, Lagrangian(), scale, step, scales=None)
    slope = (after.upper_bound - before.upper_bound) / (2 * step) / base(here.upper_bound)
    assert here.price == pytest.approx(slope, rel=1e-4, abs=1e-9)


def test_without_a_dual_the_price_comes_from_the_neighbours(monkeypatch):
    allow_questions(monkeypatch, -1)
    levels = [0.0, 0.001, 0.0015, 0.003]
    frontier = trace_frontier(SMALL, solver=vulcan.ForwardSearch(), levels=levels)
    rewards = [point.reward for point in frontier]
    assert [point.price_from for point in frontier] == ["difference"] * 4
    assert [point.price for point in frontier] == pytest.approx(
        [
            (rewards[1] - rewards[0]) / 0.001,
            (rewards[2] - rewards[0]) / 0.0015,
            (rewards[3] - rewards[1]) / 0.002,
            (rewards[3] - rewards[2]) / 0.0015,
        ]
    )
    assert str(frontier).count("≈ ") == 4
    (alone,) = trace_frontier(SMALL, solver=vulcan.ForwardSearch(), levels=[0.001])
    assert alone.price is alone.price_from is None


def test_differences_of_scales_are_per_unit_of_allowed_risk(monkeypatch):
    allow_questions(monkeypatch, -1)
    base = Linear(0.002)
    frontier = trace_frontier(
        Problem(SMALL, base), solver=vulcan.ForwardSearch(), scales=[0.5, 0.9]
    )
    low, high = (point.reward for point in frontier)
    for point in frontier:
        expected = (high - low) / (0.4 * (base(low) + base(high)) / 2)
        assert point.price == pytest.approx(expected)
