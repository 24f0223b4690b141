"""The exploration mission: its outcomes, and its plans."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

import vulcan
from tests.helpers.missions import BLOCKED, BOUND, MISSIONS, OPEN, wander
from tests.oracles.exploration import predict
from vulcan.domains.exploration.collision import Obstacle, Vehicle
from vulcan.domains.exploration.field import Field
from vulcan.domains.exploration.history import History
from vulcan.domains.exploration.maps import MAPS, Map
from vulcan.domains.exploration.model import MOVES, Exploration
from vulcan.model.checker import check_model


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
    assert repr(Exploration.narrow(horizon=5)) == "Exploration(map='narrow', horizon=5)"
    assert Exploration.wide() == Exploration(map="wide") != Exploration()


@pytest.mark.parametrize("degree", [2, 3])
def test_plan_without_regard_to_risk_violates_the_bound_that_others_keep(
    degree: int,
) -> None:
    problem = vulcan.Problem(Exploration(degree=degree), vulcan.parse(BOUND))
    samples = 1024 if degree == 3 else 4096
    reckless = vulcan.solve(problem, vulcan.UCT(0.1), samples=samples, seed=0).certificate
    assert reckless.complete
    assert reckless.risk > 1.3 * reckless.allowed
    safe = vulcan.solve(problem, vulcan.LocalVulcan(0.1), samples=samples, seed=0).certificate
    assert safe.safe
    assert 0.001 < safe.risk < 0.025  # through the wider gap, in some outcomes
    assert 18.4 < safe.reward < reckless.reward


@pytest.mark.parametrize("area", ["narrow", "wide"])
def test_a_twentieth_of_the_work_is_enough_on_short_missions(area: str) -> None:
    problem = vulcan.Problem(Exploration(map=area, horizon=5), vulcan.parse(BOUND))
    best = vulcan.solve(problem, vulcan.ForwardSearch())
    assert best.status is vulcan.Status.SOLVED
    assert best.statistics.histories > 10_000_000
    proved = vulcan.solve(problem, vulcan.LocalVulcan())
    assert proved.status is vulcan.Status.SOLVED
    assert proved.certificate.reward == pytest.approx(best.certificate.reward, abs=1e-9)
    quick = vulcan.solve(problem, vulcan.LocalVulcan(0.1), samples=8192, seed=1)
    assert quick.safe
    assert quick.certificate.reward >= 0.99 * best.certificate.reward
    assert quick.statistics.evaluations < 0.05 * best.statistics.evaluations


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
