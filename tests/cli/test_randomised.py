"""Randomised policies on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import vulcan
from tests.helpers.mixtures import mix_bandit
from vulcan.cli import main
from vulcan.domains import Bandit
from vulcan.policies.randomised import RandomisedPolicy


@pytest.fixture
def bandit() -> RandomisedPolicy:
    return mix_bandit()


@pytest.fixture
def saved(bandit: RandomisedPolicy, tmp_path: Path) -> Path:
    path = tmp_path / "plan.vulcan"
    bandit.save(path)
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ending:
            main([str(argument) for argument in arguments])
        return ending.value.code or 0, capsys.readouterr().out

    return run


MODEL = ("bandit", "--set", "horizon=3")


def test_show(run: Any, saved: Path, bandit: RandomisedPolicy) -> None:
    code, shown = run("show", saved, "--depth", "1")
    assert code == 0
    assert "  members      2, of which one is drawn at the start: 60.0 %, 40.0 %\n" in shown
    outcomes = [len(member.label) for member in bandit.members]
    assert f"  decisions    14, with {sum(outcomes)} outcomes\n" in shown
    assert "  member 2 of 2, drawn with probability 40.0 %\n" in shown
    code, shown = run("show", saved, "--json", "--depth", "2")
    document = json.loads(shown)["policy"]
    assert code == 0
    assert document["randomised"] is True
    assert (document["nodes"], document["outcomes"]) == (14, sum(outcomes))
    assert document["decisions"] == []
    assert [m["weight"] for m in document["members"]] == [0.6, 0.4]
    assert [m["nodes"] for m in document["members"]] == [7, 7]
    assert [m["outcomes"] for m in document["members"]] == outcomes
    assert all(m["complete"] for m in document["members"])
    assert [m["decisions"][0]["action"] for m in document["members"]] == ["play 1", "play 2"]


def test_show_still_knows_deterministic_policies(
    run: Any, bandit: RandomisedPolicy, tmp_path: Path
) -> None:
    path = tmp_path / "single.vulcan"
    bandit.members[0].save(path)
    assert "member" not in run("show", path)[1]
    document = json.loads(run("show", path, "--json")[1])["policy"]
    assert document["randomised"] is False
    assert document["members"] == []
    assert document["decisions"][0]["action"] == "play 1"


def test_certify(run: Any, saved: Path, bandit: RandomisedPolicy) -> None:
    problem = vulcan.Problem(Bandit(3), vulcan.Linear(0.002))
    certificate = vulcan.certify(problem, bandit)
    code, shown = run("certify", saved, *MODEL)
    assert code == 0
    assert shown.startswith("✓ safe")
    assert "  members       2, of which one is drawn at the start: 60.0 %, 40.0 %\n" in shown
    assert f"  reward        {certificate.reward:.6f}\n" in shown
    code, shown = run("certify", saved, *MODEL, "--json", "--exact")
    document = json.loads(shown)
    assert code == 0
    assert document["safe"] is document["policy"]["randomised"] is True
    assert document["certificate"]["risk"] == pytest.approx(certificate.risk, abs=1e-15)
    assert [m["weight"] for m in document["policy"]["members"]] == [0.6, 0.4]
    code, shown = run("certify", saved, *MODEL, "--bound", "0.0001")
    assert code == 1
    assert shown.startswith("✗ not safe")
