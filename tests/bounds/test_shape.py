"""The check that a bound is concave and nondecreasing where it was used."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.risk_bounds import concave, shares
from vulcan import Concave, Constant, Linear
from vulcan.bounds.base import warn_of_loose
from vulcan.domains import Bandit
from vulcan.errors import BoundError, BoundWarning


@given(concave(), shares, st.sampled_from([1e-6, 1.0, 30.0]))
@settings(max_examples=100)
def test_a_concave_function_passes(sample, places, span):
    Concave(sample.function).verify(sample.start + span * sample.width * x for x in places)


@given(concave(), st.integers(100, 3000))
@settings(max_examples=30)
def test_a_concave_function_passes_at_dense_points(sample, count):
    points = np.linspace(sample.start, sample.start + sample.width, count)
    Concave(sample.function).verify([*points.tolist(), *np.nextafter(points, 1e9).tolist()])


@given(concave(), st.floats(0.01, 0.99))
def test_a_concave_function_passes_with_minus_infinity_on_the_left(sample, share):
    edge = sample.start + sample.width * share
    bound = Concave(lambda x: sample.function(x) if x >= edge else -math.inf)
    bound.verify([sample.start - 1, sample.start + sample.width, edge])
    bound.verify([sample.start - 1, edge - sample.width])


def test_a_steep_function_far_from_zero_passes():
    """Its values have the rounding errors of 1e8, although they are near 1."""
    bound = Concave(lambda x: min(1e5 * x - 1e8 - 0.3, 1.0))
    bound.verify(np.linspace(1000, 1000.00002, 1001).tolist())


def test_what_scatters_by_more_than_a_rounding_is_caught():
    for size in (1e-10, 1e-6, 1e-3):
        with pytest.raises(BoundError, match="not concave"):
            Concave(lambda x, size=size: x / 100 + size * math.sin(1e7 * x)).verify([0.0, 1.0])
    with pytest.raises(BoundError, match="not concave"):  # a bend just beside a kink
        Concave(lambda x: min(1e6 * x, 0.1 + max(0.0, x - 1e-6) ** 2)).verify([0.0, 2e-7, 1e-3])


scales = st.sampled_from([1e-6, 1e-3, 1.0, 1e6])


def bad(function, height=1.0, width=1.0, start=0.0):
    return Concave(lambda x: height * function((x - start) / width))


@given(scales, scales, st.floats(1e-3, 1.0), st.floats(0.05, 0.95), shares)
@settings(max_examples=100)
def test_a_convex_bend_is_caught(height, width, growth, at, places):
    bound = bad(lambda x: x + growth * max(0.0, x - at), height, width)
    with pytest.raises(BoundError, match="not concave") as caught:
        bound.verify([0.0, width, *(width * place for place in places)])
    place = float(str(caught.value).split(" at ")[1].split()[0])
    assert place == pytest.approx(at * width, abs=width / 100)


@given(st.integers(10, 20_000), st.sampled_from([1e-9, 1e-6, 1e-3]), scales)
@settings(max_examples=20)
def test_slow_convexity_does_not_hide_between_dense_points(count, curvature, width):
    bound = bad(lambda x: x / 100 + curvature * x * x, 1.0, width)
    with pytest.raises(BoundError, match=r"not concave: .* lies below the line from"):
        bound.verify(np.linspace(0, width, count).tolist())


@given(scales, scales, st.floats(0.1, 0.9), st.floats(1e-3, 1))
@settings(max_examples=50)
def test_a_decreasing_stretch_is_caught(height, width, at, loss):
    for function in (
        lambda x: min(x, at - loss * (x - at)),  # concave, and past its top
        lambda x: -loss * x,
        lambda x: 0.5 if x < at else 0.5 - loss,
    ):
        with pytest.raises(BoundError, match="decreases from"):
            bad(function, height, width).verify([0.0, width])


def test_a_jump_at_the_very_edge_is_concave():
    Concave(lambda x: 0.5 if x > 0 else -1.0).verify([0.0, 1.0])


@given(st.floats(0.1, 0.9))
def test_minus_infinity_after_a_finite_value_is_caught(at):
    for function in (
        lambda x: 0.1 if x < at else -math.inf,
        lambda x: -math.inf if at - 0.05 < x < at + 0.05 else x,
        lambda x: x if x <= 0 else -math.inf,
    ):
        with pytest.raises(BoundError, match="-inf at"):
            Concave(function).verify([0.0, 1.0])


def test_only_what_was_used_is_verified():
    bound = Concave(math.tanh)
    bound.verify([0.0, 3.0])
    bound.verify([-2.0])
    bound.verify([])
    with pytest.raises(BoundError, match="not concave"):
        bound.verify([-2.0, 0.0])
    with pytest.raises(BoundError, match=r"at -1\.0"):
        Concave(math.sqrt).verify([-1.0, 1.0])


def test_a_bound_that_refuses_nothing_gets_a_warning():
    with pytest.warns(BoundWarning, match=r"every policy is acceptable.* 5\.0.* 5 or more") as seen:
        warn_of_loose(Constant(5), [0.0, 3.0])
    assert seen[0].filename == __file__
    with pytest.warns(BoundWarning, match="2 or more"):
        warn_of_loose(Linear(1.0), [3.0, 2.0])
    # One that refuses something at the least of these rewards, or that says "all" in so many words.
    warn_of_loose(Linear(1.0), [0.5, 3.0])
    warn_of_loose(Constant(1), [0.5, 3.0])


def test_solving_warns_at_the_line_of_the_user():
    with pytest.warns(BoundWarning) as seen:
        vulcan.solve(vulcan.Problem(Bandit(2), 5))
    assert seen[0].filename == __file__
