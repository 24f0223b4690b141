"""Commands other than solve: certify, check, explain, explore, show, simulate, verify."""

from __future__ import annotations

import io
import json
import math
import re
from dataclasses import replace

import pytest

import vulcan
from tests.helpers.command_line import BOUND, SMALL
from tests.helpers.convoys import CONVOY
from tests.helpers.mixtures import mix_bandit
from tests.helpers.model_files import write
from tests.helpers.plans import edit
from tests.helpers.prism_files import COURIER
from vulcan.certificate import verify as verification
from vulcan.domains import Bandit


def test_certify_by_a_bound_that_is_given(run, plan):
    answer = run("certify", plan, *SMALL, *BOUND)
    assert answer.code == 0
    assert answer.out.startswith("✓ safe  complete, and its risk is acceptable for its reward")
    document = run("certify", plan, *SMALL, *BOUND, "--json").document
    assert (document["safe"], document["within_own_bound"]) == (True, None)
    assert "0.003056  Δ(x) = 0.002 * x" in answer.out
    assert "floating point" in answer.out


def test_a_bound_in_the_file_never_makes_a_policy_safe(run, plan):
    """The author of the file chooses the bound in it."""
    edit(vulcan.Policy.load(plan), origin={"risk_bound": "0.9"}).save(plan)
    answer = run("certify", plan, *SMALL)
    assert answer.code == 4
    first = answer.out.splitlines()[0]
    assert first.startswith(f"? within its own bound  judged by the bound in {plan} itself, ")
    assert "safe" not in first
    document = run("certify", plan, *SMALL, "--json").document
    assert (document["safe"], document["within_own_bound"]) == (None, True)
    assert document["bound"] == "0.9"
    assert run("certify", plan, *SMALL, "--bound", "0.001*x").code == 1


def test_a_policy_beyond_its_own_bound_is_not_safe(run, plan):
    edit(vulcan.Policy.load(plan), origin={"risk_bound": "1e-6"}).save(plan)
    answer = run("certify", plan, *SMALL)
    assert answer.code == 1
    assert answer.out.startswith(f"✗ not safe  judged by the bound in {plan} itself, ")
    document = run("certify", plan, *SMALL, "--json").document
    assert (document["safe"], document["within_own_bound"]) == (False, False)


@pytest.mark.parametrize("bound", ["x*x + 1", "exp(x)", "1 - 0.1*x*x"])
def test_certify_refuses_a_bound_of_the_wrong_shape(run, plan, bound):
    answer = run("certify", plan, *SMALL, "--bound", bound)
    assert (answer.code, answer.out) == (2, "")
    assert "concave" in answer.err or "decreases" in answer.err


@pytest.mark.parametrize("change", [{"discount": 0.5}, {"initial_action": True}])
def test_another_discount_is_a_mismatch(run, plan, change):
    edit(vulcan.Policy.load(plan), origin=change).save(plan)
    for command in (
        ["certify", plan, *SMALL, *BOUND],
        ["explain", plan, *SMALL],
        ["show", plan, *SMALL],
        ["explore", plan, *SMALL, "-o", "plan.html"],
    ):
        answer = run(*command)
        assert (answer.code, answer.out) == (2, ""), command
        assert "discount" in answer.err or "initial action" in answer.err


def test_certify_says_when_it_is_too_close_to_say(run, plan, monkeypatch):
    monkeypatch.setattr("vulcan.certificate.certify.MOST_WAYS", 0)
    found = run("certify", plan, *SMALL, "--json").document["certificate"]
    # As steep as it takes for the last digits of the reward to decide.
    steep = f"piecewise(({found['reward'] - 1!r}, -1e9), ({found['reward']!r}, {found['risk']!r}))"
    answer = run("certify", plan, *SMALL, "--bound", steep)
    assert answer.code == 1
    assert answer.out.startswith("✗ too close to say  its risk is too close to what the bound")
    assert "TOO CLOSE TO SAY" in answer.out
    assert " ± " in answer.out
    document = run("certify", plan, *SMALL, "--bound", steep, "--json").document
    assert document["safe"] is document["certificate"]["passes"] is False
    assert document["certificate"]["undecided"] is True
    monkeypatch.undo()
    answer = run("certify", plan, *SMALL, "--bound", steep)
    assert "fractions, because rounding left the verdict open" in answer.out


def test_exact_certificates_are_fractions(run, plan):
    answer = run("certify", plan, *SMALL, *BOUND, "--exact", "--json")
    assert answer.code == 0
    certificate = answer.document["certificate"]
    numerator, denominator = map(int, certificate["fractions"]["risk"].split("/"))
    assert numerator / denominator == certificate["risk"]
    assert "fractions, exact" in run("certify", plan, *SMALL, "--exact").out


def test_certify_an_incomplete_policy(run, unsafe_plan):
    answer = run("certify", unsafe_plan, *SMALL, "--json")
    assert answer.code == 1
    assert answer.document["safe"] is False
    assert answer.document["certificate"]["passes"] is True
    assert answer.document["certificate"]["frontier"] == pytest.approx(0.4995)
    assert "not planned" in run("certify", unsafe_plan, *SMALL).out


def test_a_bound_without_a_text_must_be_given(run, tmp_path):
    bound = vulcan.Concave(lambda x: 0.01 * math.tanh(x))
    path = tmp_path / "plan.vulcan"
    vulcan.solve(vulcan.Problem(Bandit(horizon=2), bound)).policy.save(path)
    answer = run("certify", path, "bandit", "--set", "horizon=2")
    assert (answer.code, answer.out) == (2, "")
    assert "was made for a bound that can't be written down; give one with --bound" in answer.err
    assert run("certify", path, "bandit", "--set", "horizon=2", "--bound", "0.01").code == 0
    assert "  risk bound   a function " in run("show", path).out


def test_certify_refuses_another_model(run, plan):
    answer = run("certify", plan, "bandit", "--set", "horizon=4")
    assert (answer.code, answer.out) == (2, "")
    assert "this policy was made for Bandit(horizon=3)" in answer.err


def test_check_a_sound_model(run):
    answer = run("check", *SMALL)
    assert answer.code == 0
    assert answer.out.startswith("✓ sound  Bandit(horizon=3)\n")
    document = run("check", *SMALL, "--json").document
    assert document["ok"] is document["finished"] is True
    assert document["violations"] == []


def test_check_lists_what_is_broken(run):
    broken = ("harbour:Harbour", "--set", "leak=0.05")
    answer = run("check", *broken)
    assert answer.code == 1
    assert "breaks a rule in 2 places" in answer.out
    message = f"probabilities sum to {0.95 - 0.05 + 0.05!r}, not to 1"
    assert f"{message} (state 'quay', action 'sail')" in answer.out
    first = run("check", *broken, "--json").document["violations"][0]
    assert first["rule"] == "probabilities sum to 1"
    assert (first["state"], first["action"]) == ("'quay'", "'sail'")


def test_check_compares_a_compiled_form(run):
    compiled = ("check", "bandit", "--set", "horizon=3", "--set", "merges=False")
    answer = run(*compiled)
    assert answer.code == 0
    assert "agrees, compared in 50 states" in answer.out
    document = run(*compiled, "--json").document
    assert document["compiled"]["ok"] is document["compiled"]["finished"] is True
    assert run("check", *SMALL, "--json").document["compiled"] is None


def test_check_refuses_a_compiled_form_that_differs(run):
    answer = run("check", "harbour:Mistaken")
    assert answer.code == 1
    assert answer.out.startswith("✗ unsound")
    assert "compiled must be a vulcan.model.CompiledModel" in " ".join(answer.out.split())
    document = run("check", "harbour:Mistaken", "--json").document
    assert document["ok"] is document["compiled"]["ok"] is False


@pytest.fixture
def convoy(tmp_path):
    """A plan that fails on purpose, and the name of its model."""
    write(
        tmp_path / "convoy.py",
        "from tests.helpers import tables\n"
        "from tests.helpers.convoys import CONVOY\n"
        "class Table(tables.Table):\n"
        "    def __init__(self): vars(self).update(vars(CONVOY))\n",
    )
    path = tmp_path / "plan.vulcan"
    vulcan.solve(vulcan.Problem(CONVOY, 1.0)).policy.save(path)
    return path, f"{tmp_path / 'convoy.py'}:Table"


def test_explain_finds_no_problems(run, plan):
    answer = run("explain", plan, *SMALL)
    assert answer.code == 0
    assert "✓ no problems found" in answer.out
    assert f"  judged by      the bound in {plan}\n" in answer.out
    assert run("explain", plan, *SMALL, *BOUND, "--json").document["bound_from"] == "--bound"
    assert "none of it where failing pays more" in answer.out
    assert "surely fail" not in answer.out


def test_explain_points_out_failures_on_purpose(run, convoy):
    answer = run("explain", *convoy)
    assert answer.code == 1
    assert "✗ fails on purpose  with probability 70.0 %" in answer.out
    assert "road fails 2.0 %" in answer.out
    assert "no other action is available" in answer.out
    document = run("explain", *convoy, "--json", "--rows", "1").document
    assert document["deliberate"] == pytest.approx(0.7)
    assert [failure["instead"] for failure in document["failures"]] == ["road"]
    assert len(document["choices"]) == len(document["actions"]) == 1
    assert document["choices"][0]["risk"] == pytest.approx(0.7)


def test_explain_says_what_was_rejected_and_why(run, plan):
    answer = run("explain", plan, "bandit", "--set", "horizon=3", "--rows", "2")
    assert "Which histories take it, and what was rejected there" in answer.out
    assert "compared  the other action, then" in answer.out
    assert answer.out.count("  when     ") == answer.out.count("  not      ") == 2
    assert "worth less" in answer.out
    assert "price of risk" in answer.out
    document = run("explain", plan, "bandit", "--set", "horizon=3", "--json").document
    assert document["bound"] == "0.002 * x"
    assert document["places"][0]["alternative"]["verdict"] == "worth less"
    assert document["price"] > 0


def test_explore_writes_a_page_and_says_the_answers(run, plan, tmp_path):
    page = tmp_path / "plan.html"
    answer = run("explore", plan, *SMALL, *BOUND, "-o", page)
    assert answer.code == 0
    assert "✓ written" in answer.out
    assert re.search(r"What is done first\? +play 1\n", answer.out)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "0.5 times the allowed risk" in text
    assert "<strong>✓ acceptable</strong>" in text
    answer = run("explore", plan, *SMALL, "-o", page, "--what-if", "0")
    assert f"the bound in {plan}\n" in answer.out
    text = page.read_text(encoding="utf-8")
    assert "<strong>? within its own bound</strong> <span>judged by the bound in its own" in text
    assert "✓ acceptable" not in text


def test_explore_refuses_what_it_can_not_do(run, plan, tmp_path):
    answer = run("explore", plan, *SMALL)
    assert answer.code == 2
    assert "--output" in answer.err
    answer = run("explore", plan, *SMALL, "-o", tmp_path / "none" / "plan.html")
    assert answer.code == 2
    assert not (tmp_path / "plan.html").exists()


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
    answer = run("show", plan, "--table", "--top", "2")
    lines = answer.out.splitlines()
    assert lines[0].split()[:3] == ["step", "history", "action"]
    assert len(lines) == 3
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


def test_what_does_not_go_together_is_refused(run, plan, tmp_path):
    for options, words in (
        (("-o", tmp_path / "plan.xls"), "must end in .csv"),
        (("--sort", "stp"), "did you mean 'step'?"),
        (("--top", "0"), "greater than or equal to 1"),
    ):
        answer = run("show", plan, *options)
        assert answer.code == 2, options
        assert words in answer.err


def test_json_is_complete_or_says_what_is_not_there(run, plan):
    whole = run("show", plan, "--json").document["policy"]
    assert {decision["step"] for decision in whole["decisions"]} == {1, 2, 3}
    assert whole["left_out"] == 0
    first = run("show", plan, "--json", "--depth", "1").document["policy"]
    assert len(first["decisions"]) == 1
    assert first["left_out"] == 6
    model = ("bandit", "--horizon", "3")
    rows = run("show", plan, *model, "--table", "--json").document["table"]["rows"]
    assert all(row["state"] for row in rows)
    assert sum(row["risk"] for row in rows) == pytest.approx(rows[0]["risk_ahead"])


def test_simulate_agrees_with_the_exact_values(run, plan):
    answer = run("simulate", plan, "bandit", "--set", "horizon=3", "--episodes", "20000")
    assert answer.code == 0
    assert "✓ agrees  20,000 episodes" in answer.out
    assert "compiled" in answer.out


def test_simulate_needs_no_model(run, plan):
    answer = run("simulate", plan, "--episodes", "1000", "--json")
    assert answer.document["agrees"] is True
    assert answer.document["episodes"] == sum(answer.document["histogram"]["counts"]) == 1000
    assert answer.document["model"] == "Bandit(horizon=3)"
    refused = run("simulate", plan, "--set", "horizon=3")
    assert refused.code == 2
    assert "--set is for the model" in refused.err


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


SEA = (COURIER, "--horizon", "12", "--set", "danger=0.01")


def test_storm_agrees(run, plan):
    pytest.importorskip("stormpy")
    answer = run("verify", plan, *SMALL)
    assert answer.code == 0
    assert answer.out.startswith("✓ agrees  Storm (stormpy ")
    assert "risk " in answer.out
    document = run("verify", plan, *SMALL, "--json").document
    assert document["agrees"] is True
    assert document["risk"] == pytest.approx(document["certificate"]["risk"], abs=1e-12)


def test_disagreement_is_an_error(run, plan, monkeypatch):
    pytest.importorskip("stormpy")
    honest = verification.certify

    def certify(*arguments):
        certificate = honest(*arguments)
        return replace(certificate, risk=certificate.risk + 1e-6)

    monkeypatch.setattr(verification, "certify", certify)
    answer = run("verify", plan, *SMALL)
    assert answer.code == 70
    assert answer.out.startswith("✗ differs  Storm (stormpy ")
    assert "by 1e-06" in answer.out


def test_a_plan_for_a_prism_file(run, tmp_path):
    pytest.importorskip("stormpy")
    plan = tmp_path / "plan.vulcan"
    answer = run("solve", *SEA, "--bound", "0.05", "--solver", "lagrangian", "--output", plan)
    assert answer.code == 0
    assert "courier.prism (16 states, 36 rows, horizon=12)" in answer.out
    assert run("certify", plan, *SEA, "--bound", "0.05").code == 0
    assert run("verify", plan, *SEA).code == 0
    answer = run("verify", plan, COURIER, "--horizon=13", "--set", "danger=0.01")
    assert (answer.code, answer.out) == (2, "")


def test_bad_files_are_named(run, tmp_path):
    pytest.importorskip("stormpy")
    path = tmp_path / "bad.prism"
    path.write_text("mdp\nmodule m\n x : [0..1] init ;\nendmodule\n")
    answer = run("solve", path, "--horizon", "3", "--bound", "0.1")
    assert (answer.code, answer.out) == (2, "")
    assert "bad.prism, line 3, column" in answer.err
    answer = run("solve", COURIER, "--horizon", "3", "--bound", "0.1")
    assert answer.code == 2
    assert "needs --set danger=..." in answer.err


@pytest.fixture
def bandit():
    return mix_bandit()


@pytest.fixture
def saved(bandit, tmp_path):
    path = tmp_path / "plan.vulcan"
    bandit.save(path)
    return path


def test_show_a_randomised_policy(run, saved, bandit):
    shown = run("show", saved, "--depth", "1").out
    assert "  members      2, of which one is drawn at the start: 60.0 %, 40.0 %\n" in shown
    outcomes = [len(member.label) for member in bandit.members]
    assert f"  decisions    14, with {sum(outcomes)} outcomes\n" in shown
    assert "  member 2 of 2, drawn with probability 40.0 %\n" in shown
    document = run("show", saved, "--json", "--depth", "2").document["policy"]
    assert document["randomised"] is True
    assert (document["nodes"], document["outcomes"]) == (14, sum(outcomes))
    assert document["decisions"] == []
    assert [m["weight"] for m in document["members"]] == [0.6, 0.4]
    assert [m["nodes"] for m in document["members"]] == [7, 7]
    assert [m["outcomes"] for m in document["members"]] == outcomes
    assert all(m["complete"] for m in document["members"])
    assert [m["decisions"][0]["action"] for m in document["members"]] == ["play 1", "play 2"]


def test_certify_a_randomised_policy(run, saved, bandit):
    certificate = vulcan.certify(vulcan.Problem(Bandit(3), vulcan.Linear(0.002)), bandit)
    answer = run("certify", saved, *SMALL, *BOUND)
    assert answer.code == 0
    assert answer.out.startswith("✓ safe")
    assert "  members       2, of which one is drawn at the start: 60.0 %, 40.0 %\n" in answer.out
    assert f"  reward        {certificate.reward:.6f}\n" in answer.out
    document = run("certify", saved, *SMALL, *BOUND, "--json", "--exact").document
    assert document["safe"] is document["policy"]["randomised"] is True
    assert document["certificate"]["risk"] == pytest.approx(certificate.risk, abs=1e-15)
    refused = run("certify", saved, *SMALL, "--bound", "0.0001")
    assert (refused.code, refused.out[:10]) == (1, "✗ not safe")


def test_run_plans_while_acting(run):
    command = ("run", "bandit", "--set", "horizon=3", "--bound", "0.002*x")
    answer = run(*command, "--simulate", "--seed", "1", "--samples-per-step", "500", "--json")
    first, *steps, last = map(json.loads, answer.out.splitlines())
    assert first["certificate"]["passes"]
    assert [step["step"] for step in steps] == [1, 2, 3]
    assert math.isclose(sum(steps[0]["expected"].values()), 1.0)
    assert last["end"] in ("ended safely", "failed")
    assert answer.code == (1 if last["end"] == "failed" else 0)


def test_run_reads_observations(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("0\nnothing\n1\n"))
    command = ("run", "bandit", "--set", "horizon=3", "--bound", "0.002*x")
    answer = run(*command, "--samples-per-step", "500")
    assert answer.code == 0
    assert "step 3" in answer.out
    assert "goes on, with reward" in answer.out
    answer = run(*command, "--samples-per-step", "500", "--seconds-per-step", "1")
    assert answer.code == 2
