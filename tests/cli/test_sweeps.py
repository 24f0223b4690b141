"""Workers, executors and seeds on the command line."""

import pytest

import vulcan
from tests.helpers.command_line import BOUND, SMALL
from vulcan.cli.choices import read_seeds
from vulcan.domains import Bandit

SAMPLED = (*SMALL, *BOUND, "--solver", "local-vulcan", "--samples", "6")
PROBLEM = vulcan.Problem(Bandit(horizon=3), vulcan.Linear(0.002))
THREADS = ("--workers", "2", "--executor", "threads")


def test_seeds_show_the_best_and_the_spread(run):
    best = vulcan.solve(PROBLEM, vulcan.LocalVulcan(), samples=6, seeds=range(4))
    answer = run("solve", *SAMPLED, "--seeds", "4", *THREADS, "--json")
    assert (answer.code, answer.err) == (0, "")
    document = answer.document
    assert document["certificate"]["reward"] == best.certificate.reward
    spread = document["spread"]
    assert [seen["reward"] for seen in spread["runs"]] == [seen.reward for seen in best.spread]
    assert spread["best"]["seed"] == best.spread.best.seed
    assert (spread["mean"], spread["deviation"]) == (best.spread.mean, best.spread.deviation)
    assert (spread["left_out"], spread["lost_workers"]) == ([], 0)
    rows = run("solve", *SAMPLED, "--seeds", "0-3").out.splitlines()
    (row,) = [row for row in rows if row.startswith("  seeds ")]
    assert f"mean {best.spread.mean:.6f}" in row
    assert run("solve", *SAMPLED, "--json").document["spread"] is None


@pytest.mark.parametrize(
    ("text", "seeds"), [("20", range(20)), ("0-19", range(20)), (" 5 - 7 ", range(5, 8))]
)
def test_seeds_are_a_number_or_a_range(text, seeds):
    assert read_seeds(text) == seeds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seeds", "many"), "seeds are a number of them, or from-to such as 5-19"),
        (("--seeds", "0"), "there must be 1 to 1,000,000 seeds"),
        (("--seeds", "9-3"), "there must be 1 to 1,000,000 seeds"),
        (("--seeds", "2", "--seed", "1"), "seed or seeds, not both"),
        (("--workers", "0"), "--workers"),
        (("--executor", "cloud"), "--executor"),
        (("--executor", "threads", "--cluster", "auto"), "contradicts --executor threads"),
    ],
)
def test_what_contradicts_itself_is_named(run, arguments, message):
    answer = run("solve", *SAMPLED, *arguments)
    assert answer.code == 2
    assert message in " ".join(answer.err.replace("│", " ").split())


def test_seeds_belong_to_solvers_that_sample(run):
    answer = run("solve", *SMALL, *BOUND, "--solver", "pareto", "--seeds", "3")
    assert answer.code == 2
    assert "--seeds belongs to --solver" in answer.err


def test_comparisons_and_frontiers_on_several_workers(run):
    few = ("--solvers", "forward-search,pareto")
    alone = run("compare", *SMALL, *BOUND, *few, "--json").document
    shared = run("compare", *SMALL, *BOUND, *few, *THREADS, "--json").document
    assert [row["reward"] for row in shared["rows"]] == [row["reward"] for row in alone["rows"]]
    assert shared["lost_workers"] == 0
    alone = run("frontier", *SMALL, "--points", "5", "--json").document
    shared = run("frontier", *SMALL, "--points", "5", *THREADS, "--json").document
    names = ("level", "reward", "upper_bound", "price")
    for one, other in zip(alone["points"], shared["points"], strict=True):
        assert [one[name] for name in names] == [other[name] for name in names]
    assert shared["failures"] == []


def test_lost_workers_and_failures_are_shown(run, monkeypatch):
    failure = vulcan.FrontierFailure(0.5, "RuntimeError: oh")
    traced = vulcan.trace_frontier(Bandit(horizon=3), levels=[0.001])
    changed = {**traced.__dict__, "failures": (failure,), "lost_workers": 2}
    monkeypatch.setattr(vulcan, "trace_frontier", lambda *_, **__: vulcan.Frontier(**changed))
    lines = run("frontier", *SMALL).out.splitlines()
    assert any(line.split() == ["0.5", "failed:", "RuntimeError:", "oh"] for line in lines)
    assert any(line.startswith("  workers      2 died on the way") for line in lines)
