"""`vulcan draw`: files, answers, and input that it refuses."""

import errno
import os
import re

import pytest
from PIL import Image

import vulcan
from tests.helpers.rule_policies import BOUND, go_east, plan_by_rule
from vulcan import plotting
from vulcan.domains import Bandit, Exploration
from vulcan.domains.exploration import drawing

MISSION = Exploration(map="wide", horizon=3, degree=2)
MODEL = ("exploration", "--set", "map=wide", "--set", "horizon=3", "--set", "degree=2")
DRAW = ("draw", "plan.vulcan", *MODEL)


@pytest.fixture(scope="module")
def policy():
    return plan_by_rule(MISSION, go_east)


@pytest.fixture
def plan(run, policy, tmp_path):
    """The policy's file, where the command line is run."""
    path = tmp_path / "plan.vulcan"
    policy.save(path)
    return path


def test_all_figures_at_once(run, plan, policy, tmp_path):
    names = {
        "--outcomes": "six.png",
        "--visits": "visits.svg",
        "--risk": "risk.pdf",
        "--mission": "one.png",
        "--animation": "mission.gif",
    }
    answer = run(*DRAW, *(word for pair in names.items() for word in pair))
    assert (answer.code, answer.err) == (0, "")
    certificate = vulcan.certify(vulcan.Problem(MISSION, vulcan.parse(BOUND)), policy)
    lines = answer.out.splitlines()
    assert lines[0] == "✓ drawn  5 files, from 8 safe outcomes"
    assert "  model   Exploration(map='wide', horizon=3)" in lines
    assert f"  reward  {certificate.reward:.6f}" in lines
    assert f"  risk    {certificate.risk:.6f}" in lines
    shown = next(line for line in lines if line.startswith("  shown"))
    assert "into the gap at (5, 5) at step 3, after " in shown
    for name in names.values():
        path = tmp_path / name
        assert path.stat().st_size > 5000
        assert f"  saved   {name}  {path.stat().st_size:,} bytes" in lines
    with Image.open(tmp_path / "mission.gif") as animation:
        assert animation.n_frames == 4
    assert {p.name for p in tmp_path.iterdir()} == {"harbour.py", "plan.vulcan", *names.values()}


@pytest.fixture
def drawn(monkeypatch):
    """What figures would have been given; nothing is drawn, which takes a while."""
    given = {}

    def remember(name):
        def draw(*arguments):
            given[name] = arguments
            if name == "animate_mission":
                arguments[1].write_bytes(b"")

        return draw

    for name in (
        *("plot_outcomes", "plot_visits", "plot_risk_reward", "plot_mission", "animate_mission"),
    ):
        monkeypatch.setattr(drawing, name, remember(name))
    monkeypatch.setattr(plotting, "save", lambda ax, path: path.write_bytes(b""))
    return given


def test_the_bound_of_the_risk_figure(run, plan, drawn):
    for options, text in (((), BOUND), (("--bound", "0.002*x"), "0.002 * x")):
        assert run(*DRAW, "--risk", "a.png", *options).code == 0
        journeys, bound = drawn["plot_risk_reward"]
        assert str(bound) == str(vulcan.parse(text))
        assert len(journeys) == 8


def test_a_policy_without_a_bound_is_drawn_without_one(run, tmp_path, drawn):
    plan_by_rule(MISSION, go_east, bound=None).save(tmp_path / "plan.vulcan")
    assert run(*DRAW, "--risk", "a.png").code == 0
    assert drawn["plot_risk_reward"][1] is None


def test_a_mission_file_brings_its_bound(run, plan, drawn, tmp_path):
    text = 'map = "wide"\nhorizon = 3\ndegree = 2\nbound = "0.003*x"\n'
    (tmp_path / "mission.toml").write_text(text)
    assert run("draw", "plan.vulcan", "mission.toml", "--risk", "a.png").code == 0
    assert str(drawn["plot_risk_reward"][1]) == str(vulcan.parse("0.003*x"))


def test_one_outcome_is_the_first_of_the_six_or_a_random_one(run, plan, policy, drawn):
    journeys = drawing.follow_policy(policy, MISSION)
    assert run(*DRAW, "--mission", "a.png", "--outcomes", "b.png").code == 0
    assert drawn["plot_mission"][0] == drawing.choose_outcomes(journeys)[0]
    assert drawn["plot_outcomes"][1][0] == drawn["plot_mission"][0]
    numbers = set()
    for seed in range(8):
        options = ("--mission", "a.png", "--animation", "a.gif", "--seed", seed)
        assert run(*DRAW, *options).code == 0
        assert drawn["plot_mission"] == (drawn["animate_mission"][0],)
        assert drawn["plot_mission"][0].number == journeys.draw(seed)
        numbers.add(journeys.draw(seed))
    assert len(numbers) > 1


def test_an_incomplete_policy_is_drawn_and_called_so(run, policy, drawn, tmp_path):
    child = policy.child.copy()
    child[0] = -3
    arrays = {name: getattr(policy, name) for name in policy.ARRAYS} | {"child": child}
    vulcan.Policy(policy.about, policy.labels, **arrays).save(tmp_path / "plan.vulcan")
    answer = run(*DRAW, "--visits", "a.png")
    assert answer.code == 0
    assert "complete  no: some histories are not planned" in answer.out


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (DRAW, ["nothing to draw: give at least one of --outcomes, ", " and --animation"]),
        ([*DRAW, "--outcomes", "six.jpg"], ["a figure is written to .png, .svg, .pdf; not to"]),
        ([*DRAW, "--visits", "v.gif"], ["a figure is written to .png, .svg, .pdf; not to 'v.gif'"]),
        ([*DRAW, "--animation", "a.png"], ["an animation is written to .gif; not to 'a.png'"]),
        ([*DRAW, "--risk", "no/r.png"], ["no: No such file or directory"]),
        ([*DRAW, "--animation", "no/a.gif"], ["no: No such file or directory"]),
        (
            [*DRAW, "--visits", "a.png", "--risk", "./a.png"],
            ["--visits and --risk are the same file"],
        ),
        ([*DRAW, "--visits", "a.png", "--seed", "1"], ["--seed is for --mission and --animation"]),
        ([*DRAW, "--mission", "a.png", "--seed", "-1"], ["Invalid value for '--seed'"]),
        ([*DRAW, "--visits", "a.png", "--bound", "0.1"], ["--bound is the curve of --risk"]),
        ([*DRAW, "--risk", "a.png", "--bound", "0.1*y"], ["unknown name 'y'"]),
        (["draw", "missing.vulcan", *MODEL, "--risk", "a.png"], ["missing.vulcan: can't be read"]),
        (["draw", "harbour.py", *MODEL, "--risk", "a.png"], ["this is not a Vulcan policy"]),
        (
            ["draw", "plan.vulcan", "exploration", "--risk", "a.png"],
            ["this policy was made for Exploration(map='wide', horizon=3)"],
        ),
        (
            ["draw", "plan.vulcan", "bandit", "--visits", "a.png"],
            ["only exploration missions can be drawn", "not Bandit(horizon=9)"],
        ),
    ],
)
def test_bad_input_is_refused_with_one_message(run, plan, tmp_path, arguments, messages):
    before = sorted(p.name for p in tmp_path.iterdir())
    answer = run(*arguments)
    assert (answer.code, answer.out) == (2, "")
    for message in messages:
        assert message in answer.err
    assert "Traceback" not in answer.err
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_files_are_checked_before_any_work(run, tmp_path, monkeypatch):
    def fail(*_):
        pytest.fail("the policy was loaded")

    monkeypatch.setattr(vulcan.Policy, "load", fail)
    (tmp_path / "folder.png").mkdir()
    for options in (("--visits", "folder.png"), ("--animation", "a.png"), ("--risk", "a.txt")):
        assert run(*DRAW, *options).code == 2


def test_a_policy_of_another_kind_of_model_is_refused(run, tmp_path):
    problem = vulcan.Problem(Bandit(horizon=2), vulcan.Linear(0.002))
    vulcan.solve(problem, vulcan.Pareto()).policy.save(tmp_path / "plan.vulcan")
    answer = run("draw", "plan.vulcan", "bandit", "--set", "horizon=2", "--visits", "a.png")
    assert answer.code == 2
    assert "only exploration missions can be drawn" in answer.err


def test_a_full_disk_leaves_the_old_file(run, plan, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "a.png").write_text("before")
    monkeypatch.setattr("vulcan.runtime.files.os.replace", fail)
    answer = run(*DRAW, "--visits", "a.png")
    assert (answer.code, answer.out) == (2, "")
    assert "No space left" in answer.err
    assert (tmp_path / "a.png").read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 3


def test_help_names_all_figures(run):
    answer = run("draw", "--help")
    assert answer.code == 0
    for option in ("--outcomes", "--visits", "--risk", "--mission", "--animation", "--seed"):
        assert re.search(rf"^\s+{option}\b", answer.out, re.MULTILINE)
