"""Bounds as searches see them: pieces that decide exactly as the bound itself would."""

import math
import sys
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.bound_tables import HUGE, check_decisions, decide, line_at, piece_at, risks_near
from vulcan import Concave, Constant, Linear, PiecewiseLinear

# Concave, nondecreasing functions from `low` on.


@dataclass
class Sample:
    name: str
    function: object
    low: float
    kinks: tuple[float, ...] = ()

    def __repr__(self):
        return self.name


scales = st.floats(1e-9, 2.0)
rates = st.floats(1e-3, 1e3)


@st.composite
def saturating(draw):
    a, b = draw(scales), draw(rates)
    # Further left the exponential overflows.
    return Sample(f"{a}*(1-exp(-{b}*x))", lambda x: a * -math.expm1(-b * x), -100 / b)


@st.composite
def roots(draw):
    a, p = draw(scales), draw(st.floats(0.05, 1.0))
    return Sample(f"{a}*x**{p}", lambda x: a * _raise(x, p), 0.0)


def _raise(x, p):
    if x < 0:
        raise ValueError("root of a negative number")
    return x**p


@st.composite
def logarithms(draw):
    a, b = draw(scales), draw(rates)
    return Sample(f"{a}*log1p({b}*x)", lambda x: a * math.log1p(b * x), -0.999 / b)


@st.composite
def tangents(draw):
    a, b = draw(scales), draw(rates)
    return Sample(f"{a}*tanh({b}*x)", lambda x: a * math.tanh(b * x), 0.0)


@st.composite
def corners(draw):
    """The least of lines that meet at chosen places."""
    lines = draw(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 5)), min_size=1, max_size=4))
    slopes = sorted({slope for slope, _ in lines}, reverse=True)
    kinks = sorted({kink for _, kink in lines})[: len(slopes) - 1]
    pairs = [(slopes[0], 0.0)]
    for slope, kink in zip(slopes[1:], kinks, strict=False):
        before, offset = pairs[-1]
        pairs.append((slope, offset + (before - slope) * kink))
    return Sample(f"min{pairs}", lambda x: min(s * x + o for s, o in pairs), -1000.0, tuple(kinks))


smooth = st.one_of(saturating(), roots(), logarithms(), tangents(), corners())


@st.composite
def functions(draw):
    parts = draw(st.lists(smooth, min_size=1, max_size=3))
    offset = draw(st.sampled_from([0.0, 0.0, -0.3, 1e-3]))
    low = max(part.low for part in parts)

    def function(x):
        return offset + math.fsum(part.function(x) for part in parts)

    kinks = tuple(kink for part in parts for kink in part.kinks if kink >= low)
    name = " + ".join(part.name for part in parts) + f" + {offset}"
    if draw(st.booleans()):
        return Sample(name, function, low, kinks)
    edge = low + draw(st.sampled_from([0.0, 0.5, 1e-9, 3.0]))
    return Sample(
        f"{name} from {edge} on",
        lambda x: function(x) if x >= edge else -math.inf,
        low - 10,
        (edge, *kinks),
    )


@st.composite
def samples(draw):
    """A function, and credits to ask at."""
    sample = draw(functions())
    span = draw(st.sampled_from([1e-6, 1.0, 20.0]))
    places = draw(st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=12))
    credits_asked = [sample.low + span * place for place in places]
    extra = [*sample.kinks, sample.low, HUGE]
    credits_asked += draw(st.lists(st.sampled_from(extra), max_size=3))
    # Neighbours so close that the slope between them is all rounding.
    close = draw(st.lists(st.sampled_from([1e-15, 1e-13, 1e-10, 1e-7]), max_size=3))
    credits_asked += [credits_asked[0] * (1 + step) for step in close]
    credits_asked = [credit for credit in credits_asked if credit >= sample.low]
    return sample, draw(st.permutations(credits_asked))


@given(samples(), st.lists(st.floats(0, 1), min_size=1, max_size=20))
@settings(max_examples=60)
def test_no_piece_of_a_function_is_above_it_or_further_below_than_its_error(given_, shares):
    sample, credits_asked = given_
    bound = Concave(sample.function)
    table = bound.table()
    for credit in credits_asked:
        table.cover(credit)
        assert line_at(table, credit) == bound(credit)
    low, high = min(credits_asked), max(credits_asked)
    places = [low + share * (high - low) for share in shares]
    starts = [start for start in table.pieces["start"].tolist() if low <= start <= high]
    places += [math.nextafter(start, high) for start in starts[:: 1 + len(starts) // 40]]
    for place in places:
        if low <= place <= high:
            value, line = bound(place), line_at(table, place)
            if value > -math.inf:
                assert line <= value <= line + piece_at(table, place)["error"]
            else:
                assert line <= -sys.float_info.max


@given(samples())
@settings(max_examples=60)
def test_a_function_is_compared_as_if_it_were_called(given_):
    sample, credits_asked = given_
    check_decisions(bound := Concave(sample.function), bound.table(), credits_asked)


@given(samples())
@settings(max_examples=50)
def test_a_covered_table_answers_without_asking(given_):
    sample, credits_asked = given_
    bound = Concave(sample.function)
    table = bound.table()
    for credit in credits_asked:
        table.cover(credit)
    pieces = table.pieces
    for credit in credits_asked:
        for risk in risks_near(bound(credit)):
            assert decide(table, risk, credit)[1] == 0
    assert table.pieces is pieces


def test_a_function_is_called_once_at_each_credit_asked_and_nowhere_else():
    seen = []
    bound = Concave(lambda x: (seen.append(x), math.sqrt(x) if x >= 1 else -math.inf)[1])
    table = bound.table()
    for credit in (2.0, 5.0, 0.5, 0.5, 3.0, 2.0, 0.7, 0.6, 0.1):
        table.cover(credit)
    assert seen == [2.0, 5.0, 0.5, 3.0, 0.7]


finite = st.floats(-1e12, 1e12)


@st.composite
def piecewise(draw):
    steps = draw(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=5))
    slopes = sorted(
        draw(st.lists(st.floats(0, 10), min_size=len(steps), max_size=len(steps))), reverse=True
    )
    points = [(draw(st.floats(-100, 100)), draw(st.floats(-1, 1)))]
    for step, slope in zip(steps, slopes, strict=True):
        points.append((points[-1][0] + step, points[-1][1] + step * slope))
    return PiecewiseLinear(points)


straight = st.one_of(
    st.builds(Constant, st.floats(-1, 1)),
    st.builds(Linear, st.floats(0, 10), st.floats(-10, 10)),
    piecewise(),
)


@given(straight, st.lists(finite, min_size=1, max_size=10))
def test_a_straight_bound_is_its_own_table(bound, credits_asked):
    table = bound.table()
    breaks = table.pieces["start"].tolist()
    credits_asked += [math.nextafter(place, end) for place in breaks for end in (-1e9, place, 1e9)]
    check_decisions(bound, table, credits_asked)
    for credit in credits_asked:
        assert line_at(table, credit) == bound(credit)
    assert table.pieces["error"].max() == 0
    assert table.evaluated(-1.0, 2.0) == [-1.0, 2.0]
    with pytest.raises(AssertionError):
        table.cover(0.0)


@given(st.integers(0, 2**32), st.lists(st.floats(-10, 10), min_size=1, max_size=20))
@settings(max_examples=50)
def test_a_function_that_is_no_bound_at_all_does_no_harm(seed, credits_asked):
    random = np.random.default_rng(seed)
    values = random.choice([-1e300, -1.0, 0.0, 0.3, 1.0, 1e300], 64).tolist()
    steps = np.sort(random.uniform(-10, 10, 63)).tolist()
    bound = Concave(lambda x: values[bisect_right(steps, x)])
    table = bound.table()
    for credit in credits_asked:
        table.cover(credit)
        assert line_at(table, credit) == bound(credit)
        assert not any(np.isnan(table.pieces[name]).any() for name in table.pieces.dtype.names)


def test_ceilings():
    assert Constant(0.1).table().ceiling == pytest.approx(0.1)
    assert PiecewiseLinear([(0, 0), (1, 0.1), (3, 0.15)]).table().ceiling == pytest.approx(0.15)
    assert Linear(0.1).table().ceiling == math.inf
    assert Concave(math.tanh).table().ceiling == math.inf
    # No piece is rounded above it.
    steep = PiecewiseLinear([(0.1, 0.1), (0.3, 0.7), (0.7, 0.9)]).table()
    for x in np.linspace(0, 1, 1001):
        assert line_at(steep, x) <= steep.ceiling
