"""Files of missions: figures and animations."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from vulcan import OptionError, plotting
from vulcan.domains.exploration import drawing


def test_figures_are_written_and_the_same_each_time(short, tmp_path):
    for name in ("a.svg", "b.svg"):
        plotting.save(drawing.plot_mission(short.journey(0)), tmp_path / name)
    assert (tmp_path / "a.svg").stat().st_size > 5000
    assert (tmp_path / "b.svg").read_bytes() == (tmp_path / "a.svg").read_bytes()


def test_an_animation_has_a_frame_per_step(short, tmp_path):
    path = tmp_path / "mission.GIF"
    outcome = drawing.choose_outcomes(short)[0]
    drawing.animate_mission(outcome, path)
    assert path.stat().st_size < 300_000
    with Image.open(path) as animation:
        assert animation.format == "GIF"
        assert animation.n_frames == short.mission.horizon + 1
        frames = []
        for number in range(animation.n_frames):
            animation.seek(number)
            frames.append(np.asarray(animation.convert("RGB")).astype(int))
    for before, after in pairwise(frames):
        assert before.shape == after.shape
        # The map changes; what is left of it and the legend below do not.
        changed = np.abs(before - after).sum(axis=2) > 60
        assert changed.any()
        height, width = changed.shape
        assert not changed[int(0.93 * height) :].any()
        assert not changed[:, : int(0.05 * width)].any()


@pytest.mark.parametrize("name", ["mission", "mission.png", ".gif"])
def test_other_endings_of_animations_are_refused(journeys, tmp_path, name):
    with pytest.raises(OptionError, match=r"an animation is written to \.gif; not to '.*'"):
        drawing.animate_mission(journeys.journey(0), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_files_are_written_at_once_or_not_at_all(short, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    figure, animation = tmp_path / "a.png", tmp_path / "a.gif"
    for path in (figure, animation):
        path.write_text("before")
    ax = drawing.plot_mission(short.journey(0))
    monkeypatch.setattr("vulcan.runtime.files.os.replace", fail)
    with pytest.raises(OSError, match="No space"):
        plotting.save(ax, figure)
    with pytest.raises(OSError, match="No space"):
        drawing.animate_mission(short.journey(0), animation)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.gif", "a.png"]
    assert figure.read_text() == animation.read_text() == "before"


def test_missions_are_drawn_without_the_library_that_opens_windows(tmp_path):
    code = """
import sys
from vulcan.domains.exploration import drawing
assert "matplotlib" not in sys.modules
from tests.helpers.rule_policies import go_east, plan_by_rule
from vulcan.domains import Exploration
mission = Exploration(map="wide", horizon=1, degree=2)
journeys = drawing.follow_policy(plan_by_rule(mission, go_east), mission)
drawing.animate_mission(journeys.journey(0), sys.argv[1])
assert "matplotlib.pyplot" not in sys.modules
"""
    command = [sys.executable, "-c", code, str(tmp_path / "a.gif")]
    subprocess.run(command, check=True)
    assert (tmp_path / "a.gif").stat().st_size > 5000
