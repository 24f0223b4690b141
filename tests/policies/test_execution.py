"""Policies followed step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vulcan
from tests.helpers.tables import Table
from vulcan import Outcome, Policy
from vulcan.domains import Bandit


def test_run_follows_labels_without_a_model(saved: Path) -> None:
    run = Policy.load(saved).start()
    assert run.action == "play 1"
    assert list(run.expected) == ["pays 0", "pays 1", "failure"]
    run.observe("pays 1")
    run.observe(0)
    assert run.history == [("play 1", "pays 1"), ("play 1", "pays 0")]
    while not run.finished:
        run.observe(0)
    assert not run.failed
    with pytest.raises(vulcan.PolicyError, match="finished"):
        _ = run.action
    assert run.policy == Policy.load(saved)


def test_run_ends_in_failure(policy: Policy) -> None:
    run = policy.start()
    run.observe("failure")
    assert run.finished
    assert run.failed
    assert not run.unplanned


def test_run_refuses_what_cannot_happen(policy: Policy) -> None:
    run = policy.start()
    for wrong in ("pays 2", 3, -1, True, 1.0):
        with pytest.raises(vulcan.PolicyError, match=r"0: 'pays 0', 1: 'pays 1', 2: 'failure'"):
            run.observe(wrong)
    assert run.history == []


def test_run_refuses_a_number_that_may_be_two_things() -> None:
    table = Table({0: {"go": [Outcome(0.5, 1, 1), Outcome(0.5, 2, 0)]}})
    run = vulcan.solve(
        vulcan.Problem(table, vulcan.Constant(0)), vulcan.ForwardSearch()
    ).policy.start()
    with pytest.raises(vulcan.PolicyError, match="a position or the label"):
        run.observe(0)
    run.observe("0")
    assert run.history == [("go", "0")]


def test_bound_policy_gives_the_models_own_actions(tmp_path: Path) -> None:
    class Moves(Table):
        def actions(self, state: Any) -> list[Any]:
            return [("move", name) for name in super().actions(state)]

        def outcomes(self, state: Any, action: Any) -> list[Outcome]:
            return super().outcomes(state, action[1])

        def action_label(self, action: Any) -> str:
            return f"move {action[1]}"

    table = Moves({0: {"east": [Outcome(0.5, 1, 0), Outcome(0.5, 2, 1)]}}, horizon=2)
    policy = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0)), vulcan.ForwardSearch()).policy
    assert policy.start().action == ("move", "east")
    policy.save(tmp_path / "plan")
    loaded = Policy.load(tmp_path / "plan")
    assert loaded.start().action == "move east"
    run = loaded.bind(table).start()
    run.observe("0")
    assert run.action == ("move", "east")
    run.observe("1")
    assert run.finished
    with pytest.raises(vulcan.MismatchError, match="answers differently"):
        loaded.bind(Bandit(2))
