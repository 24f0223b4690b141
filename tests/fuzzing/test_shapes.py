"""What is drawn is sound, of all shapes, and the same each time."""

from __future__ import annotations

import vulcan
from fuzzing.campaign import draw_cases
from fuzzing.compiled import make_compiled
from fuzzing.models import TableModel, has_values, make_arrays, make_bound
from fuzzing.risk_bounds import allow, find_slope, is_straight
from fuzzing.shapes import draw_problem, seed_random
from vulcan.testing import check_compiled, check_model

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
        *("rewards huge", "rewards signed", "rewards zeros", "rewards cancelling"),
        *("labels", "some labels", "duplicates"),
        *("given start", "drawn start", "chosen start", "risky start"),
        *(f"bound {kind}" for kind in ("constant", "linear", "pieces", "lines", "linear steep")),
        *(f"bound {kind}" for kind in ("exponential", "root", "logarithm", "parabola")),
    ):
        assert tag in tags, tag


def test_models_keep_the_rules() -> None:
    for number in range(60):
        problem, _ = draw_problem(seed_random(2, number))
        for merges in (True, False):
            report = check_model(TableModel(problem, merges), most_states=200)
            assert report.ok, report


def test_forms_of_a_model_say_the_same() -> None:
    forms = [0, 0]
    for number in range(60):
        problem, _ = draw_problem(seed_random(2, number))
        model = make_compiled(problem)
        if model is not None:
            forms[0] += 1
            report = check_compiled(model)
            assert report.ok, report
        forms[1] += make_arrays(problem.without_labels()) is not None
    assert min(forms) > 20


def test_bounds_are_what_the_oracle_takes_them_for() -> None:
    compared = 0
    for number in MANY:
        problem, oracle = draw_problem(seed_random(4, number))
        bound = make_bound(problem.bound)
        for point in oracle.front[:3]:
            low, high = allow(problem.bound, point.reward)
            try:
                exact = bound.exact(point.reward)
            except vulcan.BoundError:
                assert not has_values(problem.bound, problem.reach)
                continue
            compared += 1
            assert low <= exact <= high
            if is_straight(problem.bound):
                assert low == exact == high
            elif find_slope(problem.bound, max(1.0, problem.reach)) < 100:
                assert high - low < 1e-12 * max(1, abs(high))
    assert compared > 400
