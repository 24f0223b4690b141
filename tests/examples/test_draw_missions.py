"""`examples/exploration/draw.py`: files, and input that it refuses."""

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.helpers.rule_policies import go_east, plan_by_rule
from vulcan.domains import Exploration

SCRIPT = Path(__file__).parents[2] / "examples" / "exploration" / "draw.py"
MODEL = ("exploration", "--set", "map=wide", "--set", "horizon=3", "--set", "degree=2")


@pytest.fixture
def run(tmp_path):
    """Run the script where there is a policy."""
    plan_by_rule(Exploration(map="wide", horizon=3, degree=2), go_east).save(tmp_path / "a.vulcan")

    def start(*arguments):
        command = [sys.executable, str(SCRIPT), "a.vulcan", *arguments]
        return subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True)

    return start


def test_all_figures_at_once(run, tmp_path):
    names = {
        "--outcomes": "six.png",
        "--visits": "visits.svg",
        "--risk": "risk.pdf",
        "--mission": "one.png",
        "--animation": "mission.gif",
    }
    answer = run(*MODEL, *(word for pair in names.items() for word in pair), "--seed", "1")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "8 safe outcomes" in answer.stdout
    assert "into the gap at (5, 5) at step 3" in answer.stdout
    assert all((tmp_path / name).stat().st_size > 5000 for name in names.values())
    with Image.open(tmp_path / "mission.gif") as animation:
        assert animation.n_frames == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (MODEL, "nothing to draw: give at least one of --outcomes, "),
        ((*MODEL, "--animation", "a.png"), "an animation is written to .gif; not to 'a.png'"),
        ((*MODEL, "--visits", "a.png", "--seed", "1"), "--seed is for --mission and --animation"),
        ((*MODEL, "--visits", "a.png", "--bound", "0.1"), "--bound is the curve of --risk"),
        ((*MODEL, "--visits", "a.png", "--risk", "./a.png"), "the same file"),
        (("exploration", "--risk", "a.png"), "this policy was made for Exploration(map='wide'"),
        (("bandit", "--visits", "a.png"), "only exploration missions can be drawn"),
    ],
)
def test_bad_input_is_refused_with_one_message(run, tmp_path, arguments, message):
    answer = run(*arguments)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert message in answer.stderr
    assert "Traceback" not in answer.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.vulcan"]
