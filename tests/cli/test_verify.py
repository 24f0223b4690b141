"""`vulcan verify`."""

from dataclasses import replace

import pytest

from tests.helpers.command_line import SMALL
from tests.helpers.prism_files import COURIER
from vulcan.certificates import verification

SEA = (COURIER, "--horizon", "12", "--set", "danger=0.01")


@pytest.fixture(autouse=True)
def stormpy():
    return pytest.importorskip("stormpy")


def test_storm_agrees(run, plan):
    answer = run("verify", plan, *SMALL, "--with", "storm")
    assert answer.code == 0
    assert answer.out.startswith("✓ agrees  Storm (stormpy ")
    assert "risk " in answer.out
    document = run("verify", plan, *SMALL, "--json").document
    assert document["agrees"] is True
    assert document["risk"] == pytest.approx(document["certificate"]["risk"], abs=1e-12)


def test_disagreement_is_an_error(run, plan, monkeypatch):
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
    plan = tmp_path / "plan.vulcan"
    answer = run("solve", *SEA, "--bound", "0.05", "--output", plan)
    assert answer.code == 0
    assert "courier.prism (16 states, 36 rows, horizon=12)" in answer.out
    assert run("certify", plan, *SEA).code == 0
    assert run("verify", plan, *SEA).code == 0
    answer = run("verify", plan, COURIER, "--horizon=13", "--set", "danger=0.01")
    assert (answer.code, answer.out) == (2, "")


def test_bad_files_are_named(run, tmp_path):
    path = tmp_path / "bad.prism"
    path.write_text("mdp\nmodule m\n x : [0..1] init ;\nendmodule\n")
    answer = run("solve", path, "--horizon", "3", "--bound", "0.1")
    assert (answer.code, answer.out) == (2, "")
    assert "bad.prism, line 3, column" in answer.err
    answer = run("solve", COURIER, "--horizon", "3", "--bound", "0.1")
    assert answer.code == 2
    assert "courier.prism needs --set danger=..." in answer.err
