"""Constraints on the command line: given, from files, in answers, and refused where unused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import vulcan
from tests.helpers.command_line import SMALL
from vulcan.formats import open_model

ROVER = """
from vulcan import Outcome


class Rover:
    horizon = 2

    def initial_state(self):
        return "base"

    def actions(self, state):
        return ["drive", "crawl"]

    def outcomes(self, state, action):
        if action == "crawl":
            return [Outcome(1.0, 1.0, "field", costs={"fuel": 1})]
        return [
            Outcome(0.75, 3.0, "field", "there", costs={"fuel": 4}),
            Outcome(0.125, 3.0, "field", "late", costs={"fuel": 4}, event="late"),
            Outcome.failure(0.125, costs={"fuel": 2}, event="crash"),
        ]
"""
# Driving costs 3.75 on average and pays 2.625; twice, from the second step on with 7/8.
MODEL = "rover.py:Rover"


@pytest.fixture
def rover() -> None:
    Path("rover.py").write_text(ROVER)


@pytest.fixture
def route(run, rover) -> str:
    """The plan that drives twice."""
    assert run("solve", MODEL, "--bound", "1", "-o", "route.vulcan").code == 0
    return "route.vulcan"


def limit(*texts: str) -> list[str]:
    return [word for text in texts for word in ("--constraint", text)]


def test_a_policy_keeps_all_constraints_that_are_given(run, rover):
    answer = run("solve", MODEL, *limit("fuel <= 4.8", "risk(late) <= 0.2"), "--json")
    assert answer.code == 0
    document = answer.document
    assert document["constraints"] == ["fuel <= 4.8", "risk(late) <= 0.2"]
    assert document["bound"] == "1.0"  # failing is not limited
    # Crawl, then drive: a policy that drives first may fail before paying for the second step.
    certificate = document["certificate"]
    assert certificate["reward"] == 1 + 2.625
    fuel, late = certificate["constraints"]
    assert fuel == {
        "quantity": "fuel",
        "bound": "4.8",
        "value": 4.75,
        "value_error": fuel["value_error"],
        "allowed": 4.8,
        "allowed_error": fuel["allowed_error"],
        "slack": pytest.approx(0.05),
        "decided": True,
        "passes": True,
        "remark": "",
    }
    assert (late["quantity"], late["value"], late["passes"]) == ("risk(late)", 0.125, True)
    text = run("solve", MODEL, *limit("fuel <= 4.8", "risk(late) <= 0.2")).out
    assert "  fuel  " in text
    assert "4.750000 of 4.800000  acceptable" in text


def test_a_bound_and_constraints_hold_together(run, rover):
    both = run("solve", MODEL, "--bound", "0.1", *limit("fuel <= 4.8"), "--json").document
    assert both["certificate"]["risk"] == 0.0
    assert both["certificate"]["reward"] == 2.0
    ahead = run("solve", MODEL, *limit("risk ahead <= 0.13"), "--json").document
    assert ahead["certificate"]["reward"] == 3.625
    shorter = run("solve", MODEL, *limit("risk <= 0.1"), "--json").document
    assert (shorter["bound"], "constraints" in shorter) == ("0.1", False)
    assert shorter["certificate"]["reward"] == 2.0


def test_nothing_within_the_constraints_is_a_no(run, rover):
    answer = run("solve", MODEL, *limit("fuel <= 1.5"), "--json")
    assert (answer.code, answer.document["safe"]) == (1, False)
    assert answer.document["status"] == "infeasible"


def test_certify_says_which_constraint_is_exceeded(run, route):
    good = run("certify", route, MODEL, *limit("fuel <= 8", "risk(crash) <= 0.25"))
    assert good.code == 0
    assert good.out.startswith("✓ safe  complete, and all that is limited is acceptable")
    assert "judged by     --constraint\n" in good.out
    answer = run("certify", route, MODEL, *limit("fuel <= 7", "risk(late) <= 0.25"))
    assert answer.code == 1
    assert answer.out.startswith("✗ not safe  its fuel is more than is allowed for its reward\n")
    assert "7.031250 of 7.000000  NOT ACCEPTABLE" in answer.out
    both = run("certify", route, MODEL, "--bound", "0.1", *limit("fuel <= 7")).out
    assert both.startswith(
        "✗ not safe  its risk is more than the bound allows for its reward, and its fuel is more "
        "than is allowed for its reward\n"
    )
    assert "judged by     --bound and --constraint\n" in both


def test_exact_certificates_have_constraints_as_fractions(run, route):
    answer = run("certify", route, MODEL, *limit("fuel <= 8"), "--exact", "--json")
    assert answer.document["certificate"]["fractions"]["fuel"] == "225/32"
    assert answer.document["certificate"]["constraints"][0]["value_error"] == 0


def test_a_misspelt_name_is_remarked(run, route):
    answer = run("certify", route, MODEL, *limit("fule <= 0.5", "risk(crahs) <= 0"))
    assert "no outcome of the policy has it; did you mean 'fuel'?" in answer.out
    assert "no outcome of the policy has it; did you mean 'risk(crash)'?" in answer.out
    solved = run("solve", MODEL, *limit("fule <= 0.5"), "--json").document
    assert "did you mean 'fuel'" in solved["certificate"]["constraints"][0]["remark"]
    assert "no outcome" not in run("certify", route, MODEL, *limit("fuel <= 8")).out


@pytest.mark.parametrize(
    ("constraints", "messages"),
    [
        (["fuel"], ['a text such as "fuel <= 5"', "not 'fuel'"]),
        (["fuel <= 5*y"], ["unknown name 'y'"]),
        (["fuel <= -x"], ["must not decrease"]),
        (["fuel <= 4.8", "fuel <= 6"], ["two constraints limit 'fuel'"]),
        (["risk() <= 0.1"], ["the name of an event must be words"]),
        (["risk ahead <= x"], ["the limit on the risk ahead is a number, not 'x'"]),
        (["fuel <= nan"], ["nan"]),
        (["A"], ["the local constraint of a solver is --local-test A"]),
    ],
)
def test_a_bad_constraint_gets_one_message(run, rover, constraints, messages):
    answer = run("solve", MODEL, *limit(*constraints))
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.count("Error: ") == 1
    for message in messages:
        assert message in answer.err


def test_a_risk_bound_is_given_once(run, rover):
    answer = run("solve", MODEL, "--bound", "0.1", *limit("risk <= 0.2"))
    assert (answer.code, answer.out) == (2, "")
    assert "the risk bound is given twice" in answer.err


def test_what_can_not_use_constraints_refuses_them(run, route):
    command = ["solve", MODEL, "--solver", "vulcan", "--samples", "10"]
    answer = run(*command, *limit("fuel <= 4.8"))
    assert (answer.code, answer.out) == (2, "")
    assert "one risk bound and no further constraints" in answer.err
    assert "fuel <= 4.8" in answer.err


def test_compare_solves_with_constraints(run, rover):
    answer = run("compare", MODEL, *limit("fuel <= 4.8"), "--solvers", "pareto,uct", "--json")
    assert answer.code == 0
    pareto, uct = answer.document["rows"]
    assert pareto["reward"] == 3.625
    assert "no further constraints" in uct["error"]
    assert answer.document["constraints"] == ["fuel <= 4.8"]
    assert answer.document["upper_bound"] == pytest.approx(3.625)


TABLE = {
    "horizon": 1,
    "bound": "0.5",
    "constraints": ["fuel <= 3", "risk(wet) <= 0.6"],
    "states": {
        "shore": {
            "row": [[1, "island", 1, {"costs": {"fuel": 2}}]],
            "swim": [
                [0.5, "island", 4, {"event": "wet"}],
                [0.25, "island", 4],
                [0.25, "FAILURE", 0, {"costs": {"fuel": 8}, "event": "drowned"}],
            ],
        },
        "island": {},
    },
}


def test_constraints_of_a_file_hold_unless_replaced(run, tmp_path):
    Path("lake.json").write_text(json.dumps(TABLE))
    assert open_model("lake.json").constraints == ("fuel <= 3.0", "risk(wet) <= 0.6")
    answer = run("solve", "lake.json", "-o", "lake.vulcan", "--json").document
    assert answer["certificate"]["reward"] == 3.0
    assert sorted(answer["constraints"]) == ["fuel <= 3.0", "risk(wet) <= 0.6"]
    drier = run("solve", "lake.json", *limit("risk(wet) <= 0.1"), "--json").document
    assert drier["certificate"]["reward"] == 1.0
    assert sorted(drier["constraints"]) == ["fuel <= 3.0", "risk(wet) <= 0.1"]
    judged = run("certify", "lake.vulcan", "lake.json", "--json").document
    assert judged["safe"] is True
    assert judged["bound_from"] == "the bound in lake.json and the constraints in lake.json"
    stricter = run("certify", "lake.vulcan", "lake.json", *limit("fuel <= 1"), "--json").document
    assert (stricter["safe"], stricter["certificate"]["risk"]) == (False, 0.25)
    frontier = run("frontier", "lake.json", *limit("risk(wet) <= 0.1"), "--json").document
    assert max(point["reward"] for point in frontier["points"]) == 1.0


def test_check_lists_costs_and_events(run, rover):
    answer = run("check", MODEL)
    assert "costs         fuel 1 to 4\n" in answer.out
    assert "events        crash, late\n" in answer.out
    document = run("check", MODEL, "--json").document
    assert (document["costs"], document["events"]) == ({"fuel": [1.0, 4.0]}, ["crash", "late"])
    assert "costs" not in run("check", *SMALL).out


def test_workers_know_which_events_have_happened(run, rover):
    """An event that happened counts once, also where processes evaluate the model."""
    limits = limit("risk(late) <= 0.24")
    alone = run("solve", MODEL, *limits, "--json").document["certificate"]
    assert alone["constraints"][0]["value"] == 0.125 + 0.75 * 0.125
    parts = run("solve", MODEL, *limits, "--parallel", "processes:2", "--json").document
    assert parts["certificate"]["reward"] == alone["reward"] == 2.625 * 1.875


def test_a_plan_has_labels_with_costs_with_and_without_constraints():
    class Twice:
        horizon = 1

        def initial_state(self) -> int:
            return 0

        def actions(self, state: int) -> list[str]:
            return ["go"]

        def outcomes(self, state: int, action: str) -> list[vulcan.Outcome]:
            return [vulcan.Outcome(0.5, 1.0, 1, costs={"fuel": k}) for k in (1, 2)]

    plain = vulcan.solve(vulcan.Problem(Twice(), 0.5)).policy
    limited = vulcan.solve(vulcan.Problem(Twice(), constraints=["fuel <= 2"])).policy
    assert plain.labels == limited.labels == ("go", "1, reward 1, fuel 1", "1, reward 1, fuel 2")
