"""`vulcan show`."""

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
