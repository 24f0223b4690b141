"""Mission files as models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.helpers.mission_files import SMALL
from vulcan.domains.exploration import Exploration
from vulcan.formats import open_model
from vulcan.formats.missions import load_mission


def test_settings_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mission.toml"
    path.write_text(SMALL)
    inside, _ = load_mission(path)
    settings = ["horizon=5", "map=wide", "first_sample=None", "degree=3", "discount=0.5"]
    assert open_model(str(path), ["horizon=5"]).model == replace(inside, horizon=5)
    assert open_model(str(path), settings).model == Exploration(5, "wide", degree=3, discount=0.5)
    assert open_model(str(path)) == (inside, "0.001*x")
