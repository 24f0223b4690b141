"""`vulcan compare`: tables, documents, figures, errors and Ctrl-C."""

import json

import pytest

import vulcan
from tests.helpers.processes import interrupt
from vulcan.domains import Bandit
from vulcan.planning.compare import compare
from vulcan.solvers.layered.pareto import Pareto
from vulcan.solvers.registry import load_solvers

SMALL = ("compare", "bandit", "--set", "horizon=4", "--bound", "0.002*x")
FEW = ("--solvers", "forward-search,uct,pareto")


def test_the_table(run):
    answer = run(*SMALL, *FEW)
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "✓ safe  policies of 2 of 3 solvers"
    assert "  risk bound   Δ(x) = 0.002 * x" in lines
    assert "  upper bound  2.062712 of deterministic policies, 2.067331 of all" in lines
    assert lines[6].split() == [
        *("solver", "reward", "risk", "allowed", "gap", "time", "evaluations", "searched")
    ]
    assert lines[7].startswith("  ✓  forward-search  2.016664  0.003693  0.004033  2.2 %")
    assert lines[7].endswith("1,295 histories  best policy that constraint B admits, proved")
    assert lines[8].startswith("  ✗  uct ")
    assert lines[9].startswith("  ✓  pareto          2.062712  0.004099  0.004125    0 %")
    assert not any(line != line.rstrip() for line in lines)


def test_all_solvers_but_automatic_by_default(run):
    rows = run(*SMALL, "--json").document["rows"]
    assert [row["name"] for row in rows] == list(load_solvers())[1:]
    assert all(row["error"] is None for row in rows)


def test_the_document_has_every_digit(run):
    answer = run(*SMALL, *FEW, "--json")
    assert answer.err == ""
    document = answer.document
    solvers = {"forward-search": vulcan.ForwardSearch(), "uct": vulcan.UCT()}
    comparison = compare(
        vulcan.Problem(Bandit(horizon=4), vulcan.Linear(0.002)),
        {**solvers, "pareto": vulcan.Pareto()},
    )
    assert document["upper_bound"] == comparison.upper_bound
    assert document["randomised_upper_bound"] == comparison.randomised_upper_bound
    assert document["model"] == "Bandit(horizon=4)"
    for shown, row in zip(document["rows"], comparison, strict=True):
        for name in ("name", "reward", "risk", "allowed", "gap", "upper_bound", "complete", "safe"):
            assert shown[name] == getattr(row, name)
        assert shown["deterministic"] is row.deterministic
        assert shown["explanation"] == row.explanation
        assert shown["statistics"]["evaluations"] == row.evaluations
        assert shown["solver"] == repr(row.solver)


def test_a_solver_that_refuses_has_its_reason_in_the_table(run, monkeypatch):
    def refuse(*_):
        raise vulcan.OptionError("not on a Tuesday")

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


def test_no_safe_policy_is_a_no(run):
    answer = run(*SMALL, "--bound", "-1", *FEW)
    assert answer.code == 1
    assert answer.out.startswith("✗ no policy  policies of 0 of 3 solvers")


def test_limits_reach_the_solvers(run, monkeypatch):
    given = {}

    def remember(problem, solvers, **options):
        given.update(options, solvers=solvers)
        raise vulcan.OptionError("that's all")

    monkeypatch.setattr(vulcan, "compare", remember)
    run(*SMALL, "--solvers", "vulcan,pareto")
    assert given["solvers"] == {"vulcan": vulcan.Vulcan(), "pareto": vulcan.Pareto()}
    assert (given["time_limit"], given["bound"]) == (10, True)
    assert "seed" not in given
    limits = ("--samples", "5", "--histories", "6", "--memory", "7kB", "--seed", "8")
    run(*SMALL, *limits, "--time-limit", "2", "--no-upper-bound", "--no-progress")
    assert list(given.pop("solvers")) == list(load_solvers())[1:]
    assert given == {
        "time_limit": 2,
        "samples": 5,
        "histories": 6,
        "memory": 7000,
        "seed": 8,
        "bound": False,
        "workers": None,
        "executor": None,
        "checkpoint": None,
        "resume": False,
        "overwrite": False,
        "progress": False,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--solvers", "parteo"], "--solvers has no 'parteo'; did you mean 'pareto'?\nsolvers are"),
        (["--solvers", "vulcan,,uct"], "--solvers has no ''"),
        (["--solvers", ""], "--solvers has no ''"),
        (["--bound", "x*"], "this is not an expression"),
        (["--time-limit", "-1"], "Invalid value for '--time-limit'"),
        (["--plot", "."], "a figure is written to .png, .svg, .pdf"),
        (["--plot", "no/a.svg"], "no: No such file or directory"),
    ],
)
def test_bad_input_gets_one_message(run, arguments, message):
    answer = run(*SMALL, *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.count("Error: ") == 1
    assert message in answer.err


def test_names_of_solvers_are_read_once_each(run):
    document = run(*SMALL, "--solvers", "uct, pareto,uct", "--json").document
    assert [row["name"] for row in document["rows"]] == ["uct", "pareto"]


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_figure_is_written(run, tmp_path, form):
    path = tmp_path / "policies.svg"
    answer = run(*SMALL, *FEW, "--plot", path, *form)
    assert answer.code == 0
    assert path.read_text().startswith("<?xml")
    assert ("saved" in answer.out) is not bool(form)


def test_without_a_policy_there_is_no_figure(run, tmp_path):
    path = tmp_path / "policies.svg"
    answer = run(*SMALL, "--bound", "-1", "--solvers", "pareto", "--plot", path)
    assert answer.code == 1
    assert not path.exists()
    assert answer.err == f"{path} was not written: there is no policy\n"


def test_ctrl_c_shows_the_solvers_so_far():
    out = interrupt(
        (
            *("compare", "bandit", "--set", "horizon=12", "--bound", "0.002*x", "--json"),
            *("--solvers", "penalty,forward-search,vulcan", "--time-limit", "600"),
            "--no-upper-bound",
        ),
        percent=33,
    )
    document = json.loads(out)
    assert document["stopped_by"] == "Ctrl-C"
    first, *others = document["rows"]
    assert (first["name"], first["safe"]) == ("penalty", True)
    # It may come between two searches as well.
    stops = [(row["name"], row["stopped_by"]) for row in others]
    assert stops in ([], [("forward-search", "Ctrl-C")])
