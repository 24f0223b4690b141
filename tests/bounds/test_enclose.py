"""What a bound is between two rewards, its own roundings included."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vulcan
from vulcan.rounding import round_down, round_up

rewards = st.floats(-1e17, 1e17)
STRAIGHT = [
    vulcan.Constant(0.1),
    vulcan.Linear(1e9, -0.3),
    vulcan.PiecewiseLinear([(0.1, 0.0), (0.3, 0.01), (1e8, 0.07)]),
]


@pytest.mark.parametrize("bound", STRAIGHT, ids=str)
@given(first=rewards, second=rewards, share=st.floats(0, 1))
def test_straight_bounds_lie_within(bound, first, second, share):
    low, high = min(first, second), max(first, second)
    least, most = bound.enclose(low, high)
    between = Fraction(low) + Fraction(share) * (Fraction(high) - Fraction(low))
    assert least <= bound.exact(between) <= most
    assert math.nextafter(least, math.inf) >= bound.exact(Fraction(low))  # and no wider than that
    assert math.nextafter(most, -math.inf) <= bound.exact(Fraction(high))


@pytest.mark.parametrize("bound", STRAIGHT, ids=str)
def test_straight_bounds_of_fractions_are_exact(bound):
    reward = Fraction(1, 3)
    assert bound.enclose(reward, reward) == (bound.exact(reward), bound.exact(reward))
    assert bound.enclose(-math.inf, math.inf) == (-math.inf, math.inf)


def test_functions_are_trusted_up_to_their_roundings():
    bound = vulcan.parse("0.02 * (1 - exp(-x))")
    for low, high in ((0.5, 0.5), (0.5, 0.75), (Fraction(1, 3), Fraction(1, 3))):
        least, most = bound.enclose(low, high)
        assert bound(float(low)) - 3e-14 < least < bound(float(low))
        assert bound(float(high)) < most < bound(float(high)) + 3e-14
    root = vulcan.parse("sqrt(x)")
    assert root.enclose(0.0, 0.0) == pytest.approx((0.0, 0.0), abs=2e-14)
    assert root.enclose(-1e-20, 0.0)[0] == -math.inf  # it has no value there
    steep = vulcan.parse("min(1e9*x - 1e9, 0.1 + 0*x**2)")
    least, most = steep.enclose(1.0, 1.0)
    assert least < -1e-7  # what it does to its argument counts
    assert most > 1e-7


@given(st.fractions())
def test_rounding_has_a_direction(number):
    down, up = round_down(number), round_up(number)
    assert down <= number <= up
    assert up in (down, math.nextafter(down, math.inf))


def test_rounding_beyond_all_floats():
    assert round_up(Fraction(10) ** 400) == math.inf
    assert round_down(-(Fraction(10) ** 400)) == -math.inf
    assert round_down(Fraction(10) ** 400) == math.nextafter(math.inf, 0)


def test_fractions_beyond_all_floats_are_rounded_as_well():
    huge, largest = Fraction(10) ** 400, math.nextafter(math.inf, 0.0)
    assert (round_down(huge), round_up(huge)) == (largest, math.inf)
    assert (round_down(-huge), round_up(-huge)) == (-math.inf, -largest)
    steep = vulcan.Linear(1e300)
    assert steep.enclose(1e200, 1e200) == (largest, math.inf)
