"""vulcan compare and vulcan frontier: tables, documents, figures, errors and Ctrl-C."""

from __future__ import annotations

import json
import re

import pytest

import vulcan
from tests.helpers.processes import interrupt
from vulcan.domains import Bandit
from vulcan.exact.pipeline import Pareto
from vulcan.planning.compare import compare
from vulcan.planning.frontier import trace_frontier

SMALL = ("compare", "bandit", "--set", "horizon=4", "--bound", "0.002*x")
FEW = ("--solvers", "forward-search,uct,pareto")


def test_the_table(run):
    answer = run(*SMALL, *FEW)
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "✓ safe  policies of 2 of 3 solvers"
    assert "  risk bound   Δ(x) = 0.002 * x" in lines
    assert "  upper bound  2.062712 of deterministic policies, 2.067331 of all" in lines
    assert lines[7].startswith("  ✓  forward-search  2.016664  0.003693  0.004033  2.2 %")
    assert lines[7].endswith("324  best policy that constraint B admits, proved")
    assert lines[8].startswith("  ✗  uct ")
    assert lines[9].startswith("  ✓  pareto          2.062712  0.004099  0.004125    0 %")
    assert not any(line != line.rstrip() for line in lines)


def test_the_document_has_every_digit(run):
    answer = run(*SMALL, *FEW, "--json")
    assert answer.err == ""
    document = answer.document
    solvers = {"forward-search": vulcan.ForwardSearch(), "uct": vulcan.baselines.UCT()}
    comparison = compare(
        vulcan.Problem(Bandit(horizon=4), vulcan.Linear(0.002)),
        {**solvers, "pareto": vulcan.Pareto()},
    )
    assert document["upper_bound"] == comparison.upper_bound
    assert document["randomised_upper_bound"] == comparison.randomised_upper_bound
    assert document["model"] == "Bandit(horizon=4)"
    for shown, row in zip(document["rows"], comparison, strict=True):
        for name in ("name", "reward", "risk", "allowed", "gap", "complete", "safe", "explanation"):
            assert shown[name] == getattr(row, name)
        assert shown["solver"] == repr(row.solver)
        assert shown["statistics"]["evaluations"] == row.result.statistics.evaluations


def test_a_solver_that_refuses_has_its_reason_in_the_table(run, monkeypatch):
    def refuse(*_):
        raise vulcan.errors.OptionError("not on a Tuesday")

    monkeypatch.setattr(Pareto, "search", refuse)
    answer = run("compare", "harbour:Harbour", "--bound", "0.1", "--solvers", "pareto,lagrangian")
    assert answer.code == 0
    refused = next(line for line in answer.out.splitlines() if " pareto " in line)
    assert refused.startswith("  –  pareto")
    assert refused.endswith("not on a Tuesday")
    alone = run("compare", "harbour:Harbour", "--bound", "0.1", "--solvers", "pareto", "--json")
    assert alone.code == 2
    assert alone.document["rows"][0]["error"] == "not on a Tuesday"
    assert alone.document["rows"][0]["statistics"] is None


def test_a_number_after_a_colon_sets_the_exploration_constant(run):
    names = "paper-vulcan:2,paper-vulcan"
    rows = run(*SMALL, "--solvers", names, "--samples", "500", "--json").document["rows"]
    solvers = [repr(vulcan.baselines.PaperVulcan(c)) for c in (2.0, 2**0.5)]
    assert [row["solver"] for row in rows] == solvers
    assert rows[0]["reward"] != rows[1]["reward"]


def test_ctrl_c_shows_the_solvers_so_far():
    out = interrupt(
        (
            *("compare", "bandit", "--set", "horizon=12", "--bound", "0.002*x", "--json"),
            *("--solvers", "penalty,forward-search,vulcan", "--time-limit", "600"),
        ),
        when=33,
    )
    document = json.loads(out)
    assert document["stopped_by"] == "Ctrl-C"
    first, *others = document["rows"]
    assert (first["name"], first["safe"]) == ("penalty", True)
    # It may come between two searches as well.
    stops = [(row["name"], row["stopped_by"]) for row in others]
    assert stops in ([], [("forward-search", "Ctrl-C")])


SMALL_FRONTIER = ("frontier", "bandit", "--set", "horizon=4")


def test_the_table_frontier(run):
    answer = run(*SMALL_FRONTIER, "--levels", "-0.01,0,0.001,0.003")
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "✓ policies  for 3 of 4 risk bounds"
    assert "  model   Bandit(horizon=4)" in lines
    assert lines[7].split() == ["allowed", "reward", "risk", "at", "most", "gap", "price"]
    assert lines[8].endswith("–      –  no policy is within the risk bound, proved")
    assert lines[10].startswith("   0.001000  1.306894  0.001000  1.30")
    assert lines[10].endswith(" %  325.6")
    assert not any(line != line.rstrip() for line in lines)


def test_the_document_has_every_digit_frontier(run):
    answer = run(*SMALL_FRONTIER, "--levels", "-1,0.001,0.003", "--json")
    assert answer.err == ""
    document = answer.document
    keys = {"model", "bound", "solver", "stopped_by", "points", "lines", "seconds"}
    assert set(document) == {*keys, "failures", "lost_workers"}
    assert (document["bound"], document["stopped_by"]) == (None, None)
    frontier = trace_frontier(Bandit(horizon=4), levels=[-1, 0.001, 0.003])
    for shown, point in zip(document["points"], frontier, strict=True):
        for name in ("level", "scale", "allowed", "reward", "risk", "gap", "price"):
            assert shown[name] == getattr(point, name)
        assert shown["safe"] is point.safe
        assert shown["explanation"] == point.explanation
        assert shown["bound"] == str(point.bound)
    assert document["points"][0]["upper_bound"] == "-inf"
    assert document["points"][0]["status"] == "infeasible"
    assert document["points"][2]["upper_bound"] == frontier.points[2].upper_bound


def test_no_policy_at_all_is_a_no(run):
    answer = run(*SMALL_FRONTIER, "--levels", "-1,-0.5")
    assert answer.code == 1
    assert answer.out.startswith("✗ no policy  for 0 of 2 risk bounds\n")
    assert run(*SMALL_FRONTIER, "--levels", "-1", "--json").code == 1


@pytest.mark.parametrize("command", [(*SMALL, *FEW), (*SMALL_FRONTIER, "--levels", "0,0.002")])
@pytest.mark.parametrize(("form", "ending"), [((), "png"), (("--json",), "svg")])
def test_figures_are_written(run, tmp_path, command, form, ending):
    path = tmp_path / f"figure.{ending}"
    answer = run(*command, "--plot", path, *form)
    assert answer.code == 0
    assert path.stat().st_size > 5000
    if form:
        assert answer.document["lost_workers"] == 0
    else:
        assert answer.out.endswith(f"saved  {path}  {path.stat().st_size:,} bytes\n")


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_ctrl_c_shows_the_points_so_far(form):
    """Each point takes long with a solver that visits all histories."""
    out = interrupt(
        (
            *("frontier", "bandit", "--set", "horizon=12", "--levels", "0,0.01,0.02,0.03"),
            *("--solver", "forward-search", *form),
        ),
        when=25,
    )
    if form:
        document = json.loads(out)
        assert document["stopped_by"] == "Ctrl-C"
        assert document["points"][0]["reward"] == pytest.approx(3.0)
        # It may come between two searches as well.
        assert [point["stopped_by"] for point in document["points"][1:]] in ([], ["Ctrl-C"])
    else:
        assert re.match("✓ policies  for ([12]) of \\1 risk bounds?, stopped by Ctrl-C\n", out)
        assert "0.000000  3.000000  0.000000" in out
