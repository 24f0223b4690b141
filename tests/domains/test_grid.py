"""The grid: states that merge, horizons that can't be enumerated."""

from __future__ import annotations

import pytest

import vulcan
from vulcan.domains import Grid, ThreeActions
from vulcan.testing import check_model


@pytest.mark.parametrize("solver", [vulcan.Lagrangian(), vulcan.Pareto()], ids=str)
@pytest.mark.parametrize("bound", ["0.01", "0.05", "0.01 * (1 - exp(-0.1 * x))", "0.0005 * x"])
def test_forty_cells_and_a_hundred_steps(solver: object, bound: str) -> None:
    problem = vulcan.Problem(Grid(), vulcan.parse(bound))
    limits = {"gap": 0.001} if isinstance(solver, vulcan.Pareto) else {}
    result = vulcan.solve(problem, solver, **limits)
    assert sum(len(row) for row in Grid().rows) == 40
    assert result.safe
    assert result.gap <= 0.001
    assert result.upper_bound >= result.certificate.reward


def test_a_map_that_is_none() -> None:
    for text, message in (("S.\n.", "same length"), ("..", "one start"), ("SS", "one start")):
        with pytest.raises(ValueError, match=message):
            Grid(map=text)


@pytest.mark.parametrize("model", [Grid(), Grid(slip=0.0), ThreeActions()], ids=str)
def test_domains_keep_the_rules(model: object) -> None:
    assert check_model(model).ok
