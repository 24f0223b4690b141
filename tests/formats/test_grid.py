"""Treasure maps from text files."""

from __future__ import annotations

from pathlib import Path

import pytest

from vulcan.domains import TreasureGrid
from vulcan.errors import OptionError
from vulcan.formats import open_model

CAVE = "#.G\nBTT\n..#\n"
CORRIDOR = "B.G\n"
TITLED = f"generator 3 3\n\nInstance 1\nMap:\n{CAVE}\nInstance 2\nParams: B=3\nMap:\n{CORRIDOR}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "maps.txt"


def test_a_file_with_one_map_is_that_map(path: Path) -> None:
    path.write_text(CAVE)
    model = open_model(str(path), ["horizon=7", "trap=0.5"]).model
    assert model.rows == TreasureGrid(map=CAVE).rows
    assert (model.horizon, model.trap, model.slide) == (7, 0.5, 0.2)
    assert open_model(f"{path}:1").model.rows == model.rows


@pytest.mark.parametrize("text", [f"{CAVE}\n\n{CORRIDOR}", TITLED], ids=["plain", "titled"])
def test_of_several_maps_one_is_named(path: Path, text: str) -> None:
    path.write_text(text)
    assert open_model(f"{path}:1").model.rows == TreasureGrid(map=CAVE).rows
    assert open_model(f"{path}:2").model.rows == ["B.G"]
    with pytest.raises(OptionError, match=r"maps.txt: has 2 maps; say which, as in .*maps.txt:1"):
        open_model(str(path))
    for number in (0, 3):
        with pytest.raises(OptionError, match=rf"maps.txt:{number}: there is no such map"):
            open_model(f"{path}:{number}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "maps.txt:1: there is no such map; the file has 0"),
        ("B.G\n.x.\n", r"maps.txt:1: line 2: 'x' is no cell of a map; cells are \. \(free\)"),
        ("B.G\n....\n", "maps.txt:1: the lines of a map must be of the same length"),
        ("\n\n..G\n...\n", "maps.txt:1: a map has one start, B, not 0"),
        ("B.G\n.B.\n", "a map has one start, B, not 2"),
        (TITLED.replace("BTT", "B?T"), "line 2: '.' is no cell"),
    ],
)
def test_mistakes_are_named(path: Path, text: str, message: str) -> None:
    path.write_text(text)
    with pytest.raises(OptionError, match=message):
        open_model(f"{path}:1")
