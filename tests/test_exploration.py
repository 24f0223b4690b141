"""The exploration mission: its field, its risks, its maps and their sizes."""

from __future__ import annotations

import math
import pickle
import random
from dataclasses import replace

import numpy as np
import pytest

import vulcan
from vulcan.domains.exploration.collision import Obstacle, Vehicle
from vulcan.domains.exploration.counting import count_histories
from vulcan.domains.exploration.field import Field, quadrature
from vulcan.domains.exploration.maps import MAPS, Map
from vulcan.domains.exploration.model import MOVES, Exploration, History
from vulcan.errors import OptionError
from vulcan.testing import check_model

BOUND = "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)"
OPEN = Map(7, 7, (3, 3))
BLOCKED = Map(7, 7, (3, 3), [Obstacle.rectangle(3.6, 5.4, 2.6, 7.0)])

MISSIONS = [
    Exploration(),
    Exploration(map="wide", first_sample=1.9),
    Exploration(
        field=Field(0.3, (-0.2, 0.1), 2.0, 1.1),
        vehicle=Vehicle(((0.02, 0.01), (0.01, 0.03)), ((0.001, 0.0), (0.0, 0.002))),
        map=Map(8, 6, (1, 2), [Obstacle([(3, 1), (6, 0), (4, 4)])], 0.7, (-1.0, 3.0)),
        degree=5,
        collision_reward=-2.0,
    ),
]


def wander(mission: Exploration, seed: int, moves: int) -> History:
    """Return a random history that has not failed."""
    rng = random.Random(seed)
    state = mission.initial_state()
    for _ in range(moves):
        ways = [mission.outcomes(state, action) for action in mission.actions(state)]
        safe = [o.state for outcomes in ways for o in outcomes if not o.fails]
        state = rng.choice(safe)
    return state


def predict(mission: Exploration, state: History, cell: tuple[int, int]) -> tuple[float, float]:
    """Return mean and deviation of the next sample by dense solves, from the values seen."""
    field, area = mission.field, mission.map
    first = mission.first_sample
    visited, values = (
        [area.start],
        [field.mean(area.locate(area.start)) if first is None else first],
    )
    nodes = math.sqrt(2) * np.polynomial.hermite.hermgauss(mission.degree)[0]
    for place in state.path:
        if place not in visited:
            mean, deviation = condition(field, area, visited, values, place)
            values.append(mean + deviation * nodes[state.nodes[len(visited) - 1]])
            visited.append(place)
    assert len(visited) == len(state.nodes) + 1
    return condition(field, area, visited, values, cell)


def condition(field: Field, area: Map, visited, values, cell) -> tuple[float, float]:
    """Return mean and deviation of the field in a cell, given its values in others."""
    places = np.array([area.locate(c) for c in [*visited, cell]])
    squares = ((places[:, None] - places) ** 2).sum(axis=2)
    kernel = field.variance * np.exp(-squares / (2 * field.length**2))
    means = field.constant + places @ field.slope
    weights = np.linalg.solve(kernel[:-1, :-1], kernel[:-1, -1])
    mean = means[-1] + weights @ (np.array(values) - means[:-1])
    return mean, math.sqrt(kernel[-1, -1] - weights @ kernel[:-1, -1])


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


@pytest.mark.parametrize("mission", MISSIONS)
def test_risks_agree_with_direct_formulas(mission: Exploration) -> None:
    stats, spatial = pytest.importorskip("scipy.stats"), pytest.importorskip("scipy.spatial")
    rng = np.random.default_rng(0)
    for _ in range(300):
        cell = (int(rng.integers(mission.map.columns)), int(rng.integers(mission.map.rows)))
        step = int(rng.integers(1, 10))
        covariance, growth = (
            np.array(c) if isinstance(c, tuple) else c * np.eye(2)
            for c in (mission.vehicle.covariance, mission.vehicle.growth)
        )
        spread = covariance + step * growth
        total = 0.0
        for obstacle in mission.map.obstacles:
            planes = spatial.ConvexHull(np.array(obstacle.vertices)).equations
            deviations = np.sqrt(np.einsum("ij,jk,ik->i", planes[:, :2], spread, planes[:, :2]))
            distances = planes[:, :2] @ mission.map.locate(cell) + planes[:, 2]
            total += stats.norm.sf(distances / deviations).min()
        assert mission.risk(cell, step) == pytest.approx(min(1.0, total), abs=1e-9, rel=1e-9)


def test_risk_is_at_least_the_probability_of_being_inside() -> None:
    stats = pytest.importorskip("scipy.stats")
    obstacle, spread = Obstacle.rectangle(0.0, 1.0, 0.0, 2.0), ((0.09, 0.0), (0.0, 0.04))
    for x, y in np.random.default_rng(1).uniform(-1, 3, (100, 2)).tolist():
        across = stats.norm.cdf([0.0, 1.0], x, 0.3)
        along = stats.norm.cdf([0.0, 2.0], y, 0.2)
        inside = (across[1] - across[0]) * (along[1] - along[0])
        assert inside <= obstacle.risk((x, y), spread) + 1e-15


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


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 9])
def test_quadrature_has_the_moments_of_a_normal(degree: int) -> None:
    nodes, chances = quadrature(degree)
    for power in range(2 * degree):
        moment = math.fsum(p * z**power for z, p in zip(nodes, chances, strict=True))
        normal = 0.0 if power % 2 else math.prod(range(1, power, 2))
        assert moment == pytest.approx(normal, abs=1e-8 * max(1.0, normal))


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


def value(mission: Exploration, state: History, step: int) -> float:
    """Return what the best policy still earns."""
    if step == mission.horizon:
        return 0.0
    return max(
        sum(
            o.probability
            * (o.reward + (0 if o.fails else mission.discount * value(mission, o.state, step + 1)))
            for o in mission.outcomes(state, action)
        )
        for action in mission.actions(state)
    )


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Exploration(0), "horizon must be a whole number from 1 to 200, not 0"),
        (lambda: Exploration(horizon=2.5), "horizon must be a whole number"),
        (lambda: Exploration(degree=True), "degree must be a whole number from 1 to 32"),
        (lambda: Exploration(discount=1.5), "discount must be a number from 0 to 1, not 1.5"),
        (lambda: Exploration(discount=-1), "discount must be a finite number of at least 0"),
        (lambda: Exploration(map="wid"), "'narrow' or 'wide', not 'wid'; did you mean 'wide'?"),
        (lambda: Exploration(map=7), "map must be a Map, or 'narrow' or 'wide', not 7"),
        (lambda: Exploration(field=1), "field must be a Field, not 1"),
        (lambda: Exploration(vehicle=None), "vehicle must be a Vehicle, not None"),
        (lambda: Exploration(first_sample=math.nan), "first_sample must be a finite number"),
        (lambda: Exploration(collision_reward="0"), "collision_reward must be a finite number"),
        (lambda: Field(variance=0), "variance must be a finite number above 0, not 0"),
        (lambda: Field(length=-1), "length must be a finite number above 0, not -1"),
        (lambda: Field(slope=1), "slope must be a pair of numbers, not 1"),
        (lambda: Field(slope=(1, "2")), "slope, second must be a finite number, not '2'"),
        (lambda: Vehicle(-1), "covariance must be a finite number of at least 0, not -1"),
        (lambda: Vehicle(growth=[1]), "growth must be a number or two rows of two"),
        (lambda: Vehicle(((1, 2), (2, 1))), "without negative eigenvalues"),
        (lambda: Vehicle(((1, 0), (1, 1))), "symmetric"),
        (lambda: Map(0, 3, (0, 0)), "columns must be a whole number from 1 to 10,000, not 0"),
        (lambda: Map(3, 3, (0, 3)), "start, second must be a whole number from 0 to 2, not 3"),
        (lambda: Map(3, 3, 1), "start must be a pair of numbers, not 1"),
        (lambda: Map(3, 3, (0, 0.5)), "start, second must be a whole number from 0 to 2"),
        (lambda: Map(3, 3, (0, 0), spacing=0), "spacing must be a finite number above 0, not 0"),
        (lambda: Map(3, 3, (0, 0), [1]), "obstacles must be a list of Obstacle"),
        (
            lambda: replace(BLOCKED, start=(5, 5)),
            r"start must be outside .* \(5, 5\) is in number 1",
        ),
        (lambda: Obstacle([(0, 0), (1, 1)]), "at least three points"),
        (lambda: Obstacle("abc"), "at least three points"),
        (lambda: Obstacle([(0, 0), (1, 0), (2, 0)]), "corners of a convex polygon"),
        (lambda: Obstacle([(0, 0), (2, 0), (1, 0.5), (0, 2)]), "corners of a convex polygon"),
        (lambda: Obstacle([(0, 3), (2, -3), (-3, 1), (3, 1), (-2, -3)]), "convex polygon"),
        (lambda: Obstacle.rectangle(1, 0, 0, 1), "left < right and bottom < top"),
        (lambda: Obstacle.rectangle(0, math.inf, 0, 1), "right must be a finite number, not inf"),
        (lambda: count_histories(Exploration(12)), "at most 11 moves, not 12"),
    ],
)
def test_what_is_not_allowed(make, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make()


def test_corners_may_go_round_either_way() -> None:
    corners = [(0, 0), (2, 0), (3, 2), (1, 3)]
    one, other = Obstacle(corners), Obstacle(corners[::-1])
    spread = ((0.1, 0.0), (0.0, 0.2))
    assert one.risk((1.2, -0.3), spread) == pytest.approx(other.risk((1.2, -0.3), spread))
    assert all(shape.contains((1.5, 1.0)) for shape in (one, other))
    assert not any(shape.contains((2.5, 0.2)) for shape in (one, other))


def walk(mission: Exploration, state: History, step: int) -> tuple[int, int, int]:
    """Count histories one by one."""
    if step == mission.horizon:
        return 0, 1, 0
    counts = [(1, 0, 0)]
    for action in mission.actions(state):
        for outcome in mission.outcomes(state, action):
            counts.append((0, 0, 1) if outcome.fails else walk(mission, outcome.state, step + 1))
    return tuple(map(sum, zip(*counts, strict=True)))


@pytest.mark.parametrize(
    "mission",
    [
        Exploration(3),
        Exploration(4, "wide", degree=2),
        Exploration(5, Map(2, 2, (0, 1)), degree=3),
        Exploration(5, replace(BLOCKED, rows=4), vehicle=Vehicle(0.01, 0.03), degree=1),
    ],
)
def test_histories_are_counted_right(mission: Exploration) -> None:
    assert count_histories(mission) == walk(mission, mission.initial_state(), 0)


def test_default_map_has_more_than_ten_to_the_thirteen_histories() -> None:
    count = count_histories(Exploration())
    assert count == (341_602_505_089, 8_454_777_046_176, 1_608_565_487_447)
    assert count.total > count.finished + count.failed > 10**13


def test_no_map_has_as_many_safe_histories() -> None:
    boundless = Exploration(map=Map(19, 19, (9, 9)))
    assert count_histories(boundless).finished == 8_465_096_344_736 < 10**13


@pytest.mark.parametrize("degree", [2, 4])
def test_plan_without_regard_to_risk_violates_the_bound_and_vulcan_does_not(degree: int) -> None:
    problem = vulcan.Problem(Exploration(degree=degree), vulcan.parse(BOUND))
    samples = 1024 if degree == 4 else 4096
    reckless = vulcan.solve(problem, vulcan.UCT(0.1), samples=samples, seed=0).certificate
    assert reckless.complete
    assert reckless.risk > 1.3 * reckless.allowed
    safe = vulcan.solve(problem, vulcan.Vulcan(0.1), samples=samples, seed=0).certificate
    assert safe.safe
    assert 0.001 < safe.risk < 0.025  # through the wider gap, in some outcomes
    assert 18.4 < safe.reward < reckless.reward


@pytest.mark.parametrize("area", ["narrow", "wide"])
def test_a_twentieth_of_the_work_is_enough_on_short_missions(area: str) -> None:
    problem = vulcan.Problem(Exploration(map=area, horizon=5), vulcan.parse(BOUND))
    best = vulcan.solve(problem, vulcan.ForwardSearch())
    assert best.status is vulcan.Status.SOLVED
    assert best.statistics.histories > 10_000_000
    proved = vulcan.solve(problem, vulcan.Vulcan())
    assert proved.status is vulcan.Status.SOLVED
    assert proved.certificate.reward == pytest.approx(best.certificate.reward, abs=1e-9)
    quick = vulcan.solve(problem, vulcan.Vulcan(0.1), samples=8192, seed=1)
    assert quick.safe
    assert quick.certificate.reward >= 0.99 * best.certificate.reward
    assert quick.statistics.evaluations < 0.05 * best.statistics.evaluations
