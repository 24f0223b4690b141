"""`vulcan solve` with each of the solvers, and their options."""

import json

import pytest

import vulcan
from vulcan.cli import main
from vulcan.cli.search_options import EVERY, read_search
from vulcan.domains import Bandit
from vulcan.runtime.limits import Limits
from vulcan.solvers.base import Options
from vulcan.solvers.registry import load_solvers

SMALL = ("solve", "bandit", "--set", "horizon=4", "--bound", "0.002*x")
SAMPLED = (*SMALL, "--solver", "vulcan", "--samples", "2000")

NAMES = tuple(load_solvers())
SAMPLING = ("automatic", "vulcan", "local-vulcan", "uct")
FITTING = {
    "constraint": ("A", ("forward-search", "local-vulcan")),
    "cut_short": (False, ("forward-search",)),
    "paper": (True, ("vulcan", "local-vulcan")),
    "exploration": (2.0, ("vulcan", "local-vulcan", "uct")),
    "on": ("tree", ("linear-program", "integer-program")),
    "randomised": (True, ("automatic", "lagrangian")),
    "time_limit": (1.0, NAMES),
    "samples": (5, SAMPLING),
    "histories": (5, ("forward-search", *SAMPLING)),
    "memory": (10**6, tuple(name for name in NAMES if name != "forward-search")),
    "gap": (0.1, ("automatic", "vulcan", "local-vulcan", "pareto", "integer-program")),
    "seed": (1, SAMPLING),
    "seeds": (range(2), SAMPLING),
    "complete": (False, SAMPLING),
    "checkpoint": ("search", SAMPLING),
    "checkpoint_every": (1.0, SAMPLING),
}
"""A value of each option, and the solvers that it is for."""


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
    """Solve on the command line; what `plan_and_certify` would have been given."""

    def call(*arguments):
        given = {}

        def remember(problem, solver, limits, options, **others):
            given.update(others, solver=solver, limits=limits, options=options)
            raise vulcan.OptionError("that's all")

        monkeypatch.setattr("vulcan.planning.solve.plan_and_certify", remember)
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
    statistics = solve(*SMALL, "--solver", "forward-search")[1]["statistics"]
    assert statistics["samples"] == statistics["memory"] == 0


def test_uct_disregards_risk_and_is_judged_all_the_same(solve):
    code, document = solve(*SMALL, "--solver", "uct", "--samples", 2000)
    assert code == 1
    assert document["solver"] == "UCT(exploration=0.1, default_policy='greedy')"
    assert document["certificate"]["passes"] is document["safe"] is False


def test_the_printed_algorithm(solve):
    code, document = solve(*SAMPLED, "--paper", "--exploration", 0.5)
    assert code == 0
    assert document["solver"] == repr(vulcan.Vulcan.paper(0.5))
    assert document["stopped_by"] == "limit of samples"


def test_without_completion_there_may_be_a_frontier(solve):
    few = (*SMALL, "--solver", "local-vulcan", "--samples", 20)
    assert solve(*few)[1]["certificate"]["complete"] is True
    code, document = solve(*few, "--no-complete")
    assert code == 1
    assert document["certificate"]["frontier"] > 0


def test_no_samples_no_policy(solve):
    code, document = solve(*SMALL, "--solver", "local-vulcan", "--samples", 0)
    assert code == 1
    assert (document["status"], document["policy"]) == ("stopped", None)


def test_only_what_was_given_is_passed_on(call):
    for given in (call(), call("--solver", "vulcan")):
        assert (given["limits"], given["options"]) == (Limits(), Options())
    given = call(
        *("--solver", "local-vulcan", "--time-limit", 3, "--samples", 4, "--histories", 5),
        *("--memory", "6kB", "--seed", 7, "--no-complete", "--no-progress"),
        *("--constraint", "a", "--credit", "received", "--exploration", 2),
    )
    assert given == {
        "solver": vulcan.LocalVulcan(2.0, vulcan.SequenceConstraint("received")),
        "limits": Limits(time_limit=3, samples=4, histories=5, memory=6000),
        "options": Options(seed=7, complete=False),
        "bound": False,
        "progress": False,
    }


@pytest.mark.parametrize("name", NAMES)
def test_each_solver_has_the_defaults_of_the_library(name):
    solver = read_search(name, {}).solver
    assert solver == type(solver)()
    assert type(solver).__name__.lower() == name.replace("-", "")
    assert getattr(vulcan, type(solver).__name__) is type(solver)


def test_solvers_with_options_of_their_own():
    for name in ("vulcan", "local-vulcan"):
        assert read_search(name, {"paper": True}).solver == vulcan.Vulcan.paper()
    for on in ("graph", "tree"):
        given = {"on": on}
        assert read_search("linear-program", given).solver == vulcan.LinearProgram(on=on)
        assert read_search("integer-program", given).solver == vulcan.IntegerProgram(on)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "uct"])
def test_each_solver_solves_from_the_command_line(solve, name):
    code, document = solve(*SMALL, "--solver", name, "--upper-bound")
    assert code == 0
    assert document["safe"] is True
    best = 2.0673313851 if name == "linear-program" else 2.0627119821
    reward, upper = document["certificate"]["reward"], document["upper_bound"]
    assert 2.0166 < reward <= best + 1e-9
    assert best - 1e-9 <= upper < 2.0674
    # Upper bounds are rounded up, those of HiGHS by its tolerances; that alone is no gap.
    distance = (upper - reward) / upper
    assert document["gap"] == (0 if distance < 1e-9 else pytest.approx(distance, abs=1e-12))


def test_exact_solvers_find_the_best_policy(solve):
    for name in ("automatic", "pareto", "integer-program", "rao-star"):
        code, document = solve(*SMALL, "--solver", name)
        assert (code, document["status"]) == (0, "solved")
        assert document["certificate"]["reward"] == pytest.approx(2.0627119821, abs=1e-9)
        assert document["gap"] < 1e-9


def test_an_upper_bound_is_found_if_it_is_asked_for(solve, call):
    forward = (*SMALL, "--solver", "forward-search")
    assert solve(*forward)[1]["upper_bound"] is solve(*forward)[1]["gap"] is None
    document = solve(*forward, "--upper-bound")[1]
    assert document["upper_bound"] == pytest.approx(2.0673313851, abs=1e-9)
    assert document["statistics"]["bound_seconds"] > 0
    assert call("--upper-bound")["bound"] is True
    assert call("--no-upper-bound")["bound"] is False


def test_a_target_gap_of_the_exact_solvers(solve):
    bandit = ("solve", "bandit", "--set", "horizon=6", "--bound", "0.002*x")
    for name in ("automatic", "pareto", "integer-program"):
        document = solve(*bandit, "--solver", name, "--gap", "0.1")[1]
        assert document["status"] == "solved"
        assert document["gap"] <= 0.1


def test_the_sweep_of_penalties_is_shown(solve, capsys):
    document = solve(*SMALL, "--solver", "penalty")[1]
    assert len(document["trials"]) == 82
    assert document["trials"][0]["multiplier"] == 0
    with pytest.raises(SystemExit):
        main([*SMALL, "--solver", "penalty", "--depth", "0"])
    table = capsys.readouterr().out.partition("penalty ")[2].splitlines()
    different = {(trial["reward"], trial["risk"]) for trial in document["trials"]}
    assert len(table) == 1 + len(different)
    assert table[1].split()[:3] == ["0", "to", "67.01"]
    assert table[1].endswith("2.119041  0.004794  0.004238  too risky")
    assert table[-1].endswith("1.000000  0.000000  0.002000  acceptable")


def test_every_option_fits_some_solver():
    declared = {option.name for kind in load_solvers().values() for option in kind.options}
    # The rest needs another option beside it: --constraint A, --checkpoint.
    assert declared | set(EVERY) == {*FITTING, "credit", "resume", "overwrite"}
    for option, (value, owners) in FITTING.items():
        for name in NAMES:
            if name in owners:
                read_search(name, {option: value})
            else:
                with pytest.raises(vulcan.OptionError, match="belongs to --solver"):
                    read_search(name, {option: value})


def test_a_search_is_resumed(solve, tmp_path):
    checkpoint = ("--checkpoint", tmp_path / "search", "--checkpoint-every", 0)
    bandit = ("solve", "bandit", "--set", "horizon=6", "--bound", "0.002*x")
    bandit += ("--solver", "local-vulcan")
    solve(*bandit, "--samples", 1500, *checkpoint)
    assert (tmp_path / "search").stat().st_size > 100_000
    _, resumed = solve(*bandit, "--samples", 5000, *checkpoint, "--resume")
    assert resumed["stopped_by"] == "limit of samples"
    _, whole = solve(*bandit, "--samples", 5000)
    assert resumed["certificate"] == whole["certificate"]
    assert resumed["statistics"]["histories"] == whole["statistics"]["histories"]


def test_a_target_gap_turns_bounds_on(solve, call):
    bandit = ("solve", "bandit", "--set", "horizon=7", "--bound", "0.002*x")
    _, document = solve(*bandit, "--solver", "local-vulcan", "--gap", "0.3")
    assert document["stopped_by"] == "target gap"
    assert call("--solver", "local-vulcan", "--gap", "0.1")["solver"].bounded
    assert call("--workers", "2")["options"].workers == 2
