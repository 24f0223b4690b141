"""Risk bounds from strings: what they give, and what is refused."""

from __future__ import annotations

import math
import pickle
import re
import time
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.helpers.risk_bounds import expressions
from vulcan import Concave, Constant, Linear, PiecewiseLinear, RiskBound, parse
from vulcan.bounds.parse import CHOICES, CONSTANTS, FUNCTIONS, MOST_CHARACTERS
from vulcan.errors import BoundError

# What a string gives.


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("0.0125", Constant(0.0125)),
        ("1/80", Constant(0.0125)),
        ("-0.5", Constant(-0.5)),
        ("2**-3", Constant(0.125)),
        ("pi - pi", Constant(0.0)),
        ("sqrt(4) + min(1, 2, 3)", Constant(3.0)),
        ("0*x + 0.1", Constant(0.1)),
        ("x", Linear(1.0)),
        ("0.002*x", Linear(0.002)),
        ("x/500", Linear(1 / 500)),
        ("2*(0.001*x)+1e-3", Linear(0.002, 1e-3)),
        ("-(-x)*0.1", Linear(0.1)),
        ("(x + 1) * 0.5 - 1", Linear(0.5, -0.5)),
        ("exp(0) * x * (1 + 1)", Linear(2.0)),
        (" 0.002 *\n\tx ", Linear(0.002)),
        (
            "piecewise((0, 0), (1, 0.01), (3, 0.02))",
            PiecewiseLinear([(0, 0), (1, 0.01), (3, 0.02)]),
        ),
        ("piecewise((-1/2, 0), (2**3, 1/80))", PiecewiseLinear([(-0.5, 0), (8, 0.0125)])),
        ("min(0.002*x, 0.01)", PiecewiseLinear([(0, 0), (5, 0.01)])),
        ("min(0.01, x/500)", PiecewiseLinear([(0, 0), (5, 0.01)])),
        ("min(0.25, 0.5*x + 1)", PiecewiseLinear([(-4, -1), (-1.5, 0.25)])),
        ("min(x, -1)", PiecewiseLinear([(-2, -2), (-1, -1)])),
        ("max(0.1, 0.2)", Constant(0.2)),
    ],
)
def test_texts_of_straight_bounds(text, bound):
    assert parse(text) == bound
    assert type(parse(text)) is type(bound)


@pytest.mark.parametrize(
    ("text", "function"),
    [
        (
            "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)",
            lambda x: (1 - math.exp(-0.4 * x)) * (0.015 + 0.001 * x),
        ),
        ("0.01*sqrt(x)", lambda x: 0.01 * math.sqrt(x)),
        ("x**0.5", lambda x: x**0.5),
        ("2**-x", lambda x: 2**-x),
        ("-x**2", lambda x: -(x**2)),
        ("log(1+x) - log1p(x) + atan(x)", lambda x: math.log(1 + x) - math.log1p(x) + math.atan(x)),
        ("tanh(x)/(1+x)", lambda x: math.tanh(x) / (1 + x)),
        ("-expm1(-x) + pi*e", lambda x: -math.expm1(-x) + math.pi * math.e),
        ("min(0.002*x, 0.01, 0.001*x + 0.003)", lambda x: min(0.002 * x, 0.01, 0.001 * x + 0.003)),
        ("min(2*x, x + 1)", lambda x: min(2 * x, x + 1)),
        ("max(x, 1)", lambda x: max(x, 1)),
        ("x*x", lambda x: x * x),
        ("1/(1+x)", lambda x: 1 / (1 + x)),
    ],
)
def test_texts_of_other_functions(text, function):
    bound = parse(text)
    assert isinstance(bound, Concave)
    assert bound.text == str(bound) == text
    assert repr(bound) == f"Concave({text})"
    for x in (0.0, 0.1, 1.0, 2.5, 40.0):
        assert bound(x) == pytest.approx(function(x), rel=1e-15)
        assert parse(bound.text)(x) == bound(x)


def test_a_text_without_a_value_somewhere_says_where():
    with pytest.raises(BoundError, match=r"can't be evaluated at -1\.0"):
        parse("sqrt(x)")(-1.0)
    with pytest.raises(BoundError, match=r"can't be evaluated at 0\.0"):
        parse("1/x")(0.0)
    with pytest.raises(BoundError, match=r"can't be evaluated at -2\.0"):
        parse("x**0.5")(-2.0)
    with pytest.raises(BoundError, match=r"can't be evaluated at 1e\+300"):
        parse("exp(x)")(1e300)


finite = st.floats(allow_nan=False, allow_infinity=False)
slopes = st.floats(0, allow_infinity=False)


@given(slopes, finite)
@example(0.0, 0.0)
@example(5e-324, -0.0)
def test_lines_are_read_back(slope, offset):
    assert parse(Linear(slope, offset).text) == Linear(slope, offset)


@given(st.lists(st.floats(-1e9, 1e9), min_size=2, unique=True), slopes.filter(lambda s: s < 1e9))
def test_piecewise_bounds_are_read_back(xs, slope):
    last = max(xs)
    bound = PiecewiseLinear([(x, slope * min(0.0, x - last)) for x in sorted(xs)])
    assert parse(bound.text) == bound


def test_a_piecewise_bound_of_many_points_is_read_back():
    bound = PiecewiseLinear([(k / 7, math.sqrt(k / 7)) for k in range(2000)])
    assert parse(bound.text) == bound


@given(st.floats(1e-6, 100), st.floats(-5, 5), st.floats(-5, 5), st.floats(-100, 100))
@example(0.3, 0.0, 1e-320, -100.0)
def test_a_clipped_line_has_the_values_of_its_text(slope, offset, level, x):
    bound = parse(f"min({slope} * x + {offset}, {level})")
    assert isinstance(bound, PiecewiseLinear) or abs(level) + abs(offset) < 1e-290
    value = min(slope * x + offset, level)
    assert bound(x) == pytest.approx(value, abs=1e-13 * (1 + abs(value) + abs(offset)))


def test_a_steep_line_whose_corner_is_no_float_says_how_far_it_rounds():
    steep = parse("min(1e9*x - 1e9, 0.1)")
    place = 1 + 3 * 2.0**-36
    exact = 10**9 * Fraction(3, 2**36)
    least, most = steep.enclose(place, place)
    assert least <= exact <= most
    assert isinstance(parse("min(1e9*x, 0.1)"), PiecewiseLinear)  # here it is one


def test_a_clipped_line_beyond_all_floats_is_still_a_bound():
    for text in ("min(5e-324*x, 1)", "min(1e-300*x - 1e300, 1)", "min(1e300*x, 1e-300)"):
        assert isinstance(parse(text), Concave)


# Derivatives.


@pytest.mark.parametrize(
    ("text", "derivative"),
    [
        ("exp(-x)", lambda x: -math.exp(-x)),
        ("log(x)", lambda x: 1 / x),
        ("sqrt(x)", lambda x: 0.5 / math.sqrt(x)),
        ("tanh(x)", lambda x: math.cosh(x) ** -2),
        ("x*x/(1+x)", lambda x: x * (2 + x) / (1 + x) ** 2),
        ("x**x", lambda x: x**x * (math.log(x) + 1)),
        ("min(x*x, 1)", lambda x: 2 * x if x < 1 else 0.0),
        ("max(1, x*x)", lambda x: 2 * x if x >= 1 else 0.0),
        ("0*sqrt(x) + sqrt(3)", lambda x: 0.0),
    ],
)
def test_derivatives_are_exact(text, derivative):
    bound = parse(text)
    for x in (0.01, 0.5, 1.0, 1.5, 3.0):
        assert bound.derivative(x) == pytest.approx(derivative(x), rel=1e-14, abs=1e-16)


@given(expressions(), st.floats(0.1, 5))
@settings(max_examples=150)
def test_derivatives_agree_with_differences(text, x):
    try:
        bound = parse(text)
        near = [bound(x + step) for step in (-2e-5, -1e-5, 0.0, 1e-5, 2e-5)]
    except BoundError:
        return
    if isinstance(bound, Concave):
        left, right = (near[2] - near[1]) / 1e-5, (near[3] - near[2]) / 1e-5
        wide = abs((near[4] - near[2]) / 2e-5 - right), abs((near[2] - near[0]) / 2e-5 - left)
        # Between the differences on both sides, up to their own change and rounding.
        slack = 1e-9 * max(1.0, *map(abs, near)) * 1e2 + 4 * max(wide)
        slope = bound.derivative(x)
        if math.isfinite(slope) and slack < 1e-2 * (1 + abs(slope)):
            assert min(left, right) - slack <= slope <= max(left, right) + slack


@given(expressions(), st.floats(-3, 30))
@settings(max_examples=150)
def test_every_text_of_the_language_is_what_python_makes_of_it(text, x):
    names = {name: getattr(math, name) for name in FUNCTIONS} | CONSTANTS | CHOICES
    try:
        value = float(eval(text, {"__builtins__": {}}, {**names, "x": x}))
    except (ArithmeticError, ValueError, TypeError):
        value = math.nan
    if value == math.inf:
        value = math.nan  # not allowed either
    try:
        found = parse(text)(x)
    except BoundError as error:
        refused = re.search("decrease|no finite value|division by zero", str(error))
        found = None if refused else math.nan
    # NaN: neither has a value here.
    assert found is None or found == pytest.approx(value, rel=1e-12, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("text", ["sqrt(x)", "x**0.25", "0.02*sqrt(x) + log1p(x)"])
def test_tangents_where_the_derivative_is_infinite(text):
    bound = parse(text)
    tangent = bound.tangent(0.0)
    assert math.isfinite(tangent.slope)
    for x in [0.0, *(10.0**k for k in range(-25, 6))]:
        assert tangent(x) >= bound(x) * (1 - 1e-12)


def test_tangents_at_a_corner():
    for text in ("min(2*x, x + 1)", "min(x + 1, 2*x)"):
        assert parse(text).tangent(1.0).slope == 1.0
        assert parse(text).tangent(0.5).slope == 2.0
    # Used from 0 on only, where it is concave: the slope to the right counts.
    assert parse("max(0, 0.5*x)").tangent(0.0).slope == 0.5
    assert parse("max(0.5*x, 0)").tangent(0.0).slope == 0.5


def test_a_bound_of_a_string_can_be_sent_to_another_process() -> None:
    bound = parse("(1 - exp(-0.4*x)) * (0.015 + 0.001*x)").scale(0.5)
    sent = pickle.loads(pickle.dumps(bound))
    assert [sent(x) for x in (0.5, 3.0, 17.0)] == [bound(x) for x in (0.5, 3.0, 17.0)]
    assert sent.text == bound.text


# A string, what is wrong with it, and the place that the error points at.
REFUSED = [
    ("x.real", "this is not allowed", "x.real"),
    ("x[0]", "'[' is not allowed", "["),
    ("x < 2", "'<' is not allowed", "<"),
    ("min(x, key=x)", "'=' is not allowed", "="),
    ("min(*x)", "this is not allowed", "*x"),
    ("'x'", '"\'" is not allowed', "'"),
    ("True", "this is not allowed", "True"),
    ("x if x else x", "this is not allowed", "x if x else x"),
    ("2j", "this is not allowed", "2j"),
    ("x // 2", "this is not allowed", "x // 2"),
    ("x % 2", "'%' is not allowed; 5% is written 0.05", "%"),
    ("0x1*x", "numbers are decimal, such as 12 or 1e-3", "0"),
    ("__import__('os')", '"\'" is not allowed', "'"),
    ("__import__(x)", "unknown function '__import__'", "__import__(x)"),
    ("x(2)", "unknown function 'x'", "x(2)"),
    ("exp(x)(2)", "this is not allowed", "exp(x)(2)"),
    ("0.1 + y", "unknown name 'y'", "y"),
    ("exp", "unknown name 'exp'", "exp"),
    ("exp()", "exp takes one argument", "exp()"),
    ("2*sqrt(x, 2)", "sqrt takes one argument", "sqrt(x, 2)"),
    ("min()", "min takes at least one argument", "min()"),
    ("(x, 1)", "this is not allowed", "(x, 1)"),
    ("0.002*", "this is not an expression", ""),
    ("2x", "this is not an expression", "2"),
    ("(x", "this is not an expression", "("),
    ("9**9**9", "this has no finite value", "9**9**9"),
    ("1e400", "this has no finite value", "1e400"),
    ("1" + "0" * 400 + "*x", "this has no finite value", "1" + "0" * 39),
    ("x/0", "division by zero", "x/0"),
    ("sqrt(x/(1-1))", "division by zero", "x/(1-1)"),
    ("0**-1", "this has no finite value", "0**-1"),
    ("(-1)**0.5", "this has no finite value", "(-1)**0.5"),
    ("log(0) + x", "this has no finite value", "log(0)"),
    ("é*x", "'\\xe9' is not allowed", "é"),
    ("\uff58", "'\\uff58' is not allowed", "\uff58"),
    ("x\n+ y", "unknown name 'y'", "y"),
    ("x\\\n+1", "'\\\\' is not allowed", "\\"),
    (
        "1 + piecewise((0, 0), (1, 1))",
        "unknown function 'piecewise'",
        "piecewise((0, 0), (1, 1))",
    ),
    ("piecewise((0, 0), 1)", "a point is written (reward, risk)", "1"),
    ("piecewise((0, 0), (1, 2, 3))", "a point is written (reward, risk)", "(1, 2, 3)"),
    ("piecewise((0, 0), (1, x))", "a point has two plain numbers", "(1, x)"),
    ("piecewise((0, 0), (1, 1/0))", "division by zero", "1/0"),
    ("piecewise((0, 0), *x)", "a point is written (reward, risk)", "*x"),
]


@pytest.mark.parametrize(("text", "problem", "marked"), REFUSED)
def test_what_is_not_in_the_language_is_marked(text, problem, marked):
    with pytest.raises(BoundError) as caught:
        parse(text)
    first, shown, marks, *rest = str(caught.value).split("\n")
    assert first == f"{problem}:"
    assert rest[0].startswith("a risk bound is made of numbers, x, pi, e, + - * / ** and exp")
    place = marks.index("^")
    assert shown[place : place + marks.count("^")] == marked
    assert marks.strip("^ ") == ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the string of the risk bound is empty"),
        (" \n\t ", "the string of the risk bound is empty"),
        ("-x", "slope must be at least 0, not -1.0"),
        ("0.1 - x/2", "slope must be at least 0, not -0.5"),
        ("1e308*x*10", "slope must be a finite number, not inf"),
        ("piecewise()", "at least two points"),
        ("piecewise((0, 0))", "at least two points"),
        ("piecewise((0, 1), (1, 0))", "must not decrease"),
        ("piecewise((0, 0), (1, 0), (2, 1))", "not concave"),
        (None, "parsed from a string, not from None"),
        (0.1, "parsed from a string, not from 0.1"),
        (b"x", "parsed from a string, not from b'x'"),
    ],
)
def test_other_texts_that_are_refused(text, problem):
    with pytest.raises(BoundError) as caught:
        parse(text)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "x" + ")" * 5000,
        "-" * 50_000 + "x",
        "+".join(["x"] * 40_000),
        "**".join(["x"] * 20_000),
        "exp(" * 10_000 + "x" + ")" * 10_000,
        "exp(" * 150 + "x" + ")" * 150,
        "min(" * 101 + "x" + ", 1)" * 101,
        "9" * 50_000,
        "9**" * 30_000 + "9",
        "x" * 90_000,
        "x" * (MOST_CHARACTERS + 1),
        "'" * 90_000,
        "(x," * 30_000,
    ],
    ids=lambda text: text[:8],
)
def test_long_and_deep_texts_are_refused_at_once(text):
    began = time.process_time()
    with pytest.raises(BoundError) as caught:
        parse(text)
    assert time.process_time() - began < 5
    assert len(str(caught.value)) < 600


def test_long_texts_that_are_not_deep_are_read_at_once():
    began = time.process_time()
    assert parse(f"min({', '.join(['x'] * 20_000)})")(2.0) == 2.0
    assert parse("+".join(["x"] * 100)) == Linear(100.0)
    deep = "exp(" * 95 + "-x" + ")" * 95
    assert isinstance(parse(deep), Concave)
    constant = "1"
    for _ in range(90):
        constant = f"min({constant}, {', '.join(['2'] * 200)})"
    assert parse(constant) == Constant(1.0)
    assert time.process_time() - began < 5


words = [
    *FUNCTIONS, *CHOICES, *CONSTANTS, "x", "x", "y", "piecewise", "lambda", "if", "else", "and",
    "not", "in", "is", "for", "None", "True", "__import__", "j", "_",
]  # fmt: skip


signs = [*"0123456789.eE+-*/(),[]{}=<>:;'\"\\ \n\t#@!%^&|~", "**", "//", ":=", "==", "1e400", "0x"]


familiar = st.lists(st.sampled_from(words + signs), max_size=12).map("".join)


@given(st.one_of(familiar, st.text(max_size=15), expressions(depth=5)))
@settings(max_examples=400)
def test_any_text_gives_a_bound_or_an_error(text):
    try:
        bound = parse(text)
    except BoundError as error:
        str(error).encode()
        return
    assert isinstance(bound, RiskBound)
    for x in (-1.0, 0.0, 2.5, 1e300):
        try:
            value = bound(x)
            bound.tangent(x)
        except BoundError:
            continue
        assert type(value) is float
        assert not isinstance(bound, Concave) or value < math.inf
