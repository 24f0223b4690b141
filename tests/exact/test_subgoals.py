"""Plans from subgoal to subgoal: acceptable, not above the optimum, and close to it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import vulcan
from tests.helpers.treasure_maps import Plain, draw_map
from vulcan.domains import TreasureGrid
from vulcan.errors import ModelError
from vulcan.exact.search import ExactSearch
from vulcan.exact.subgoals import FOUND, PlaceMap
from vulcan.kernels import subgoals as kernels
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import Limits, Monitor

BOUND = vulcan.Constant(0.1)


def solve(model: Any, **options: Any) -> vulcan.Result:
    return vulcan.solve(vulcan.Problem(model, BOUND), vulcan.Subgoals(), **options)


@pytest.mark.parametrize("seed", range(6))
def test_small_maps_are_close_to_the_optimum(seed: int) -> None:
    grid = TreasureGrid(12, trap=0.05, map=draw_map(seed, size=4, gold=4))
    exact = vulcan.solve(vulcan.Problem(grid, BOUND)).certificate
    assert exact is not None
    best = float(exact.reward)
    for model in (grid, Plain(grid)):
        result = solve(model)
        assert result.certificate is not None
        assert result.safe
        assert result.certificate.complete
        assert 0.8 * best <= float(result.certificate.reward) <= 1.0002 * best


def test_places_are_the_cells_and_subgoals_the_gold() -> None:
    grid = TreasureGrid(60, map=draw_map(0, size=9, gold=12))
    cells = sum(mark != "#" for mark in grid.map)
    for model in (grid, Plain(grid)):
        with Monitor(Limits()) as monitor:
            reader = ModelReader(model)
            run = ExactSearch(vulcan.Problem(model, BOUND), reader, monitor, None)
            places = PlaceMap.find(run)
            assert places is not None
            gold = {run.graph.state_object(places._first[k])[0] for k in places.goals}
        assert gold == set(grid.gold)
        assert len(places) <= cells
        assert places.worth.tolist() == [1.0] * 12


def test_the_default_chooses_it_where_states_are_too_many() -> None:
    grid = TreasureGrid(80, trap=0.05, map=draw_map(1, size=12, gold=20))
    result = vulcan.solve(vulcan.Problem(grid, BOUND), time_limit=20.0)
    assert result.safe
    assert result.explanation == FOUND or "time limit" in result.explanation
    assert result.certificate is not None
    assert float(result.certificate.reward) > 6


def test_the_same_problem_has_the_same_plan() -> None:
    grid = TreasureGrid(30, trap=0.05, map=draw_map(2, size=7, gold=7))
    first = solve(grid)
    assert first.policy == solve(grid).policy
    assert first.upper_bound is None


@dataclass(frozen=True)
class Sealed:
    """A state whose parts can't be seen."""

    inside: Any

    def __str__(self) -> str:
        return f"<{hash(self)}>"


def test_states_without_parts_get_a_policy_all_the_same() -> None:
    class Counting:
        horizon = 3

        def initial_state(self) -> int:
            return 0

        def actions(self, state: int) -> list[str]:
            return ["wait", "step"]

        def outcomes(self, state: int, action: str) -> list[vulcan.Outcome]:
            if action == "wait":
                return [vulcan.Outcome(1.0, 0.0, state)]
            return [vulcan.Outcome(0.9, 1.0, state + 1), vulcan.Outcome.failure(0.1)]

    result = solve(Counting())
    assert result.safe
    assert result.certificate is not None
    assert result.certificate.risk == 0


def test_parts_of_dataclasses_are_found() -> None:
    class Wrapped(Plain):
        def initial_state(self) -> Any:
            return Sealed(super().initial_state())

        def actions(self, state: Any) -> Any:
            return super().actions(state.inside)

        def outcomes(self, state: Any, action: str) -> Any:
            for o in super().outcomes(state.inside, action):
                following = o.state if o.fails else Sealed(o.state)
                yield vulcan.Outcome(o.probability, o.reward, following)

    grid = TreasureGrid(25, trap=0.1, map=draw_map(0, size=5, gold=5))
    found = [solve(model).certificate for model in (Plain(grid), Wrapped(grid))]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].reward == found[1].reward > 0


@pytest.mark.parametrize("answer", [None, 3, ("cell",), ("cell", 5), ([], ()), ("cell", [[]])])
def test_bad_answers_are_refused(answer: Any) -> None:
    class Bad(TreasureGrid):
        def subgoals(self, state: Any) -> Any:
            return answer

    with pytest.raises(ModelError, match="subgoals must be a place and a list of places"):
        solve(Bad(horizon=5))


def test_limits_are_kept_at_every_moment() -> None:
    grid = TreasureGrid(60, trap=0.05, map=draw_map(3, size=10, gold=15))
    for seconds in (0.0, 0.05, 0.3):
        result = solve(grid, time_limit=seconds)
        assert result.certificate is None or result.safe


def make_places(seed: int, count: int) -> Any:
    """Return random places with two actions each, of two outcomes."""
    random = np.random.default_rng(seed)
    probability = random.dirichlet((1, 1, 1), 2 * count)
    return kernels.Places(
        first_action=np.arange(0, 2 * count + 1, 2, dtype=np.int32),
        number=np.tile(np.arange(2, dtype=np.int32), count),
        reward=random.normal(0, 0.1, 2 * count),
        risk=probability[:, 2].copy(),
        first_outcome=np.arange(0, 4 * count + 1, 2, dtype=np.int32),
        probability=probability[:, :2].ravel(),
        target=random.integers(0, count, 4 * count, dtype=np.int32),
    )


@pytest.mark.parametrize("seed", range(8))
def test_the_plan_along_an_order_is_the_best(seed: int) -> None:
    count, steps, price = 5, 4, 0.7
    places, goals = make_places(seed, count), np.array([3, 1], np.int32)
    worth, weights = np.array([1.0, 2.0]), 0.9 ** np.arange(steps)

    def find_best(t: int, i: int, p: int) -> tuple[float, float]:
        """Return the largest value and its risk, over all plans."""
        if t == steps:
            return 0.0, 0.0
        ways = []
        for a in (2 * p, 2 * p + 1):
            value, risk = weights[t] * places.reward[a] - price * places.risk[a], places.risk[a]
            for o in (2 * a, 2 * a + 1):
                target = places.target[o]
                hit = i < 2 and target == goals[i]
                ahead = find_best(t + 1, i + hit, target)
                value += places.probability[o] * (hit * weights[t] * worth[i * hit] + ahead[0])
                risk += places.probability[o] * ahead[1]
            ways.append((value, risk))
        if i < 2:
            ways.append(find_best(t, i + 1, p))
            if p == goals[i]:
                return ways[-1]
        return max(ways)

    values, risks = np.zeros((2, 2, 3, count))
    choice = np.zeros((steps, 3, count), np.int32)
    given = (goals, worth, weights, price, 0.0, values, risks, choice)
    kernels.plan_order(places, *given, 2, steps)
    kernels.plan_order(places, *given, 0, 2)
    assert (values[0, 0, 0], risks[0, 0, 0]) == pytest.approx(find_best(0, 0, 0))


def test_annealing_finds_the_best_order() -> None:
    random = np.random.default_rng(0)
    for seed in range(5):
        time, risk = random.uniform(1, 9, (6, 5)), random.uniform(0, 0.05, (6, 5))
        chain = kernels.Chain(time, risk, random.uniform(0.5, 2, 5))
        given = (15.0, 3.0, 1.0)
        orders = [np.array(o, np.int32) for n in range(6) for o in permutations(range(5), n)]
        best = max(kernels.anneal(chain, o, len(o), *given, 0, 0)[1] for o in orders)
        order = np.arange(5, dtype=np.int32)
        count, value = kernels.anneal(chain, order, 0, *given, 20_000, seed)
        assert value == pytest.approx(best)
        assert kernels.anneal(chain, order, count, *given, 0, 0)[1] == value
        assert sorted(order) == list(range(5))


def test_legs_take_the_expected_steps_and_risk() -> None:
    # A row of four places; a move east succeeds with 1/2 and fails with 1/8, else it stays.
    count = 4
    places = kernels.Places(
        first_action=np.array([0, 1, 2, 3, 3], np.int32),
        number=np.zeros(3, np.int32),
        reward=np.zeros(3),
        risk=np.full(3, 0.125),
        first_outcome=np.array([0, 2, 4, 6], np.int32),
        probability=np.tile([0.5, 0.375], 3),
        target=np.array([1, 0, 2, 1, 3, 2], np.int32),
    )
    legs = np.zeros((2, 1, count))
    kernels.measure_legs(places, np.array([3], np.int32), 10.0, 0.1, legs)
    # One place: s = 1 + 3/8 s, r = 1/8 + 3/8 r; survived with 4/5.
    step, risk = 8 / 5, 1 / 5
    steps = [step * (1 + 0.8 + 0.64), step * 1.8, step, 0]
    assert legs[0, 0] == pytest.approx(steps, rel=1e-3)
    assert legs[1, 0] == pytest.approx([1 - 0.8**3, 1 - 0.8**2, risk, 0], rel=1e-3)
