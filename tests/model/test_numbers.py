"""Distributions of numbers as nodes and as cells."""

from __future__ import annotations

import math
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.laguerre import laggauss
from numpy.polynomial.legendre import leggauss
from scipy import stats

import vulcan
from tests.oracles.hidden import follow, start
from vulcan import BeliefModel, Transition
from vulcan.errors import OptionError
from vulcan.model import Cells, quadrature


@pytest.mark.parametrize(
    ("distribution", "known", "stretch"),
    [
        (stats.norm(3, 0.01), hermegauss, lambda x: 3 + 0.01 * x),
        (stats.uniform(-1, 2), leggauss, lambda x: x),
        (stats.expon(), laggauss, lambda x: x),
    ],
)
def test_nodes_are_those_of_the_classical_rules(
    distribution: Any, known: Any, stretch: Any
) -> None:
    for count in (1, 2, 5):
        nodes, weights = known(count)
        found = quadrature(distribution, count)
        assert list(found) == pytest.approx(stretch(nodes), rel=1e-9, abs=1e-12)
        assert list(found.values()) == pytest.approx(weights / weights.sum(), rel=1e-8)


def test_moments_are_those_of_the_distribution() -> None:
    distribution = stats.lognorm(0.5)
    found = quadrature(distribution, 4)
    for power in range(8):
        mean = sum(p * x**power for x, p in found.items())
        assert mean == pytest.approx(math.exp(power**2 / 8), rel=1e-9)


def test_few_values_are_their_own_nodes() -> None:
    found = quadrature(stats.binom(2, 0.3), 6)
    assert list(found) == pytest.approx([0, 1, 2], abs=1e-9)
    assert list(found.values()) == pytest.approx([0.49, 0.42, 0.09])
    assert quadrature(stats.binom(2, 1.0), 3) == {2.0: 1.0}


@pytest.mark.parametrize(
    ("distribution", "count", "said"),
    [
        (stats.cauchy(), 3, "no finite mean"),
        (stats.t(5), 6, "moments up to 11 of a distribution must be finite"),
        (stats.norm(), 21, "the number of nodes must be a whole number from 1 to 20, not 21"),
        (3.0, 2, "a distribution must be one of scipy.stats"),
    ],
)
def test_bad_distributions_are_refused(distribution: Any, count: int, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        quadrature(distribution, count)


def test_cells_partition_the_numbers() -> None:
    cells = Cells([-1, 0.5, 4])
    assert [cells.find(x) for x in (-7, -1, 0, 0.5, 0.6, math.inf)] == [
        "up to -1", "up to -1", "-1 to 0.5", "-1 to 0.5", "0.5 to 4", "above 4",
    ]  # fmt: skip
    found = cells.probabilities(stats.norm(1, 2))
    drawn = stats.norm(1, 2).rvs(20_000, random_state=1)
    for cell, chance in found.items():
        low, high = cells.ends[cell]
        share = np.mean((drawn > low) & (drawn <= high))
        assert share == np.mean([cells.find(x) == cell for x in drawn])
        assert share == pytest.approx(chance, abs=0.02)
    assert sum(found.values()) == pytest.approx(1, abs=1e-15)
    assert Cells([9]).probabilities(stats.norm())["above 9"] == pytest.approx(stats.norm.sf(9))
    assert list(Cells([50]).probabilities(stats.norm())) == ["up to 50"]


def test_bounds_hold_between_the_distributions() -> None:
    cells, spread = Cells([-1, 0, 1.5, 2]), stats.norm(0, 0.7)
    ends = stats.norm(0.2, 0.7), stats.norm(0.9, 0.7)
    bounds = cells.bounds(*ends)
    for shift in np.linspace(0.2, 0.9, 15):
        for cell, chance in cells.probabilities(stats.norm(shift, 0.7)).items():
            low, high = bounds[cell]
            assert low - 1e-15 <= chance <= high + 1e-15
    for cell, (low, high) in cells.bounds(spread).items():
        assert low == high == cells.probabilities(spread)[cell]
    # A middle shift may be likelier in a cell than both ends are: bounds allow for it.
    inside = Cells([0, 1]).bounds(stats.norm(-1, 0.1), stats.norm(2, 0.1))["0 to 1"]
    assert inside == pytest.approx((0, 1), abs=1e-9)


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        ([], "one number or several increasing ones"),
        ([1, 1], "one number or several increasing ones"),
        ([0, math.nan], "an edge must be a finite number, not nan"),
        ([1, 1 + 3e-16], "differ in their first 15 digits"),
    ],
)
def test_bad_edges_are_refused(edges: Any, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        Cells(edges)


def test_bad_distribution_functions_are_refused() -> None:
    class Falling:
        def cdf(self, x: float) -> float:
            return 0.5 - x / 10

    with pytest.raises(OptionError, match=r"must rise from 0 to 1; at \[0.0, 1.0\]"):
        Cells([0, 1]).probabilities(Falling())
    with pytest.raises(OptionError, match="nan is in no cell"):
        Cells([0, 1]).find(math.nan)


class Gap:
    """A gap that is measured with a bias of each hidden state, known or not."""

    horizon = 4
    reading = Cells([1.2, 1.5, 1.8])
    width: ClassVar = {"narrow": 1.0, "wide": 2.0}

    def __init__(self, **bias: float) -> None:
        self.bias = bias

    def initial_belief(self) -> dict[str, float]:
        return {"narrow": 0.5, "wide": 0.5}

    def actions(self, observation: str | None) -> list[str]:
        return [] if observation == "through" else ["measure", "drive", "turn back"]

    def read(self, state: str) -> dict[str, float]:
        """Return the probability of each cell, or its inner probability if the bias is unknown."""
        biases = [self.bias[state]] if self.bias else [-0.01, 0.01]
        ends = (stats.norm(self.width[state] + bias, 0.4) for bias in biases)
        return {cell: low for cell, (low, _) in self.reading.bounds(*ends).items()}

    def transitions(self, state: str, action: str) -> list[Transition]:
        if action == "measure":
            known = min(1.0, sum(self.read(state).values()))
            return [Transition(known, state, 0.0), Transition(1 - known, state, 0.0, fails=True)]
        risk = 0.3 if (state, action) == ("narrow", "drive") else 0.0
        reward = 10.0 if action == "drive" else 1.0
        return [Transition(1 - risk, "out", reward), Transition(risk, state, 0.0, fails=True)]

    def observations(self, state: str, action: str) -> dict[str, float]:
        if state == "out":
            return {"through": 1.0}
        read = self.read(state)
        return {cell: chance / sum(read.values()) for cell, chance in read.items()}


def test_certificate_with_inner_probabilities_holds_for_all_distributions_between() -> None:
    result = vulcan.solve(vulcan.Problem(BeliefModel(Gap()), 0.1))
    assert result.certificate.safe
    policy, exact = result.policy, result.certificate
    assert {policy.labels[k] for k in policy.action.tolist()} > {"measure"}
    found = []
    for bias in product((-0.01, 0.0, 0.006, 0.01), repeat=2):
        known = Gap(**dict(zip(Gap.width, bias, strict=True)))
        found.append(follow(known, policy, 0, start(known)))
        assert found[-1][1] < exact.risk
        assert found[-1][0] > exact.reward
    assert max(risk for _, risk, _ in found) > exact.risk / 3
