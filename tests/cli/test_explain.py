"""`vulcan explain`."""

import pytest

import vulcan
from tests.helpers.convoys import CONVOY
from tests.helpers.model_files import write


@pytest.fixture
def convoy(tmp_path):
    """A plan that fails on purpose, and the name of its model."""
    write(
        tmp_path / "convoy.py",
        "from tests.helpers.convoys import CONVOY\n"
        "from tests.helpers.tables import Table\n"
        "def convoy() -> Table: return CONVOY\n",
    )
    path = tmp_path / "plan.vulcan"
    vulcan.solve(vulcan.Problem(CONVOY, 1.0)).policy.save(path)
    return path, f"{tmp_path / 'convoy.py'}:convoy"


def test_explain_says_that_nothing_is_odd(run, plan):
    answer = run("explain", plan, "bandit", "--set", "horizon=3")
    assert answer.code == 0
    assert "✓ nothing odd" in answer.out
    assert "none of it where failing pays more" in answer.out
    assert "surely fail" not in answer.out


def test_explain_points_out_failures_on_purpose(run, convoy):
    answer = run("explain", *convoy)
    assert answer.code == 1
    assert "✗ fails on purpose  with probability 70.0 %" in answer.out
    assert "road fails 2.0 %" in answer.out
    assert "nothing else could be done" in answer.out


def test_explain_as_a_document(run, convoy):
    document = run("explain", *convoy, "--json", "--rows", "1").document
    assert document["deliberate"] == pytest.approx(0.7)
    assert [failure["instead"] for failure in document["failures"]] == ["road"]
    assert len(document["choices"]) == len(document["actions"]) == 1
    assert document["choices"][0]["risk"] == pytest.approx(0.7)


def test_explain_says_what_was_rejected_and_why(run, plan):
    answer = run("explain", plan, "bandit", "--set", "horizon=3", "--rows", "2")
    assert "Which histories take it, and what was rejected there" in answer.out
    assert "compared  the other action there" in answer.out
    assert answer.out.count("  when     ") == answer.out.count("  not      ") == 2
    assert "worth less" in answer.out
    assert "by the price of risk" in answer.out
    document = run("explain", plan, "bandit", "--set", "horizon=3", "--json").document
    assert document["bound"] == "0.002 * x"
    assert document["places"][0]["alternative"]["verdict"] == "worth less"
    assert [case["source"] for case in document["what_if"]] == ["price", "price"]


def test_explain_solves_again_for_other_bounds(run, plan):
    answer = run("explain", plan, "bandit", "--set", "horizon=3", "--what-if", "20")
    assert answer.out.count("solved again") == 2
    assert "10 % less" in answer.out
    assert "10 % more" in answer.out


def test_explain_judges_by_another_bound(run, plan):
    document = run(
        "explain", plan, "bandit", "--set", "horizon=3", "--bound", "0.5", "--json"
    ).document
    verdicts = {place["alternative"]["verdict"] for place in document["places"]}
    assert "better" in verdicts


def test_explain_refuses_to_look_for_no_time(run, plan):
    answer = run("explain", plan, "bandit", "--set", "horizon=3", "--look", "0")
    assert answer.code == 2
    assert "look, a number of seconds, must be a finite number above 0, not 0" in answer.err
