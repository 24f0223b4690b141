"""vulcan solve: answers, exit codes, options, sweeps."""

from __future__ import annotations

import errno
import os
import re
import shlex
from dataclasses import fields, replace
from pathlib import Path

import pytest

import vulcan
from tests.helpers.command_line import BOUND, FORWARD, SMALL
from tests.helpers.mission_files import SMALL as MISSION
from vulcan.cli.search import make_solver, read_keywords
from vulcan.domains import Bandit
from vulcan.planning.result import Result
from vulcan.runtime.limits import Limits
from vulcan.solvers.base import load_solvers


def test_solve_shows_the_answer_and_the_policy(run):
    answer = run("solve", *SMALL, *BOUND)
    assert answer.code == 0
    assert answer.err == ""
    lines = answer.out.splitlines()
    assert lines[0] == "✓ safe  best policy within the risk bound, proved"
    for row in (
        "  model             Bandit(horizon=3)",
        "  reward            1.528002",
        "  upper bound       1.528002  the best possible",
        "  allowed risk      0.003056  Δ(x) = 0.002 * x",
        "  complete          yes, 7 decisions",
    ):
        assert row in lines
    assert "  play 1  (fails 0.1 %)" in lines
    assert any(line.startswith("  │  ├─") for line in lines)
    assert not any(line != line.rstrip() for line in lines)


def test_the_readme_shows_what_its_command_prints(run):
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    command, shown = re.search(
        r"```sh\nvulcan (solve bandit .*)\n```\n\n```\n(.*?)  \.\.\.\n", text, re.S
    ).groups()
    assert run(*shlex.split(command)).out.startswith(shown)


def test_json_is_one_strict_document_with_every_digit(run):
    answer = run("solve", *SMALL, *BOUND, "--json", "--depth", "2")
    result = vulcan.solve(vulcan.Problem(Bandit(horizon=3), vulcan.Linear(0.002)))
    document = answer.document
    assert answer.err == ""
    omitted = {"problem", "lines", "reward", "risk", "credits"}
    named = {field.name for field in fields(Result)} - omitted
    assert named | {"model", "bound", "safe", "gap", "absolute_gap"} == set(document)
    assert document["status"] == "solved"
    assert document["stopped_by"] is None
    assert document["safe"] is True
    certificate = document["certificate"]
    for name in ("reward", "risk", "allowed", "slack", "margin", "frontier"):
        assert certificate[name] == getattr(result.certificate, name)
    assert certificate["complete"] is certificate["passes"] is True
    statistics = document["statistics"]
    for name in ("histories", "evaluations", "samples", "memory", "nodes"):
        assert statistics[name] == getattr(result.statistics, name)
    assert statistics["nodes"] > 0
    assert document["upper_bound"] == result.upper_bound >= certificate["reward"]
    assert document["gap"] == result.gap < 1e-9
    assert document["price"] == result.price > 0
    assert len(document["trials"]) == len(result.trials) > 1
    assert document["trials"][1] == vars(result.trials[1])
    assert document["policy"]["nodes"] == 7
    assert document["model"] == "Bandit(horizon=3)"
    assert document["bound"] == "0.002 * x"


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_no_policy_is_an_answer(run, form):
    answer = run("solve", *SMALL, "--bound", "0.01*x - 1", *form)
    assert answer.code == 1
    if form:
        assert answer.document["status"] == "infeasible"
        assert answer.document["certificate"] is answer.document["policy"] is None
    else:
        assert answer.out.startswith("✗ no policy  no policy is within the risk bound, proved")
        shown = run("solve", *SMALL, "--bound", "0.01*x - 1", *FORWARD)
        assert shown.out.startswith("✗ no policy  no policy satisfies constraint ")


def test_limits_stop_the_search(run):
    answer = run("solve", "bandit", *BOUND, *FORWARD, "--histories", "0", "--json")
    assert answer.code == 1
    assert answer.document["status"] == "stopped"
    shown = run("solve", "bandit", *BOUND, "--time-limit", "0")
    # Not even without any time: the most cautious policy takes none to speak of.
    assert shown.out.startswith("✓ safe  stopped by time limit")
    kept = run("solve", "bandit", *BOUND, *FORWARD, "--histories", "100000", "--json")
    assert kept.code == 0
    assert kept.document["status"] == "stopped"
    assert kept.document["stopped_by"] == "limit of histories"
    assert kept.document["safe"] is True


def test_output_is_saved_and_replaced(run, tmp_path):
    path = tmp_path / "plan.vulcan"
    path.write_text("something else")
    answer = run("solve", *SMALL, *BOUND, "-o", path)
    assert re.search(rf"saved  {path}  [\d,]+ bytes\n$", answer.out)
    assert len(vulcan.Policy.load(path)) == 7
    assert run("solve", *SMALL, *BOUND, "--json", "-o", path).document["safe"] is True


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_an_answer_is_shown_even_if_it_can_not_be_saved(run, tmp_path, monkeypatch, form):
    def fail(_, path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(vulcan.Policy, "save", fail)
    answer = run("solve", *SMALL, *BOUND, *form, "-o", tmp_path / "plan.vulcan")
    assert answer.code == 2
    assert "1.52800" in answer.out
    assert answer.err == f"Error: {tmp_path / 'plan.vulcan'}: No space left on device\n"


def test_what_is_not_safe_is_not_saved(run, tmp_path):
    path = tmp_path / "plan.vulcan"
    path.write_text("kept")
    answer = run("solve", *SMALL, "--bound", "0.01*x - 1", "--output", path)
    assert answer.code == 1
    assert answer.err == f"{path} was not written: there is no policy\n"
    assert path.read_text() == "kept"


def test_a_policy_that_is_not_safe_is_shown_but_not_saved(run, tmp_path, monkeypatch):
    result = vulcan.solve(vulcan.Problem(Bandit(horizon=3), vulcan.Linear(0.002)))
    certificate = replace(result.certificate, complete=False, frontier=0.25)
    found = replace(result, certificate=certificate)
    monkeypatch.setattr("vulcan.planning.solve.plan_and_certify", lambda *_, **__: found)
    answer = run("solve", *SMALL, *BOUND, "--output", tmp_path / "plan.vulcan")
    assert answer.code == 1
    assert answer.out.startswith("✗ not safe")
    assert "no: 0.25 is the probability of leaving the plan" in answer.out
    assert "the policy is not complete; --incomplete writes it" in answer.err
    assert not (tmp_path / "plan.vulcan").exists()


def test_a_place_that_cannot_be_written_is_refused_before_the_search(run, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "vulcan.planning.solve.plan_and_certify", lambda *_, **__: pytest.fail("searched")
    )
    answer = run("solve", *SMALL, *BOUND, "--output", tmp_path / "no" / "plan.vulcan")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == f"Error: {tmp_path / 'no'}: No such file or directory\n"
    answer = run("solve", *SMALL, *BOUND, "--output", tmp_path)
    assert answer.err == f"Error: {tmp_path}: Is a directory\n"
    os.mkfifo(pipe := tmp_path / "pipe")
    answer = run("solve", *SMALL, *BOUND, "--output", pipe)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == f"Error: {pipe}: not a plain file; only plain files are written\n"


def test_what_a_model_prints_stays_off_the_answer(run):
    answer = run("solve", "harbour.py:Talkative", "--bound", "0.1", "--json")
    assert answer.document["safe"] is True
    assert "asked quay sail" in answer.err


SOLVE = ("solve", "bandit", "--set", "horizon=4", "--bound", "0.002*x")

NAMES = tuple(load_solvers())
REFUSED = ("uct", "paper-vulcan", "rao-star", "subgoals")
"""They need not find a safe policy, or not under this bound, or need subgoals."""


def test_options_of_a_search():
    given = {"time_limit": 3.0, "memory": "6kB", "seed": 7, "parallel": "2", "exploration": 2.0}
    assert read_keywords(given) == {
        "seed": 7,
        "limits": Limits(time_limit=3.0, memory=6000),
        "parallel": 2,
        "progress": False,
    }
    assert read_keywords({"parallel": "threads:2"})["parallel"] == "threads:2"
    assert make_solver("local-vulcan", given).exploration == 2.0


@pytest.mark.parametrize("name", NAMES)
def test_each_solver_has_the_defaults_of_the_library(name):
    solver = make_solver(name, {})
    assert solver == type(solver)()
    assert type(solver).__name__.lower() == name.replace("-", "")


def test_solvers_with_options_of_their_own():
    for name in ("vulcan", "local-vulcan"):
        assert make_solver(name, {"paper": True}) == vulcan.Vulcan.paper()
    for on in ("graph", "tree"):
        given = {"on": on}
        assert make_solver("linear-program", given) == vulcan.baselines.LinearProgram(on=on)
        assert make_solver("integer-program", given) == vulcan.baselines.IntegerProgram(on)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in REFUSED])
def test_each_solver_solves_from_the_command_line(run, name):
    answer = run(*SOLVE, "--solver", name, "--json")
    document = answer.document
    assert answer.code == 0
    assert document["safe"] is True
    best = 2.0673313851 if name == "linear-program" else 2.0627119821
    reward, upper = document["certificate"]["reward"], document["upper_bound"]
    assert 2.0166 < reward <= best + 1e-9
    if upper is None:
        assert document["gap"] is None
        return
    assert best - 1e-9 <= upper < 2.0674
    # Upper bounds are rounded up, those of HiGHS by its tolerances; that alone is no gap.
    distance = (upper - reward) / upper
    assert document["gap"] == (0 if distance < 1e-9 else pytest.approx(distance, abs=1e-12))


def test_the_sweep_of_penalties_is_in_the_document(run):
    document = run(*SOLVE, "--solver", "penalty", "--json").document
    assert len(document["trials"]) == 82
    assert document["trials"][0]["multiplier"] == 0


def test_a_search_is_resumed(run, tmp_path):
    bandit = ("solve", "bandit", "--horizon", "6", *BOUND, "--solver", "local-vulcan", "--json")
    checkpoint = ("--checkpoint", tmp_path / "search")
    run(*bandit, "--samples", 1500, *checkpoint)
    assert (tmp_path / "search").stat().st_size > 100_000
    resumed = run(*bandit, "--samples", 5000, *checkpoint, "--resume").document
    assert resumed["stopped_by"] == "limit of samples"
    whole = run(*bandit, "--samples", 5000).document
    assert resumed["certificate"] == whole["certificate"]
    assert resumed["statistics"]["histories"] == whole["statistics"]["histories"]


def test_lost_workers_and_failures_are_shown(run, monkeypatch):
    traced = vulcan.trace_frontier(Bandit(horizon=3), levels=[0.001])
    changed = {**traced.__dict__, "failures": {0.5: "RuntimeError: oh"}, "lost_workers": 2}
    monkeypatch.setattr(
        vulcan, "trace_frontier", lambda *_, **__: vulcan.planning.Frontier(**changed)
    )
    lines = run("frontier", *SMALL).out.splitlines()
    assert any(line.split() == ["0.5", "failed:", "RuntimeError:", "oh"] for line in lines)
    assert any(line.split()[:3] == ["workers", "2", "lost;"] for line in lines)


@pytest.fixture
def mission(tmp_path):
    """A mission file, as small as makes sense, in the directory of `run`."""
    path = tmp_path / "mission.toml"
    path.write_text(MISSION)
    return path


def test_certify_judges_by_the_option_then_the_file_then_the_policy(run, mission):
    assert run("solve", mission, "--bound", "0.5", "--output", "plan.vulcan").code == 0
    by_file = run("certify", "plan.vulcan", mission, "--json")
    assert (by_file.code, by_file.document["bound"]) == (1, "0.001 * x")
    assert by_file.document["bound_from"] == f"the bound in {mission}"
    by_option = run("certify", "plan.vulcan", mission, "--bound", "0.4", "--json")
    assert (by_option.code, by_option.document["bound"]) == (0, "0.4")
    mission.write_text(MISSION.replace("bound", "# bound"))
    by_policy = run("certify", "plan.vulcan", mission, "--json")
    assert (by_policy.code, by_policy.document["bound"]) == (4, "0.5")
    assert by_policy.document["bound_from"] == "the bound in plan.vulcan"


@pytest.mark.parametrize(
    ("options", "bound", "levels", "scales"),
    [
        (["--scales", "1,2"], "0.001 * x", [None, None], [1.0, 2.0]),
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


@pytest.mark.parametrize(
    ("text", "options", "messages"),
    [
        (None, [], ["mission.toml: can't be read: No such file or directory"]),
        ("horizn = 5", [], ["mission.toml: has a key 'horizn'", "mean 'horizon'?"]),
        ("bound = '0.1*y'", [], ["mission.toml: bound: ", "unknown name 'y'"]),
        (
            MISSION,
            ["--set", "horizn=5"],
            ["mission.toml has no parameter 'horizn'; did you mean 'horizon'?", "horizon=2, map="],
        ),
        (MISSION, ["--set", "field=3"], ["field must be a Field, not 3"]),
    ],
)
def test_errors_name_the_file_and_the_key(run, tmp_path, text, options, messages):
    if text is not None:
        (tmp_path / "mission.toml").write_text(text)
    answer = run("solve", "mission.toml", *options)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.count("Error: ") == 1
    assert "VULCAN_DEBUG" not in answer.err
    for message in messages:
        assert message in answer.err


@pytest.mark.parametrize("command", ["solve", "compare"])
def test_without_any_bound_the_file_is_mentioned(run, mission, command):
    mission.write_text(MISSION.replace("bound", "# bound"))
    answer = run(command, "mission.toml")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "Error: Missing option '--bound', such as --bound \"0.002*x\", "
        'or bound = "0.002*x" in mission.toml\n'
    )
    assert run(command, "bandit").err == (
        "Error: Missing option '--bound', such as --bound \"0.002*x\"\n"
    )


LATE = """
import time
import vulcan


class Late:
    horizon = 6
    asked = set()

    def initial_state(self):
        return (0, 0)

    def actions(self, state):
        return ["go"]

    def outcomes(self, state, action):
        if state in self.asked:  # by the search; now the certificate asks
            time.perf_counter.now += 0.1
        self.asked.add(state)
        x, y = state
        return [vulcan.Outcome(0.5, 1.0, (x + 1, y)), vulcan.Outcome(0.5, 1.0, (x, y + 1))]
"""


@pytest.mark.usefixtures("clock")
def test_a_policy_that_is_not_certified_in_time_is_not_saved(run, tmp_path):
    (tmp_path / "late.py").write_text(LATE)
    plan = tmp_path / "plan.vulcan"
    answer = run("solve", "late.py:Late", "--bound", "0.1", "--time-limit", "0.5", "-o", plan)
    assert answer.code == 1
    assert answer.out.startswith("? not certified")
    assert re.search(r"planned +reward 6.000000, risk 0.000000: estimates", answer.out)
    assert "the policy is not certified" in answer.err
    assert not plan.exists()


def test_an_incomplete_policy_is_saved_on_request(run, tmp_path):
    path = tmp_path / "plan.vulcan"
    words = ["solve", "bandit", "--bound", "0.002*x", "--solver", "paper-vulcan"]
    words += ["--exploration", "2", "--samples", "2000", "--output", str(path)]
    refused = run(*words)
    assert refused.code == 1
    assert "estimate" in refused.out
    assert "--incomplete writes it all the same" in refused.err
    assert not path.exists()
    saved = run(*words, "--incomplete")
    assert saved.code == 1
    assert not vulcan.Policy.load(path).complete


WALK = """
from vulcan.model.interface import FAILURE

class Walk:
    horizon = 3
    def __init__(self, risk=0.1):
        self.risk = risk
    def initial(self, rng):
        return 0
    def actions(self, state):
        return ["slow", "fast"]
    def sample(self, state, action, rng):
        if action == "fast" and rng.random() < self.risk:
            return FAILURE, 0.0, True
        return state + 1, 2.0 if action == "fast" else 1.0, state == 2
"""


def test_a_simulator_is_planned_for_and_certified_at_a_confidence(run, tmp_path):
    model = tmp_path / "walk.py"
    model.write_text(WALK)
    page = tmp_path / "page.html"
    command = ("solve", f"{model}:Walk", "--bound", "0.3", "--simulate")
    answer = run(*command, "--output", str(page))
    assert answer.code == 5
    first = answer.out.splitlines()[0]
    assert first.startswith("✓ safe at 95 % confidence")
    assert "independent episodes of a policy fixed beforehand" in first
    assert "at 95 % confidence" in page.read_text(encoding="utf-8")
    document = run(*command, "--episodes", "500", "--json").document
    assert document["safe_at_confidence"] is True
    assert document["certificate"]["episodes"] == 500
    assert all("at 95 % confidence" in one["verdict"] for one in document["tested"])
    strict = run("solve", f"{model}:Walk", "--bound", "0.0001", "--simulate", "--episodes", "50")
    assert strict.code == 1
    assert strict.out.startswith("? open at 95 % confidence")


def test_what_a_simulator_needs(run, tmp_path):
    model = tmp_path / "walk.py"
    model.write_text(WALK)
    for arguments, message in (
        ((f"{model}:Walk", "--simulate"), "--bound"),
        ((f"{model}:Walk", "--bound", "0.1", "--simulate", "-o", "a.vulcan"), ".html"),
        (("bandit", "--bound", "0.1", "--simulate"), "not a simulator: it has no initial, sample"),
        (("mission.toml", "--bound", "0.1", "--simulate"), "needs gymnasium:NAME"),
        (("bandit", "--bound", "0.1", "--episodes", "3"), "needs --simulate"),
        (("gymnasium:CartPole-v1", "--bound", "0.1"), "vulcan solve --simulate"),
    ):
        answer = run("solve", *arguments)
        assert answer.code == 2
        assert message in answer.err
