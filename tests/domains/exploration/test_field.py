"""The field that is sampled."""

from __future__ import annotations

import math

import pytest

from vulcan.domains.exploration.field import quadrature


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 9])
def test_quadrature_has_the_moments_of_a_normal(degree: int) -> None:
    nodes, chances = quadrature(degree)
    for power in range(2 * degree):
        moment = math.fsum(p * z**power for z, p in zip(nodes, chances, strict=True))
        normal = 0.0 if power % 2 else math.prod(range(1, power, 2))
        assert moment == pytest.approx(normal, abs=1e-8 * max(1.0, normal))
