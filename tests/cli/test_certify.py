"""`vulcan certify`."""

import math

import pytest

import vulcan
from tests.helpers.command_line import SMALL
from vulcan.domains import Bandit


def test_certify_uses_the_recorded_bound(run, plan):
    answer = run("certify", plan, *SMALL)
    assert answer.code == 0
    assert answer.out.startswith("✓ safe  complete, and its risk is acceptable for its reward")
    assert "0.003056  Δ(x) = 0.002 * x" in answer.out
    assert "floating point" in answer.out


def test_certify_says_whose_bound_it_judges_by(run, plan):
    assert f"judged by     the bound in {plan}" in run("certify", plan, *SMALL).out
    assert "judged by     --bound" in run("certify", plan, *SMALL, "--bound", "0.01").out
    document = run("certify", plan, *SMALL, "--json").document
    assert document["bound_from"] == f"the bound in {plan}"


def test_certify_says_when_it_is_too_close_to_say(run, plan, monkeypatch):
    monkeypatch.setattr("vulcan.certificates.certificate.MOST_WAYS", 0)
    found = run("certify", plan, *SMALL, "--json").document["certificate"]
    # As steep as it takes for the last digits of the reward to decide.
    steep = f"piecewise(({found['reward'] - 1!r}, -1e9), ({found['reward']!r}, {found['risk']!r}))"
    answer = run("certify", plan, *SMALL, "--bound", steep)
    assert answer.code == 1
    assert answer.out.startswith("✗ too close to say  what the bound allows for its reward is too")
    assert "TOO CLOSE TO SAY" in answer.out
    assert " ± " in answer.out
    document = run("certify", plan, *SMALL, "--bound", steep, "--json").document
    assert document["safe"] is document["certificate"]["passes"] is False
    assert document["certificate"]["undecided"] is True
    monkeypatch.undo()
    answer = run("certify", plan, *SMALL, "--bound", steep)
    assert "fractions, since floating point was too close to say" in answer.out


def test_certify_by_another_bound(run, plan):
    answer = run("certify", plan, *SMALL, "--bound", "1e-6")
    assert answer.code == 1
    assert answer.out.startswith("✗ not safe  its risk is more than the bound allows")
    assert "NOT ACCEPTABLE" in answer.out


def test_exact_certificates_are_fractions(run, plan):
    answer = run("certify", plan, *SMALL, "--exact", "--json")
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
