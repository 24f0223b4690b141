"""`vulcan show`."""

import pytest

import vulcan


def test_show_needs_no_model(run, plan):
    answer = run("show", plan, "--depth", "1")
    assert answer.code == 0
    assert "  risk bound   0.002 * x\n" in answer.out
    assert "  decisions    7, with 21 outcomes\n" in answer.out
    assert answer.out.count("─") == 2
    document = run("show", plan, "--json").document["policy"]
    assert document["nodes"] == len(document["decisions"]) == 7
    assert document["fingerprint"] == vulcan.Policy.load(plan).about.fingerprint


def test_show_says_what_is_not_planned(run, unsafe_plan):
    answer = run("show", unsafe_plan)
    assert "no: some histories are not planned" in answer.out
    assert "→ not planned" in answer.out
    outcomes = run("show", unsafe_plan, "--json").document["policy"]["decisions"][0]["outcomes"]
    assert outcomes[0]["next"] == "unplanned"


def test_labels_cannot_command_the_terminal(run, tmp_path):
    path = tmp_path / "plan.vulcan"
    solved = run("solve", "harbour.py:Escaping", "--bound", "0.1", "-o", path)
    shown = run("show", path)
    for answer in (solved, shown, run("show", path, "--json")):
        assert "\x1b" not in answer.out
        assert "\x9b" not in answer.out
    assert "\\x1b[31msail\\x9b" in shown.out


def test_tables_have_rows_that_are_sorted_and_chosen(run, plan):
    answer = run("show", plan, "--table", "--where", "step=2", "--top", "2")
    lines = answer.out.splitlines()
    assert lines[0].split()[:3] == ["step", "history", "action"]
    assert [line.split()[0] for line in lines[1:]] == ["2", "2"]
    by_reach = run("show", plan, "bandit", "--horizon", "3", "--sort", "reach").out.splitlines()
    assert by_reach[0].split()[1] == "state"
    assert "100.0 %" in by_reach[1]


def test_tables_go_into_files(run, plan, tmp_path):
    answer = run("show", plan, "-o", tmp_path / "plan.csv")
    assert "saved" in answer.out
    assert (tmp_path / "plan.csv").read_text().startswith("step,history,action,reach")
    document = run("show", plan, "--table", "--json").document["table"]
    assert len(document["rows"]) == 7
    assert document["rows"][0]["step"] == 1
    assert document["left_out"] == 0


def test_a_matrix_and_other_actions_need_the_model(run, plan):
    model = ("bandit", "--horizon", "3")
    for option in ("--matrix", "--instead"):
        refused = run("show", plan, option)
        assert refused.code == 2
        assert f"{option} needs the model: vulcan show PLAN MODEL {option}" in refused.err
    assert run("show", plan, *model, "--matrix").out.count("\n") > 5
    table = run("show", plan, *model, "--top", "2", "--instead").out
    assert "worth less" in table
    assert "instead: " in table


def test_what_does_not_go_together_is_refused(run, plan, tmp_path):
    for options, words in (
        (("--table", "--matrix"), "choose one"),
        (("--look", "1"), "--instead --look SECONDS"),
        (("-o", tmp_path / "plan.xls"), "must end in .csv or .md or .html or .parquet"),
        (("--where", "stp=3"), "did you mean 'step'?"),
        (("--top", "0"), "greater than or equal to 1"),
    ):
        answer = run("show", plan, *options)
        assert answer.code == 2, options
        assert words in answer.err


def test_json_is_complete_or_says_what_is_not_there(run, plan):
    whole = run("show", plan, "--json").document["policy"]
    assert {decision["step"] for decision in whole["decisions"]} == {1, 2, 3}
    assert whole["left_out"] == ["states: only a model knows them (vulcan show PLAN MODEL)"]
    first = run("show", plan, "--json", "--depth", "1").document["policy"]
    assert len(first["decisions"]) == 1
    assert "6 decisions that are more than 1 deep" in first["left_out"]
    known = run("show", plan, "bandit", "--horizon", "3", "--json").document["policy"]
    assert known["left_out"] == []
    assert all(decision["state"] for decision in known["decisions"])
    assert sum(d["reach"] * d["fails"] for d in known["decisions"]) == pytest.approx(
        known["decisions"][0]["risk_ahead"]
    )
