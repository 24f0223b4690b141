"""Risk bounds from strings: what is refused, and that nothing else happens."""

import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.risk_bounds import expressions
from vulcan import BoundError, Concave, Constant, Linear, RiskBound, parse
from vulcan.bounds.parsing import CHOICES, CONSTANTS, FUNCTIONS, MOST_CHARACTERS

# A string, what is wrong with it, and the place that the error points at.
REFUSED = [
    ("x.real", "this is not allowed", "x.real"),
    ("2 + x.real", "this is not allowed", "x.real"),
    ("x[0]", "'[' is not allowed", "["),
    ("{x}", "'{' is not allowed", "{"),
    ("lambda: x", "':' is not allowed", ":"),
    ("x < 2", "'<' is not allowed", "<"),
    ("x == 2", "'=' is not allowed", "="),
    ("x is x", "this is not allowed", "x is x"),
    ("(y := x)", "':' is not allowed", ":"),
    ("min(x, key=x)", "'=' is not allowed", "="),
    ("min(*x)", "this is not allowed", "*x"),
    ("min(**x)", "this is not allowed", "min(**x)"),
    ("'x'", '"\'" is not allowed', "'"),
    ('f"{x}"', "'\"' is not allowed", '"'),
    ("True", "this is not allowed", "True"),
    ("x + None", "this is not allowed", "None"),
    ("not x", "this is not allowed", "not x"),
    ("x and x", "this is not allowed", "x and x"),
    ("x if x else x", "this is not allowed", "x if x else x"),
    ("1if x else 2", "this is not allowed", "1if x else 2"),
    ("2j", "this is not allowed", "2j"),
    ("...", "this is not allowed", "..."),
    ("x // 2", "this is not allowed", "x // 2"),
    ("x % 2", "'%' is not allowed", "%"),
    ("x ^ 2", "'^' is not allowed", "^"),
    ("~x", "'~' is not allowed", "~"),
    ("0.1 # comment", "'#' is not allowed", "#"),
    ("__import__('os')", '"\'" is not allowed', "'"),
    ("__import__(x)", "unknown function '__import__'", "__import__(x)"),
    ("eval(x)", "unknown function 'eval'", "eval(x)"),
    ("x(2)", "unknown function 'x'", "x(2)"),
    ("2(x)", "this is not allowed", "2(x)"),
    ("exp(x)(2)", "this is not allowed", "exp(x)(2)"),
    ("x.real(2)", "this is not allowed", "x.real(2)"),
    ("0.1 + y", "unknown name 'y'", "y"),
    ("exp", "unknown name 'exp'", "exp"),
    ("inf", "unknown name 'inf'", "inf"),
    ("nan", "unknown name 'nan'", "nan"),
    ("exp()", "exp takes one argument", "exp()"),
    ("2*sqrt(x, 2)", "sqrt takes one argument", "sqrt(x, 2)"),
    ("min()", "min takes at least one argument", "min()"),
    ("(x, 1)", "this is not allowed", "(x, 1)"),
    ("x, 1", "this is not allowed", "x, 1"),
    ("()", "this is not allowed", "()"),
    ("0.002*", "this is not an expression", ""),
    ("2x", "this is not an expression", "2"),
    ("x x", "this is not an expression", "x"),
    ("(x", "this is not an expression", "("),
    ("x)", "this is not an expression", ")"),
    ("import os", "this is not an expression", "i"),
    ("9**9**9", "this has no finite value", "9**9**9"),
    ("x + 9**9**9", "this has no finite value", "9**9**9"),
    ("1e400", "this has no finite value", "1e400"),
    ("x*1e400", "this has no finite value", "1e400"),
    ("10**400*x", "this has no finite value", "10**400"),
    ("1" + "0" * 400 + "*x", "this has no finite value", "1" + "0" * 39),
    ("1e308*10", "this has no finite value", "1e308*10"),
    ("1/0", "division by zero", "1/0"),
    ("x/0", "division by zero", "x/0"),
    ("sqrt(x/(1-1))", "division by zero", "x/(1-1)"),
    ("0**-1", "this has no finite value", "0**-1"),
    ("(-1)**0.5", "this has no finite value", "(-1)**0.5"),
    ("log(0) + x", "this has no finite value", "log(0)"),
    ("sqrt(-1)", "this has no finite value", "sqrt(-1)"),
    ("exp(1000)*0", "this has no finite value", "exp(1000)"),
    ("é*x", "'\\xe9' is not allowed", "é"),
    ("\uff58", "'\\uff58' is not allowed", "\uff58"),
    ("x + \0", "'\\x00' is not allowed", "?"),
    ("\ud800", "'\\ud800' is not allowed", "?"),
    ("x\n+ y", "unknown name 'y'", "y"),
    ("x +\n\n'a'", '"\'" is not allowed', "'"),
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
    ("piecewise((0, 0), (1, y))", "unknown name 'y'", "y"),
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


def check_that_it_is_a_bound_or_refused(text):
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


@given(st.lists(st.sampled_from(words + signs), max_size=12).map("".join))
@settings(max_examples=200)
def test_any_text_of_familiar_parts_gives_a_bound_or_an_error(text):
    check_that_it_is_a_bound_or_refused(text)


@given(st.text(alphabet="0123456789.ex+-*/(), minaxsqrt", max_size=25))
@settings(max_examples=150)
def test_any_text_over_the_alphabet_gives_a_bound_or_an_error(text):
    check_that_it_is_a_bound_or_refused(text)


@given(st.text(max_size=15))
@settings(max_examples=80)
def test_any_text_at_all_gives_a_bound_or_an_error(text):
    check_that_it_is_a_bound_or_refused(text)


@given(expressions(depth=5))
@settings(max_examples=100)
def test_any_expression_gives_a_bound_or_an_error(text):
    check_that_it_is_a_bound_or_refused(text)
