"""`vulcan check`."""

import re

from tests.helpers.command_line import SMALL
from vulcan.model.report import MOST_SHOWN, MOST_VIOLATIONS


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
    table = [line.split("  ") for line in answer.out.splitlines() if "sum to 1" in line]
    assert [cell.strip() for cell in table[0] if cell] == [
        *("probabilities sum to 1", "'quay'", "'sail'", "0.95"),
        f"probabilities sum to {0.95 - 0.05 + 0.05!r}, not to 1",
    ]
    first = run("check", *broken, "--json").document["violations"][0]
    assert first["rule"] == "probabilities sum to 1"
    assert (first["state"], first["action"]) == ("'quay'", "'sail'")


def test_check_stops_at_a_number_of_states(run):
    answer = run("check", *SMALL, "--states", "5")
    assert answer.code == 0
    assert answer.out.startswith("✓ sound so far  Bandit(horizon=3); not all states were walked\n")
    assert run("check", *SMALL, "--states", "5", "--json").document["finished"] is False


def test_check_shows_only_the_first_of_many_violations(run):
    answer = run("check", "bandit", "--set", "stop_reward=1e999")
    assert answer.code == 1
    count = run("check", "bandit", "--set", "stop_reward=1e999", "--json").document[
        "violation_count"
    ]
    assert f"and {count - MOST_SHOWN:,} more; --json lists the first {MOST_VIOLATIONS:,}\n" in (
        answer.out
    )
    few = run("check", *SMALL, "--set", "stop_reward=1e999")
    assert re.search(r"and \d+ more; --json lists them\n", few.out)


def test_check_can_show_what_can_not_show_itself(run):
    answer = run("check", "harbour:Nameless")
    assert answer.code == 1
    assert "probabilities sum to 1" in answer.out
    assert "Nameless" in answer.out
    document = run("check", "harbour:Nameless", "--json").document
    states = {violation["state"] for violation in document["violations"]}
    assert all("Mist object at" in state for state in states)


def test_states_in_a_document_are_whole_and_in_a_table_short(run):
    broken = ("check", "harbour:Wide")
    assert "'quay'" * 200 not in run(*broken).out
    assert run(*broken, "--json").document["violations"][0]["state"] == repr(("quay",) * 200)


def test_check_names_what_nobody_can_tell_apart(run):
    answer = run("check", "harbour:Foggy")
    assert answer.code == 0
    text = " ".join(answer.out.split())
    assert "2 outcomes without labels end in 'sea' with the same reward, and count as one" in text
    document = run("check", "harbour:Foggy", "--json").document
    assert document["merged_count"] == len(document["merged"]) == 2
    assert document["merged"][0] == {
        "state": "'quay'",
        "action": "'sail'",
        "next_state": "'sea'",
        "outcomes": 2,
    }


def test_check_compares_a_compiled_form(run):
    compiled = ("check", "bandit", "--set", "horizon=3", "--set", "merges=False")
    answer = run(*compiled)
    assert answer.code == 0
    assert "says the same; 50 states were compared" in answer.out
    document = run(*compiled, "--json").document
    assert document["compiled"]["ok"] is document["compiled"]["finished"] is True
    assert run("check", *SMALL, "--json").document["compiled"] is None


def test_check_refuses_a_compiled_form_that_differs(run):
    answer = run("check", "harbour:Mistaken")
    assert answer.code == 1
    assert answer.out.startswith("✗ unsound")
    assert "compiled must be a vulcan.CompiledModel" in " ".join(answer.out.split())
    document = run("check", "harbour:Mistaken", "--json").document
    assert document["ok"] is document["compiled"]["ok"] is False
