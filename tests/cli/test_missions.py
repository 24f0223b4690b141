"""The command line with mission files in place of models."""

from __future__ import annotations

import pytest

import vulcan
from tests.helpers.mission_files import EXAMPLE, SMALL
from vulcan.domains.exploration import load_mission

COMMANDS = ("solve", "compare", "frontier", "check")


@pytest.fixture
def mission(tmp_path):
    """A mission file, as small as makes sense, in the directory of `run`."""
    path = tmp_path / "mission.toml"
    path.write_text(SMALL)
    return path


def solve(mission, bound):
    return vulcan.solve(vulcan.Problem(mission, vulcan.parse(bound)))


# The model and its bound.


def test_solving_a_file_is_solving_its_mission(run, mission):
    document = run("solve", "mission.toml", "--json").document
    result = solve(*load_mission(mission))
    assert document["bound"] == "0.001 * x"
    assert document["certificate"]["reward"] == result.certificate.reward
    assert document["certificate"]["risk"] == result.certificate.risk
    assert document["policy"]["fingerprint"] == result.policy.about.fingerprint


def test_a_bound_on_the_command_line_wins(run, mission):
    document = run("solve", mission, "--bound", "0.5", "--json").document
    own = run("solve", mission, "--json").document
    assert (own["bound"], document["bound"]) == ("0.001 * x", "0.5")
    assert document["certificate"]["reward"] > own["certificate"]["reward"]


def test_the_example_can_be_solved_from_the_shell(run):
    answer = run("solve", EXAMPLE, "--set", "horizon=3", "--set", "degree=2", "--time-limit", 10)
    assert answer.code == 0
    assert answer.out.startswith("✓ safe  ")
    assert "  model         Exploration(map=Map(11 x 11, 2 obstacles), horizon=3)\n" in answer.out
    assert "Δ(x) = (1 - exp(-0.4*x)) * (0.015 + 0.001*x)\n" in answer.out


# The other commands.


def test_check_and_compare(run, mission):
    assert run("check", mission).out.startswith("✓ sound  Exploration(map=Map(5 x 4, 1 obst")
    document = run("compare", mission, "--solvers", "pareto,penalty", "--json").document
    assert document["bound"] == "0.001 * x"
    assert all(row["safe"] for row in document["rows"])


def test_certify_judges_by_the_option_then_the_file_then_the_policy(run, mission):
    assert run("solve", mission, "--bound", "0.5", "--output", "plan.vulcan").code == 0
    by_file = run("certify", "plan.vulcan", mission, "--json")
    assert (by_file.code, by_file.document["bound"]) == (1, "0.001 * x")
    assert by_file.document["bound_from"] == f"the bound in {mission}"
    by_option = run("certify", "plan.vulcan", mission, "--bound", "0.4", "--json")
    assert (by_option.code, by_option.document["bound"]) == (0, "0.4")
    mission.write_text(SMALL.replace("bound", "# bound"))
    by_policy = run("certify", "plan.vulcan", mission, "--json")
    assert (by_policy.code, by_policy.document["bound"]) == (0, "0.5")
    assert by_policy.document["bound_from"] == "the bound in plan.vulcan"


@pytest.mark.parametrize(
    ("options", "bound", "levels", "scales"),
    [
        (["--scales", "1,2"], "0.001 * x", [None, None], [1.0, 2.0]),
        (["--from", "1", "--to", "2", "--points", "2"], "0.001 * x", [None, None], [1.0, 2.0]),
        (["--levels", "0,0.1"], None, [0.0, 0.1], [None, None]),
        (["--bound", "0.002*x", "--scales", "1"], "0.002 * x", [None], [1.0]),
    ],
)
def test_frontiers_are_of_the_bound_unless_levels_are_given(
    run, mission, options, bound, levels, scales
):
    document = run("frontier", mission, *options, "--json").document
    assert document["bound"] == bound
    assert [point["level"] for point in document["points"]] == levels
    assert [point["scale"] for point in document["points"]] == scales


# What is wrong gets one message, which says where.


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("text", "options", "messages"),
    [
        (None, [], ["mission.toml: can't be read: No such file or directory"]),
        ("horizon = ", [], ["mission.toml: this is not TOML: Invalid value (at"]),
        ("horizn = 5", [], ["mission.toml: the file has a key 'horizn'", "mean 'horizon'?"]),
        ("horizon = 0", [], ["mission.toml: horizon must be a whole number from 1 to 200"]),
        ("bound = '0.1*y'", [], ["mission.toml: bound: ", "unknown name 'y'"]),
        ("[field]\nlength = -1", [], ["mission.toml: [field]: length must be"]),
        (
            SMALL,
            ["--set", "horizn=5"],
            ["mission.toml has no parameter 'horizn'; did you mean 'horizon'?", "horizon=2, map="],
        ),
        (SMALL, ["--set", "horizon=0"], ["horizon must be a whole number from 1 to 200, not 0"]),
        (SMALL, ["--set", "map=wid"], ["map must be", "did you mean 'wide'?"]),
        (SMALL, ["--set", "field=3"], ["field must be a Field, not 3"]),
    ],
)
def test_errors_name_the_file_and_the_key(run, tmp_path, command, text, options, messages):
    if text is not None:
        (tmp_path / "mission.toml").write_text(text)
    answer = run(command, "mission.toml", *options)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.count("Error: ") == 1
    assert "VULCAN_DEBUG" not in answer.err
    for message in messages:
        assert message in answer.err


@pytest.mark.parametrize("command", ["solve", "compare"])
def test_without_any_bound_the_file_is_mentioned(run, mission, command):
    mission.write_text(SMALL.replace("bound", "# bound"))
    answer = run(command, "mission.toml")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "Error: Missing option '--bound', such as --bound \"0.002*x\", "
        'or bound = "0.002*x" in mission.toml\n'
    )
    assert run(command, "bandit").err == (
        "Error: Missing option '--bound', such as --bound \"0.002*x\"\n"
    )


def test_help_and_errors_mention_mission_files(run):
    assert "mission.toml  " in run("solve", "nothing", "--bound", "0.1").err
    for command in (*COMMANDS, "certify"):
        assert "mission.toml" in " ".join(run(command, "--help").out.split())


def test_tiny_risks_are_short_for_people_and_exact_for_programs(run, mission):
    settings = ("--set", "horizon=1", "--bound", "1e-9")
    document = run("solve", mission, *settings, "--json").document
    assert 0 < document["certificate"]["risk"] < 1e-12
    answer = run("solve", mission, *settings).out
    assert "  risk          < 1e-12  acceptable\n" in answer
    assert "(fails < 1e-10 %)\n" in answer
