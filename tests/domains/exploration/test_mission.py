"""Missions written in TOML."""

from __future__ import annotations

from pathlib import Path

import pytest

import vulcan
from tests.helpers.mission_files import EXAMPLE
from vulcan.domains.exploration.collision import Obstacle, Vehicle
from vulcan.domains.exploration.field import Field
from vulcan.domains.exploration.maps import Map
from vulcan.domains.exploration.mission import load_mission
from vulcan.domains.exploration.model import Exploration
from vulcan.errors import OptionError

SMALL = "[map]\ncolumns = 5\nrows = 4\nstart = [1, 2]\n"


def load(folder: Path, text: str) -> tuple[Exploration, str | None]:
    path = folder / "mission.toml"
    path.write_text(text, encoding="utf-8")
    return load_mission(path)


def test_example_gives_every_parameter() -> None:
    mission, bound = load_mission(EXAMPLE)
    corners = [(4.3, 5.16), (5.7, 5.16), (5.9, 11.0), (4.1, 11.0)]
    obstacles = [Obstacle.rectangle(4.3, 5.7, -1, 4.84), Obstacle(corners)]
    assert mission == Exploration(
        horizon=9,
        map=Map(11, 11, (2, 4), obstacles),
        field=Field(1.0, (0.05, 0.05), 0.16, 2.0),
        vehicle=Vehicle(0.005, ((0.0001, 0.0), (0.0, 0.0001))),
        degree=4,
        first_sample=1.3,
        collision_reward=0.0,
        discount=1.0,
    )
    assert bound is not None
    assert vulcan.parse(bound)(15.0) == pytest.approx(0.03, rel=0.01)


def test_example_can_be_solved() -> None:
    mission, bound = load_mission(EXAMPLE)
    short = Exploration(3, mission.map, mission.field, mission.vehicle, degree=2)
    result = vulcan.solve(vulcan.Problem(short, vulcan.parse(bound)), samples=300)
    assert result.safe


def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    assert load(tmp_path, "") == (Exploration(), None)
    assert load(tmp_path, 'map = "wide"\nhorizon = 5') == (Exploration(5, "wide"), None)
    assert load(tmp_path, SMALL) == (Exploration(map=Map(5, 4, (1, 2))), None)
    assert load(tmp_path, "[field]\nlength = 3")[0].field == Field(length=3.0)
    assert load(tmp_path, 'bound = "0.002*x"')[1] == "0.002*x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("horizon = ", "mission.toml: this is not TOML: Invalid value"),
        ("horizn = 5", "the file has a key 'horizn'; allowed are bound, horizon, .*'horizon'?"),
        ("horizon = 0", "mission.toml: horizon must be a whole number from 1 to 200, not 0"),
        ("horizon = true", "horizon must be a whole number"),
        ("bound = 0.1", "bound must be a string"),
        ('bound = "0.1 +"', "mission.toml: bound: "),
        ('map = "narow"', "map must be a Map, or 'narrow' or 'wide', not 'narow'; did you mean"),
        ("map = 5", "map must be a Map"),
        ("[map]\ncolumns = 3", r"\[map\] needs rows, start"),
        (f"{SMALL}colour = 1", r"\[map\] has a key 'colour'; allowed are columns, rows, start, "),
        (f"{SMALL}spacing = 0", r"\[map\]: spacing must be a finite number above 0, not 0"),
        (f"{SMALL}obstacles = 3", r"each under its own \[\[map.obstacles\]\]"),
        (f"{SMALL}obstacles = [3]", r"\[\[map.obstacles\]\] number 1 must be a table, not 3"),
        (f"{SMALL}[[map.obstacles]]", "number 1 needs either polygon or rectangle"),
        (f"{SMALL}[[map.obstacles]]\ncircle = 1", "a key 'circle'; allowed are polygon, rectangle"),
        (f"{SMALL}[[map.obstacles]]\nrectangle = [1, 2]", "must be .left, right, bottom, top."),
        (f"{SMALL}[[map.obstacles]]\nrectangle = [2, 1, 0, 1]", "number 1: a rectangle has left <"),
        (f"{SMALL}[[map.obstacles]]\npolygon = [[1, 2]]", "number 1: vertices must be at least"),
        (f"{SMALL}[[map.obstacles]]\npolygon = [[0, 1], [2, 1], [1, 3]]", "start must be outside"),
        ("field = 1", r"\[field\] must be a table, not 1"),
        ("[field]\nlenght = 1", r"\[field\] has a key 'lenght'; .* did you mean 'length'?"),
        ("[field]\nlength = -1", r"\[field\]: length must be a finite number above 0, not -1"),
        ("[vehicle]\ngrowth = [[1, 2], [2, 1]]", r"\[vehicle\]: growth must be symmetric"),
        ("[vehicle]\ncovariance = nan", r"\[vehicle\]: covariance must be a finite number"),
    ],
)
def test_what_is_not_allowed(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message) as raised:
        load(tmp_path, text)
    assert str(raised.value).startswith(str(tmp_path / "mission.toml"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"nothing.toml: can't be read: No such file"):
        load_mission(tmp_path / "nothing.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(OptionError, match=r"bytes.toml: can't be read: it is not a text in UTF-8"):
        load_mission(tmp_path / "bytes.toml")
