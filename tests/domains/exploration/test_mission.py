"""Missions: parameters, TOML files, histories."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

import vulcan
from tests.helpers.mission_files import EXAMPLE
from tests.helpers.missions import BLOCKED
from vulcan.domains.exploration.field import Field, quadrature
from vulcan.domains.exploration.maps import Map, Obstacle, Vehicle
from vulcan.domains.exploration.model import Exploration
from vulcan.errors import OptionError
from vulcan.formats import open_model
from vulcan.formats.missions import load_mission

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
        vehicle=Vehicle(0.005, 0.0001),
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
        ("horizn = 5", "mission.toml: has a key 'horizn'; allowed are horizon, .*'horizon'?"),
        (
            "horizon = 0",
            "mission.toml: .*horizon must be .* from 1 to 200, not 0",
        ),
        ("bound = 0.1", "bound must be a string"),
        (
            'map = "narow"',
            "map must be a Map, or 'narrow' or 'wide' or 'wider', not 'narow'; did you mean",
        ),
        ("[map]\ncolumns = 3", r"\[map\]: .*missing .* 'rows' and 'start'"),
        (f"{SMALL}colour = 1", r"\[map\]: has a key 'colour'; allowed are columns, rows, start, "),
        (f"{SMALL}obstacles = 3", r"each under its own \[\[map.obstacles\]\]"),
        (
            f"{SMALL}obstacles = [3]",
            "number 1 must have polygon = .*, not 3",
        ),
        (f"{SMALL}[[map.obstacles]]", "number 1 must have polygon"),
        (f"{SMALL}[[map.obstacles]]\ncircle = 1", "number 1 must have polygon"),
        (f"{SMALL}[[map.obstacles]]\nrectangle = [1, 2]", "rectangle = .left, right, bottom, top."),
        ("[field]\nlength = -1", r"\[field\]: length must be"),
        ("field = 1", r"\[field\]: must be a table, not 1"),
        ("[field]\nlenght = 1", r"\[field\]: has a key 'lenght'; .* did you mean 'length'?"),
    ],
)
def test_what_is_not_allowed(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message) as raised:
        load(tmp_path, text)
    assert str(raised.value).startswith(str(tmp_path / "mission.toml"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Exploration(0), "horizon must be a whole number from 1 to 200, not 0"),
        (lambda: Exploration(degree=True), "degree must be a whole number from 1 to 32"),
        (lambda: Exploration(discount=1.5), "discount must be a number from 0 to 1, not 1.5"),
        (
            lambda: Exploration(map="wid"),
            "'narrow' or 'wide' or 'wider', not 'wid'; did you mean 'wide'?",
        ),
        (lambda: Exploration(field=1), "field must be a Field, not 1"),
        (lambda: Exploration(vehicle=None), "vehicle must be a Vehicle, not None"),
        (lambda: Exploration(first_sample=math.nan), "first_sample must be a finite number"),
        (lambda: Field(variance=0), "variance must be a finite number above 0, not 0"),
        (lambda: Field(length=-1), "length must be a finite number above 0, not -1"),
        (lambda: Field(slope=(1, "2")), "slope, second must be a finite number, not '2'"),
        (lambda: Vehicle(-1), "covariance must be a finite number of at least 0, not -1"),
        (lambda: Map(0, 3, (0, 0)), "columns must be a whole number from 1 to 10,000, not 0"),
        (lambda: Map(3, 3, (0, 3)), "start, second must be a whole number from 0 to 2, not 3"),
        (lambda: Map(3, 3, (0, 0), spacing=0), "spacing must be a finite number above 0, not 0"),
        (lambda: Map(3, 3, (0, 0), [1]), "obstacles must be a list of Obstacle"),
        (
            lambda: replace(BLOCKED, start=(5, 5)),
            r"start must be outside .* \(5, 5\) is in number 1",
        ),
        (lambda: Obstacle([(0, 0), (1, 1)]), "at least three points"),
        (lambda: Obstacle([(0, 0), (2, 0), (1, 0.5), (0, 2)]), "corners of a convex polygon"),
        (lambda: Obstacle([(0, 3), (2, -3), (-3, 1), (3, 1), (-2, -3)]), "convex polygon"),
        (lambda: Obstacle.rectangle(0, math.inf, 0, 1), "must be a finite number, not inf"),
    ],
)
def test_what_is_not_allowed_parameters(make, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make()


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 9])
def test_quadrature_has_the_moments_of_a_normal(degree: int) -> None:
    nodes, chances = quadrature(degree)
    for power in range(2 * degree):
        moment = math.fsum(p * z**power for z, p in zip(nodes, chances, strict=True))
        normal = 0.0 if power % 2 else math.prod(range(1, power, 2))
        assert moment == pytest.approx(normal, abs=1e-8 * max(1.0, normal))


def test_settings_win_over_the_file() -> None:
    inside, bound = load_mission(EXAMPLE)
    assert open_model(str(EXAMPLE)) == (inside, bound)
    settings = ["horizon=5", "map=wide", "first_sample=None", "degree=3", "discount=0.5"]
    assert open_model(str(EXAMPLE), ["horizon=5"]).model == replace(inside, horizon=5)
    assert open_model(str(EXAMPLE), settings).model == Exploration(
        5, "wide", degree=3, discount=0.5
    )
