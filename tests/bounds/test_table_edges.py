"""Tables of bounds in single hard cases: steep edges, neighbouring floats, distant credits."""

import math

import numpy as np
import pytest

from tests.helpers.bound_tables import HUGE, check_decisions, decide, line_at, piece_at, risks_near
from vulcan import BoundError, Concave
from vulcan.tolerance import TOLERANCE


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


@pytest.mark.parametrize("credit", [math.nan, 7.0])
def test_a_function_without_a_value_names_the_credit(credit):
    bound = Concave(lambda x: {1.0: 0.1}[x])
    table = bound.table()
    table.cover(1.0)
    with pytest.raises(BoundError, match=repr(credit)):
        table.cover(credit)


def test_an_infinitely_steep_edge_down_to_the_smallest_floats():
    bound = Concave(lambda x: 1 + 0.01 * math.log(x) if x > 0 else -math.inf)
    table = bound.table()
    tiny = [1.5e-323, 5e-324, 1e-323, 1e-300, 2.2250738585072014e-308]
    check_decisions(bound, table, [1.0, -1.0, 0.0, -0.0, *tiny, 1e-9, 3.0, -1e9, HUGE])
    assert table.low == -math.inf
    assert np.isfinite(table.pieces["slope"]).all()


def test_a_chord_steeper_than_any_float():
    bound = Concave(lambda x: 1 + 0.01 * math.log(x) if x > 0 else -math.inf)
    table = bound.table()
    table.cover(5e-324)
    table.cover(1e-321)
    check_decisions(bound, table, [5e-322, 6e-322, 1.5e-323])


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


def test_the_region_where_nothing_is_acceptable_costs_few_questions():
    bound = Concave(lambda x: 0.1 if x >= math.pi else -math.inf)
    table = bound.table()
    rounds = 0
    for credit in np.random.default_rng(1).uniform(-100, 100, 5000).tolist():
        admitted, asked = decide(table, 0.05, credit)
        assert admitted == (credit >= math.pi)
        rounds += asked
    assert rounds < 60


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


def test_very_distant_credits():
    bound = Concave(lambda x: min(0.01, x))
    table = bound.table()
    check_decisions(bound, table, [1e308, -1e308, 0.0, 1.7e308, -1.7e308, 0.005])


def test_minus_infinity_after_a_finite_value_is_refused():
    table = Concave(lambda x: 0.1 if x < 2 else -math.inf).table()
    table.cover(1.0)
    with pytest.raises(BoundError, match=r"decreases from 0\.1 at 1\.0 to -inf at 3\.0"):
        table.cover(3.0)


def test_evaluated_lists_the_places_in_order():
    table = Concave(lambda x: 1 - math.exp(-x)).table()
    for credit in (3.0, 1.0, 2.5):
        table.cover(credit)
    assert table.evaluated(1.5, 3.0) == [1.5, 2.5, 3.0]
    assert table.evaluated(0.0, 4.0) == [0.0, 1.0, 2.5, 3.0, 4.0]
    assert table.evaluated(math.inf, -math.inf) == []


def test_pieces_are_in_order_and_reach_from_the_least_to_the_largest_credit():
    table = Concave(math.sqrt).table()
    asked = [1.0, 0.0, math.nextafter(1.0, 2.0), 4.0]
    for count, credit in enumerate(asked, start=1):
        table.cover(credit)
        assert (np.diff(table.pieces["start"]) >= 0).all()
        assert (table.low, table.high) == (min(asked[:count]), max(asked[:count]))


def test_the_float_after_a_place_is_decided_exactly():
    bound = Concave(lambda x: 0.02 * (1 - math.exp(-x)))
    table = bound.table()
    for credit in (0.5, 1.0, 2.0):
        table.cover(credit)
    after = math.nextafter(1.0, 2.0)
    for risk in risks_near(bound(after)):
        assert decide(table, risk, after)[0] == (risk <= bound(after) + TOLERANCE)
