"""`vulcan simulate`."""

import pytest

from tests.helpers.model_files import write


def test_simulate_agrees_with_the_exact_values(run, plan):
    answer = run("simulate", plan, "bandit", "--set", "horizon=3", "--episodes", "20000")
    assert answer.code == 0
    assert "✓ agrees  20,000 episodes" in answer.out
    assert "Survival over the steps" in answer.out
    assert "Reward of an episode" in answer.out
    assert "compiled" in answer.out


def test_simulate_needs_no_model(run, plan):
    answer = run("simulate", plan, "--episodes", "1000", "--workers", "1", "--json")
    assert answer.document["agrees"] is True
    assert answer.document["episodes"] == sum(answer.document["histogram"]["counts"]) == 1000
    assert answer.document["model"] == "Bandit(horizon=3)"
    refused = run("simulate", plan, "--set", "horizon=3")
    assert refused.code == 2
    assert "--set is for the model" in refused.err


def test_the_document_has_all_numbers(run, plan):
    document = run("simulate", plan, "--episodes", "5000", "--seed", "3", "--json").document
    reward = document["reward"]
    assert reward["low"] < reward["value"] < reward["high"]
    assert document["survival"][0] == document["exact_survival"][0] == 1
    assert document["survival"][-1] == pytest.approx(1 - document["risk"]["value"])
    assert document["disagreements"] == []


def test_simulate_tells_where_another_model_differs(run, plan, tmp_path):
    write(
        tmp_path / "worse.py",
        "from vulcan import Outcome\n"
        "from vulcan.domains import Bandit\n"
        "class Worse(Bandit):\n"
        "    def outcomes(self, state, action):\n"
        "        found = super().outcomes(state, action)\n"
        "        if not any(o.fails for o in found): return found\n"
        "        return [Outcome.failure(0.5, 0.0, label=o.label) if o.fails else\n"
        "                Outcome(0.25, o.reward, o.state, o.label) for o in found]\n",
    )
    name = f"{tmp_path / 'worse.py'}:Worse"
    answer = run("simulate", plan, name, "--set", "horizon=3", "--episodes", "500")
    assert answer.code == 1
    assert "✗ disagrees" in answer.out
    assert "it fails in" in answer.out.replace("\n", " ")
    assert "Python" in answer.out
    assert answer.err == ""


def test_simulate_plays_in_the_environment_itself(run, tmp_path):
    pytest.importorskip("gymnasium")
    lake = ("gymnasium:FrozenLake-v1", "--set", "horizon=20")
    plan = tmp_path / "lake.vulcan"
    assert run("solve", *lake, "--bound", "0.3", "-o", plan).code == 0
    answer = run("simulate", plan, *lake, "--environment", "--episodes", "300", "--json")
    assert answer.code == 0
    assert answer.document["model"] == "the environment FrozenLake-v1"
    assert answer.document["engine"] == "Python"
    assert answer.document["episodes"] == 300
    # A start of one's own is not where the environment begins.
    moved = (*lake, "--set", "start=4")
    assert run("solve", *moved, "--bound", "0.5", "-o", plan).code == 0
    answer = run("simulate", plan, *moved, "--environment", "--episodes", "10")
    assert answer.code == 1
    assert "it began in" in answer.out.replace("\n", " ")


def test_only_a_model_that_has_an_environment_is_played_in_it(run, plan):
    answer = run("simulate", plan, "bandit", "--set", "horizon=3", "--environment")
    assert answer.code == 2
    assert "gymnasium:FrozenLake-v1" in answer.err
    assert run("simulate", plan, "--environment").code == 2


def test_simulate_draws(run, plan, tmp_path):
    answer = run("simulate", plan, "--episodes", "1000", "--plot", tmp_path / "episodes.png")
    assert answer.code == 0
    assert "saved" in answer.out
    assert (tmp_path / "episodes.png").stat().st_size > 10_000
