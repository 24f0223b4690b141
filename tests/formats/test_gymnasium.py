"""Gymnasium environments as models, and models as Gymnasium environments."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest

import vulcan
from tests.helpers.tables import Table
from vulcan import FAILURE, ModelError, OptionError, Outcome
from vulcan.domains import Bandit, Exploration, ThreeActions, TreasureGrid
from vulcan.formats import from_arrays, from_gymnasium, from_table, open_model, to_gymnasium
from vulcan.model.interface import describe_model

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402


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


def test_whoever_falls_off_the_cliff_fails_although_the_environment_goes_on() -> None:
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
        ("holes", {5, 7, 11, 12}),
        ([1, 15], {1, 15}),
        ("reward <= 0.5", set(range(15))),
        ("reward < 0", set()),
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
        with pytest.raises(vulcan.PolicyError, match=r"as env\.step returns it, not"):
            model.locate(0, 0, wrong)


def broken(*outcome: Any) -> Walk:
    walk = Walk()
    walk.P[1][1] = [outcome]
    return walk


@pytest.mark.parametrize(
    ("environment", "options", "message"),
    [
        ("FrozenLak-v1", {}, r"gymnasium:FrozenLak-v1: .*Did you mean: `FrozenLake`"),
        ("nowhere:Walk-v0", {}, "gymnasium:nowhere:Walk-v0: .*nowhere"),
        ("CartPole-v1", {}, "CartPoleEnv has no transition table, env.unwrapped.P; FrozenLake-v1"),
        ("FrozenLake-v1", {"is_slipery": True}, "no option 'is_slipery'; did you mean 'is_slip"),
        ("FrozenLake-v1", {"failure": "hole"}, "not 'hole'; did you mean 'holes'"),
        ("FrozenLake-v1", {"failure": "reward <= -"}, "'-' is not a number"),
        ("FrozenLake-v1", {"failure": [16]}, "failure has 16; states are 0 to 15"),
        ("FrozenLake-v1", {"failure": 3.5}, "a list of states, not 3.5"),
        ("FrozenLake-v1", {"start": 16}, "start must be a state, 0 to 15, not 16"),
        ("FrozenLake-v1", {"start": [1.0]}, r"start must be of shape \[16\], not \[1\]"),
        ("Taxi-v4", {"fickle_passenger": True}, "fickle_passenger=True is not in the transition"),
        ("CliffWalking-v1", {}, "has no limit of steps: give a horizon"),
        ("CliffWalking-v1", {"horizon": 9, "failure": "holes"}, "has no map with holes"),
        (Walk(), {"horizon": 3, "start": 0}, "what is a failure in Walk"),
        (Walk(), {"horizon": 3, "failure": []}, "does not say where it begins"),
        (Walk(), {"size": 3}, "size: options are for environments given by name"),
        (broken(0.5, 2, 0.0, False), {}, r"the probabilities of P\[1\]\[1\] sum to 0.5, not to 1"),
        (broken(1.0, 7, 0.0, False), {}, r"P\[1\]\[1\]\[0\] leads to 7; states are 0 to 2"),
        (broken(1.0, 2), {}, r"P\[1\]\[1\]\[0\] must be \(probability, next state, reward, term"),
        (broken("x", 2, 0.0, True), {}, r"P\[1\]\[1\]\[0\] must be .*not \('x'"),
    ],
)
def test_what_is_wrong_is_named(environment: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((OptionError, ModelError), match=message):
        from_gymnasium(environment, **options)


def test_without_gymnasium_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    for attempt in (lambda: from_gymnasium("FrozenLake-v1"), lambda: to_gymnasium(Bandit())):
        with pytest.raises(OptionError, match=r"pip install 'vulcan-planner\[gymnasium\]'"):
            attempt()


def follow(environment: Any, policy: Any, model: Any, episodes: int) -> tuple[Any, Any]:
    """Return the reward and the failure of each episode of a policy in an environment."""
    rewards, failures = np.zeros(episodes), np.zeros(episodes, bool)
    for episode in range(episodes):
        began = environment.reset(seed=episode)
        observation = began[0]
        run = policy.start()
        if model.is_drawn:
            run.observe(model.locate(model.initial_state(), "start", began))
        while not run.finished:
            action = run.action
            step = environment.step(action)
            run.observe(model.locate(int(observation), action, step))
            observation, rewards[episode] = step[0], rewards[episode] + step[1]
        failures[episode] = run.failed
    return rewards, failures


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "bound"),
    [
        ("FrozenLake-v1", {"horizon": 30}, 0.1),
        ("CliffWalking-v1", {"horizon": 15, "failure": "cliff", "start": 24}, 0.1),
        ("Taxi-v4", {"is_rainy": True, "horizon": 20}, 0.1),
    ],
)
def test_the_environment_does_what_the_certificate_says(
    name: str, options: dict[str, Any], bound: float
) -> None:
    model = from_gymnasium(name, **options)
    result = vulcan.solve(vulcan.Problem(model, bound))
    environment = gymnasium.make(name, **{k: v for k, v in options.items() if k == "is_rainy"})
    if "start" in options:
        environment.unwrapped.initial_state_distrib = np.eye(1, 48, 24).ravel()
    episodes = 2000
    rewards, failures = follow(environment, result.policy, model, episodes)
    # Five standard errors: one seed in a million.
    certificate = result.certificate
    spread = 5 * rewards.std() / episodes**0.5 + 1e-12
    assert abs(rewards.mean() - certificate.reward) <= spread
    spread = 5 * (certificate.risk * (1 - certificate.risk) / episodes) ** 0.5 + 1e-12
    assert abs(failures.mean() - certificate.risk) <= spread


class Chosen:
    """A start that is chosen, and a state with fewer actions than others."""

    horizon = 2

    def initial_state(self) -> vulcan.Start:
        return vulcan.Start.choose({"by ship": "sea", "by plane": "air"})

    def actions(self, state: str) -> list[str]:
        return ["land", "turn"] if state == "air" else ["turn"]

    def outcomes(self, state: str, action: str) -> list[Outcome]:
        return [Outcome(0.5, 1.0, "sea"), Outcome.failure(0.5, -1.0)]


@pytest.mark.parametrize(
    "model",
    [
        Bandit(horizon=3),
        Bandit(horizon=3, merges=False),
        TreasureGrid(10),
        ThreeActions(),
        Exploration(3),
        Chosen(),
        from_table({"a": {"go": [(1, "b", 1)], "stop": [(1, FAILURE)]}, "b": {}}, horizon=5),
        from_gymnasium("FrozenLake-v1"),
        from_gymnasium("Taxi-v4", is_rainy=True),
    ],
    ids=describe_model,
)
def test_any_model_is_an_environment_by_gymnasiums_own_check(model: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(to_gymnasium(model))


def test_an_environment_has_the_distribution_of_its_model() -> None:
    table = {
        "a": {"go": [(0.6, "b", 1.0), (0.3, "a", 0.0), (0.1, FAILURE, -2.0)]},
        "b": {"rest": [(1.0, "a", 3.0)]},
    }
    model = from_table(table, horizon=2, start={"a": 0.75, "b": 0.25})
    environment = to_gymnasium(model)
    assert environment.action_labels == ["go", "rest"]
    assert environment.states == ["a", "b"]
    found: dict[tuple[Any, ...], int] = {}
    for seed in range(4000):
        seen, info = environment.reset(seed=seed)
        assert info["label"] == environment.states[seen["state"]]
        if seen["state"] == 1:
            assert info["action_mask"].tolist() == [0, 1]
            seen, reward, ended, cut, info = environment.step(1)
            assert (seen, reward, ended, cut) == ({"state": 0, "step": 1}, 3.0, False, False)
        else:
            seen, reward, ended, _, info = environment.step(0)
            key = (info["label"], reward, ended, info["failed"], seen["state"])
            found[key] = found.get(key, 0) + 1
    assert found.keys() == {
        ("b", 1.0, False, False, 1),
        ("a", 0.0, False, False, 0),
        ("failure", -2.0, True, True, 2),
    }
    assert sum(found.values()) == pytest.approx(3000, abs=5 * 28)
    assert found["b", 1.0, False, False, 1] == pytest.approx(1800, abs=150)


def test_a_history_ends_with_the_horizon_and_what_is_not_offered_fails() -> None:
    environment = to_gymnasium(from_table({"a": {"go": [(1, "a", 1)]}}, horizon=2))
    environment.reset()
    assert environment.step(0)[1:4] == (1.0, False, False)
    assert environment.step(0)[1:4] == (1.0, True, False)
    table = {"a": {"go": [(1, "b", 1)]}, "b": {"on": [(1, "a")]}}
    environment = to_gymnasium(from_table(table, horizon=3))
    environment.reset()
    seen, reward, ended, _, info = environment.step(1)
    assert (seen["state"], reward, ended, info["failed"]) == (2, 0.0, True, True)
    with pytest.raises(OptionError, match="7 is not an action"):
        environment.step(7)


def test_a_model_with_too_many_states_is_observed_as_text() -> None:
    environment = to_gymnasium(TreasureGrid(10), most_states=50)
    seen, _ = environment.reset(seed=0)
    assert seen["state"] == "((2, 2), 31)"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(environment)


@pytest.mark.parametrize("start", [0, [0.5, 0.5, 0, 0]])
def test_a_policy_is_played_in_the_environment_of_its_model(start: object) -> None:
    rows = [[0, 0, 1, 0.8, 1], [0, 0, -1, 0.2, 1], [1, 1, 2, 1, 0], [1, 0, 3, 0.9, 2]]
    model = from_arrays([*rows, [1, 0, -1, 0.1, 1]], horizon=3, start=start)
    policy = vulcan.solve(vulcan.Problem(model, 1.0)).policy
    found = vulcan.simulate(policy, to_gymnasium(model), episodes=2000)
    assert (found.engine, found.strayed, found.agrees) == ("Python", 0, True)
    assert found.risk.low < found.risk.exact < found.risk.high


@pytest.mark.parametrize(("name", "pay"), [("start", 0.0), ("start", 2.0), ("by plane", 0.0)])
def test_an_initial_action_is_drawn_by_reset_or_else_taken(name: str, pay: float) -> None:
    """`reset` has no reward to give, and a name is there to be called."""
    begin = vulcan.Start({name: [Outcome(0.5, pay, 0), Outcome(0.5, -pay / 2, 1)]})
    rows = {
        0: {"go": [Outcome(0.9, 1.0, 1), Outcome.failure(0.1)]},
        1: {"go": [Outcome(1.0, 2.0, 0)]},
    }
    model = Table(rows, horizon=2, start=begin)
    policy = vulcan.solve(vulcan.Problem(model, 1.0)).policy
    environment = to_gymnasium(model)
    assert (name in environment.action_labels) == (name != "start" or pay != 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert vulcan.simulate(policy, environment, episodes=300).agrees
