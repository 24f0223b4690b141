"""CPU seconds of the default solver, and of `Pareto`, on 400 problems of up to 500 pairs.

    python -m pytest benchmarks/test_tiny_problems.py --quiet

Kernels are loaded before. The default has no limit, `Pareto` ends after a second. Problem k comes
from `random.Random(k)` alone: tables with random outcomes, tables where risk pays, gamblers who may
stop at any time and fail when they are ruined, and walks along a cliff.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from random import Random

import numpy as np
import pytest

import vulcan
from vulcan.formats import from_table
from vulcan.model import FAILURE

COUNT = 400

Row = tuple[float, object, float]
States = dict[object, dict[str, list[Row]]]


def make_problems() -> Iterator[vulcan.Problem]:
    """Yield the problems."""
    for number in range(COUNT):
        random = Random(number)
        table, horizon = MAKERS[number % len(MAKERS)](random)
        level = 10 ** random.uniform(-2.5, -0.7)
        bounds = (vulcan.Constant(level), vulcan.Linear(level / 5), f"{level}*(1 - exp(-x/3))")
        yield vulcan.Problem(from_table(table, horizon=horizon), bounds[number // 4 % 3])


def make_table(random: Random, paid: bool = False) -> tuple[States, int]:
    """Return states with random outcomes, the first one the start; riskier actions may pay more."""
    count = random.randint(3, 12)
    table: States = {state: {} for state in range(count)}
    for actions in table.values():
        for name in "abcd"[: random.randint(2, 4)]:
            risk = 0.0 if random.random() < 0.4 else random.uniform(0.0, 0.05)
            weights = [random.randint(1, 20) for _ in range(random.randint(1, 3))]
            low, high = (20 * risk, 20 * risk + 1) if paid else (-1.0, 2.0)
            actions[name] = [
                ((1 - risk) * w / sum(weights), random.randrange(count), random.uniform(low, high))
                for w in weights
            ]
            if risk:
                actions[name].append((risk, FAILURE, 0.0))
    return table, random.randint(5, 480 // count)


def make_paid_table(random: Random) -> tuple[States, int]:
    """Return states whose riskier actions pay more."""
    return make_table(random, paid=True)


def make_gambler(random: Random) -> tuple[States, int]:
    """Return the capitals of a gambler, who is ruined at 0 and may take what there is."""
    goal, wins = random.randint(5, 17), random.uniform(0.35, 0.65)
    table: States = {"start": {"sit down": [(1.0, goal // 2, 0.0)]}, "stopped": {}}
    for capital in range(1, goal):
        bets: dict[str, list[Row]] = {"stop": [(1.0, "stopped", float(capital))]}
        for bet in range(1, min(capital, goal - capital) + 1):
            won: Row = (wins, capital + bet, 0.0)
            if capital + bet == goal:
                won = (wins, "stopped", float(goal))
            lost: Row = (1 - wins, capital - bet if bet < capital else FAILURE, 0.0)
            bets[f"bet {bet}"] = [won, lost]
        table[capital] = bets
    return table, random.randint(5, 480 // goal)


def make_cliff(random: Random) -> tuple[States, int]:
    """Return the cells of a walk to a goal; wind blows down, off a cliff."""
    width, height = random.randint(2, 5), random.randint(2, 3)
    wind, finds = random.uniform(0.01, 0.2), random.uniform(1.0, 5.0)
    table: States = {}
    for x in range(width):
        for y in range(height):
            moves = {"left": (x - 1, y), "right": (x + 1, y), "up": (x, y + 1), "down": (x, y - 1)}
            below = (x, y - 1) if y else FAILURE
            table[x, y] = {
                name: [
                    (1 - wind, cell, finds if cell[0] == width - 1 and x < width - 1 else 0.1 * x),
                    (wind, below, 0.0),
                ]
                for name, cell in moves.items()
                if 0 <= cell[0] < width and 0 <= cell[1] < height
            }
    return table, random.randint(6, 480 // (width * height))


MAKERS: tuple[Callable[[Random], tuple[States, int]], ...] = (
    make_table,
    make_paid_table,
    make_gambler,
    make_cliff,
)


@pytest.mark.parametrize(("solver", "limit"), [(None, None), (vulcan.Pareto(), 1.0)])
def test_tiny_problems_take_no_time(
    solver: vulcan.solvers.Solver | None,
    limit: float | None,
    report: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "perf_counter", time.process_time)
    monkeypatch.setattr(time, "monotonic", time.process_time)
    problems = list(make_problems())
    for problem in problems[:20]:
        vulcan.solve(problem, vulcan.Pareto(), time_limit=1.0)
    seconds, pairs, proved = [], [], 0
    for problem in problems:
        began = time.process_time()
        result = vulcan.solve(problem, solver, time_limit=limit)
        seconds.append(time.process_time() - began)
        pairs.append(result.statistics.nodes)
        proved += result.status in (
            vulcan.planning.Status.SOLVED,
            vulcan.planning.Status.INFEASIBLE,
        )
    slowest = np.argsort(seconds)[-5:].tolist()
    report(
        f"{type(solver).__name__ if solver else 'default'}: {COUNT} tiny problems, CPU seconds",
        ", ".join(f"{name} {np.percentile(seconds, p):.3f}" for name, p in SHOWN)
        + f"; {proved} proved; slowest {[(k, pairs[k], round(seconds[k], 2)) for k in slowest]}",
    )
    assert len(seconds) == COUNT


SHOWN = [("median", 50), ("p90", 90), ("p99", 99), ("worst", 100)]
