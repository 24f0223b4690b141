"""The oracle knows what is known otherwise, and shares nothing with the project."""

from __future__ import annotations

import ast
import math
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import fuzzing
from fuzzing.claims import Truth
from fuzzing.oracle import Oracle, Point, add_up, find_hull, least_risk
from fuzzing.problems import Bound, PlainProblem, Way
from fuzzing.shapes import draw_problem, seed_random
from vulcan.domains import Bandit

FOLDER = Path(fuzzing.__file__).parent
INDEPENDENT = ("problems", "risk_bounds", "oracle", "admission", "shapes", "bound_shapes")


def read_bandit(horizon: int) -> PlainProblem:
    """Return the paper's bandit as plain data."""
    model = Bandit(horizon)
    numbers = {model.initial_state(): 0}
    states: dict[int, Any] = {}
    waiting = [model.initial_state()]
    while waiting:
        state = waiting.pop()
        states[numbers[state]] = actions = {}
        for action in model.actions(state):
            ways = []
            for outcome in model.outcomes(state, action):
                if not outcome.fails and outcome.state not in numbers:
                    numbers[outcome.state] = len(numbers)
                    if sum(n for n in outcome.state if not isinstance(n, str)) < horizon:
                        waiting.append(outcome.state)
                target = None if outcome.fails else numbers[outcome.state]
                ways.append(Way(outcome.probability, outcome.reward, target))
            actions[str(action)] = tuple(ways)
    return PlainProblem(horizon, 1.0, states, 0, Bound("linear", "class", (0.002, 0.0)))


@pytest.mark.parametrize(("horizon", "best"), [(2, 0.9906), (3, 1.528001945)])
def test_the_best_policies_of_the_bandit(horizon: int, best: float) -> None:
    problem = read_bandit(horizon)
    found = Truth(problem, Oracle(problem)).best
    assert found is not None
    assert float(found.reward) == pytest.approx(best, abs=5e-5 if horizon == 2 else 1e-9)


def test_the_best_mixture_of_the_bandit() -> None:
    problem = read_bandit(3)
    truth = Truth(problem, Oracle(problem))
    # What a linear program finds: tests/reproduction/test_planning_time.py.
    assert truth.mixes(Fraction(1.537401))
    assert not truth.mixes(Fraction(1.537403))


def enumerate_points(problem: PlainProblem) -> list[Point]:
    """Return what every policy risks and earns, by trying all of them."""

    def visit(state: int | None, left: int) -> list[tuple[Fraction, Fraction]]:
        actions: Any = problem.start if state is None else problem.states.get(state, {})
        if not left or not actions:
            return [(Fraction(0), Fraction(0))]
        found = []
        for ways in actions.values():
            groups: dict[Any, list[Way]] = {}
            for way in ways:
                if way.probability:
                    groups.setdefault(way.key, []).append(way)
            parts = []
            for alike in groups.values():
                chance = Fraction(add_up(alike))
                target, pay = alike[0].target, Fraction(alike[0].reward)
                later = [(Fraction(1), Fraction(0))]
                if target is not None:
                    later = visit(target, left - 1)
                discount = Fraction(1) if state is None else Fraction(problem.discount)
                parts.append([(chance * x, chance * (pay + discount * y)) for x, y in later])
            if math.prod(map(len, parts)) > 200:
                raise OverflowError
            for chosen in product(*parts):
                found.append((sum(x for x, _ in chosen), sum(y for _, y in chosen)))
        return found

    begin = problem.start if isinstance(problem.start, int) else None
    levels = problem.horizon + (begin is None)
    return [Point(*point) for point in visit(begin, levels)]


def test_fronts_are_those_of_all_policies() -> None:
    compared = 0
    for number in range(120):
        problem, oracle = draw_problem(seed_random(3, number))
        try:
            points = enumerate_points(problem)
        except OverflowError:
            continue
        compared += 1
        front, kept = oracle.front, set(points)
        assert front == sorted(front)
        assert set(front) <= kept
        for point in kept - set(front):
            assert any(x <= point.risk and y >= point.reward for x, y in front), point
    assert compared > 60


def test_mixtures_lie_on_the_lower_hull() -> None:
    front = [Point(Fraction(x), Fraction(y)) for x, y in ((0, 0), (3, 1), (4, 2), (9, 3))]
    risks = [
        least_risk(find_hull(front), Fraction(reward))
        for reward in (-1, 0, 1, 2, Fraction(5, 2), 3, 4)
    ]
    assert risks == [0, 0, 2, 4, Fraction(13, 2), 9, None]


def test_outcomes_that_look_alike_are_one() -> None:
    continued = {"a": (Way(1.0, 0.0, 2),), "b": (Way(0.5, 8.0, 2), Way(0.5, 0.0, None))}
    ways = (Way(0.5, 1.0, 1, "left"), Way(0.5, 1.0, 1, "right"))

    def count(outcomes: tuple[Way, ...]) -> int:
        states = {0: {"a": outcomes}, 1: continued}
        return len(Oracle(PlainProblem(2, 1.0, states, 0, Bound("constant", "", (1.0,)))).front)

    assert count(ways) == 3  # b after one of them, after both, after none
    assert count(tuple(way._replace(label=None) for way in ways)) == 2


@pytest.mark.parametrize("name", INDEPENDENT)
def test_what_is_true_is_found_without_the_project(name: str) -> None:
    tree = ast.parse((FOLDER / f"{name}.py").read_text())
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")
    allowed = sys.stdlib_module_names | {f"fuzzing.{other}" for other in INDEPENDENT}
    assert {m for m in modules if m.partition(".")[0] not in allowed and m not in allowed} == set()
