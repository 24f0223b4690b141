"""Gymnasium environments as models."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import vulcan
from vulcan import Outcome
from vulcan.errors import ModelError, OptionError
from vulcan.formats import from_gymnasium, open_model

gymnasium = pytest.importorskip("gymnasium")


def test_holes_fail_and_the_goal_is_a_good_end() -> None:
    model = from_gymnasium("FrozenLake-v1")
    assert (model.horizon, model.initial_state()) == (100, 0)
    third = pytest.approx(1 / 3)
    assert model.outcomes(6, 2) == [  # between two holes
        Outcome(third, 0.0, 2),
        Outcome(third, 0.0, 10),
        Outcome.failure(third),
    ]
    assert model.outcomes(14, 1)[-1] == Outcome(third, 1.0, 15)
    assert model.actions(15) == []
    assert model.actions(5) == []  # a hole
    assert [model.action_label(action) for action in model.actions(0)] == [
        *("left", "down", "right", "up")
    ]


def test_options_go_to_the_environment() -> None:
    large = from_gymnasium("FrozenLake-v1", map_name="8x8", is_slippery=False, horizon=20)
    assert (large.states, large.horizon) == (64, 20)
    assert large.outcomes(0, 2) == [Outcome(1.0, 0.0, 1)]
    named = open_model("gymnasium:FrozenLake-v1", ["map_name=8x8", "is_slippery=False"]).model
    assert named.outcomes(0, 2) == large.outcomes(0, 2)
    own = gymnasium.make("FrozenLake-v1", desc=["SF", "HG"], is_slippery=False)
    assert from_gymnasium(own).outcomes(0, 1) == [Outcome.failure(1.0)]


def test_falling_off_the_cliff_is_a_failure_although_the_environment_goes_on() -> None:
    model = from_gymnasium("CliffWalking-v1", horizon=50, is_slippery=True)
    assert model.initial_state() == 36
    falls = [o for o in model.outcomes(36, 1) if o.fails]
    assert falls == [Outcome.failure(pytest.approx(1 / 3), -100.0)]


def test_a_taxi_begins_anywhere_and_an_illegal_move_fails() -> None:
    model = from_gymnasium("Taxi-v4", is_rainy=True, horizon=100)
    starts = model.initial_state().choices["start"]
    assert len(starts) == 300
    assert model.outcomes(starts[0].state, 5) == [Outcome.failure(1.0, -10.0)]
    at_goal = model.outcomes(16, 5)  # the passenger is in the taxi, at the destination
    assert at_goal == [Outcome(1.0, 20.0, 0)]
    assert model.actions(0) == []


@pytest.mark.parametrize(
    ("failure", "failing"),
    [
        (None, {5, 7, 11, 12}),
        ([1, 15], {1, 15}),
        ("reward <= 0.5", set(range(15))),
        ([], set()),
        (lambda step: step.next_state == step.state, None),
    ],
)
def test_what_fails_can_be_said_in_several_ways(failure: Any, failing: set[int] | None) -> None:
    options: dict[str, Any] = {"is_slippery": False, "failure": failure, "start": 14}
    model = from_gymnasium("FrozenLake-v1", **options)
    table = gymnasium.make("FrozenLake-v1", is_slippery=False).unwrapped.P
    for action in range(4):
        ((_, target, _, _),) = table[14][action]
        fails = target == 14 if failing is None else target in failing
        assert [o.fails for o in model.outcomes(14, action)] == [fails]


class Walk(gymnasium.Env[int, int]):
    """Three states in a row; what ends in state 1 may also go through it."""

    observation_space = gymnasium.spaces.Discrete(3)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, **changes: Any) -> None:
        ending = (1.0, 1, 5.0, True)
        self.P: Any = {
            0: {0: [(0.5, 1, 1.0, False), (0.25, 1, 5.0, True), (0.25, 0, -9.0, False)]},
            1: {0: [(1.0, 2, 2.0, False)], 1: [ending]},
            2: {0: [(1.0, 2, 0.0, False)]},
        }
        for place, value in changes.items():
            setattr(self, place, value)


def test_an_end_that_can_be_gone_through_is_a_state_of_its_own() -> None:
    model = from_gymnasium(Walk(), failure="reward <= -9", start=0, horizon=3)
    assert model.outcomes(0, 0) == [
        Outcome(0.5, 1.0, 1),
        Outcome(0.25, 5.0, 3),
        Outcome.failure(0.25, -9.0),
    ]
    assert model.outcomes(1, 1) == [Outcome(1.0, 5.0, 3)]
    assert model.actions(3) == []
    steps = [(1, 1.0, False, False, {}), (1, 5.0, True, False, {}), (0, -9.0, False, False, {})]
    assert [model.locate(0, 0, step) for step in steps] == ["1", "3", "failure"]
    assert model.locate(0, 0, (2, 1.0, False)) is None
    assert model.locate(0, 0, (1_000_000, 1.0, False)) is None
    for wrong in (5, (3,), None):
        with pytest.raises(vulcan.errors.PolicyError, match=r"as env\.step returns it, not"):
            model.locate(0, 0, wrong)


SURE = {"failure": [], "horizon": 3, "start": 0}


def broken(*outcome: Any) -> Walk:
    walk = Walk()
    walk.P[1][1] = [outcome]
    return walk


@pytest.mark.parametrize(
    ("environment", "options", "message"),
    [
        ("FrozenLak-v1", {}, r"gymnasium:FrozenLak-v1: .*Did you mean: `FrozenLake`"),
        ("nowhere:Walk-v0", {}, "gymnasium:nowhere:Walk-v0: .*nowhere"),
        ("CartPole-v1", {}, "CartPoleEnv has no transition table .env.unwrapped.P.; FrozenLake-v1"),
        ("FrozenLake-v1", {"is_slipery": True}, "unexpected keyword argument 'is_slipery'"),
        ("FrozenLake-v1", {"failure": "hole"}, "failure must be 'reward <= -50', .*not 'hole'"),
        ("FrozenLake-v1", {"failure": "reward <= -"}, "not 'reward <= -'"),
        ("FrozenLake-v1", {"failure": [16]}, "failure has 16; states are 0 to 15"),
        ("FrozenLake-v1", {"failure": 3.5}, "failure must be .*, not 3.5"),
        ("FrozenLake-v1", {"start": 16}, "start must be a state, 0 to 15, .*, not 16"),
        ("FrozenLake-v1", {"start": [1.0]}, r"or 16 probabilities, not \[1.0\]"),
        ("Taxi-v4", {"fickle_passenger": True}, "fickle_passenger=True is not in the transition"),
        ("CliffWalking-v1", {}, "has no limit of steps: give a horizon"),
        (Walk(), {"horizon": 3, "start": 0}, "Walk has no default failure: give"),
        (Walk(), {"horizon": 3, "failure": []}, "has no initial state distribution: give start"),
        (Walk(), {"size": 3}, "size: options are for environments given by name"),
        (broken(0.5, 2, 0.0, False), SURE, r"sum to 0.5, not to 1 \(state 1, action 1\)"),
        (broken(1.0, 7, 0.0, False), {}, r"P\[1\]\[1\]\[0\] leads to 7; states are 0 to 2"),
        (broken(1.0, 2), {}, r"P\[1\]\[1\]\[0\] must be \(probability, next state, reward, term"),
        (broken("x", 2, 0.0, True), {}, r"P\[1\]\[1\]\[0\] must be .*not \('x'"),
    ],
)
def test_what_is_wrong_is_named(environment: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((OptionError, ModelError), match=message):
        from_gymnasium(environment, **options)


def test_without_gymnasium_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(OptionError, match=r"pip install 'vulcan-planner\[gymnasium\]'"):
        from_gymnasium("FrozenLake-v1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "bound"),
    [
        ("FrozenLake-v1", {"horizon": 30}, 0.1),
        ("CliffWalking-v1", {"horizon": 15, "start": 24}, 0.1),
        ("Taxi-v4", {"is_rainy": True, "horizon": 20}, 0.1),
    ],
)
def test_the_environment_does_what_the_certificate_says(name, options, bound):
    model = from_gymnasium(name, **options)
    result = vulcan.solve(vulcan.Problem(model, bound))
    environment = gymnasium.make(name, **{k: v for k, v in options.items() if k == "is_rainy"})
    if "start" in options:
        environment.unwrapped.initial_state_distrib = np.eye(1, 48, 24).ravel()
    assert vulcan.simulate(result.policy, environment, episodes=2000).agrees
