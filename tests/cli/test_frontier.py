"""`vulcan frontier`: tables, documents, figures, errors and Ctrl-C."""

import errno
import json
import math
import os
import re
import sys
from dataclasses import replace

import pytest

import vulcan
from tests.helpers.processes import interrupt
from vulcan import plotting
from vulcan.domains import Bandit
from vulcan.planning.frontier import Span, trace_frontier

SMALL = ("frontier", "bandit", "--set", "horizon=4")


@pytest.fixture
def call(run, monkeypatch):
    """Run the command; what `trace_frontier` would have been given."""

    def call(*arguments):
        given = {}

        def remember(problem, **options):
            given.update(options, problem=problem)
            raise vulcan.OptionError("that's all")

        monkeypatch.setattr(vulcan, "trace_frontier", remember)
        assert run(*SMALL, *arguments).err == "Error: that's all\n"
        return given

    return call


def test_the_table(run):
    answer = run(*SMALL, "--levels", "-0.01,0,0.001,0.003")
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "✓ policies  for 3 of 4 risk bounds"
    assert "  model        Bandit(horizon=4)" in lines
    assert "  evaluations  336 of the model, by all searches" in lines
    assert lines[8] == "    allowed    reward      risk   at most  gap  price"
    assert lines[9].endswith("–    –      –  no policy is within the risk bound, proved")
    assert lines[11] == "   0.001000  1.306894  0.001000  1.306894  0 %  325.6"
    assert not any(line != line.rstrip() for line in lines)


def test_multiples_of_a_bound(run):
    answer = run(*SMALL, "--bound", "0.002*x", "--scales", "0.5,1")
    assert "  bounds       multiples of Δ(x) = 0.002 * x" in answer.out.splitlines()
    assert answer.out.splitlines()[8].split()[:2] == ["scale", "allowed"]
    assert "    1  0.004125  2.062712  0.004099  2.062712  0 %" in answer.out


def test_the_document_has_every_digit(run):
    answer = run(*SMALL, "--levels", "-1,0.001,0.003", "--json")
    assert answer.err == ""
    document = answer.document
    keys = {"model", "bound", "solver", "stopped_by", "points", "lines", "statistics"}
    assert set(document) == {*keys, "failures", "lost_workers"}
    assert (document["bound"], document["stopped_by"]) == (None, None)
    assert document["statistics"]["evaluations"] == 336
    frontier = trace_frontier(Bandit(horizon=4), levels=[-1, 0.001, 0.003])
    for shown, point in zip(document["points"], frontier, strict=True):
        for name in ("level", "scale", "allowed", "reward", "risk", "gap", "price", "price_from"):
            assert shown[name] == getattr(point, name)
        assert shown["safe"] is point.safe
        assert shown["explanation"] == point.explanation
        assert shown["bound"] == str(point.bound)
    assert document["points"][0]["upper_bound"] == "-inf"
    assert document["points"][0]["status"] == "infeasible"
    assert document["points"][2]["upper_bound"] == frontier.points[2].upper_bound


def test_infinite_prices_are_texts(run, monkeypatch):
    found = trace_frontier(Bandit(horizon=2), levels=[0.001])
    points = tuple(replace(point, price=math.inf) for point in found)
    monkeypatch.setattr(vulcan, "trace_frontier", lambda *_, **__: replace(found, points=points))
    assert run(*SMALL, "--json").document["points"][0]["price"] == "inf"


def test_no_policy_at_all_is_a_no(run):
    answer = run(*SMALL, "--levels", "-1,-0.5")
    assert answer.code == 1
    assert answer.out.startswith("✗ no policy  for 0 of 2 risk bounds\n")
    assert run(*SMALL, "--levels", "-1", "--json").code == 1


def test_options_reach_the_search(call):
    given = call()
    assert given["levels"] == Span(None, None)
    assert "points" not in given
    assert given["solver"] == vulcan.Automatic()
    assert given["problem"] == Bandit(horizon=4)
    given = call(
        *("--from", "0.001", "--to", "0.004", "--points", "7", "--solver", "local-vulcan"),
        *("--constraint", "A", "--exploration", "2", "--samples", "9", "--histories", "8"),
        *("--memory", "1MB", "--seed", "3", "--time-limit", "5", "--no-progress"),
    )
    assert given == {
        "problem": Bandit(horizon=4),
        "solver": vulcan.LocalVulcan(2.0, vulcan.SequenceConstraint()),
        "levels": Span(0.001, 0.004),
        "points": 7,
        "samples": 9,
        "histories": 8,
        "memory": 10**6,
        "gap": None,
        "seed": 3,
        "time_limit": 5,
        "workers": None,
        "executor": None,
        "checkpoint": None,
        "resume": False,
        "overwrite": False,
        "progress": False,
    }
    given = call("--bound", "0.002*x", "--to", "3", "--gap", "0.01")
    assert given["scales"] == Span(None, 3.0)
    assert given["gap"] == 0.01
    assert given["problem"] == vulcan.Problem(Bandit(horizon=4), vulcan.Linear(0.002))
    assert call("--bound", "0.1", "--scales", "1, 2")["scales"] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--levels", "0,x"], "--levels takes numbers with commas between them, such as 0,0.005"),
        (["--levels", ""], "--levels takes numbers with commas between them"),
        (["--levels", "0,nan"], "each of the levels must be a finite number, not nan"),
        (["--bound", "0.1", "--levels", "0"], "multiples of --bound are given by --scales"),
        (["--scales", "1"], "--scales are multiples of a bound: give it with --bound"),
        (
            ["--bound", "0.1", "--scales", "0"],
            "scales must be above 0; level 0 allows no risk at all",
        ),
        (["--levels", "0", "--from", "0"], "--levels says it all; omit --from"),
        (["--bound", "x", "--scales", "1", "--points", "3"], "omit --points"),
        (["--points", "1"], "points must be a whole number from 2 to 10,000, not 1"),
        (
            ["--from", "1"],
            "levels can't go up from 1 to 0.00479372; by themselves they go from 0 to",
        ),
        (["--bound", "0.1*y"], "unknown name 'y'"),
        (["--solver", "pareto", "--samples", "3"], "--samples belongs to --solver automatic,"),
        (["--on", "tree"], "--on belongs to --solver linear-program or integer-program"),
        (["--plot", "a.txt"], "a figure is written to .png, .svg, .pdf; not to 'a.txt'"),
        (["--plot", "no/a.png"], "no: No such file or directory"),
    ],
)
def test_bad_input_gets_one_message(run, arguments, message):
    answer = run(*SMALL, *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.count("Error: ") == 1
    assert message in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(("form", "ending"), [((), "png"), (("--json",), "svg")])
def test_figures_are_written(run, tmp_path, form, ending):
    path = tmp_path / f"frontier.{ending}"
    answer = run(*SMALL, "--levels", "0,0.002", "--plot", path, *form)
    assert answer.code == 0
    assert path.stat().st_size > 5000
    if form:
        assert len(answer.document["points"]) == 2
    else:
        assert answer.out.endswith(f"saved  {path}  {path.stat().st_size:,} bytes\n")


def test_a_figure_that_can_not_be_drawn_is_refused_before_the_search(run, monkeypatch, tmp_path):
    monkeypatch.setattr(vulcan, "trace_frontier", lambda *_, **__: pytest.fail("searched"))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    answer = run(*SMALL, "--plot", tmp_path / "a.png")
    assert (answer.code, answer.out) == (2, "")
    assert "pip install 'vulcan-planner[plot]'" in answer.err


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_the_answer_is_shown_even_if_the_figure_can_not_be_written(run, monkeypatch, form):
    def fail(_, path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(plotting, "save", fail)
    answer = run(*SMALL, "--levels", "0.001", "--plot", "a.png", *form)
    assert answer.code == 2
    assert "1.30689" in answer.out
    assert answer.err == "Error: a.png: No space left on device\n"


def test_what_a_model_prints_stays_off_the_answer(run):
    answer = run("frontier", "harbour.py:Talkative", "--points", "2", "--json")
    assert len(answer.document["points"]) == 2
    assert "asked quay sail" in answer.err


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_ctrl_c_shows_the_points_so_far(form):
    """Each point takes long with a solver that visits all histories."""
    out = interrupt(
        (
            *("frontier", "bandit", "--set", "horizon=12", "--levels", "0,0.01,0.02,0.03"),
            *("--solver", "forward-search", *form),
        ),
        percent=25,
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
