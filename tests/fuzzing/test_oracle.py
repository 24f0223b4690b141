"""The oracle and the problems of the fuzzer."""

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
import vulcan
from fuzzing.campaign import draw_cases
from fuzzing.checks.case import Case
from fuzzing.compiled import make_compiled
from fuzzing.models import TableModel, has_values, make_arrays, make_bound
from fuzzing.oracle import Oracle, Point, add_up, find_hull, least_risk
from fuzzing.planners import Planner
from fuzzing.problems import Bound, PlainProblem, Way
from fuzzing.reproducers import judge
from fuzzing.risk_bounds import allow, find_slope, is_straight
from fuzzing.shapes import PROBABILITIES, REWARDS, draw_problem, seed_random
from vulcan.testing import check_compiled, check_model

FOLDER = Path(fuzzing.__file__).parent
INDEPENDENT = ("problems", "risk_bounds", "oracle", "admission", "shapes", "bound_shapes")


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


MANY = range(400)


def test_a_problem_comes_from_its_numbers_alone() -> None:
    for number in range(50):
        assert draw_cases(seed_random(5, number))[1] == draw_cases(seed_random(5, number))[1]
    assert draw_cases(seed_random(5, 0))[1] != draw_cases(seed_random(6, 0))[1]


def test_problems_are_written_as_what_makes_them() -> None:
    from fuzzing.problems import Bound, PlainProblem, Way  # noqa: F401

    for number in range(50):
        problem, _ = draw_problem(seed_random(5, number))
        assert eval(repr(problem)) == problem


def test_all_shapes_are_drawn() -> None:
    tags = {tag for n in MANY for tag in draw_problem(seed_random(1, n))[0].tags}
    for tag in (
        *("one step", "tree", "layers", "cycles", "corridor"),
        *("probabilities tiny", "probabilities dyadic", "probabilities skewed"),
        *("probabilities smallest", "probabilities inexact", "rewards extreme"),
        *("rewards huge", "rewards signed", "rewards zeros", "rewards cancelling"),
        *("labels", "some labels", "duplicates"),
        *("given start", "drawn start", "chosen start", "risky start"),
        *(f"bound {kind}" for kind in ("constant", "linear", "pieces", "lines", "linear steep")),
        *(f"bound {kind}" for kind in ("exponential", "root", "logarithm", "parabola")),
    ):
        assert tag in tags, tag


def test_numbers_are_drawn_over_the_whole_range_of_floats() -> None:
    random = seed_random(1, 0)
    chances = [PROBABILITIES["smallest"](random, (False, True)) for _ in range(5000)]
    assert min(chance for pair in chances for chance in pair if chance > 0) == 5e-324
    rewards = [REWARDS["extreme"](random) for _ in range(5000)]
    assert (min(rewards), max(rewards)) == (-sys.float_info.max, sys.float_info.max)
    sums = [math.fsum(PROBABILITIES["inexact"](random, (False, True))) - 1 for _ in range(100)]
    assert min(sums) < -5e-13
    assert 5e-13 < max(sums) < 1e-12
    problems = [draw_problem(seed_random(2, number))[0] for number in MANY]
    starts = [p.start for p in problems if "probabilities smallest" in p.tags and "drawn" in str(p)]
    assert any(0 < w.probability < 1e-9 for s in starts for w in s["start"])


def test_models_keep_the_rules_unless_they_are_out_of_range() -> None:
    refused = 0
    for number in range(200):
        problem, _ = draw_problem(seed_random(2, number))
        for merges in (True, False):
            report = check_model(TableModel(problem, merges), most_states=200)
            assert report.ok or problem.is_out_of_range, report
            refused += not report.ok
    assert 0 < refused < 100


def test_forms_of_a_model_say_the_same() -> None:
    forms = [0, 0]
    for number in range(60):
        problem, _ = draw_problem(seed_random(2, number))
        if problem.is_out_of_range:
            continue
        model = make_compiled(problem)
        if model is not None:
            forms[0] += 1
            report = check_compiled(model)
            assert report.ok, report
        forms[1] += make_arrays(problem.without_labels()) is not None
    assert min(forms) > 20


def test_bounds_are_what_the_oracle_takes_them_for() -> None:
    compared = close = 0
    for number in MANY:
        problem, oracle = draw_problem(seed_random(4, number))
        bound = make_bound(problem.bound)
        for point in oracle.front[:3]:
            low, high = allow(problem.bound, point.reward)
            try:
                exact = bound.exact(point.reward)
            except vulcan.errors.BoundError:
                assert not has_values(problem.bound, problem.reach)
                continue
            compared += 1
            assert low <= exact <= high
            if is_straight(problem.bound):
                assert low == exact == high
                continue
            reach = max(1.0, problem.reach)
            if find_slope(problem.bound, reach) * reach < 100:
                close += 1
                assert high - low < 1e-12 * max(1, abs(high))
    assert compared > 400
    assert close > 50


LARGE = 1e8
CANCELLING = PlainProblem(
    horizon=1,
    discount=1.0,
    states={
        0: {
            "a": (
                Way(probability=0.25, reward=LARGE, target=2, label=None),
                Way(probability=0.25, reward=0.0, target=3, label=None),
                Way(probability=0.25, reward=0.1, target=2, label=None),
                Way(probability=0.25, reward=-LARGE, target=None, label=None),
            )
        }
    },
    start=0,
    bound=Bound(kind="pieces", form="class", numbers=((0.0, 0.0), (1.0, 0.0))),
    tags=(),
)


def test_rewards_that_cancel_are_those_of_the_compiled_model() -> None:
    """The mean of its rewards is off by the roundings of the large ones."""
    planner = Planner(name="uct", parameters={}, options={})
    assert judge(Case("compiled", CANCELLING, planner, seed=3)) == []


MINUTE = PlainProblem(
    horizon=1,
    discount=1.0,
    states={
        0: {
            "b": (
                Way(probability=0.1472560242337851, reward=1e-300, target=1, label=None),
                Way(probability=0.852743975766215, reward=0.0, target=0, label=None),
            )
        }
    },
    start=0,
    bound=Bound(
        kind="logarithm",
        form="function",
        numbers=(7.74386296e140, 1.08546494e138, 1.4725602408652907e-301),
    ),
    tags=(),
)


def test_tangents_beyond_all_floats_are_left_out() -> None:
    planner = Planner(name="linear-program", parameters={}, options={})
    assert judge(Case("answer", MINUTE, planner, seed=1)) == []
