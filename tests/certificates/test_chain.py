"""Chains: their parts by hand, and the same probabilities however places are put together."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.helpers.certified import CERTIFIED, FADING, TRIP, VANISHING
from tests.helpers.plans import build_merged
from tests.helpers.tables import Table
from vulcan import Outcome
from vulcan.certificates import chain as chains
from vulcan.certificates.certificate import follow_policy
from vulcan.certificates.chain import NEGLIGIBLE, Chain, follow_places
from vulcan.model.reader import ModelReader
from vulcan.policies.walk import PolicyWalk
from vulcan.sentinels import END, FAILED, UNPLANNED

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


def test_the_parts_of_a_chain() -> None:
    chain = make_chain()
    assert len(chain) == 6
    assert chain.firsts.tolist() == [0, 1, 4, 6]
    assert chain.weights.tolist() == [1.0, 1.0, 1.0, 1.0, 0.5, 0.5]
    assert chain.most_outcomes == 4
    assert chain.entries.tolist() == [0, 1, 3]
    assert np.flatnonzero(chain.fails).tolist() == [3, 7, 8, 13]
    assert chain.risk.tolist() == [0.125, 0.0, 0.5, 0.0, 0.0, 0.5]
    assert chain.unplanned.tolist() == [0.0, 0.0, 0.0, 0.5, 0.0, 0.0]
    assert chain.gather(chain.reward).tolist() == [7.0, 2.0, 2.0, 1.0, 5.0, 0.0]
    assert chain.gather(chain.reward).dtype == float


def test_a_chain_without_places() -> None:
    chain = Chain([], ((),) * 4, [])
    assert len(chain) == chain.most_outcomes == 0
    assert chain.firsts.tolist() == [0]
    for empty in (chain.weights, chain.entries, chain.risk, chain.probability, chain.reward):
        assert empty.tolist() == []
    assert chain.blocks == []


def test_the_probability_of_being_in_each_place() -> None:
    chain = make_chain()
    reach = chain.spread(np.array([0.5]), chain.probability)
    at = [0.5, 0.25, 0.125, 0.0625]
    assert reach.tolist() == [*at, 0.75 * 0.25, 0.25 * 0.25 + 0.5 * 0.125 + 0.5 * 0.0625]


@pytest.mark.parametrize("block", [1, 2, 4, 5, 6, 100])
def test_levels_are_put_together_up_to_a_size(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "BLOCK", block)
    chain = make_chain()
    found = {1: [(0, 1), (1, 2), (2, 3)], 4: [(0, 2), (2, 3)], 5: [(0, 2), (2, 3)], 6: [(0, 3)]}
    assert chain.blocks == found.get(block, found[1] if block == 2 else found[6])
    share = np.array([[1.0, 0.5], [0.5, 1.0], [1.0, 2.0], [0.25, 1.0], [1.0, 1.0], [3.0, 1.0]])
    asked: list[slice] = []

    def survive(span: slice) -> Any:
        asked.append(span)
        return share[span]

    reach = chain.spread(np.array([[1.0, 0.5]]), chain.probability, survive)
    assert asked == [slice(chain.firsts[a], chain.firsts[b]) for a, b in chain.blocks]
    first, second = np.array([1.0, 0.25]), [0.5, 0.25, 0.125]
    middle = [part * first for part in second]
    onward = [part * kept for part, kept in zip(middle, share[1:4], strict=True)]
    last = [0.75 * onward[0], 0.25 * onward[0] + 0.5 * onward[1] + 0.5 * onward[2]]
    assert reach.tolist() == np.array([[1.0, 0.5], *middle, *last]).tolist()


def test_what_is_negligible_becomes_nothing() -> None:
    less = float(np.nextafter(NEGLIGIBLE, 0))
    ways = [(0, 1, NEGLIGIBLE, 0.0), (0, 2, less, 0.0), (0, 3, 0.5, 0.0)]
    ways += [(place, END, 1.0, 0.0) for place in (1, 2, 3)]
    chain = Chain([1, 3], zip(*ways, strict=True), [1, 1])
    assert chain.spread(np.ones(1), chain.probability).tolist() == [1.0, NEGLIGIBLE, 0.0, 0.5]


def test_a_chain_has_the_numbers_that_the_model_said() -> None:
    third = Fraction(1, 3)
    model = Table({0: {"a": [Outcome(third, 1, 0), Outcome(1 - third, third, 1)]}}, horizon=2)
    model.discount = Fraction(1, 7)  # type: ignore[assignment]
    reader, shares = ModelReader(model), []
    walk = PolicyWalk(build_merged(model), reader)
    chain = follow_places(walk, reader, shares.append)
    assert chain.sizes.tolist() == [1, 1]
    assert chain.source.tolist() == [0, 0, 1, 1]
    assert chain.target.tolist() == [1, END, END, END]
    assert [list(said) for said in chain.said] == [[third, 1 - third] * 2, [1, third] * 2]
    assert chain.discounts == [Fraction(1, 7)] * 2
    assert shares == [0.5, 1.0]


def test_histories_that_come_to_the_same_place_go_on_as_one() -> None:
    for model, sizes in ((TRIP, [1, 2, 3, 3, 3]), (VANISHING, [1, 2, 3, 3])):
        chain, evaluations = follow_policy(build_merged(model), ModelReader(model))
        assert chain.sizes.tolist() == sizes
        assert evaluations == 3
    chain, _ = follow_policy(build_merged(FADING), ModelReader(FADING))
    assert chain.discounts == [0.9] * 5
    # Two members that do the same, and another one, are never in the same place.
    mixed = CERTIFIED["randomised"]
    chain, evaluations = follow_policy(mixed.policy, ModelReader(mixed.problem.model))
    assert chain.sizes.tolist() == [3, 6, 9, 9, 9]
    assert evaluations == 4
