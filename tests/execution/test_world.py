"""Episodes in models and environments that a policy was not made for."""

from __future__ import annotations

import os
import signal
import warnings
from typing import Any

import numpy as np
import pytest

import vulcan
from tests.helpers.lying_models import Mission, Sulky
from tests.helpers.plans import edit
from tests.helpers.tables import Table
from vulcan import Outcome
from vulcan.domains import Bandit

END, FAILED = -1, -2


class Corridor(Table):
    """A model that knows what the steps of its environment mean."""

    def locate(self, state: Any, action: Any, measurement: Any) -> str | None:
        observation = measurement[0]
        if isinstance(state, vulcan.Start):
            return str(observation)
        return "failure" if observation == 7 else str(observation) if observation < 7 else None


def corridor(risk: float = 0.1, discount: float = 1.0, label: str | None = None) -> Table:
    """Two steps, of which the first may fail."""
    steps = {
        0: {"run": [Outcome(1 - risk, 1.0, 1, label), Outcome.failure(risk)]},
        1: {"walk": [Outcome(1.0, 2.0, 2)]},
    }
    return Corridor(steps, horizon=2, discount=discount)


@pytest.fixture
def policy() -> vulcan.Policy:
    return vulcan.solve(vulcan.Problem(corridor(), 0.5)).policy


class Environment:
    """The corridor as an environment of Gymnasium's kind, with actions that are its labels."""

    def __init__(self, risk: float = 0.1, silent: bool = False) -> None:
        self.risk, self.silent, self.seeds = risk, silent, []

    def reset(self, *, seed=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.seeds.append(seed)
        self.at = 0
        return 0, {}

    def step(self, action):
        assert action == {0: "run", 1: "walk"}[self.at]
        if self.at == 0 and self.rng.random() < self.risk:
            return 7, 0.0, True, False, {}
        self.at += 1
        return (99 if self.silent else self.at), float(self.at), self.at == 2, False, {}


def test_an_environment_that_begins_elsewhere_is_found_out(policy: vulcan.Policy) -> None:
    class Elsewhere(Environment):
        def reset(self, *, seed=None):
            super().reset(seed=seed)
            return 3, {}

    with pytest.warns(vulcan.errors.SimulationWarning, match="it began in '3'; the policy begins"):
        assert vulcan.simulate(policy, Elsewhere(), episodes=100).strayed == 100


@pytest.mark.parametrize(("model", "played"), [(None, 1 << 14), (corridor(0.2), 1)])
def test_ctrl_c_gives_what_was_played_so_far(policy: vulcan.Policy, model, played) -> None:
    def interrupt(_: vulcan.planning.Progress) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    # A compiled episode takes a tenth of a microsecond.
    episodes = 10**9 if model is None else 10**7
    policy = policy.bind(corridor())
    vulcan.simulate(policy, model, episodes=1)  # compiled by now
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = vulcan.simulate(policy, model, episodes=episodes, progress=interrupt)
    assert found.interrupted
    assert played <= found.episodes < episodes
    assert len(found.rewards) == found.episodes
    assert not vulcan.simulate(policy, episodes=100).interrupted


def test_a_model_with_other_risks_is_found_out(policy: vulcan.Policy) -> None:
    with pytest.warns(vulcan.errors.SimulationWarning, match="it fails in"):
        found = vulcan.simulate(policy, corridor(0.2), episodes=3000)
    assert found.engine == "Python"
    assert found.risk.low < 0.2 < found.risk.high
    assert found.risk.exact == pytest.approx(0.1)
    assert found.strayed == 0
    assert not found.agrees


def test_what_cannot_happen_is_a_disagreement_by_itself(policy: vulcan.Policy) -> None:
    with pytest.warns(vulcan.errors.SimulationWarning, match="'run' came 'door'"):
        found = vulcan.simulate(policy, corridor(label="door"), episodes=200)
    assert found.strayed + round(found.risk.value * 200) == 200
    assert "strays" in dict(found.rows())
    bandit = vulcan.solve(vulcan.Problem(Bandit(3), "0.002*x")).policy
    with pytest.warns(vulcan.errors.SimulationWarning, match="'play 1' is no action of the model"):
        vulcan.simulate(bandit, corridor(), episodes=10)


def test_a_model_that_goes_on_longer_is_a_disagreement() -> None:
    short = Table({0: {"run": [Outcome(1.0, 1.0, 1)]}}, horizon=2)
    longer = Table(
        {0: {"run": [Outcome(1.0, 1.0, 1)]}, 1: {"run": [Outcome(1.0, 1.0, 2)]}}, horizon=2
    )
    policy = vulcan.solve(vulcan.Problem(short, 0.5)).policy
    with pytest.warns(vulcan.errors.SimulationWarning, match="the policy ends after '1'"):
        assert vulcan.simulate(policy, longer, episodes=10).strayed == 10


def test_another_model_is_discounted_as_it_says() -> None:
    policy = vulcan.solve(vulcan.Problem(corridor(0.0), 0.5)).policy
    with pytest.warns(vulcan.errors.SimulationWarning, match="mean reward"):
        found = vulcan.simulate(policy, corridor(0.0, 0.5), episodes=1000)
    assert found.reward.value == 2.0


def test_an_environment_agrees(policy: vulcan.Policy) -> None:
    environment = Environment()
    found = vulcan.simulate(policy, environment, episodes=2000, seed=5)
    assert found.agrees
    assert found.risk.low < 0.1 < found.risk.high
    assert environment.seeds[:2] == [5, None]
    again = vulcan.simulate(policy, Environment(), episodes=2000, seed=5)
    assert again.reward == found.reward


def test_an_environment_that_fails_more_often_is_found_out(policy: vulcan.Policy) -> None:
    with pytest.warns(vulcan.errors.SimulationWarning, match="it fails in"):
        vulcan.simulate(policy, Environment(0.2), episodes=2000)
    with pytest.warns(vulcan.errors.SimulationWarning, match="no outcome"):
        found = vulcan.simulate(policy, Environment(silent=True), episodes=100)
    assert found.strayed > 80


def test_an_environment_needs_a_model_that_knows_what_its_steps_mean(policy: Any) -> None:
    with pytest.raises(vulcan.errors.OptionError, match=r"policy\.bind"):
        vulcan.simulate(edit(policy), Environment())


def test_a_drawn_start_is_what_an_environment_is_reset_to() -> None:
    class Reset(Environment):
        def reset(self, *, seed=None):
            super().reset(seed=seed)
            self.at = int(self.rng.integers(2))
            return self.at, {}

    start = vulcan.Start.draw([Outcome(0.5, 0.0, 0), Outcome(0.5, 0.0, 1)])
    model = Corridor(corridor().table, 2, 0.5, start)
    policy = vulcan.solve(vulcan.Problem(model, 0.5)).policy
    found = vulcan.simulate(policy, Reset(), episodes=2000)
    assert found.agrees
    assert found.strayed == 0
    assert found.reward.exact == pytest.approx(0.5 * 0.9 * (1 + 0.5 * 2) + 0.5 * 2)


def test_states_that_can_not_be_compared_are_an_error_of_the_model() -> None:
    def move(first: float, *states: Any) -> Mission:
        ways = [Outcome(0.5, 1.0, state, name) for state, name in zip(states, "ab", strict=True)]
        answers = {"start": [Outcome(1.0, first, "middle")], "middle": ways}
        return Mission(
            horizon=3,
            actions=lambda state: ["go"],
            outcomes=lambda state, action: (
                answers[state] if isinstance(state, str) else [Outcome(1.0, 0.0, 0, "on")]
            ),
        )

    policy = vulcan.solve(vulcan.Problem(move(1.0, 1, 2), 0.0)).policy
    other = move(2.0, Sulky("a"), Sulky("b"))  # so that it is another model from the start
    with pytest.raises(vulcan.errors.ModelError, match=r"not with me.*model Mission"):
        vulcan.simulate(policy, other, episodes=50, seed=1)
