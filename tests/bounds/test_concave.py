"""Bounds that are any concave function: values, tangents and multiples."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.risk_bounds import assert_above, concave, shares
from vulcan import BoundError, Concave, Linear, parse


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

factors = st.floats(1e-6, 1e6)


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
