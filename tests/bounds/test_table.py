"""Bounds as searches see them: pieces that decide exactly as the bound itself would."""

from __future__ import annotations

import math
import sys
from bisect import bisect_right

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.risk_bounds import concave, straight
from vulcan import Concave, Constant, Linear, PiecewiseLinear
from vulcan.bounds.table import BoundTable
from vulcan.errors import BoundError
from vulcan.kernels import codes
from vulcan.kernels import local_tests as local
from vulcan.numerics import TOLERANCE

HUGE = 1e9


@numba.njit
def compare(test, pieces, risk, credit):
    return local.compare(test, pieces, risk, credit)


def decide(table: BoundTable, risk: float, credit: float) -> tuple[bool, int]:
    """Ask as a search does; return the verdict and how often the table had to be made finer."""
    test = np.zeros(1, local.TEST)
    test["least"], test["largest"] = math.inf, -math.inf
    for rounds in range(10):
        test["low"], test["high"] = table.low, table.high
        verdict = compare(test[0], table.pieces, risk, credit)
        if verdict != codes.UNDECIDED:
            return verdict == codes.ADMITTED, rounds
        assert test["refine_at"][0] == credit
        table.cover(credit)
    raise AssertionError(f"still undecided at {credit!r} with risk {risk!r}")


def piece_at(table, credit):
    starts = table.pieces["start"]
    return table.pieces[max(0, int(np.searchsorted(starts, credit, side="right")) - 1)]


def line_at(table, credit: float) -> float:
    piece = piece_at(table, credit)
    return float(piece["value"] + piece["slope"] * (credit - piece["start"]))


def risks_near(value: float) -> list[float]:
    """Risks at which rounding decides, and others."""
    risks = [0.0, 0.01, 0.5]
    if value > -math.inf:
        for near in (value, value + TOLERANCE, value - TOLERANCE):
            risks += [math.nextafter(near, -math.inf), near, math.nextafter(near, math.inf)]
        risks += [value + shift for shift in (2e-12, 1e-9, 1e-7, 1e-3, -1e-9, -1e-7, -1e-3)]
    return risks


def check_decisions(bound, table, credits_asked):
    for credit in credits_asked:
        value = bound(credit)
        for risk in risks_near(value):
            admitted, rounds = decide(table, risk, credit)
            assert admitted == (risk <= value + TOLERANCE), (credit, risk, value)
            assert rounds <= 1


@st.composite
def samples(draw):
    """A bound, and credits to ask at."""
    sample = draw(concave())
    function, low, width = sample.function, sample.start, sample.width
    extra = [low, low + 5 / 9 * width, low + 2 * width, HUGE]  # its kinks, if it has any
    if draw(st.booleans()):
        edge = low + width * draw(st.sampled_from([0.0, 1e-9, 0.5]))
        extra.append(edge)
        low -= 10

        def function(x):
            return sample.function(x) if x >= edge else -math.inf

    span = width * draw(st.sampled_from([1e-6, 1.0, 20.0]))
    places = draw(st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=12))
    credits_asked = [low + span * place for place in places]
    credits_asked += draw(st.lists(st.sampled_from(extra), max_size=3))
    # Neighbours so close that the slope between them is all rounding.
    close = draw(st.lists(st.sampled_from([1e-15, 1e-13, 1e-10, 1e-7]), max_size=3))
    credits_asked += [credits_asked[0] * (1 + step) for step in close]
    credits_asked = [credit for credit in credits_asked if credit >= low]
    return Concave(function), draw(st.permutations(credits_asked))


@given(samples(), st.lists(st.floats(0, 1), min_size=1, max_size=20))
@settings(max_examples=60)
def test_no_piece_of_a_function_is_above_it_or_further_below_than_its_error(given_, shares):
    bound, credits_asked = given_
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
    bound, credits_asked = given_
    check_decisions(bound, bound.table(), credits_asked)


def test_a_function_is_called_once_for_each_credit_and_nowhere_else():
    seen = []
    bound = Concave(lambda x: (seen.append(x), math.sqrt(x) if x >= 1 else -math.inf)[1])
    table = bound.table()
    for credit in (2.0, 5.0, 0.5, 0.5, 3.0, 2.0, 0.7, 0.6, 0.1):
        table.cover(credit)
    assert seen == [2.0, 5.0, 0.5, 3.0, 0.7]


finite = st.floats(-1e12, 1e12)


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


def test_a_function_that_is_concave_on_one_side_only():
    """tanh is convex below 0: what it does there must not touch credits above."""
    bound = Concave(lambda x: 0.02 * math.tanh(x))
    table = bound.table()
    table.cover(0.3)
    assert decide(table, bound(0.05) + 1e-9, 0.05) == (False, 1)
    assert decide(table, bound(0.0), 0.0) == (True, 1)


def test_a_function_may_fail_where_no_history_comes():
    table = Concave(math.sqrt).table()
    for credit in (0.0, 4.0, 1e-300, 2.0):
        assert decide(table, math.sqrt(credit), credit)[0]
    with pytest.raises(BoundError, match=r"at -1\.0"):
        decide(table, 0.0, -1.0)
    # Nothing is spoilt by it.
    assert decide(table, 1.0, 1.0)[0]
    assert not decide(table, 1.001, 1.0)[0]


def test_an_infinitely_steep_edge_down_to_the_smallest_floats():
    bound = Concave(lambda x: 1 + 0.01 * math.log(x) if x > 0 else -math.inf)
    table = bound.table()
    tiny = [1.5e-323, 5e-324, 1e-323, 1e-300, 2.2250738585072014e-308]
    check_decisions(bound, table, [1.0, -1.0, 0.0, -0.0, *tiny, 1e-9, 3.0, -1e9, HUGE])
    assert table.low == -math.inf
    assert np.isfinite(table.pieces["slope"]).all()


def test_the_slope_of_neighbouring_floats_is_not_trusted():
    """It is all rounding, and says nothing about the wide chord beside it."""
    for start in (0.5, 1.0, 1.5, 2.0):
        bound = Concave(lambda x: 0.02 * (1 - math.exp(-x)))
        table = bound.table()
        table.cover(start)
        table.cover(math.nextafter(start, 9.0))
        table.cover(9.0)
        table.cover(math.nextafter(9.0, 0.0))
        check_decisions(bound, table, [5.0, 2.5, 7.0])


def test_a_function_that_is_minus_infinity_everywhere():
    table = Concave(lambda x: -math.inf).table()
    assert [decide(table, 0.0, credit)[0] for credit in (0.0, 5.0, -5.0, HUGE)] == [False] * 4


def test_a_steep_function_far_from_zero():
    """What it does to x has the rounding errors of 1e4, although its values are near 1."""
    bound = Concave(lambda x: 1e4 * x - 9999.5)
    table = bound.table()
    for credit in (1.0, 1.00003, 1.0001):
        table.cover(credit)
    for credit in np.linspace(1.0, 1.0001, 2000).tolist():
        line = line_at(table, credit)
        assert line <= bound(credit) <= line + piece_at(table, credit)["error"]
        assert piece_at(table, credit)["error"] < 1e-10


@pytest.mark.parametrize("scale", [1.0, 0.02, 1e-6])
@pytest.mark.parametrize("function", [lambda x: -math.expm1(-0.4 * x), math.sqrt])
def test_few_questions_on_many_histories(scale, function):
    bound = Concave(lambda x: scale * function(x))
    table = bound.table()
    random = np.random.default_rng(7)
    rounds = 0
    for credit, share in random.uniform((0, 0), (20, 1.5), (20_000, 2)).tolist():
        risk = share * bound(20.0)
        admitted, asked = decide(table, risk, credit)
        assert admitted == (risk <= bound(credit) + TOLERANCE)
        rounds += asked
    assert rounds < 150


def test_minus_infinity_after_a_finite_value_is_refused():
    table = Concave(lambda x: 0.1 if x < 2 else -math.inf).table()
    table.cover(1.0)
    with pytest.raises(BoundError, match=r"decreases from 0\.1 at 1\.0 to -inf at 3\.0"):
        table.cover(3.0)
