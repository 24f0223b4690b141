"""Bandit, grid and treasure grid."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import vulcan
from tests.helpers.plain_models import PlainBandit
from vulcan.domains import Bandit, Grid, ThreeActions, TreasureGrid
from vulcan.domains.bandit import MACHINES, Machine
from vulcan.testing import check_compiled, check_model

UNDER_A = vulcan.solvers.SequenceConstraint()


def solve(horizon: int, bound: vulcan.RiskBound, constraint=None, **options) -> vulcan.Result:
    constraint = constraint or vulcan.solvers.SurvivalConstraint()
    problem = vulcan.Problem(Bandit(horizon), bound)
    return vulcan.solve(problem, vulcan.ForwardSearch(constraint, **options))


@pytest.mark.parametrize(
    ("horizon", "reward"),
    [(2, 0.9906), (3, 1.4892), (4, 2.0167), (5, 2.5201), (6, 3.0686), (7, 3.5959), (8, 4.1334)],
)
def test_table_of_the_paper(horizon: int, reward: float) -> None:
    result = solve(horizon, vulcan.Linear(0.002), UNDER_A)
    assert round(result.certificate.reward, 4) == reward
    assert result.safe


@pytest.mark.parametrize(("constraint", "reward"), [(UNDER_A, 4.665492), (None, 4.665988)])
def test_horizon_9(constraint, reward: float) -> None:
    result = solve(9, vulcan.Linear(0.002), constraint, cut_short=False)
    assert round(result.certificate.reward, 6) == reward
    assert result.statistics.histories == sum(6**k for k in range(10)) == 12_093_235
    assert len(result.policy) == 2**9 - 1
    cut = solve(9, vulcan.Linear(0.002), constraint)
    assert cut.policy == result.policy
    assert cut.statistics.histories < result.statistics.histories


@pytest.mark.slow
@pytest.mark.parametrize(("constraint", "reward"), [(UNDER_A, 5.369377), (None, 5.371599)])
def test_horizon_10_with_the_constant_bound_of_the_paper(constraint, reward: float) -> None:
    result = solve(10, vulcan.Constant(0.0125), constraint)
    assert round(result.certificate.reward, 6) == reward


SURE = Machine((1.0, 2.0), 0.5, 0.25, 0.1, 0.0)  # it never fails


@pytest.mark.parametrize("machines", [MACHINES, (SURE,), (*MACHINES, SURE, MACHINES[0])])
@pytest.mark.parametrize("horizon", [1, 5, 24])
def test_compiled_form_says_the_very_same(machines: tuple[Machine, ...], horizon: int) -> None:
    bandit = Bandit(horizon, merges=False, machines=machines)
    assert check_compiled(bandit, most_states=300).ok


def test_what_has_no_compiled_form() -> None:
    assert Bandit(4).compiled is None  # histories merge
    assert Bandit(25, merges=False).compiled is None
    assert PlainBandit(4, merges=False).compiled is None
    for machine in (replace(SURE, p1=1.0), replace(SURE, risk=1.0)):
        assert Bandit(4, merges=False, machines=(machine,)).compiled is None


def test_belief_follows_bayes_step_by_step() -> None:
    machine = MACHINES[2]
    theta = machine.theta
    for first in (True, False, False, True):
        one = machine.p1 if first else 1 - machine.p1
        two = machine.p2 if first else 1 - machine.p2
        theta = one * theta / (one * theta + two * (1 - theta))
    assert machine.belief(2, 2) == pytest.approx(theta, abs=1e-15)
    counts = (0, 0, 0, 0, 2, 2)
    outcomes = Bandit(9).outcomes(counts, "play 3")
    chance = theta * machine.p1 + (1 - theta) * machine.p2
    assert outcomes[0].probability == pytest.approx((1 - 0.0015) * chance)
    assert math.fsum(o.probability for o in outcomes) == pytest.approx(1, abs=1e-15)
    assert Bandit(9).outcomes(counts, "stop")[0].reward == 0.25 * 5


@pytest.mark.parametrize("solver", [vulcan.Lagrangian(), vulcan.Pareto()], ids=str)
@pytest.mark.parametrize("bound", ["0.01", "0.05", "0.01 * (1 - exp(-0.1 * x))", "0.0005 * x"])
def test_forty_cells_and_a_hundred_steps(solver: object, bound: str) -> None:
    problem = vulcan.Problem(Grid(), vulcan.parse(bound))
    limits = {"gap": 0.001} if isinstance(solver, vulcan.Pareto) else {}
    result = vulcan.solve(problem, solver, **limits)
    assert sum(len(row) for row in Grid().rows) == 40
    assert result.safe
    assert result.gap <= 0.001
    assert result.upper_bound >= result.certificate.reward


def test_a_map_that_is_none() -> None:
    for text, message in (("S.\n.", "same length"), ("..", "one start"), ("SS", "one start")):
        with pytest.raises(ValueError, match=message):
            Grid(map=text)


OPEN = """
#.G
BTT
..#
"""


def rests(grid: TreasureGrid, state: object, action: str) -> dict[object, float]:
    """Return where a move comes to rest, and under None how probably it fails."""
    found: dict[object, float] = {}
    for outcome in grid.outcomes(state, action):
        place = None if outcome.fails else outcome.state
        found[place] = found.get(place, 0.0) + outcome.probability
    return found


GRIDS = [TreasureGrid(), TreasureGrid(slide=0.0), TreasureGrid(5, 1.0, 1.0, OPEN)]


@pytest.mark.parametrize("model", [Grid(), Grid(slip=0.0), ThreeActions(), *GRIDS], ids=str)
def test_domains_keep_the_rules(model: object) -> None:
    assert check_model(model).ok


def test_a_move_slides_to_its_sides_and_walls_hold() -> None:
    grid = TreasureGrid(slide=0.2, trap=0.5, map=OPEN)
    start = grid.initial_state()
    assert start == ((1, 0), 1)
    assert rests(grid, start, "west") == {start: 1.0}
    assert rests(grid, start, "north") == {start: 1.0}
    # East: into the trap, or past it to (0, 1) or (2, 1).
    east = rests(grid, start, "east")
    assert east == pytest.approx({((1, 1), 1): 0.4, ((0, 1), 1): 0.1, ((2, 1), 1): 0.1, None: 0.4})
    # South: the edge holds on one side, and (2, 1) is on the other.
    assert rests(grid, start, "south") == pytest.approx({((2, 0), 1): 0.9, ((2, 1), 1): 0.1})


def test_a_trap_is_entered_by_sliding_too_but_not_by_waiting() -> None:
    grid = TreasureGrid(slide=0.2, trap=0.5, map=OPEN)
    assert rests(grid, ((2, 1), 1), "north")[None] == pytest.approx(0.5 * 0.8 + 0.5 * 0.1)
    assert rests(grid, ((1, 2), 1), "south") == {((1, 2), 1): 1.0}  # in front of a wall


def test_gold_pays_once_and_the_last_ends_the_mission() -> None:
    grid = TreasureGrid(slide=0.0, map="BGG")
    first, second = grid.outcomes(((0, 0), 3), "east"), grid.outcomes(((0, 1), 2), "east")
    assert [(o.reward, o.state) for o in first] == [(1.0, ((0, 1), 2))]
    assert [(o.reward, o.state) for o in second] == [(1.0, ((0, 2), 0))]
    assert [o.reward for o in grid.outcomes(((0, 2), 2), "west")] == [0.0]
    assert grid.actions(((0, 2), 0)) == []


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"map": "B.\nT"}, "same length"),
        ({"map": "..\nGT"}, "one start"),
        ({"map": "BB"}, "one start"),
        ({"map": "B.\nxG"}, "line 2: 'x' is no cell"),
        ({"map": ""}, "one start"),
        ({"slide": 1.5}, "slide must be a probability"),
        ({"trap": -0.1}, "trap must be"),
        ({"horizon": 0}, "horizon"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(vulcan.errors.OptionError, match=message):
        TreasureGrid(**parameters)  # type: ignore[arg-type]
