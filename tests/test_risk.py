"""Risk bounds: their parameters, values, tangents and the check of their shape."""

import math
import pickle
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vulcan import BoundError, Concave, Constant, Linear, PiecewiseLinear, RiskBound, parse

rewards = st.floats(-1e6, 1e6)
fractions = st.fractions(-1000, 1000)


@st.composite
def piecewise(draw):
    """Bounds with points as a user types them, or with any."""
    count = draw(st.integers(1, 5))
    digits = draw(st.sampled_from([2, 3, 17]))
    steps = draw(st.lists(st.floats(0.02, 100), min_size=count, max_size=count))
    slopes = draw(st.lists(st.floats(0, 10), min_size=count, max_size=count))
    points = [(draw(st.floats(-100, 100)), draw(st.floats(-1, 1)))]
    for step, slope in zip(steps, sorted(slopes, reverse=True), strict=True):
        x, y = points[-1]
        further = round(x + step, digits)
        points.append((further, y + (further - x) * slope))
    return PiecewiseLinear(points)


straight = st.one_of(
    st.builds(Constant, st.floats(-1, 2)),
    st.builds(Linear, st.floats(0, 100), st.floats(-100, 100)),
    piecewise(),
)


# Concave, nondecreasing functions on x >= 0, of any scale, each with its derivative.

SHAPES = {
    "saturating": (lambda x: -math.expm1(-x), lambda x: math.exp(-x)),
    "cancelling": (lambda x: 1 - math.exp(-x), lambda x: math.exp(-x)),
    "root": (math.sqrt, lambda x: 0.5 / math.sqrt(x)),
    "logarithm": (math.log1p, lambda x: 1 / (1 + x)),
    "tanh": (math.tanh, lambda x: 1 - math.tanh(x) ** 2),
    "line": (lambda x: x, lambda x: 1.0),
    "level": (lambda x: 0.3, lambda x: 0.0),
    "corner": (lambda x: min(x, 0.5 + x / 10, 0.7), lambda x: 1.0 if x < 5 / 9 else 0.1 * (x < 2)),
    "steep corner": (lambda x: min(1e6 * x, 1.0), lambda x: 1e6 * (x < 1e-6)),
    "hyperbola": (lambda x: x / (1 + x), lambda x: (1 + x) ** -2),
}


@st.composite
def concave(draw):
    name = draw(st.sampled_from(sorted(SHAPES)))
    function, derivative = SHAPES[name]
    heights = [1e-12, 1e-6, 0.02, 1.0]
    # What cancels is lost: of a million, 1e-10.
    height = draw(st.sampled_from(heights if name == "cancelling" else [*heights, 1e6]))
    width = draw(st.sampled_from([1e-3, 1.0, 40.0, 1e6]))
    offset = draw(st.sampled_from([0.0, -0.5, 0.1])) * height
    start = draw(st.sampled_from([0.0, -3.0, 1e3]))

    def shifted(x):
        return offset + height * function((x - start) / width)

    def slope(x):
        return height / width * derivative((x - start) / width)

    return SimpleNamespace(
        name=f"{height} * {name}((x - {start}) / {width}) + {offset}",
        function=shifted,
        derivative=slope,
        start=start,
        width=width,
        height=height,
    )


shares = st.lists(st.floats(0, 1), min_size=1, max_size=30)


# Parameters.


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Constant("0.1"), "level must be a finite number, not '0.1'"),
        (lambda: Constant(None), "level must be a finite number, not None"),
        (lambda: Constant(True), "level must be a finite number, not True"),
        (lambda: Constant(math.nan), "level must be a finite number, not nan"),
        (lambda: Constant(math.inf), "level must be a finite number, not inf"),
        (lambda: Constant(1j), "level must be a finite number, not 1j"),
        (lambda: Constant(10**400), "level must be a finite number; this is too large"),
        (lambda: Constant(10**5000), "level must be a finite number; this is too large"),
        (lambda: Constant([0.1]), r"level must be a finite number, not \[0.1\]"),
        (lambda: Linear("x"), "slope must be a finite number, not 'x'"),
        (lambda: Linear(math.nan), "slope must be a finite number, not nan"),
        (lambda: Linear(-math.inf), "slope must be a finite number, not -inf"),
        (lambda: Linear(-1e-9), "must not decrease: slope must be at least 0, not -1e-09"),
        (lambda: Linear(0.1, math.nan), "offset must be a finite number, not nan"),
        (lambda: Linear(0.1, None), "offset must be a finite number, not None"),
        (lambda: PiecewiseLinear(3), r"points must be a list of pairs .*, not 3"),
        (lambda: PiecewiseLinear(None), "points must be a list of pairs"),
        (lambda: PiecewiseLinear([1, 2]), "points must be a list of pairs"),
        (lambda: PiecewiseLinear([(0, 0), (1,)]), "points must be a list of pairs"),
        (lambda: PiecewiseLinear([(0, 0), (1, 2, 3)]), "points must be a list of pairs"),
        (lambda: PiecewiseLinear({0: 0.1, 1: 0.2}), "points must be a list of pairs"),
        (lambda: PiecewiseLinear(["ab", "cd"]), "a point's reward must be a finite number"),
        (lambda: PiecewiseLinear([(0, 0), (1, "a")]), "a point's risk must be a finite number"),
        (lambda: PiecewiseLinear([(0, 0), (math.nan, 1)]), "reward must be a finite number"),
        (lambda: PiecewiseLinear([(0, -math.inf), (1, 1)]), "risk must be a finite number"),
        (lambda: PiecewiseLinear([]), "at least two points"),
        (lambda: PiecewiseLinear([(0, 0)]), "at least two points"),
        (lambda: PiecewiseLinear([(1, 0), (0, 1)]), r"must increase: 1\.0 is followed by 0\.0"),
        (lambda: PiecewiseLinear([(1, 0), (1, 1)]), r"must increase: 1\.0 is followed by 1\.0"),
        (lambda: PiecewiseLinear([(0, 1), (1, 0)]), r"not decrease: 1\.0 at 0\.0, 0\.0 at 1\.0"),
        (
            lambda: PiecewiseLinear([(0, 0), (1, 0.01), (2, 0.05)]),
            r"not concave: 0\.01 at 1\.0 lies below the line from 0\.0 at 0\.0 to 0\.05 at 2\.0",
        ),
        (lambda: PiecewiseLinear([(0, 0), (5e-324, 1)]), "slope .* this is too large"),
        (lambda: Concave(0.1), "needs a function, not 0.1"),
        (lambda: Concave("x"), "needs a function, not 'x'"),
        (lambda: Concave(abs, derivative=1), "derivative must be a function, not 1"),
    ],
)
def test_a_bad_parameter_is_named(make, problem):
    with pytest.raises(BoundError, match=problem):
        make()


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


def test_numbers_of_other_types_are_floats_inside():
    assert Constant(np.float32(0.5)).text == "0.5"
    assert Linear(np.float64(0.25), np.int64(1)).text == "0.25 * x + 1.0"
    assert Linear(Fraction(1, 4)).slope == 0.25
    assert type(Linear(Fraction(1, 4)).slope) is float
    assert PiecewiseLinear(np.array([[0, 0], [1, 0.5]])).points == ((0.0, 0.0), (1.0, 0.5))
    assert PiecewiseLinear((k, k) for k in range(2)).points == ((0.0, 0.0), (1.0, 1.0))


def test_a_risk_bound_itself_is_abstract():
    with pytest.raises(TypeError):
        RiskBound()


# Values.


def test_values():
    assert Constant(0.0125)(-5.0) == Constant(0.0125)(1e9) == 0.0125
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


# Tangents: nowhere below the bound.


def assert_above(tangent, bound, places, slack):
    assert math.isfinite(tangent.slope)
    assert tangent.slope >= 0
    for place in places:
        value = bound(place)
        size = max(1.0, abs(value), abs(tangent.slope * (place - tangent.at)))
        assert tangent(place) >= value - slack * size, (tangent, place, value)


@given(straight, rewards, st.lists(rewards, max_size=10))
def test_tangents_of_straight_bounds(bound, reward, places):
    corners = [x for x, _ in bound.points] if isinstance(bound, PiecewiseLinear) else [0.0]
    for at in [reward, *corners]:
        tangent = bound.tangent(at)
        assert tangent(at) == bound(at)
        # Points that are concave up to rounding only: far away that is a slope's rounding.
        assert_above(tangent, bound, [*places, *corners, at - 1e-9, at + 1e-9], 1e-9)


@given(concave(), st.floats(0, 1), shares, st.booleans())
@settings(max_examples=300)
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


# The check of shape.


@given(concave(), shares, st.sampled_from([1e-6, 1.0, 30.0]))
@settings(max_examples=300)
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


def test_where_it_decreases_is_shown():
    with pytest.raises(BoundError, match=r"decreases from 2\.0 at 2\.0 to 1\.0 at 3\.0;"):
        Concave(lambda x: min(x, 4 - x)).verify([0.0, 1.0, 2.0, 3.0])


@given(scales, scales, st.floats(0.1, 0.9), st.floats(1e-3, 1))
@settings(max_examples=50)
def test_a_jump_up_is_caught(height, width, at, jump):
    with pytest.raises(BoundError, match="not concave"):
        bad(lambda x: x / 10 + jump * (x >= at), height, width).verify([0.0, width])


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


@given(st.integers(0, 2**32))
@settings(max_examples=50)
def test_random_functions_are_caught(seed):
    random = np.random.default_rng(seed)
    places, values = np.linspace(0, 1, 20), np.sort(random.uniform(0, 1, 20))
    with pytest.raises(BoundError, match="not concave"):
        Concave(lambda x: np.interp(x, places, values)).verify([0.0, 1.0])


def test_only_what_was_used_is_verified():
    bound = Concave(math.tanh)
    bound.verify([0.0, 3.0])
    bound.verify([-2.0])
    bound.verify([])
    with pytest.raises(BoundError, match="not concave"):
        bound.verify([-2.0, 0.0])
    with pytest.raises(BoundError, match=r"at -1\.0"):
        Concave(math.sqrt).verify([-1.0, 1.0])


@pytest.mark.parametrize("point", [math.nan, math.inf, -math.inf])
def test_points_that_are_no_numbers_are_refused(point):
    with pytest.raises(BoundError, match=f"finite number, not {point}"):
        Concave(math.atan).verify([0.0, point])


@given(straight)
def test_straight_bounds_have_nothing_to_verify(bound):
    bound.verify([-1.0, 5.0])
    Concave(bound).verify([-1e3, 1e3])


# Scaling.

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
