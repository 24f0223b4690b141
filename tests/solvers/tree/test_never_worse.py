"""`Vulcan()` earns at least what local constraints earn with the same samples.

On problems small enough to be tried often; `benchmarks/test_never_worse.py` has all the others.
"""

from __future__ import annotations

import math

import pytest

import vulcan
from benchmarks.random_problems import make_problem
from tests.helpers.missions import BOUND
from tests.helpers.never_worse import ALLOWANCE, compare_with_local, find_shortfall
from vulcan.domains import Bandit, Exploration, Grid, ThreeActions, TreasureGrid

SEEDS = 2

PROBLEMS = {
    "three actions": (ThreeActions(), "0.004*x", 100),
    "bandit 4, tight": (Bandit(4), "0.0007*x", 2000),
    "bandit 4, unmerged": (Bandit(4, merges=False), "0.0012*x", 2000),
    "bandit 6": (Bandit(6), "0.002*x", 4000),
    "bandit 6, constant": (Bandit(6, merges=False), "0.004", 4000),
    "bandit 8, unmerged": (Bandit(8, merges=False), "0.002*x", 8000),
    "grid": (Grid(horizon=8), "0.001*x", 4000),
    "grid, saturating": (Grid(horizon=10), "0.02 * (1 - exp(-0.4*x))", 4000),
    "treasure": (TreasureGrid(horizon=8), "0.15", 4000),
    "treasure, long": (TreasureGrid(horizon=20), "0.15", 4000),
    "mission of 3, narrow": (Exploration(3), BOUND, 2000),
    "mission of 4, narrow": (Exploration(4), BOUND, 4000),
    "mission of 4, wide": (Exploration(4, map="wide"), f"0.5 * {BOUND}", 4000),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_earns_what_local_constraints_earn(name: str, seed: int) -> None:
    model, bound, samples = PROBLEMS[name]
    problem = vulcan.Problem(model, vulcan.parse(bound))
    reward, local, result = compare_with_local(problem, samples, seed)
    assert result.statistics.samples <= samples
    assert find_shortfall(reward, local) <= ALLOWANCE


@pytest.mark.parametrize("number", range(12))
def test_earns_it_on_random_problems(number: int) -> None:
    reward, local, _ = compare_with_local(make_problem(number), 2000, number)
    assert find_shortfall(reward, local) <= ALLOWANCE


def test_shortfalls_are_seen() -> None:
    assert find_shortfall(0.9, 1.0) == pytest.approx(0.1)
    assert find_shortfall(-1.1, -1.0) == pytest.approx(0.1)
    assert find_shortfall(-math.inf, 1.0) == math.inf
    assert find_shortfall(-math.inf, -math.inf) == 0.0
    assert find_shortfall(1.0, -math.inf) < 0
