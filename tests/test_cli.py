"""The command line, run in this process: answers and exit codes."""

import errno
import json
import math
import os
import re
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import vulcan
from vulcan.cli import main
from vulcan.domains import Bandit
from vulcan.model_walk import MOST_SHOWN, MOST_VIOLATIONS

HARBOUR = Path(__file__).parent / "harbour.py"
BOUND = ("--bound", "0.002*x")
SMALL = ("bandit", "--set", "horizon=3")
FORWARD = ("--solver", "forward-search")


@dataclass
class Answer:
    code: int
    out: str
    err: str

    @property
    def document(self):
        return json.loads(self.out, parse_constant=pytest.fail)


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command line in a directory of its own, leaving nothing behind in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.delenv("VULCAN_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    shutil.copy(HARBOUR, tmp_path)
    known = set(sys.modules)

    def run(*arguments):
        with pytest.raises(SystemExit) as ending:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Answer(ending.value.code or 0, captured.out, captured.err)

    yield run
    for name in ("harbour", "vulcan_model_harbour"):
        if name not in known:
            sys.modules.pop(name, None)


@pytest.fixture
def plan(run, tmp_path):
    path = tmp_path / "plan.vulcan"
    assert run("solve", *SMALL, *BOUND, "--output", path).code == 0
    return path


@pytest.fixture
def unsafe_plan(tmp_path):
    """A policy that nobody planned for the rest of its histories."""
    policy = vulcan.solve(vulcan.Problem(Bandit(horizon=3), vulcan.Linear(0.002))).policy
    child = policy.child.copy()
    child[0] = -3
    arrays = {name: getattr(policy, name) for name in policy.ARRAYS} | {"child": child}
    path = tmp_path / "unsafe.vulcan"
    vulcan.Policy(policy.about, policy.labels, **arrays).save(path)
    return path


# solve


def test_solve_shows_the_answer_and_the_policy(run):
    answer = run("solve", *SMALL, *BOUND)
    assert answer.code == 0
    assert answer.err == ""
    lines = answer.out.splitlines()
    assert lines[0] == "✓ safe  best policy within the risk bound, proved"
    for row in (
        "  model         Bandit(horizon=3)",
        "  reward        1.528002",
        "  upper bound   1.528002  the best possible",
        "  allowed risk  0.003056  Δ(x) = 0.002 * x",
        "  complete      yes, 7 decisions",
    ):
        assert row in lines
    assert "  play 1  (fails 0.1 %)" in lines
    assert any(line.startswith("  │  ├─") for line in lines)
    assert not any(line != line.rstrip() for line in lines)


@pytest.mark.parametrize(("depth", "levels"), [("0", 0), ("1", 1), ("2", 2), ("100", 3)])
def test_depth_is_the_number_of_decisions_shown(run, depth, levels):
    drawn = run("solve", *SMALL, *BOUND, "--depth", depth).out.partition("time")[2]
    indents = {line.find("─") for line in drawn.splitlines() if "─" in line}
    assert len(indents) == levels


def test_a_policy_without_an_explicit_depth_stays_short(run):
    few = run("solve", "bandit", "--set", "horizon=6", *BOUND).out.splitlines()
    many = run("solve", "bandit", "--set", "horizon=6", *BOUND, "--depth", "6").out.splitlines()
    assert len(few) < 75 < len(many)


def test_json_is_one_strict_document_with_every_digit(run):
    answer = run("solve", *SMALL, *BOUND, "--json", "--depth", "2")
    result = vulcan.solve(vulcan.Problem(Bandit(horizon=3), vulcan.Linear(0.002)))
    document = answer.document
    assert answer.err == ""
    assert list(document) == [
        *("status", "explanation", "stopped_by", "safe", "certificate", "statistics", "policy"),
        *("model", "bound", "solver", "upper_bound", "gap", "price", "trials"),
    ]
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


def test_decisions_in_json_are_the_nodes_down_to_the_depth(run):
    decisions = run("solve", *SMALL, *BOUND, *FORWARD, "--json", "--depth", "2").document["policy"][
        "decisions"
    ]
    assert [decision["node"] for decision in decisions] == [0, 1, 4]
    assert decisions[0]["action"] == "play 1"
    assert [outcome["next"] for outcome in decisions[0]["outcomes"]] == [1, 4, "failed"]
    assert decisions[0]["outcomes"][2] == {
        "label": "failure",
        "probability": 0.001,
        "reward": 0.0,
        "next": "failed",
    }


def test_numbers_that_json_lacks_are_texts(run):
    # Nothing is ever risked, so no factor on the risks breaks the bound.
    certificate = run("solve", *SMALL, "--bound", "0", "--json").document["certificate"]
    assert certificate["margin"] == "inf"
    assert math.isinf(float(certificate["margin"]))


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_no_policy_is_an_answer(run, form):
    answer = run("solve", *SMALL, "--bound", "-1", *form)
    assert answer.code == 1
    if form:
        assert answer.document["status"] == "infeasible"
        assert answer.document["certificate"] is answer.document["policy"] is None
    else:
        assert answer.out.startswith("✗ no policy  no policy is within the risk bound, proved")
        shown = run("solve", *SMALL, "--bound", "-1", *FORWARD)
        assert shown.out.startswith("✗ no policy  no policy exists all of whose histories pass")


def test_limits_stop_the_search(run):
    answer = run("solve", "bandit", *BOUND, *FORWARD, "--histories", "0", "--json")
    assert answer.code == 1
    assert answer.document["status"] == "stopped"
    shown = run("solve", "bandit", *BOUND, "--time-limit", "0")
    assert shown.out.startswith("? no policy yet  stopped by time limit")
    kept = run("solve", "bandit", *BOUND, *FORWARD, "--histories", "100000", "--json")
    assert kept.code == 0
    assert kept.document["status"] == "stopped"
    assert kept.document["stopped_by"] == "limit of histories"
    assert kept.document["safe"] is True


def test_options_reach_the_solver(run):
    def solver(*options):
        return run("solve", *SMALL, *BOUND, *FORWARD, "--json", *options).document["solver"]

    assert "SurvivalConstraint" in solver("--constraint", "b")
    assert "SequenceConstraint(credit='expected')" in solver("--constraint", "A")
    assert "credit='received'" in solver("--constraint", "a", "--credit", "received")
    assert "cut_short=False" in solver("--no-cut-short")


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
    answer = run("solve", *SMALL, "--bound", "-1", "--output", path)
    assert answer.code == 1
    assert answer.err == f"{path} was not written: there is no policy\n"
    assert path.read_text() == "kept"


def test_a_policy_that_is_not_safe_is_shown_but_not_saved(run, tmp_path, monkeypatch):
    result = vulcan.solve(vulcan.Problem(Bandit(horizon=3), vulcan.Linear(0.002)))
    certificate = replace(result.certificate, complete=False, frontier=0.25)
    found = replace(result, certificate=certificate)
    monkeypatch.setattr(vulcan, "solve", lambda *_, **__: found)
    answer = run("solve", *SMALL, *BOUND, "--output", tmp_path / "plan.vulcan")
    assert answer.code == 1
    assert answer.out.startswith("✗ not safe")
    assert "no: 0.25 is the probability of leaving the plan" in answer.out
    assert answer.err.endswith("plan.vulcan was not written: the policy is not safe\n")
    assert not (tmp_path / "plan.vulcan").exists()


def test_a_place_that_cannot_be_written_is_refused_before_the_search(run, tmp_path, monkeypatch):
    monkeypatch.setattr(vulcan, "solve", lambda *_, **__: pytest.fail("searched"))
    answer = run("solve", *SMALL, *BOUND, "--output", tmp_path / "no" / "plan.vulcan")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == f"Error: {tmp_path / 'no'}: No such file or directory\n"
    answer = run("solve", *SMALL, *BOUND, "--output", tmp_path)
    assert answer.err == f"Error: {tmp_path}: Is a directory\n"


def test_what_a_model_prints_stays_off_the_answer(run):
    answer = run("solve", "harbour.py:Talkative", "--bound", "0.1", "--json")
    assert answer.document["safe"] is True
    assert "asked quay sail" in answer.err


# certify and show


def test_certify_uses_the_recorded_bound(run, plan):
    answer = run("certify", plan, *SMALL)
    assert answer.code == 0
    assert answer.out.startswith("✓ safe  complete, and its risk is acceptable for its reward")
    assert "0.003056  Δ(x) = 0.002 * x" in answer.out
    assert "floating point" in answer.out


def test_certify_by_another_bound(run, plan):
    answer = run("certify", plan, *SMALL, "--bound", "1e-6")
    assert answer.code == 1
    assert answer.out.startswith("✗ not safe  its risk is more than the bound allows")
    assert "NOT ACCEPTABLE" in answer.out


def test_exact_certificates_are_fractions(run, plan):
    answer = run("certify", plan, *SMALL, "--exact", "--json")
    assert answer.code == 0
    certificate = answer.document["certificate"]
    numerator, denominator = map(int, certificate["fractions"]["risk"].split("/"))
    assert numerator / denominator == certificate["risk"]
    assert "fractions, exact" in run("certify", plan, *SMALL, "--exact").out


def test_certify_an_incomplete_policy(run, unsafe_plan):
    answer = run("certify", unsafe_plan, *SMALL, "--json")
    assert answer.code == 1
    assert answer.document["safe"] is False
    assert answer.document["certificate"]["passes"] is True
    assert answer.document["certificate"]["frontier"] == pytest.approx(0.4995)
    assert "not planned" in run("certify", unsafe_plan, *SMALL).out


def test_a_bound_without_a_text_must_be_given(run, tmp_path):
    bound = vulcan.Concave(lambda x: 0.01 * math.tanh(x))
    path = tmp_path / "plan.vulcan"
    vulcan.solve(vulcan.Problem(Bandit(horizon=2), bound)).policy.save(path)
    answer = run("certify", path, "bandit", "--set", "horizon=2")
    assert (answer.code, answer.out) == (2, "")
    assert "was made for a bound that has no text; give one with --bound" in answer.err
    assert run("certify", path, "bandit", "--set", "horizon=2", "--bound", "0.01").code == 0
    assert "a function without a text" in run("show", path).out


def test_certify_refuses_another_model(run, plan):
    answer = run("certify", plan, "bandit", "--set", "horizon=4")
    assert (answer.code, answer.out) == (2, "")
    assert "this policy was made for Bandit(horizon=3)" in answer.err


def test_show_needs_no_model(run, plan):
    answer = run("show", plan, "--depth", "1")
    assert answer.code == 0
    assert "  risk bound   0.002 * x\n" in answer.out
    assert "  decisions    7, with 21 outcomes\n" in answer.out
    assert answer.out.count("─") == 2
    document = run("show", plan, "--json").document["policy"]
    assert document["nodes"] == len(document["decisions"]) == 7
    assert document["fingerprint"] == vulcan.Policy.load(plan).about.fingerprint


def test_show_says_what_is_not_planned(run, unsafe_plan):
    answer = run("show", unsafe_plan)
    assert "no: some histories are not planned" in answer.out
    assert "→ not planned" in answer.out
    outcomes = run("show", unsafe_plan, "--json").document["policy"]["decisions"][0]["outcomes"]
    assert outcomes[0]["next"] == "unplanned"


def test_labels_cannot_command_the_terminal(run, tmp_path):
    path = tmp_path / "plan.vulcan"
    solved = run("solve", "harbour.py:Escaping", "--bound", "0.1", "-o", path)
    shown = run("show", path)
    for answer in (solved, shown, run("show", path, "--json")):
        assert "\x1b" not in answer.out
        assert "\x9b" not in answer.out
    assert "\\x1b[31msail\\x9b" in shown.out


# check


def test_check_a_sound_model(run):
    answer = run("check", *SMALL)
    assert answer.code == 0
    assert answer.out.startswith("✓ sound  Bandit(horizon=3)\n")
    document = run("check", *SMALL, "--json").document
    assert document["ok"] is document["finished"] is True
    assert document["violations"] == []


def test_check_lists_what_is_broken(run):
    broken = ("harbour:Harbour", "--set", "leak=0.05")
    answer = run("check", *broken)
    assert answer.code == 1
    assert "breaks a rule in 2 places" in answer.out
    table = [line.split("  ") for line in answer.out.splitlines() if "sum to 1" in line]
    assert [cell.strip() for cell in table[0] if cell] == [
        *("probabilities sum to 1", "'quay'", "'sail'", "0.95"),
        f"probabilities sum to {0.95 - 0.05 + 0.05!r}, not to 1",
    ]
    first = run("check", *broken, "--json").document["violations"][0]
    assert first["rule"] == "probabilities sum to 1"
    assert (first["state"], first["action"]) == ("'quay'", "'sail'")


def test_check_stops_at_a_number_of_states(run):
    answer = run("check", *SMALL, "--states", "5")
    assert answer.code == 0
    assert answer.out.startswith("✓ sound so far  Bandit(horizon=3); not all states were walked\n")
    assert run("check", *SMALL, "--states", "5", "--json").document["finished"] is False


def test_check_shows_only_the_first_of_many_violations(run):
    answer = run("check", "bandit", "--set", "stop_reward=1e999")
    assert answer.code == 1
    count = run("check", "bandit", "--set", "stop_reward=1e999", "--json").document[
        "violation_count"
    ]
    assert f"and {count - MOST_SHOWN:,} more; --json lists the first {MOST_VIOLATIONS:,}\n" in (
        answer.out
    )
    few = run("check", *SMALL, "--set", "stop_reward=1e999")
    assert re.search(r"and \d+ more; --json lists them\n", few.out)


def test_check_can_show_what_can_not_show_itself(run):
    answer = run("check", "harbour:Nameless")
    assert answer.code == 1
    assert "probabilities sum to 1" in answer.out
    assert "Nameless" in answer.out
    document = run("check", "harbour:Nameless", "--json").document
    states = {violation["state"] for violation in document["violations"]}
    assert all("Mist object at" in state for state in states)


def test_states_in_a_document_are_whole_and_in_a_table_short(run):
    broken = ("check", "harbour:Wide")
    assert "'quay'" * 200 not in run(*broken).out
    assert run(*broken, "--json").document["violations"][0]["state"] == repr(("quay",) * 200)
