"""Policies followed step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vulcan
from tests.helpers.tables import Table
from vulcan import Outcome, Policy, Start
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


def test_run_refuses_labels_that_say_too_little(policy: Policy) -> None:
    arrays = {name: getattr(policy, name).copy() for name in Policy.ARRAYS}
    arrays["label"][1] = arrays["label"][0]
    run = Policy(policy.about, policy.labels, **arrays).start()
    for ask in (lambda: run.expected, lambda: run.observe("pays 0"), lambda: run.observe(0)):
        with pytest.raises(vulcan.PolicyError, match="outcomes of 'play 1' have the same label"):
            ask()
    assert run.history == []


def test_position_and_label_mean_the_same() -> None:
    outcomes = [Outcome(0.5, 1, "x"), Outcome(0.25, 2, "x"), Outcome(0.25, 1, "y")]
    table = Table({0: {"go": outcomes}, "x": {"a": [Outcome(1, 0, "x")]}}, horizon=2)
    policy = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0)), vulcan.ForwardSearch()).policy
    labels = list(policy.start().expected)
    assert labels == ["x, reward 1", "x, reward 2", "y"]
    for position, label in enumerate(labels):
        by_position, by_label = policy.bind(table).start(), policy.bind(table).start()
        by_position.observe(position)
        by_label.observe(label)
        assert by_position.history == by_label.history == [("go", label)]
        assert by_position.finished == by_label.finished == (label == "y")


def test_first_observation_is_the_start_that_was_drawn() -> None:
    start = Start.draw([Outcome(0.5, 0, 0), Outcome(0.5, 0, 1)])
    table = Table({0: {"up": [Outcome(1, 1, 2)]}, 1: {"down": [Outcome(1, 1, 2)]}}, start=start)
    policy = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0)), vulcan.ForwardSearch()).policy
    for state, action in (("0", "up"), ("1", "down")):
        run = policy.bind(table).start()
        assert (run.action, run.expected) == ("start", {"0": 0.5, "1": 0.5})
        run.observe(state)
        assert run.action == action
