"""Sums along a chain: every rounding is counted."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.helpers.certified import CERTIFIED, Certified
from vulcan.certificate.certify import _to_exact_weights
from vulcan.certificate.sums import Sum, add_by_halves, add_up, add_up_exactly, find_share
from vulcan.certificate.walk import NEGLIGIBLE, Chain, follow_policy
from vulcan.model.reader import StrictReader
from vulcan.numerics import END, FAILED, UNPLANNED

UNIT = Fraction(1, 1 << 53)


def test_a_sum_lies_between_two_numbers() -> None:
    assert Sum(0.5, 0.25).enclose() == (0.25, 0.75)
    # As fractions: a float would lose the smaller of the two.
    least, most = Sum(1.0, 1e-30).enclose()
    assert (1 - least, most - 1) == (Fraction(1e-30), Fraction(1e-30))
    assert Sum(3.0, math.inf).enclose() == (-math.inf, math.inf)
    assert Sum(-math.inf, 0).enclose() == (-math.inf, -math.inf)


def test_floats_know_what_they_round() -> None:
    third = Fraction(1, 3)
    assert Sum(Fraction(1, 2), Fraction(1, 8)).to_floats() == (0.5, 0.125)
    for known in (Fraction(0), UNIT * third):
        value, error = Sum(third, known).to_floats()
        off = abs(Fraction(1 / 3) - third) + known
        assert value == 1 / 3
        assert off <= Fraction(error) < off * (1 + 2 * UNIT)
    for numbers in ((math.inf, Fraction(0)), (third, math.inf)):
        floats = Sum(*numbers).to_floats()
        assert floats == tuple(map(float, numbers))
        assert [type(number) for number in floats] == [float, float]


@pytest.mark.parametrize("operations", [0, 1, 7, 1000.5, 1 << 30, 1 << 50, (1 << 51) - 1])
def test_the_share_that_operations_may_lose(operations: float) -> None:
    off = Fraction(operations) * UNIT
    share = off / (1 - 2 * off)
    assert share <= Fraction(find_share(operations)) <= share * (1 + Fraction(2, 10**9))


def test_too_many_operations_prove_nothing() -> None:
    assert find_share(1 << 51) == math.inf


class Depth:
    """A sum that knows in how many additions each of its terms took part."""

    def __init__(self, *parts: int) -> None:
        self.parts = parts

    def __add__(self, other: Depth) -> Depth:
        return Depth(*(part + 1 for part in self.parts + other.parts))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 31, 32, 33, 1000])
def test_no_term_takes_part_in_many_additions(count: int) -> None:
    found = add_by_halves(np.array([Depth(0) for _ in range(count)], object))
    assert len(found.parts) == count
    assert max(found.parts) <= 2 * math.log2(count)
    numbers = np.arange(2 * count, dtype=float).reshape(count, 2) ** 2
    assert add_by_halves(numbers).tolist() == numbers.sum(axis=0).tolist()


def test_the_sums_of_a_chain() -> None:
    chain = make_chain()
    earned = 0.5 - 0.5 + 1 + 0.5 + 0.25 * 1.25 + 0.125 * 0.5
    reach = [0.75 * 0.5, 0.25 * 0.5 + 0.5 * 0.25 + 0.5 * 0.125]
    reward, risk, frontier = add_up(chain, [1.0])
    assert reward.value == earned + 0.5 * 5 * reach[0]
    assert risk.value == 0.125 + 0.125 + 0.5 * reach[1]
    assert frontier.value == 0.0625
    exact = add_up_exactly(chain, [1])
    assert exact == tuple((number.value, 0) for number in (reward, risk, frontier))
    assert all(isinstance(number, Fraction) for number, _ in exact)


@pytest.mark.parametrize("name", ["linear", "discount", "randomised", "incomplete", "forked"])
@pytest.mark.parametrize("places", [5, 20, 60])
def test_cut_sums_enclose_the_true_ones(name: str, places: int) -> None:
    chain, start = follow(CERTIFIED[name])
    exact, cut = add_up_exactly(chain, start), add_up_exactly(chain, start, places)
    for number, rough in zip(exact, cut, strict=True):
        assert number.error == 0
        assert abs(number.value - rough.value) <= rough.error < 1e4 * Fraction(1, 1 << places)
    assert cut[0].value != exact[0].value


def follow(case: Certified) -> tuple[Chain, list[Fraction]]:
    chain, _ = follow_policy(case.policy, StrictReader(case.problem.model))
    return chain, _to_exact_weights(case.policy.weights)


# From 0 to 1, 2 and 3; from there to 4 and 5.
WAYS = [
    (0, 1, 0.5, 1.0),
    (0, 2, 0.25, -2.0),
    (0, 3, 0.125, 0.0),
    (0, FAILED, 0.125, 8.0),
    (1, 4, 0.75, 1.0),
    (1, 5, 0.25, 1.0),
    (2, 5, 0.5, 3.0),
    (2, FAILED, 0.25, -1.0),
    (2, FAILED, 0.25, 0.0),
    (3, 5, 0.5, 0.0),
    (3, UNPLANNED, 0.5, 1.0),
    (4, END, 1.0, 5.0),
    (5, END, 0.5, 5.0),
    (5, FAILED, 0.5, -5.0),
]


def make_chain(ways: list[tuple[Any, ...]] = WAYS, sizes: tuple[int, ...] = (1, 3, 2)) -> Chain:
    return Chain(sizes, zip(*ways, strict=True), [1.0, 0.5, 0.25])


def test_the_probability_of_being_in_each_place() -> None:
    chain = make_chain()
    reach = chain.spread(np.array([0.5]), chain.probability)
    at = [0.5, 0.25, 0.125, 0.0625]
    assert reach.tolist() == [*at, 0.75 * 0.25, 0.25 * 0.25 + 0.5 * 0.125 + 0.5 * 0.0625]


def test_what_is_negligible_becomes_nothing() -> None:
    less = float(np.nextafter(NEGLIGIBLE, 0))
    ways = [(0, 1, NEGLIGIBLE, 0.0), (0, 2, less, 0.0), (0, 3, 0.5, 0.0)]
    ways += [(place, END, 1.0, 0.0) for place in (1, 2, 3)]
    chain = Chain([1, 3], zip(*ways, strict=True), [1, 1])
    assert chain.spread(np.ones(1), chain.probability).tolist() == [1.0, NEGLIGIBLE, 0.0, 0.5]
