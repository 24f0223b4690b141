"""The exploration mission: its outcomes, risks, bounds and plans."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.missions import BLOCKED, MISSIONS, OPEN, wander
from tests.oracles.exploration import predict, value
from vulcan import Outcome
from vulcan.domains.exploration.field import Field, find_norms, quadrature
from vulcan.domains.exploration.maps import MAPS, Map, Obstacle, Vehicle
from vulcan.domains.exploration.model import MOVES, Exploration, History
from vulcan.model.check import check_model
from vulcan.model.reader import ModelReader


@pytest.mark.parametrize("mission", MISSIONS)
def test_outcomes_agree_with_a_dense_solve(mission: Exploration) -> None:
    nodes, weights = np.polynomial.hermite.hermgauss(mission.degree)
    for seed in range(12):
        state = wander(mission, seed, moves=seed % mission.horizon)
        for action in mission.actions(state):
            cell = tuple(np.add(state.path[-1], MOVES[action]).tolist())
            outcomes = [o for o in mission.outcomes(state, action) if not o.fails]
            if not outcomes or cell in state.path:
                continue
            mean, deviation = predict(mission, state, cell)
            safe = 1 - mission.risk(cell, len(state.path))
            values = mean + deviation * math.sqrt(2) * nodes
            assert [o.reward for o in outcomes] == pytest.approx(values, abs=1e-9)
            chances = safe * weights / math.sqrt(math.pi)
            assert [o.probability for o in outcomes] == pytest.approx(chances, abs=1e-12)


def test_visited_cells_pay_nothing() -> None:
    mission = Exploration(horizon=4, map=OPEN)
    state = mission.outcomes(mission.initial_state(), "E")[2].state
    assert state == History(((3, 3), (4, 3)), (2,))
    back = mission.outcomes(state, "W")
    assert [(o.probability, o.reward, o.label) for o in back] == [(1.0, 0.0, "visited before")]
    again = mission.outcomes(back[0].state, "E")
    assert [o.reward for o in again] == [0.0]
    assert again[0].state.nodes == (2,)


def test_moves_stay_on_the_map() -> None:
    mission = Exploration(map=Map(2, 3, (0, 0)))
    assert mission.actions(mission.initial_state()) == ["N", "NE", "E"]
    assert mission.actions(History(((0, 0), (1, 1)), (0,))) == ["N", "S", "SW", "W", "NW"]


def test_collision_pays_what_it_pays() -> None:
    mission = Exploration(map=BLOCKED, collision_reward=-3.0, vehicle=Vehicle(0.09, 0.01))
    failures = [o for o in mission.outcomes(mission.initial_state(), "NE") if o.fails]
    assert [(o.reward, o.label) for o in failures] == [(-3.0, "collision")]
    assert failures[0].probability == mission.risk((4, 4), 1)


def test_a_field_that_hardly_varies_is_known_from_one_sample() -> None:
    mission = Exploration(map=OPEN, field=Field(length=1e9), first_sample=3.3)
    state = wander(mission, 0, 6)
    outcomes = mission.outcomes(state, "N")
    shift = 3.3 - mission.field.mean((3, 3))
    x, y = state.path[-1]
    expected = mission.field.mean((x, y + 1)) + shift if (x, y + 1) not in state.path else 0.0
    assert [o.reward for o in outcomes] == pytest.approx([expected] * len(outcomes))
    assert len({o.label for o in outcomes}) == len(outcomes)
    assert math.isfinite(mission.reward_to_go_bound(state, 6))


@pytest.mark.parametrize("mission", [Exploration(2), Exploration(2, "wide", discount=0.9)])
def test_model_keeps_all_rules(mission: Exploration) -> None:
    report = check_model(mission)
    assert report.ok, report


def test_model_can_be_sent_to_another_process() -> None:
    mission = Exploration(map="wide")
    state = wander(mission, 3, 4)
    copy = pickle.loads(pickle.dumps(mission))
    assert copy == mission
    assert hash(copy) == hash(mission)
    assert copy.outcomes(state, "N") == mission.outcomes(state, "N")


def test_maps_are_told_apart() -> None:
    moved = [*MAPS["narrow"].obstacles[:-1], Obstacle.rectangle(17, 18, 0, 1)]
    other = Exploration(map=replace(MAPS["narrow"], obstacles=moved))
    assert other.fingerprint != Exploration().fingerprint
    assert repr(other) == "Exploration(map=Map(19 x 19, 3 obstacles), horizon=9)"
    assert repr(Exploration(horizon=5)) == "Exploration(map='narrow', horizon=5)"


def test_a_measured_sample_is_that_of_the_nearest_value() -> None:
    mission = Exploration(map="wide", horizon=3)
    state = mission.initial_state()
    values = [o for o in mission.outcomes(state, "NE") if not o.fails]
    assert [round(o.reward, 2) for o in values] == [0.81, 1.21, 1.59, 1.99]
    for measured, node in ((1.31, 1), (1.45, 2), (-7.0, 0), (30.0, 3)):
        assert mission.locate(state, "NE", measured) == values[node].state
    there = values[1].state
    assert mission.locate(there, "SW", 0.3) == mission.outcomes(there, "SW")[0].state
    assert mission.locate(state, "NE", float("nan")) is None


@pytest.mark.parametrize("mission", MISSIONS)
def test_risks_agree_with_direct_formulas(mission: Exploration) -> None:
    stats, spatial = pytest.importorskip("scipy.stats"), pytest.importorskip("scipy.spatial")
    rng = np.random.default_rng(0)
    for _ in range(300):
        cell = (int(rng.integers(mission.map.columns)), int(rng.integers(mission.map.rows)))
        step = int(rng.integers(1, 10))
        spread = (mission.vehicle.covariance + step * mission.vehicle.growth) * np.eye(2)
        total = 0.0
        for obstacle in mission.map.obstacles:
            planes = spatial.ConvexHull(np.array(obstacle.vertices)).equations
            deviations = np.sqrt(np.einsum("ij,jk,ik->i", planes[:, :2], spread, planes[:, :2]))
            distances = planes[:, :2] @ mission.map.locate(cell) + planes[:, 2]
            total += stats.norm.sf(distances / deviations).min()
        assert mission.risk(cell, step) == pytest.approx(min(1.0, total), abs=1e-9, rel=1e-9)


def test_risk_is_at_least_the_probability_of_being_inside() -> None:
    stats = pytest.importorskip("scipy.stats")
    obstacle = Obstacle.rectangle(0.0, 1.0, 0.0, 2.0)
    for x, y in np.random.default_rng(1).uniform(-1, 3, (100, 2)).tolist():
        across = stats.norm.cdf([0.0, 1.0], x, 0.3)
        along = stats.norm.cdf([0.0, 2.0], y, 0.3)
        inside = (across[1] - across[0]) * (along[1] - along[0])
        assert inside <= obstacle.risk((x, y), 0.09) + 1e-15


def test_risk_of_a_vehicle_that_knows_its_place() -> None:
    mission = Exploration(map=BLOCKED, vehicle=Vehicle(0, 0))
    assert mission.risk((4, 4), 1) == 1
    assert mission.risk((3, 4), 1) == 0
    outcomes = mission.outcomes(mission.initial_state(), "NE")
    assert [(o.probability, o.reward, o.fails) for o in outcomes] == [(1.0, 0.0, True)]


def test_risk_grows_with_time() -> None:
    mission = Exploration(map="wide")
    risks = [mission.risk((5, 5), step) for step in range(1, 10)]
    assert risks == sorted(risks)
    assert risks[2] == pytest.approx(2 * 0.5 * math.erfc(0.16 / math.sqrt(0.0053) / math.sqrt(2)))
    assert mission.risk_to_go_bound(History(((2, 4), (3, 4), (4, 5)), (1, 1)), "E", 2) == risks[2]


def test_corners_may_go_round_either_way() -> None:
    corners = [(0, 0), (2, 0), (3, 2), (1, 3)]
    one, other = Obstacle(corners), Obstacle(corners[::-1])
    assert one.risk((1.2, -0.3), 0.1) == pytest.approx(other.risk((1.2, -0.3), 0.1))
    assert all(shape.contains((1.5, 1.0)) for shape in (one, other))
    assert not any(shape.contains((2.5, 0.2)) for shape in (one, other))


@pytest.mark.parametrize(
    "mission",
    [
        Exploration(degree=2),
        Exploration(map="wide", degree=3, discount=0.8),
        Exploration(map=BLOCKED, field=Field(-2.0, (0.1, 0.3), 1.5, 1.0), degree=1),
        Exploration(map=OPEN, field=Field(-1.0, (0.0, 0.0), 4.0, 3.0), degree=2),
        Exploration(map=BLOCKED, collision_reward=2.0, vehicle=Vehicle(0.3, 0.0), degree=2),
    ],
)
def test_no_policy_earns_more_than_the_bound(mission: Exploration) -> None:
    for seed in range(4):
        state = wander(mission, seed, 7)
        assert value(mission, state, 7) <= mission.reward_to_go_bound(state, 7) + 1e-12
    short = replace(mission, horizon=3)
    start = short.initial_state()
    assert value(short, start, 0) <= short.reward_to_go_bound(start, 0) + 1e-12
    assert mission.reward_to_go_bound(start, 9) == 0


def test_one_move_is_bounded_exactly() -> None:
    mission = Exploration(map=OPEN, horizon=1)
    start = mission.initial_state()
    assert mission.reward_to_go_bound(start, 0) == pytest.approx(value(mission, start, 0))


@st.composite
def small_missions(draw: Callable[..., Any]) -> Exploration:
    """Missions of which all policies can be enumerated; many are risky, and pay little."""
    start = (1, draw(st.integers(0, 2)))
    left, bottom = draw(st.floats(-0.5, 3)), draw(st.floats(-0.5, 3))
    obstacle = Obstacle.rectangle(left, left + 0.8, bottom, bottom + draw(st.floats(0.3, 2)))
    slope = (draw(st.floats(-0.3, 0.3)), draw(st.floats(-0.3, 0.3)))
    return Exploration(
        horizon=draw(st.integers(2, 4)),
        map=Map(3, 3, start, [] if obstacle.contains(start) else [obstacle]),
        field=Field(
            draw(st.floats(-1, 2)), slope, draw(st.floats(0.05, 2)), draw(st.floats(0.5, 2))
        ),
        vehicle=Vehicle(draw(st.sampled_from([0.005, 0.1, 0.5])), 0.01),
        degree=draw(st.integers(1, 3)),
        first_sample=draw(st.none() | st.floats(-2, 3)),
        collision_reward=draw(st.sampled_from([0.0, -3.0, 1.5])),
        discount=draw(st.sampled_from([1.0, 0.8])),
    )


@settings(max_examples=60)
@given(
    mission=small_missions(), price=st.floats(0, 30), taken=st.integers(0, 2), seed=st.integers(0)
)
def test_no_policy_is_worth_more_than_the_bound_at_any_price(mission, price, taken, seed):
    step = max(taken, mission.horizon - 3)
    state = wander(mission, seed, min(step, mission.horizon))
    bound = mission.value_to_go_bound(state, step, price)
    assert value(mission, state, step, price) <= bound + 1e-9
    assert bound <= mission.reward_to_go_bound(state, step) + 1e-9


def test_one_move_is_valued_exactly() -> None:
    mission = Exploration(map=BLOCKED, horizon=1, vehicle=Vehicle(0.3, 0.0))
    start = mission.initial_state()
    exact = value(mission, start, 0, 10.0)
    assert mission.value_to_go_bound(start, 0, 10.0) == pytest.approx(exact)
    assert exact < mission.reward_to_go_bound(start, 0) - 0.01


@pytest.mark.parametrize("degree", [1, 2, 4, 7])
def test_mean_norms_are_those_of_all_combinations(degree: int) -> None:
    z, chances = map(np.array, quadrature(degree))
    norms = find_norms(z, chances, 4)
    three = np.sqrt(z[:, None, None] ** 2 + z[None, :, None] ** 2 + z[None, None, :] ** 2)
    expected = np.einsum("ijk,i,j,k", three, chances, chances, chances)
    assert norms[0] == 0
    assert norms[1] == pytest.approx(np.abs(z) @ chances, abs=1e-8)
    assert norms[3] == pytest.approx(expected, abs=1e-8)
    assert find_norms(*quadrature(9), 12)[11] <= np.sqrt(11)  # rounded up, but never above


@pytest.mark.parametrize("mission", MISSIONS)
def test_many_moves_at_once_are_as_one_by_one(mission: Exploration) -> None:
    reader = ModelReader(mission)
    reached = [wander(mission, seed, moves=1 + seed % (mission.horizon - 1)) for seed in range(25)]
    pairs = [(state, action) for state in reached for action in mission.actions(state)]
    states, actions = map(list, zip(*pairs, strict=True))
    one_by_one = [reader.outcomes(*pair) for pair in pairs]
    assert reader.read(states, actions).split() == one_by_one


def test_a_subclass_answers_for_itself() -> None:
    class Cheerful(Exploration):
        def outcomes(self, state: History, action: str) -> list[Outcome]:
            found = super().outcomes(state, action)
            return [Outcome(o.probability, o.reward + 1.0, o.state, o.label) for o in found]

    mission = Cheerful(horizon=3)
    moves = [o.state for o in mission.outcomes(mission.initial_state(), "NE") if not o.fails]
    states = [state for state in moves for _ in range(4)]
    answers = ModelReader(mission).read(states, ["N"] * len(states)).split()
    assert answers == [mission.outcomes(state, "N") for state in states]
