"""Sums along a chain: every rounding is counted, and whatever is dropped."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.certificates.test_chain import WAYS, make_chain
from tests.helpers.certified import CERTIFIED, Certified
from vulcan.certificates import sums
from vulcan.certificates.certificate import _to_exact_weights, follow_policy
from vulcan.certificates.chain import NEGLIGIBLE, Chain
from vulcan.certificates.sums import Sum, add_by_halves, add_up, add_up_exactly, find_share
from vulcan.model.careful import CarefulReader
from vulcan.sentinels import END, FAILED

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


def test_operations_are_counted() -> None:
    # Three levels of 2, one and three ways that meet, four outcomes, six places halved, and 8.
    chain = make_chain()
    assert sums.count_operations(chain) == 2 * 3 + (0 + 1 + 3) + 2 * 3 + 4 + 2 * 3 + 8
    chain.discounts = [1, 1.0, Fraction(1)]
    assert sums.count_operations(chain) == 2 * 3 + (0 + 1 + 3) + 4 + 2 * 3 + 8
    short = Chain([1], ([0], [END], [1.0], [1.0]), [0.5])
    assert sums.count_operations(short) == 2 + 0 + 2 + 1 + 2 + 8


def test_the_sums_of_a_chain_and_their_errors() -> None:
    chain = make_chain()
    earned = 0.5 - 0.5 + 1 + 0.5 + 0.25 * 1.25 + 0.125 * 0.5
    reach = [0.75 * 0.5, 0.25 * 0.5 + 0.5 * 0.25 + 0.5 * 0.125]
    reward, risk, frontier = add_up(chain, [1.0])
    assert reward.value == earned + 0.5 * 5 * reach[0]
    assert risk.value == 0.125 + 0.125 + 0.5 * reach[1]
    assert frontier.value == 0.0625
    size = 0.5 + 0.5 + 1 + 0.5 + 0.25 * 1.75 + 0.125 * 0.5 + 0.5 * 5 * sum(reach)
    share = Fraction(find_share(34))
    for found, whole in ((reward, size), (risk, risk.value), (frontier, frontier.value)):
        exactly = share * Fraction(whole)
        assert exactly <= Fraction(found.error) <= exactly * (1 + 2 * UNIT)
    exact = add_up_exactly(chain, [1])
    assert exact == tuple((number.value, 0) for number in (reward, risk, frontier))
    assert all(isinstance(number, Fraction) for number, _ in exact)


def count_lost(ways: list[tuple[Any, ...]], discounts: list[float]) -> tuple[float, float]:
    """Return how many products of reach, and of rewards, of a chain of two levels are too small."""
    chain = Chain([1, 1], zip(*ways, strict=True), discounts)
    reach = chain.spread(np.ones(1), chain.probability)
    lost, unpaid = sums._count_lost(chain, reach)
    return float(lost / Fraction(NEGLIGIBLE)), float(unpaid / Fraction(NEGLIGIBLE))


def test_products_too_small_are_counted() -> None:
    less, on = float(np.nextafter(NEGLIGIBLE, 0)), (0, 1, 0.5, 0.0)
    assert count_lost([on, (1, END, 1.0, 3.0)], [1, 1]) == (0, 0)
    # Of the place 1 with the probability 0.5, twice what is negligible is not too small.
    assert count_lost([on, (1, END, 2 * NEGLIGIBLE, 0.0)], [1, 1]) == (0, 0)
    assert count_lost([on, (1, END, 2 * less, 0.0)], [1, 1]) == (1, 0)
    assert count_lost([on, (1, END, 2 * less, 0.0), (1, FAILED, less, 0.0)], [1, 1]) == (2, 0)
    # Its reward is too small as a part of its place, and as a part of the sum.
    assert count_lost([on, (1, END, 1.0, 2 * NEGLIGIBLE)], [1, 1]) == (0, 0)
    assert count_lost([on, (1, END, 1.0, -2 * less)], [1, 1]) == (0, 1)
    assert count_lost([on, (1, END, 0.25, -less)], [1, 1]) == (0, 2)
    # A power of the discount that is too small, and its product with what is likely.
    assert count_lost([on, (1, END, 1.0, 0.0)], [NEGLIGIBLE, 1]) == (0, 1)
    assert count_lost([on, (1, END, 1.0, 0.0)], [less, 1]) == (0, 2)
    assert count_lost([on, (1, END, 1.0, 1.0)], [less, 1]) == (0, 3)
    # With a discount of 0 that is what was meant.
    assert count_lost([on, (1, END, 1.0, 1.0)], [0, 1]) == (0, 0)
    assert count_lost([on, (1, END, 1e-200, 1e-200)], [0.0, 1]) == (1, 1)


def test_what_was_dropped_is_part_of_the_error() -> None:
    # Nothing is earned but where nobody comes: all of the error is what was dropped.
    ways = [(0, 1, 1e-201, 0.0), (0, END, 1.0, 0.0), (1, END, 0.75, 4e90), (1, FAILED, 0.25, 8e90)]
    chain = Chain([1, 1], zip(*ways, strict=True), [1, 1])
    reward, risk, frontier = add_up(chain, [1.0])
    assert (reward.value, risk.value, frontier.value) == (0, 0, 0)
    assert reward.error == pytest.approx(1e-200 * (1 + 2 * 2 * 5e90), rel=1e-14, abs=0)
    assert risk.error == frontier.error == 2e-200
    ways[0] = (0, 1, 1.0, 0.0)
    ways[2:] = [(1, END, 1.0, 1e-201)]
    chain = Chain([1, 1], zip(*[ways[0], ways[2]], strict=True), [1, 1])
    reward, risk, frontier = add_up(chain, [1.0])
    assert reward.error == pytest.approx(2e-200, rel=1e-14, abs=0)
    assert risk.error == frontier.error == 0


@pytest.mark.parametrize(
    ("number", "places", "kept"),
    [
        (Fraction(1, 7), None, Fraction(1, 7)),
        (Fraction(1, 7), 3, Fraction(1, 7)),
        (Fraction(1, 8), 3, Fraction(1, 8)),
        (Fraction(1, 9), 3, Fraction(0)),
        (Fraction(8, 9), 3, Fraction(7, 8)),
        (Fraction(22, 9), 2, Fraction(9, 4)),
    ],
)
def test_fractions_are_cut_off(number: Fraction, places: int | None, kept: Fraction) -> None:
    assert sums._cut(number, places) == (kept, number - kept)


def test_fractions_know_what_was_cut_off() -> None:
    # With one binary place, the probability of place 1 becomes 0, and the discount 1/2.
    third = Fraction(1, 3)
    ways = [(0, 1, third, 0), (0, END, 1 - third, 3), (1, END, 0.5, -6), (1, FAILED, 0.5, 0)]
    chain = Chain([1, 1], zip(*ways, strict=True), [1 - third, 1])
    reward, risk, frontier = add_up_exactly(chain, [1], 1)
    lost = (third - 0) + (1 - third - Fraction(1, 2))
    assert (reward.value, risk.value, frontier.value) == (2, 0, 0)
    assert (reward.error, risk.error, frontier.error) == (4 * 2 * 6 * lost, 2 * lost, 2 * lost)
    exact = add_up_exactly(chain, [1])
    assert exact.reward == (2 - third * 3 * (1 - third), 0)
    assert exact.risk == (third / 2, 0)


@pytest.mark.parametrize("name", ["linear", "discount", "randomised", "incomplete", "forked"])
@pytest.mark.parametrize("places", [5, 20, 60])
def test_cut_sums_enclose_the_true_ones(name: str, places: int) -> None:
    chain, start = follow(CERTIFIED[name])
    exact, cut = add_up_exactly(chain, start), add_up_exactly(chain, start, places)
    for number, rough in zip(exact, cut, strict=True):
        assert number.error == 0
        assert abs(number.value - rough.value) <= rough.error < 1e4 * Fraction(1, 1 << places)
    assert cut.reward.value != exact.reward.value


def follow(case: Certified) -> tuple[Chain, list[Fraction]]:
    chain, _ = follow_policy(case.policy, CarefulReader(case.problem.model))
    return chain, _to_exact_weights(case.policy.weights)


def test_numbers_of_all_kinds_are_the_fractions_that_they_are() -> None:
    for number in (1, 0.1, Fraction(1, 3), np.float64(0.1), np.float32(0.1), np.int64(3)):
        found = sums.to_fraction(number)
        assert found == (Fraction(number.item()) if hasattr(number, "item") else Fraction(number))
        assert type(found.numerator) is int


def test_the_order_of_ways_makes_no_difference_beyond_the_error() -> None:
    random = Random(0)
    for _ in range(10):
        ways = [(*way[:3], way[3] * random.random() / 3) for way in WAYS]
        chain = make_chain(ways)
        exact = add_up_exactly(chain, [1])
        for number, found in zip(exact, add_up(chain, [1]), strict=True):
            assert abs(number.value - Fraction(found.value)) <= Fraction(found.error)
