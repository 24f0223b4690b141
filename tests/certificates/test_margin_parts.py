"""How a margin is looked for: which factors are tried, in what order, and what is proved."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import vulcan
from tests.helpers.certified import (
    CERTIFIED,
    FORKED,
    PAYING,
    TRIP,
    Certified,
    find_claims,
    scale,
)
from tests.helpers.plans import build
from tests.helpers.tables import Table
from tests.oracles.brute_force import enumerate_plans
from tests.oracles.fractions import find_worth
from vulcan.certificates import margin
from vulcan.certificates.chain import NEGLIGIBLE, Chain
from vulcan.certificates.margin import PRECISION, End, find_margin
from vulcan.certificates.sums import UNIT, count_operations, find_share
from vulcan.sentinels import END, FAILED
from vulcan.tolerance import TOLERANCE

FREE = vulcan.Constant(1.0)


def make_chain(*ways: tuple[int, int, float, float], sizes: Sequence[int] = (1,)) -> Chain:
    return Chain(sizes, zip(*ways, strict=True), [1] * len(sizes))


def risk_once(*risks: float) -> Chain:
    """Return the chain of an action that fails with each of some probabilities."""
    left = (0, END, 1 - math.fsum(risks), 1.0)
    return make_chain(left, *((0, FAILED, risk, 0.0) for risk in risks))


class Asked:
    """Stands for a policy under a bound that holds up to a factor, and proves narrow intervals."""

    def __init__(self, edge: float, intervals: int = 4, rounds: int = 60, width: float = 1e9):
        self.edge, self.intervals, self.rounds, self.width = edge, intervals, rounds, width
        self.asked: list[list[float]] = []

    def test(self, lows: Sequence[float], highs: Sequence[float]) -> Iterator[margin._Test]:
        assert list(lows[1:]) == list(highs[:-1])
        self.asked.append([lows[0], *highs])
        for low, high in zip(lows, highs, strict=True):
            holds = high <= self.edge and high - low <= self.width
            yield margin._Test(high, holds, (self.edge - high) / 10)


def march(asked: Asked, begin: float, ends: list[float]) -> float:
    waiting = [End(end) for end in reversed(ends)]
    return margin._march(asked, End(begin, asked.edge - begin), waiting)  # type: ignore[arg-type]


def test_all_intervals_that_hold_are_passed_at_once() -> None:
    asked = Asked(10.0)
    assert march(asked, 1.0, [2.0, 3.0, 4.0, 5.0, 6.0]) == 6
    assert asked.asked == [[1, 2, 3, 4, 5], [5, 6]]


@pytest.mark.parametrize("edge", [1.5, 2.0, 3.7, 1e3])
def test_the_edge_is_found_to_the_precision(edge: float) -> None:
    asked = Asked(edge)
    found = march(asked, 1.0, [1.1, 4.0, 1e6])
    assert edge * (1 - PRECISION) <= found <= edge
    assert len(asked.asked) < 12
    # No interval is tried twice, and none beyond where a proof failed.
    assert all(a < b for row in asked.asked for a, b in pairwise(row))
    assert len(set(map(tuple, asked.asked))) == len(asked.asked)


def test_the_search_ends_after_its_rounds() -> None:
    for rounds in (1, 2, 3):
        asked = Asked(3.7, rounds=rounds)
        march(asked, 1.0, [1.1, 4.0, 1e6])
        assert len(asked.asked) == rounds


def test_intervals_that_are_too_wide_are_divided() -> None:
    asked = Asked(10.0, width=0.25)
    assert march(asked, 1.0, [2.0, 3.0]) == 3
    # Four quarters, each of which is proved; then on, with those that are still waiting.
    assert asked.asked[:3] == [[1, 2, 3], [1, 1.25, 1.5, 1.75, 2], [2, 3]]
    asked = Asked(10.0, width=0.125)
    assert march(asked, 1.0, [2.0]) == 2
    assert asked.asked[2] == [1, 1.0625, 1.125, 1.1875, 1.25]


def test_nothing_is_proved_beyond_an_interval_that_is_not() -> None:
    class Gap(Asked):
        """Breaks between 3 and 4 alone."""

        def test(self, lows: Any, highs: Any) -> Iterator[margin._Test]:
            for test in super().test(lows, highs):
                broken = 3 < test.factor < 4
                yield margin._Test(test.factor, not broken, -0.1 if broken else 0.1)

    assert 3 * (1 - PRECISION) <= march(Gap(100.0), 1.0, [2.0, 3.5, 5.0]) <= 3


def test_where_to_divide() -> None:
    def divide(low: End, high: End, count: int = 4) -> list[float]:
        found = margin._divide(low, high, count)
        assert all(type(factor) is float for factor in found)
        return found

    # Where nothing is broken: evenly, up to the end itself.
    assert divide(End(1.0, 0.5), End(3.0, 0.0)) == [1.5, 2.0, 2.5, 3.0]
    assert divide(End(0.0, 0.5), End(3.0, 0.5), 3) == [1.0, 2.0, 3.0]
    # From nothing on: evenly, without the end.
    assert divide(End(0.0, 0.5), End(1.0, -0.5)) == [0.2, 0.4, pytest.approx(0.6), 0.8]
    # Over a wide range: by factors.
    assert divide(End(1.0, 0.5), End(32.0, -0.5)) == pytest.approx([2, 4, 8, 16])
    assert divide(End(2.0, 0.5), End(8.001, -0.5), 1) == pytest.approx([math.sqrt(16.002)])
    # Else around the place where a line would be 0: at 2 + 1/5 here.
    around = [1e-3, math.sqrt(3e-4), 0.3]
    expected = [2.2 + sign * part for sign in (-1, 1) for part in around]
    apart = PRECISION * 3 / 4
    expected = sorted(min(max(end, 2 + apart), 3 - apart) for end in expected)
    assert divide(End(2.0, 0.1), End(3.0, -0.4), 6) == pytest.approx(expected, rel=1e-12)
    assert divide(End(2.0, 0.1), End(3.0, -0.4), 7) == pytest.approx(expected, rel=1e-12)
    assert divide(End(2.0, 0.0), End(8.0, -0.4), 2) == pytest.approx([2 + 2e-7, 2 + 6e-3], rel=1e-9)
    for slack in (None, -0.2, 0.0):
        found = divide(End(2.0, slack), End(4.0, -0.4), 2)
        assert found == pytest.approx([2 + 1e-7, 2 + 2e-3], rel=1e-9)


def find_ends(chain: Chain, monkeypatch: pytest.MonkeyPatch, passes: bool = True) -> list[Any]:
    """Return where a search for the margin begins, and where its intervals would end."""
    found: list[Any] = []

    def note(scaled: margin._Scaled, proved: End, waiting: list[End]) -> float:
        found.extend([proved, *reversed(waiting)])
        return proved.factor

    monkeypatch.setattr(margin, "_march", note)
    find_margin(chain, [1.0], FREE, 1.0, passes)
    return found


def test_intervals_end_beyond_the_smallest_risk(monkeypatch: pytest.MonkeyPatch) -> None:
    def list_factors(*risks: float) -> list[float]:
        first, *ends = find_ends(risk_once(*risks), monkeypatch)
        assert first == (1.0, pytest.approx(min(1 - math.fsum(risks) + TOLERANCE, 1.0), abs=1e-13))
        assert all(end.slack is None for end in ends)
        return [end.factor for end in ends]

    most = 1 + 1e-7
    assert list_factors(0.01) == [1.0001, 1.01, 1.2, 2, 5, 20, 100, most / 0.01]
    assert list_factors(0.5) == [1.0001, 1.01, 1.2, 2, most / 0.5]
    assert list_factors(0.9995) == [1.0001, most / 0.9995]
    assert list_factors(1.0) == [most]
    assert list_factors(most / 2) == [1.0001, 1.01, 1.2, 2]
    assert list_factors(1e-304)[-2:] == [1e12, 1e300]
    # Of several places the smallest counts.
    ways = [(0, 1, 0.75, 0.0), (0, FAILED, 0.25, 0.0), (1, END, 0.5, 0.0), (1, FAILED, 0.5, 0.0)]
    chain = make_chain(*ways, sizes=(1, 1))
    assert find_ends(chain, monkeypatch)[-1].factor == most / 0.25
    refused = find_ends(chain, monkeypatch, passes=False)
    assert refused == [(0.0, 1.0), (1.0, -TOLERANCE)]


def test_no_factor_breaks_what_holds_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(chain: Chain, far: float, passes: bool = True) -> float:
        monkeypatch.setattr(margin, "_march", lambda scaled, proved, waiting: far)
        return find_margin(chain, [1.0], FREE, 1.0, passes)

    chain, most = risk_once(0.25), (1 + 1e-7) / 0.25
    assert found(chain, most) == math.inf
    assert found(chain, 4.0) == 4.0
    assert found(chain, 1.0) == 1.0
    assert found(chain, 0.25, passes=False) == 0.25
    assert found(risk_once(1e-304), 1e300) == 1e300  # risks would go on growing
    assert found(risk_once(0.0), 7.0) == math.inf
    assert found(risk_once(0.0), 7.0, passes=False) == 0


def test_what_is_no_bound_any_more_proves_nothing() -> None:
    # It falls between 2 and 3, which no policy as it is comes to; with more risk, this one does.
    def fall(reward: float) -> float:
        return 0.9 if reward < 2 else 0.9 - 0.1 * (reward - 2)

    ways = [(0, END, 0.9, 0.0), (0, FAILED, 0.1, 10.0)]
    bound = vulcan.Concave(fall)
    assert find_margin(make_chain(*ways), [1.0], bound, 1.0, True) == 1.0
    refused = vulcan.Concave(lambda x: fall(3 - x) - 0.85)
    assert find_margin(make_chain(*ways), [1.0], refused, 1.0, False) == 0.0
    flat = vulcan.Concave(lambda x: 0.9)
    assert find_margin(make_chain(*ways), [1.0], flat, 1.0, True) == pytest.approx(9, rel=1e-6)


@pytest.mark.parametrize(
    ("places", "intervals", "rounds"),
    [
        (1, 12, 60),
        (8_000, 12, 60),
        (10_000, 12, 50),
        (100_000, 5, 12),
        (250_000, 2, 12),
        (500_001, 2, 12),
    ],
)
def test_the_larger_a_policy_the_less_is_tried(places: int, intervals: int, rounds: int) -> None:
    numbers = np.arange(places)
    ones = np.ones(places)
    chain = Chain([places], (numbers, np.full(places, END), ones, ones), [1])
    scaled = margin._Scaled(chain, ones / places, FREE, 1.0)
    assert (scaled.intervals, scaled.rounds) == (intervals, rounds)


def test_the_roundings_of_scaled_risks_are_counted() -> None:
    case = CERTIFIED["forked"]
    scaled = scale(case)
    chain = scaled._chain
    assert chain.most_outcomes == 2
    assert scaled._widened == 4 * 6 * UNIT
    # At each level the place with the largest immediate risk below 1 counts, thrice at 0.001.
    assert chain.sizes.tolist() == [1, 2, 2, 2, 2, 2, 2]
    doubts = sum(6 / 0.999 if risk else 6.0 for risk in [0, 1, 0, 1, 0, 1, 0])
    operations = count_operations(chain) + 4 * 7 + 3 * 2 + 16 + 2 * doubts
    assert scaled._share == pytest.approx(2 * find_share(operations), rel=1e-12, abs=0)
    lost = 4 * NEGLIGIBLE * (len(chain.source) + len(chain))
    assert scaled._lost == pytest.approx((lost, lost * (1 + 2 * 7 * 10.0)), rel=1e-12, abs=0)
    assert scaled.used == (1.0, 1.0)


def test_a_share_of_all_proves_nothing() -> None:
    # What is left beside the failures is as small as its own rounding.
    chain = make_chain((0, END, 1e-17, 1.0), (0, FAILED, 1 - 2.0**-53, 0.0))
    scaled = margin._Scaled(chain, np.ones(1), FREE, 1.0)
    assert scaled._share == 1.0


def test_risks_are_at_most_one() -> None:
    def find_risk(*ways: tuple[int, float]) -> Any:
        chain = make_chain(*((0, target, likely, 1.0) for target, likely in ways))
        scaled = margin._Scaled(chain, np.ones(1), FREE, 1.0)
        assert np.isfinite(scaled._likely).all()
        return scaled._risk.tolist()

    assert find_risk((END, 0.75), (FAILED, 0.25)) == [[0.25]]
    # Ten tenths are less than 1, and with no other outcome they are 1 all the same.
    assert math.fsum([0.1] * 10) == 1 > sum([0.1] * 10)
    assert find_risk(*[(FAILED, 0.1)] * 10) == [[1.0]]
    assert find_risk((END, 0.0), *[(FAILED, 0.1)] * 10) == [[1.0]]
    # As far beyond 1 as is tolerated.
    assert find_risk((END, 1e-13), (FAILED, 0.5), (FAILED, 0.5 + 2e-13)) == [[1.0]]


def test_what_may_be_lost_counts_against_a_claim() -> None:
    # Nothing is earned but where nobody comes, and nothing is risked with a factor of 0.
    ways = [(0, 1, 1e-201, 0.0), (0, END, 0.75, 0.0), (0, FAILED, 0.25, 0.0), (1, END, 1.0, 1e100)]
    scaled = margin._Scaled(make_chain(*ways, sizes=(1, 1)), np.ones(1), FREE, 0.0)
    lost = 4 * NEGLIGIBLE * (4 + 2)
    assert scaled._lost == pytest.approx((lost, lost * (1 + 2 * 2 * 1e100)), rel=1e-12, abs=0)
    assert find_claims(scaled, [0.0], [0.0]) == [
        (scaled._lost[0], -scaled._lost[1], scaled._lost[1])
    ]
    small = margin._Scaled(make_chain((0, END, 1.0, -0.5)), np.ones(1), FREE, 0.0)
    assert small._lost == pytest.approx((8e-200, 8e-200 * (1 + 2 * 0.5)), rel=1e-12, abs=0)
    ((risk, *_),) = find_claims(scaled, [1.0], [2.0])
    assert risk == 0.5 * (1 + scaled._widened) * (1 + scaled._share)


def list_tables() -> list[Table]:
    return [Table(model.table, 4, model.discount) for model in (TRIP, PAYING, FORKED)]


@pytest.mark.parametrize("table", list_tables())
def test_what_is_claimed_of_an_interval_is_true_throughout(table: Table) -> None:
    plan = enumerate_plans(table)[0]
    case = Certified(vulcan.Problem(table, FREE), build(table, plan))
    scaled = scale(case)
    lows, highs = [0.0, 0.5, 1.0, 1.0, 8.0, 100.0], [0.25, 1.0, 1.5, 8.0, 40.0, 2000.0]
    claims = find_claims(scaled, lows, highs)
    for low, high, (risk, least, most) in zip(lows, highs, claims, strict=True):
        worths = [
            find_worth(table, plan.choice, Fraction(float(factor)))
            for factor in np.linspace(low, high, 5)
        ]
        assert worths[-1].risk <= risk <= worths[-1].risk + Fraction(1e-12)
        assert all(least <= worth.reward <= most for worth in worths)


@pytest.mark.parametrize("table", list_tables())
def test_what_is_claimed_of_a_single_factor_is_exact(table: Table) -> None:
    plan = enumerate_plans(table)[0]
    scaled = scale(Certified(vulcan.Problem(table, vulcan.Linear(1e-3)), build(table, plan)))
    factors = [0.0, 0.5, 1.0, 1.5, 8.0, 40.0, 2000.0]
    claims, slacks = find_claims(scaled, factors, factors), list(scaled.test(factors, factors))
    for factor, (risk, least, most), test in zip(factors, claims, slacks, strict=True):
        worth = find_worth(table, plan.choice, Fraction(factor))
        assert worth.risk <= risk <= worth.risk + Fraction(1e-12)
        assert worth.reward - Fraction(1e-12) <= least <= worth.reward
        assert worth.reward <= most <= worth.reward + Fraction(1e-12)
        exact = Fraction(1, 1000) * worth.reward - worth.risk
        assert test.factor == factor
        assert test.slack == pytest.approx(float(exact) + TOLERANCE, abs=1e-14)
        assert test.holds == (exact >= 0)


@pytest.mark.parametrize("reward", [-3.0, -0.5, 0.5, 3.0])
def test_losses_count_where_they_are_likely_and_gains_where_they_are_not(reward: float) -> None:
    # Place 1 is reached with 1 - κ / 2, and earns whatever the factor is.
    ways = [(0, 1, 0.5, 0.0), (0, FAILED, 0.5, 0.0), (1, END, 1.0, reward)]
    scaled = margin._Scaled(make_chain(*ways, sizes=(1, 1)), np.ones(1), FREE, 0.0)
    ((_, low, high),) = find_claims(scaled, [0.5], [1.0])
    assert [low, high] == pytest.approx(sorted([0.75 * reward, 0.5 * reward]), rel=1e-12)


@pytest.mark.parametrize("block", [1, 4, 5, 20])
def test_places_are_added_up_alike_in_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("forked", "paying", "randomised", "buried"):
        whole = find_claims(scale(CERTIFIED[name]), [0.5, 1.0], [1.0, 3.0])
        with monkeypatch.context() as patch:
            patch.setattr("vulcan.certificates.chain.BLOCK", block)
            parts = find_claims(scale(CERTIFIED[name]), [0.5, 1.0], [1.0, 3.0])
        assert np.array(parts) == pytest.approx(np.array(whole), rel=1e-12, abs=0)


def test_what_a_bound_allows_for_all_rewards_between_two() -> None:
    def allows(bound: vulcan.RiskBound, risk: float, low: float, high: float) -> Any:
        scaled = margin._Scaled(risk_once(0.5), np.ones(1), bound, 1.0)
        return scaled._allows(risk, low, high), scaled.used

    zero, slope = vulcan.Constant(0.0), vulcan.Linear(1.0)
    edge = 0.999 * TOLERANCE
    assert allows(zero, edge, 0.5, 0.75) == (True, (0.5, 1.0))
    assert allows(zero, math.nextafter(edge, 1), 0.5, 0.75) == (False, (1.0, 1.0))
    assert allows(slope, 0.5, 0.5, 0.75) == (True, (0.5, 1.0))
    assert allows(slope, 0.5, 2.0, 3.0) == (True, (1.0, 3.0))
    assert allows(slope, 0.5, 0.25, 0.75) == (False, (1.0, 1.0))
    # A function is trusted up to its roundings only.
    function = vulcan.Concave(lambda x: 0.5)
    assert allows(function, 0.5, 0.5, 0.75)[0]
    assert not allows(function, 0.5 + edge, 0.5, 0.75)[0]


def test_slack_as_far_as_it_matters() -> None:
    def find(bound: vulcan.RiskBound, reward: float, risk: float) -> float:
        return margin._Scaled(risk_once(0.5), np.ones(1), bound, 1.0)._find_slack(reward, risk)

    assert find(vulcan.Linear(0.5), 0.5, 0.125) == 0.25 + TOLERANCE - 0.125
    assert find(vulcan.Linear(5.0), 0.5, 0.125) == 1.0
    assert find(vulcan.Linear(5.0), -0.5, 0.125) == -1.0
    assert find(vulcan.parse("sqrt(x)"), -0.5, 0.125) == -1.0
