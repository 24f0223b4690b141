"""`Vulcan()` earns at least what local tests earn, on every problem of our benchmarks.

    python -m pytest benchmarks/test_never_worse.py --quiet

VULCAN_SEEDS changes the number of seeds (3). The samples are as many for both; what they take is a
benchmark of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from statistics import fmean
from typing import Any

import pytest

import vulcan
from benchmarks.exploration_table import SETTINGS
from benchmarks.fields import FIELDS
from benchmarks.random_problems import COUNT, make_problem
from benchmarks.spend_risk import find_problem
from benchmarks.test_treasure_maps import BOUND, make_maps
from tests.helpers.never_worse import TOLERATED_LOSS, compare_with_local, find_loss
from vulcan.domains import Bandit, Grid, TreasureGrid

SEEDS = int(os.environ.get("VULCAN_SEEDS", "3"))
MAPS = 8
LONGEST = 60.0
"""Seconds for either: some of the policies have millions of decisions when they are whole."""


def list_problems() -> Iterator[tuple[str, vulcan.Problem, int]]:
    """Yield the problems that are measured one by one, each with its name and samples."""
    for horizon in range(2, 11):
        for merges in (True, False):
            model = Bandit(horizon, merges=merges)
            name = f"bandit {horizon}, {'merged' if merges else 'unmerged'}"
            yield name, vulcan.Problem(model, vulcan.Linear(0.002)), 50_000
    yield "bandit 10, constant", vulcan.Problem(Bandit(10), vulcan.Constant(0.0125)), 50_000
    for bound in ("0.002*x", "0.01", "0.02 * (1 - exp(-0.4*x))"):
        yield f"grid, {bound}", vulcan.Problem(Grid(horizon=40), vulcan.parse(bound)), 20_000
    for number, text in enumerate(islice(make_maps(), MAPS)):
        problem = vulcan.Problem(TreasureGrid(50, map=text), BOUND)
        yield f"treasure map {number}", problem, 20_000
    for setting in SETTINGS:
        yield setting.describe(), find_problem(setting), 65_536
    for field in FIELDS:
        yield field.name, field.problem, 20_000


PROBLEMS = {name: (problem, samples) for name, problem, samples in list_problems()}


@pytest.mark.parametrize("name", PROBLEMS)
def test_never_worse(name: str, report: Any) -> None:
    problem, samples = PROBLEMS[name]
    pairs = [compare_with_local(problem, samples, seed, LONGEST)[:2] for seed in range(SEEDS)]
    losses = [find_loss(*pair) for pair in pairs]
    report(
        f"{name}, {samples:,} samples, {SEEDS} seeds: mean rewards of Vulcan, local; loss",
        f"{fmean(pair[0] for pair in pairs):.5f}, {fmean(pair[1] for pair in pairs):.5f}; "
        f"{max(losses):.2%}",
    )
    assert max(losses) <= TOLERATED_LOSS


def test_never_worse_on_random_problems(report: Any) -> None:
    losses = {
        number: find_loss(*compare_with_local(make_problem(number), 10_000, number)[:2])
        for number in range(COUNT)
    }
    worst = max(losses, key=lambda number: losses[number])
    report(f"random problems: largest loss (number {worst})", f"{losses[worst]:.2%}")
    assert losses[worst] <= TOLERATED_LOSS
