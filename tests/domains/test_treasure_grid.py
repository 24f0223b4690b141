"""The treasure grid: where moves come to rest, what they risk, and bad maps."""

from __future__ import annotations

from pathlib import Path

import pytest

import vulcan
from vulcan.domains import TreasureGrid
from vulcan.formats.registry import open_model
from vulcan.testing import check_model

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


@pytest.mark.parametrize(
    "model", [TreasureGrid(), TreasureGrid(slide=0.0), TreasureGrid(5, 1.0, 1.0, OPEN)], ids=str
)
def test_it_keeps_the_rules(model: TreasureGrid) -> None:
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


def test_a_map_from_a_file_is_that_map(tmp_path: Path) -> None:
    path = tmp_path / "cave.txt"
    path.write_text(OPEN)
    assert TreasureGrid(map=str(path)).rows == TreasureGrid(map=OPEN).rows
    named = open_model("treasure-grid", [f"map={path}", "horizon=3"]).model
    assert named.rows == TreasureGrid(map=OPEN).rows


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"map": "B.\nT"}, "same length"),
        ({"map": "..\nGT"}, "one start"),
        ({"map": "BB"}, "one start"),
        ({"map": "B.\nxG"}, "line 2: 'x' is no cell"),
        ({"map": "no-such-map.txt"}, "no-such-map.txt"),
        ({"slide": 1.5}, "slide must be a probability"),
        ({"trap": -0.1}, "trap must be"),
        ({"horizon": 0}, "horizon"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(vulcan.OptionError, match=message):
        TreasureGrid(**parameters)  # type: ignore[arg-type]
