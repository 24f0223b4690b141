"""Risk bounds: parameters, values, tangents, multiples and enclosures."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.risk_bounds import assert_above, concave, rewards, shares, straight
from vulcan import Concave, Constant, Linear, PiecewiseLinear, parse
from vulcan.errors import BoundError
from vulcan.numerics import round_down, round_up

# Parameters.


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Constant("0.1"), "level must be a finite number, not '0.1'"),
        (lambda: Constant(True), "level must be a finite number, not True"),
        (lambda: Constant(math.nan), "level must be a finite number, not nan"),
        (lambda: Constant(math.inf), "level must be a finite number, not inf"),
        (lambda: Constant(10**400), "level must be a finite number; this is too large"),
        (lambda: Linear("x"), "slope must be a finite number, not 'x'"),
        (lambda: Linear(math.nan), "slope must be a finite number, not nan"),
        (lambda: Linear(-1e-9), "must not decrease: slope must be at least 0, not -1e-09"),
        (lambda: Linear(0.1, math.nan), "offset must be a finite number, not nan"),
        (lambda: PiecewiseLinear(3), r"points must be a list of pairs .*, not 3"),
        (lambda: PiecewiseLinear([(0, 0), (1,)]), "points must be a list of pairs"),
        (lambda: PiecewiseLinear([(0, 0), (1, 2, 3)]), "points must be a list of pairs"),
        (lambda: PiecewiseLinear(["ab", "cd"]), "a point's reward must be a finite number"),
        (lambda: PiecewiseLinear([(0, 0), (1, "a")]), "a point's risk must be a finite number"),
        (lambda: PiecewiseLinear([(0, 0), (math.nan, 1)]), "reward must be a finite number"),
        (lambda: PiecewiseLinear([(0, -math.inf), (1, 1)]), "risk must be a finite number"),
        (lambda: PiecewiseLinear([(0, 0)]), "at least two points"),
        (lambda: PiecewiseLinear([(1, 0), (0, 1)]), r"must increase: 1\.0 is followed by 0\.0"),
        (lambda: PiecewiseLinear([(0, 1), (1, 0)]), r"not decrease: 1\.0 at 0\.0, 0\.0 at 1\.0"),
        (
            lambda: PiecewiseLinear([(0, 0), (1, 0.01), (2, 0.05)]),
            r"not concave: 0\.01 at 1\.0 lies below the line from 0\.0 at 0\.0 to 0\.05 at 2\.0",
        ),
        (lambda: PiecewiseLinear([(0, 0), (5e-324, 1)]), "slope .* this is too large"),
        (lambda: Concave(0.1), "needs a function, not 0.1"),
        (lambda: Concave(abs, derivative=1), "derivative must be a function, not 1"),
    ],
)
def test_a_bad_parameter_is_named(make, problem):
    with pytest.raises(BoundError, match=problem):
        make()


def test_numbers_of_other_types_are_floats_inside():
    assert Constant(np.float32(0.5)).text == "0.5"
    assert Linear(np.float64(0.25), np.int64(1)).text == "0.25 * x + 1.0"
    assert Linear(Fraction(1, 4)).slope == 0.25
    assert type(Linear(Fraction(1, 4)).slope) is float
    assert PiecewiseLinear(np.array([[0, 0], [1, 0.5]])).points == ((0.0, 0.0), (1.0, 0.5))
    assert PiecewiseLinear((k, k) for k in range(2)).points == ((0.0, 0.0), (1.0, 1.0))


# Values.


def test_values():
    assert Constant(0.0125)(-5.0) == Constant(0.0125)(1e9) == 0.0125
    assert Constant(0.0125)(math.inf) == 0.0125
    assert Linear(0.002, 0.5)(10.0) == 0.52
    bound = PiecewiseLinear([(0, 0), (1, 0.5), (3, 1)])
    assert [bound(x) for x in (-2, 0, 0.5, 1, 2, 3, 4, 1e300)] == [-1, 0, 0.25, 0.5, 0.75, 1, 1, 1]


def test_texts_and_equality():
    assert Constant(0.5) == Linear(0, 0.5)
    assert Constant(0.5) != Constant(0.25)
    assert Linear(1.0) != PiecewiseLinear([(0, 0), (1, 1)])
    assert PiecewiseLinear([(0, 0), (1, 1)]) == PiecewiseLinear(((0.0, 0.0), (1.0, 1.0)))
    assert len({Constant(0.5), Linear(0.0, 0.5), Linear(0.5)}) == 2
    assert [str(Constant(0.5)), str(Linear(0.5)), str(Linear(1, -1))] == [
        "0.5",
        "0.5 * x",
        "1.0 * x + -1.0",
    ]
    assert str(PiecewiseLinear([(0, 0), (1, 1)])) == "piecewise((0.0, 0.0), (1.0, 1.0))"
    assert repr(Constant(0.5)) == "Constant(0.5)"
    assert Concave(math.sqrt).text is None
    assert str(Concave(math.sqrt)) == "Concave(sqrt)"
    assert str(Concave(math.sqrt, text="sqrt(x)")) == "sqrt(x)"
    assert Constant(0.5) != 0.5


@given(straight)
def test_bounds_can_be_copied_and_not_changed(bound):
    assert pickle.loads(pickle.dumps(bound)) == bound
    name = "points" if isinstance(bound, PiecewiseLinear) else "slope"
    with pytest.raises(AttributeError):
        setattr(bound, name, 1.0)


@pytest.mark.parametrize("factor", [0, -1.0, math.nan, math.inf, "2", True, None])
@pytest.mark.parametrize(
    "bound", [Constant(0.1), Linear(0.1), PiecewiseLinear([(0, 0), (1, 1)]), Concave(math.sqrt)]
)
def test_a_factor_is_a_positive_number(bound, factor):
    with pytest.raises(BoundError, match="the factor of a bound must be"):
        bound.scale(factor)


def test_a_factor_that_is_too_large_for_a_bound():
    with pytest.raises(BoundError, match="must be a finite number, not inf"):
        Linear(1e300).scale(1e300)


fractions = st.fractions(-1000, 1000)


@given(st.floats(0, 1).filter(bool), st.floats(1e-9, 1), st.integers(2, 6), st.integers(0, 4))
def test_a_convex_bend_is_refused(slope, growth, count, at):
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
def test_a_scaled_straight_bound_is_straight_and_allows_the_multiple_of_the_risk(
    bound, factor, reward
):
    scaled = bound.scale(factor)
    assert type(scaled) is type(bound)
    assert parse(scaled.text) == scaled
    size = factor * (1 + abs(bound(reward)) + 100 * abs(reward))
    assert scaled(reward) == pytest.approx(factor * bound(reward), abs=1e-12 * size)
    slope = factor * bound.tangent(reward).slope
    assert scaled.tangent(reward).slope == pytest.approx(slope, rel=1e-9, abs=1e-9 * factor)


def test_exact_value_of_a_function():
    bound = Concave(lambda x: x / 3 if x > 0 else -math.inf)
    assert bound.exact(Fraction(1)) == Fraction(1 / 3)
    assert bound.exact(Fraction(-1)) == -math.inf


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda x: math.nan, r"is nan at 2\.0; it may be finite or -inf"),
        (lambda x: math.inf, r"is inf at 2\.0"),
        (lambda x: None, r"can't be evaluated at 2\.0: .*NoneType"),
        (lambda x: (-x) ** 0.5, r"can't be evaluated at 2\.0: .*complex"),
        (lambda x: 1 / (x - 2), r"can't be evaluated at 2\.0: .*division by zero"),
        (lambda x: {}[x], r"can't be evaluated at 2\.0: 2\.0"),
        (lambda: 0.1, r"can't be evaluated at 2\.0: .*positional argument"),
        (lambda x: np.sqrt(-np.float64(x)), r"is nan at 2\.0"),
        (lambda x: np.log(np.float64(0)) * -1, r"is inf at 2\.0"),
    ],
)
def test_a_function_without_a_value_names_the_reward(function, problem):
    with pytest.raises(BoundError, match=problem):
        Concave(function)(2.0)
    with pytest.raises(BoundError, match=problem):
        Concave(function).verify([2.0])


def test_an_interruption_is_not_taken_for_an_error_of_the_function():
    def function(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Concave(function)(1.0)


@given(concave(), st.floats(0, 1), shares, st.booleans())
@settings(max_examples=100)
def test_tangents_of_functions(sample, at, places, derivative_given):
    bound = Concave(sample.function, derivative=sample.derivative if derivative_given else None)
    span = 30 * sample.width
    reward = sample.start + span * at
    tangent = bound.tangent(reward)
    assert tangent.at == reward
    assert tangent.value >= bound(reward)
    next_floats = reward + 4e-15 * max(1.0, abs(reward))
    allowed = 1e-10 * max(1.0, abs(bound(reward))) + 2 * (bound(next_floats) - bound(reward))
    assert tangent.value <= bound(reward) + allowed
    close = [reward + sign * sample.width * 10.0**-k for k in range(12) for sign in (-1, 1)]
    far = [sample.start + span * share for share in places]
    assert_above(
        tangent, bound, [x for x in close + far if x >= sample.start], 1e-9 if at else 1e-8
    )


@pytest.mark.parametrize("derivative", [None, lambda x: 0.5 / math.sqrt(x)])
@pytest.mark.parametrize("start", [0.0, 1.0, -1e3])
def test_the_tangent_of_an_infinitely_steep_edge_is_steep_and_finite(derivative, start):
    bound = Concave(
        lambda x: math.sqrt(x - start) if x >= start else -math.inf,
        derivative and (lambda x: derivative(x - start)),
    )
    tangent = bound.tangent(start)
    assert 1e5 < tangent.slope < math.inf
    assert 0 <= tangent.value < 1e-6
    assert_above(tangent, bound, [start + 10.0**k for k in range(-20, 9)], 1e-12)


def test_tangents_at_the_edge_of_the_region_where_nothing_is_acceptable():
    bound = Concave(lambda x: math.log(x) if x >= 1 else -math.inf)
    assert bound.tangent(1.0).slope == pytest.approx(1.0, abs=1e-4)
    assert_above(bound.tangent(1.0), bound, [-5.0, 0.99, 1.0, 1 + 1e-9, 1.01, 2.0, 50.0], 1e-11)
    with pytest.raises(BoundError, match=r"-inf at 0\.5, and has no tangent"):
        bound.tangent(0.5)


@pytest.mark.parametrize("start", [0.0, 1.0, 1e9])
def test_the_tangent_of_a_jump_at_the_edge_is_finite(start):
    bound = Concave(lambda x: 0.5 if x > start else -1.0)
    tangent = bound.tangent(start)
    assert_above(tangent, bound, [start, math.nextafter(start, 2e9), start + 1e-9, start + 9], 0)


def test_the_tangent_of_a_very_steep_function_far_from_zero():
    """So narrow a chord that its ends are rounded."""
    bound = Concave(lambda x: 1e9 * (x + 3) / (1 + 1e3 * (x + 3)))
    places = [-3 + 10.0**k for k in range(-12, 2)]
    assert_above(bound.tangent(-3.0), bound, places, 1e-9)


def test_a_failing_derivative_is_replaced():
    for derivative in (lambda x: 1 / 0, lambda x: math.nan, lambda x: None, lambda x: {}[x]):
        tangent = Concave(lambda x: x / 2, derivative=derivative).tangent(3.0)
        assert tangent.slope == pytest.approx(0.5)
    assert Concave(lambda x: 1.0, derivative=lambda x: -1e-17).tangent(3.0).slope == 0


# Scaling.


@given(concave(), factors, st.floats(0, 1), st.booleans())
def test_a_scaled_function_keeps_its_derivative(sample, factor, share, derivative_given):
    bound = Concave(sample.function, derivative=sample.derivative if derivative_given else None)
    reward = sample.start + sample.width * (0.01 + share)
    scaled = bound.scale(factor)
    assert scaled(reward) == factor * bound(reward)
    assert scaled.text is None
    if derivative_given:
        assert scaled.tangent(reward).slope == factor * sample.derivative(reward)
    places = [sample.start + sample.width * place for place in (0, 0.1, 1, 2, 30)]
    assert_above(scaled.tangent(reward), scaled, places, 1e-8 * max(1.0, factor))


TEXTS = ["(1 - exp(-0.4*x)) * (0.015 + 0.001*x)", "sqrt(x)", "-exp(-x)", "min(x, sqrt(x), 3)"]


@pytest.mark.parametrize("text", TEXTS)
@given(st.floats(1e-9, 1e9), st.floats(0.01, 50))
def test_the_text_of_a_scaled_expression_is_read_back(text, factor, reward):
    scaled = parse(text).scale(factor)
    again = parse(scaled.text)
    assert again(reward) == scaled(reward) == factor * parse(text)(reward)
    assert again.tangent(reward) == scaled.tangent(reward)
    assert parse(scaled.scale(0.5).text)(reward) == 0.5 * scaled(reward)


def test_where_nothing_is_acceptable_nothing_is_at_any_scale():
    bound = Concave(lambda x: math.log(x) if x > 0 else -math.inf)
    assert bound.scale(3.0)(-1.0) == -math.inf
    assert Linear(0.1, -0.5).scale(2)(0.0) == -1.0


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


def test_fractions_beyond_all_floats_are_rounded_as_well():
    huge, largest = Fraction(10) ** 400, math.nextafter(math.inf, 0.0)
    assert (round_down(huge), round_up(huge)) == (largest, math.inf)
    assert (round_down(-huge), round_up(-huge)) == (-math.inf, -largest)
    steep = vulcan.Linear(1e300)
    assert steep.enclose(1e200, 1e200) == (largest, math.inf)
