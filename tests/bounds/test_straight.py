"""Constant, linear and piecewise linear bounds: points, exact values, tangents and multiples."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.risk_bounds import assert_above, rewards, straight
from vulcan import BoundError, Concave, PiecewiseLinear, parse

fractions = st.fractions(-1000, 1000)


@given(st.floats(0, 1).filter(bool), st.floats(1e-9, 1), st.integers(2, 6), st.integers(0, 4))
def test_a_convex_corner_is_refused(slope, growth, count, at):
    xs = [float(k) for k in range(count + 1)]
    bend = xs[1 + at % (count - 1)]
    with pytest.raises(BoundError, match="not concave"):
        PiecewiseLinear([(x, slope * x + growth * max(0.0, x - bend)) for x in xs])


@pytest.mark.parametrize("step", [0.1, 0.7, 1e-3, 1e5])
@pytest.mark.parametrize("risk", [0.1, 0.001, 1 / 3])
def test_points_on_a_line_pass_whatever_their_rounding(step, risk):
    points = [(k * step, k * risk) for k in range(50)]
    assert PiecewiseLinear(points)(25 * step) == pytest.approx(25 * risk)


@given(straight, fractions)
def test_exact_values_of_straight_bounds_are_rational(bound, reward):
    value = bound.exact(reward)
    assert type(value) is Fraction
    if isinstance(bound, PiecewiseLinear):
        points = [(Fraction(x), Fraction(y)) for x, y in bound.points]
        if reward >= points[-1][0]:
            assert value == points[-1][1]
        else:
            after = next(k for k, (x, _) in enumerate(points[1:], 1) if k and reward < x)
            (x0, y0), (x1, y1) = points[after - 1], points[after]
            assert (value - y0) * (x1 - x0) == (y1 - y0) * (reward - x0)
    else:
        assert value == Fraction(bound.slope) * reward + Fraction(bound.offset)
    size = 1 + abs(float(value)) + 100 * abs(float(reward))
    assert bound(float(reward)) == pytest.approx(float(value), abs=1e-14 * size)


def test_exact_values_meet_the_points():
    points = [(0, 0), (3, 1), (7, 1.1), (10.1, 1.1)]
    bound = PiecewiseLinear(points)
    assert [bound.exact(Fraction(x)) for x, _ in points] == [Fraction(y) for _, y in points]
    assert bound.exact(Fraction(1)) == Fraction(1, 3)
    assert bound.exact(Fraction(-3)) == -1


@given(straight, rewards, st.lists(rewards, max_size=10))
def test_tangents_of_straight_bounds(bound, reward, places):
    corners = [x for x, _ in bound.points] if isinstance(bound, PiecewiseLinear) else [0.0]
    for at in [reward, *corners]:
        tangent = bound.tangent(at)
        assert tangent(at) == bound(at)
        # Points that are concave up to rounding only: far away that is a slope's rounding.
        assert_above(tangent, bound, [*places, *corners, at - 1e-9, at + 1e-9], 1e-9)


@given(straight)
def test_straight_bounds_have_nothing_to_verify(bound):
    bound.verify([-1.0, 5.0])
    Concave(bound).verify([-1e3, 1e3])


factors = st.floats(1e-6, 1e6)


@given(straight, factors, rewards)
def test_a_scaled_straight_bound_is_straight_and_has_so_many_times_the_risk(bound, factor, reward):
    scaled = bound.scale(factor)
    assert type(scaled) is type(bound)
    assert parse(scaled.text) == scaled
    size = factor * (1 + abs(bound(reward)) + 100 * abs(reward))
    assert scaled(reward) == pytest.approx(factor * bound(reward), abs=1e-12 * size)
    slope = factor * bound.tangent(reward).slope
    assert scaled.tangent(reward).slope == pytest.approx(slope, rel=1e-9, abs=1e-9 * factor)


@given(st.integers(0, 20), straight, fractions)
def test_powers_of_two_scale_straight_bounds_without_rounding(power, bound, reward):
    assert bound.scale(2.0**power).exact(reward) == Fraction(2) ** power * bound.exact(reward)
    assert bound.scale(2.0**power).scale(2.0**-power) == bound
