"""`vulcan solve`, run in this process: answers and exit codes."""

import errno
import math
import os
import re
from dataclasses import replace

import pytest

import vulcan
from tests.helpers.command_line import BOUND, FORWARD, SMALL
from vulcan.domains import Bandit


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
    assert set(document) == {
        *("status", "explanation", "stopped_by", "safe", "certificate", "statistics", "policy"),
        *("model", "bound", "solver", "upper_bound", "gap", "price", "trials"),
        *("estimate", "error", "safest", "sufficient", "relaxed", "spread", "rounding"),
    }
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
    # Not even without any time: the most cautious policy takes none to speak of.
    assert shown.out.startswith("✓ safe  stopped by time limit")
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
    monkeypatch.setattr("vulcan.planning.solve.plan_and_certify", lambda *_, **__: found)
    answer = run("solve", *SMALL, *BOUND, "--output", tmp_path / "plan.vulcan")
    assert answer.code == 1
    assert answer.out.startswith("✗ not safe")
    assert "no: 0.25 is the probability of leaving the plan" in answer.out
    assert answer.err.endswith("plan.vulcan was not written: the policy is not safe\n")
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
    assert answer.err == f"Error: {pipe}: this is a pipe, and only plain files are written\n"


def test_what_a_model_prints_stays_off_the_answer(run):
    answer = run("solve", "harbour.py:Talkative", "--bound", "0.1", "--json")
    assert answer.document["safe"] is True
    assert "asked quay sail" in answer.err
