"""`vulcan solve` with the solvers that sample, and their options."""

import json

import pytest
import typer

import vulcan
from vulcan.cli import main
from vulcan.cli.options import SolverName, read_size
from vulcan.cli.solvers import FITTING, make_solver
from vulcan.domains import Bandit

SMALL = ("solve", "bandit", "--set", "horizon=4", "--bound", "0.002*x")
SAMPLED = (*SMALL, "--solver", "vulcan", "--samples", "2000")


@pytest.fixture
def solve(capsys):
    """Solve on the command line; the exit code and the document."""

    def solve(*arguments):
        with pytest.raises(SystemExit) as ending:
            main([*map(str, arguments), "--json"])
        return ending.value.code or 0, json.loads(capsys.readouterr().out)

    return solve


@pytest.fixture
def call(monkeypatch):
    """Solve on the command line; what `vulcan.solve` would have been given."""

    def call(*arguments):
        given = {}

        def remember(problem, solver, **options):
            given.update(options, solver=solver)
            raise vulcan.OptionError("that's all")

        monkeypatch.setattr(vulcan, "solve", remember)
        with pytest.raises(SystemExit):
            main([*SMALL, *map(str, arguments)])
        return given

    return call


def test_vulcan_is_the_same_from_the_command_line(solve):
    problem = vulcan.Problem(Bandit(horizon=4), vulcan.Linear(0.002))
    code, document = solve(*SAMPLED, "--seed", 3)
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=2000, seed=3)
    assert code == 0
    assert document["solver"] == repr(vulcan.Vulcan())
    assert document["certificate"]["reward"] == result.certificate.reward
    statistics = document["statistics"]
    assert statistics["samples"] == result.statistics.samples > 0
    assert statistics["memory"] == result.statistics.memory > 0
    assert statistics["histories"] == result.statistics.histories


def test_a_forward_search_takes_no_samples(solve):
    statistics = solve(*SMALL)[1]["statistics"]
    assert statistics["samples"] == statistics["memory"] == 0


def test_uct_disregards_risk_and_is_judged_all_the_same(solve):
    code, document = solve(*SMALL, "--solver", "uct", "--samples", 2000)
    assert code == 1
    assert document["solver"] == "UCT(exploration=1.0, default_policy='random')"
    assert document["certificate"]["passes"] is document["safe"] is False


def test_the_printed_algorithm(solve):
    code, document = solve(*SAMPLED, "--paper", "--exploration", 0.5)
    assert code == 0
    assert document["solver"] == repr(vulcan.Vulcan.paper(0.5))
    assert document["stopped_by"] == "limit of samples"


def test_without_completion_there_may_be_a_frontier(solve):
    few = (*SMALL, "--solver", "vulcan", "--samples", 100)
    assert solve(*few)[1]["certificate"]["complete"] is True
    code, document = solve(*few, "--no-complete")
    assert code == 1
    assert document["certificate"]["frontier"] > 0


def test_no_samples_no_policy(solve):
    code, document = solve(*SMALL, "--solver", "vulcan", "--samples", 0)
    assert code == 1
    assert (document["status"], document["policy"]) == ("stopped", None)


def test_only_what_was_given_is_passed_on(call):
    always = {"time_limit", "histories", "progress", "solver"}
    assert set(call()) == set(call("--solver", "vulcan")) == always
    given = call(
        *("--solver", "vulcan", "--time-limit", 3, "--samples", 4, "--histories", 5),
        *("--memory", "6kB", "--seed", 7, "--no-complete", "--no-progress"),
        *("--constraint", "a", "--credit", "received", "--exploration", 2),
    )
    assert given == {
        "solver": vulcan.Vulcan(2.0, vulcan.SequenceConstraint("received")),
        "time_limit": 3,
        "samples": 4,
        "histories": 5,
        "memory": 6000,
        "seed": 7,
        "complete": False,
        "progress": False,
    }


def test_each_solver_has_the_defaults_of_the_library():
    assert make_solver(SolverName.FORWARD_SEARCH) == vulcan.ForwardSearch()
    assert make_solver(SolverName.VULCAN) == vulcan.Vulcan()
    assert make_solver(SolverName.VULCAN, paper=True) == vulcan.Vulcan.paper()
    assert make_solver(SolverName.UCT) == vulcan.UCT()


def test_every_option_fits_some_solver():
    assert {solver for solvers in FITTING.values() for solver in solvers} == set(SolverName)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1234", 1234),
        ("12B", 12),
        ("4GB", 4_000_000_000),
        ("1.5GiB", 3 << 29),
        ("500 mb", 500_000_000),
        ("3kB", 3000),
        ("3KIB", 3072),
        ("2MiB", 2 << 20),
        (" 7 ", 7),
        ("0.3kB", 300),
    ],
)
def test_sizes(text, size):
    assert read_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "GB", "4G", "4TB", "-1", "1e9", "4,5GB", "nan", "٣", "9" * 99]
)
def test_what_is_no_size(text):
    with pytest.raises(typer.BadParameter, match="a size is a number of bytes"):
        read_size(text)


def test_a_search_is_resumed(solve, tmp_path):
    checkpoint = ("--checkpoint", tmp_path / "search", "--checkpoint-every", 0)
    bandit = ("solve", "bandit", "--set", "horizon=6", "--bound", "0.002*x", "--solver", "vulcan")
    solve(*bandit, "--samples", 1500, *checkpoint)
    assert (tmp_path / "search").stat().st_size > 100_000
    _, resumed = solve(*bandit, "--samples", 5000, *checkpoint, "--resume")
    _, whole = solve(*bandit, "--samples", 5000)
    assert resumed["certificate"] == whole["certificate"]
    assert resumed["statistics"]["histories"] == whole["statistics"]["histories"]


def test_a_target_gap_turns_bounds_on(solve, call):
    bandit = ("solve", "bandit", "--set", "horizon=7", "--bound", "0.002*x", "--solver", "vulcan")
    _, document = solve(*bandit, "--gap", "0.3")
    assert document["stopped_by"] == "target gap"
    assert call("--solver", "vulcan", "--gap", "0.1")["solver"].bounded
    assert call("--workers", "2")["workers"] == 2
