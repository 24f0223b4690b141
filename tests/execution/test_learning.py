"""Learning from simulators: what is planned, and that the certificate is on other episodes."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import vulcan
from tests.execution.test_statistical import Coin
from vulcan.errors import OptionError
from vulcan.execution.learning import CountedPolicy, EmpiricalModel, TreePolicy, _choose
from vulcan.execution.statistical import Simulator
from vulcan.model.interface import FAILURE, Outcome


class Walk:
    """A generative model: in each of three steps go fast (pays 2, may fail) or slow (pays 1)."""

    horizon = 3

    def __init__(self, risk: float = 0.1) -> None:
        self.risk = risk

    def initial(self, rng: np.random.Generator) -> int:
        return 0

    def actions(self, state: int) -> list[str]:
        return ["slow", "fast"]

    def sample(self, state: int, action: str, rng: np.random.Generator) -> tuple[Any, float, bool]:
        if action == "fast" and rng.random() < self.risk:
            return FAILURE, 0.0, True
        return state + 1, 2.0 if action == "fast" else 1.0, state == 2


class Known:
    """The same with its probabilities."""

    horizon = 3

    def initial_state(self) -> int:
        return 0

    def actions(self, state: int) -> list[str]:
        return ["slow", "fast"] if state < 3 else []

    def outcomes(self, state: int, action: str) -> list[Outcome]:
        if action == "slow":
            return [Outcome(1.0, 1.0, state + 1)]
        return [Outcome(0.9, 2.0, state + 1), Outcome.failure(0.1)]


class Rail(gymnasium.Env):
    """A cart on a rail: left and right push it, and beyond 1 it falls."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, secret: Any = None) -> None:
        self.secret = secret

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = np.array([self.np_random.uniform(-0.2, 0.2)])
        return self.at, {}

    def step(self, action):
        self.at = self.at + (0.2 if action else -0.2) + self.np_random.uniform(-0.1, 0.1)
        return self.at, 1.0, bool(abs(self.at[0]) > 1), False, {}


def learn_rail(method: str | None, **options: Any) -> Any:
    given = {"horizon": 20, "failure": "terminated", "reward_range": (0, 20), "steps": 9000}
    given |= options
    return vulcan.learn(Rail(), 0.2, method=method, **given)


def test_counts_of_a_generative_model_are_near_the_truth():
    learned = vulcan.learn(Walk(), 0.25, horizon=3)
    assert learned.method == "counts"
    exact = vulcan.solve(vulcan.Problem(Known(), 0.25)).certificate
    planned = learned.results[-1].certificate
    assert float(planned.reward) == pytest.approx(float(exact.reward), abs=0.4)
    assert learned.results[0].certificate.risk <= 0.125
    found = learned.certify(episodes=3000)
    assert found[0].safe is True
    chosen = [one for one in found if one.safe][-1]
    assert chosen.reward == pytest.approx(float(planned.reward), abs=0.5)


def test_an_environment_is_counted_in_whole_episodes():
    learned = vulcan.learn(
        gymnasium.make("Blackjack-v1"),
        0.15,
        horizon=5,
        failure=lambda step: step.next_state[0] > 21,
        reward_range=(-1, 1),
        steps=20_000,
    )
    assert learned.steps >= 20_000
    found = learned.certify(episodes=3000)
    assert found[0].safe is True
    assert found[0].strayed == 0
    # Standing with 11 or less is wrong, and hitting 20 is, whatever was counted.
    first = learned.policies[-1].restart()
    assert first((20, 10, 0)) == 0
    assert learned.policies[-1].restart()((8, 10, 0)) == 1


def test_what_was_never_tried_fails_and_what_was_never_seen_has_an_action():
    world = Simulator(gymnasium.make("Blackjack-v1"), 20, lambda step: step.next_state[0] > 21)
    model = EmpiricalModel(world, [0, 1], None, 400, 1)
    model.explore(400, None)
    assert model.outcomes((99, 99, 0), 0)[0].fails
    assert sum(o.probability for o in model.initial_state().choices["start"]) == pytest.approx(1)
    policy = vulcan.solve(vulcan.Problem(model, 0.9)).policy
    counted = CountedPolicy(policy, model)
    assert counted.restart()((99, 99, 0)) in (0, 1)


def test_the_least_failing_action_is_the_last_resort():
    world = Simulator(Walk(0.5), 3)
    model = EmpiricalModel(world, None, None, 10_000, 1)
    for action in ("slow", "fast"):
        model.outcomes(0, action)
    assert model.find_safest(0) == "slow"


def test_draws_of_a_generative_model_end():
    model = EmpiricalModel(Simulator(Walk(), 3), None, None, 10, 1)
    assert not all(o.fails for o in model.outcomes(0, "slow"))
    assert all(o.fails for o in model.outcomes(1, "slow"))  # no steps are left
    assert model.steps == 500


@pytest.mark.parametrize("method", ["tree", "search"])
def test_continuous_states(method):
    learned = learn_rail(method, samples=10, depth=6)
    found = learned.certify(until="decided", episodes=200)
    assert found[0].safe is True
    still = vulcan.certify_by_simulation(
        lambda x: 1, Rail(), 0.2, horizon=20, failure="terminated", episodes=100
    )
    assert still.safe is False


def test_keys_make_states_discrete():
    learned = learn_rail(None, key=lambda x: round(float(x[0]) * 4), steps=10_000)
    assert learned.method == "counts"
    assert learned.certify(episodes=200)[0].safe is True


def test_a_simulator_that_shares_its_state_with_its_copies_is_not_copied():
    shared = {"at": 0.0}

    class Shared(Rail):
        def step(self, action):
            shared["at"] += 1
            return np.array([shared["at"]]), 1.0, False, False, {}

        def __deepcopy__(self, memo):
            return self

    assert _choose(Simulator(Shared(), 9, "terminated"), None, [0, 1]) == "search"
    assert _choose(Simulator(Rail(), 9, "terminated"), None, [0, 1]) == "tree"


def test_the_same_seed_learns_the_same():
    weights = [learn_rail("search", seed=3).policies[0].weights for _ in range(2)]
    assert np.array_equal(*weights)
    actions = []
    for _ in range(2):
        policy = TreePolicy([0, 1], 20, 5, 2, 10.0, 1).restart()
        world = Simulator(Rail(), 20, "terminated")
        world.reset(seed=4)
        played = []
        while not world.over and len(played) < 6:
            played.append(policy.act(world))
            world.step(played[-1])
        actions.append(played)
    assert actions[0] == actions[1]
    assert actions[0][0] == actions[0][1]  # held


@pytest.mark.parametrize(
    ("simulator", "options", "message"),
    [
        (Known(), {}, "vulcan.solve plans"),
        (Coin(), {"horizon": 3}, "actions="),
        (Walk(), {"horizon": 3, "method": "magic"}, "method must be"),
        (Walk(), {"horizon": 3, "steps": 0}, "steps"),
        (Rail(), {"horizon": 3, "failure": "terminated", "method": "counts"}, "key"),
    ],
)
def test_bad_input(simulator, options, message):
    with pytest.raises(OptionError, match=message):
        vulcan.learn(simulator, 0.1, **options)
