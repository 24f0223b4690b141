"""Certificates at a confidence: who is judged, by what, and what is said of it."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import numpy as np
import pytest

import vulcan
from tests.execution.test_world import Environment, corridor
from vulcan import Outcome
from vulcan.certificate.confidence import limit_risk_always
from vulcan.cli.documents import describe_statistical
from vulcan.domains import Bandit
from vulcan.errors import CheckpointError, OptionError
from vulcan.execution.statistical import CERTIFYING, Simulator, read_failure, seed_planning
from vulcan.model.interface import FAILURE


class Coin:
    """A generative model: each of some throws fails with a risk, and pays 1 otherwise."""

    def __init__(self, risk: float = 0.02, steps: int = 3) -> None:
        self.risk, self.steps = risk, steps

    def initial(self, rng: np.random.Generator) -> int:
        return 0

    def sample(self, state: int, action: Any, rng: np.random.Generator) -> tuple[Any, float, bool]:
        if rng.random() < self.risk * action:
            return FAILURE, 0.0, True
        return state + 1, 1.0, state + 1 == self.steps


def throw(state: int) -> int:
    return 1


def certify(policy: Any, simulator: Any, bound: Any = 0.1, **options: Any) -> Any:
    given = {"horizon": 5, "episodes": 400, "progress": False} | options
    return vulcan.certify_by_simulation(policy, simulator, bound, **given)


def test_a_function_in_a_generative_model():
    found = certify(throw, Coin(), 0.1)
    assert found.safe is True
    assert found.episodes == 400
    truth = 1 - 0.98**3
    assert found.risk_low < truth < found.risk_high <= 0.1
    assert abs(found.risk - truth) < 0.03
    assert found == certify(throw, Coin(), 0.1).__class__(**vars(found))  # a plain record
    assert certify(throw, Coin(0.5)).safe is False


def test_rewards_are_discounted_and_bounded():
    found = certify(throw, Coin(0.0), "0.05*x", discount=0.5, reward_range=(0, 2))
    assert found.reward == pytest.approx(1.75)
    assert found.reward_low < 1.75 <= found.reward_high
    assert found.allowed == pytest.approx(0.05 * found.reward_low)


def test_the_horizon_ends_an_episode():
    found = certify(throw, Coin(0.0, steps=100), horizon=4, failure="truncated")
    assert found.failures == found.episodes
    assert found.reward == 4.0
    assert found.safe is False


def test_a_policy_in_its_own_model_agrees_with_its_exact_certificate():
    model = Bandit(horizon=3)
    problem = vulcan.Problem(model, 0.05)
    policy = vulcan.solve(problem).policy
    exact = vulcan.certify(problem, policy)
    found = certify(policy, model, "0.1*x", horizon=None, reward_range=(0, 20), episodes=3000)
    assert found.risk_low < exact.risk < found.risk_high
    assert found.reward_low < exact.reward < found.reward_high
    function = certify(lambda state: next(iter(model.actions(state))), model, horizon=None)
    assert function.reward > 0


def test_a_policy_in_an_environment_is_judged_by_the_environment():
    policy = vulcan.solve(vulcan.Problem(corridor(), 0.5)).policy
    options = {"horizon": 2, "failure": lambda step: step.next_state == 7}
    found = certify(policy, Environment(risk=0.3), **options)
    assert found.safe is False
    assert abs(found.risk - 0.3) < 0.1
    kind = certify(policy, Environment(risk=0.0), **options)
    assert kind.failures == 0
    assert kind.safe
    with pytest.raises(OptionError, match="failure="):
        certify(policy, Environment(), horizon=2)


def test_an_episode_that_leaves_the_plan_failed_with_the_least_reward():
    policy = vulcan.solve(vulcan.Problem(corridor(), 0.5)).policy
    longer = {
        0: {"run": [Outcome(1.0, 1.0, 5)]},
        5: {"walk": [Outcome(1.0, 2.0, 2)]},
    }
    other = corridor()
    other.table = longer
    found = certify(policy, other, horizon=None, reward_range=(-1, 4), episodes=20)
    assert found.strayed == found.failures == 20
    assert found.reward == -1
    assert "the policy expects" in found.example
    lost = certify(lambda state: None, Coin(), episodes=5)
    assert lost.strayed == 5
    assert "no action" in lost.example


def test_a_controller_limited_by_samples():
    problem = vulcan.Problem(corridor(), 0.2)
    controller = vulcan.Controller(problem, samples_per_step=100)
    options = {"horizon": 2, "failure": lambda step: step.next_state == 7, "episodes": 50}
    assert certify(controller, Environment(risk=0.0), **options).failures == 0
    own = certify(controller, corridor(), 0.5, horizon=None, episodes=50)
    assert own.strayed == 0
    assert 0 < own.failures < 20
    timed = vulcan.Controller(problem, seconds_per_step=0.1)
    with pytest.raises(OptionError, match="samples_per_step"):
        certify(timed, corridor(), horizon=None)


def test_decided_stops_early_and_is_the_same_with_a_limit():
    found = certify(throw, Coin(0.001), 0.1, until="decided", episodes=100_000)
    assert found.safe is True
    assert found.episodes < 200
    assert certify(throw, Coin(0.2), 0.1, until="decided", episodes=100_000).safe is False
    undecided = certify(throw, Coin(), 0.0588, until="decided")
    assert undecided.safe is None
    assert undecided.episodes == 400
    assert undecided.more is None or undecided.more > 1000


def test_policies_are_tested_in_order_up_to_the_first_that_is_not_safe():
    found = certify([lambda s: 0, lambda s: 1, lambda s: 20, lambda s: 0], Coin())
    assert [each.safe for each in found] == [True, True, False]
    assert [each.stream for each in found] == [(CERTIFYING, number) for number in range(3)]


def test_workers_change_nothing():
    alone = certify(throw, Coin())
    assert certify(throw, Coin(), parallel="threads:1").failures == alone.failures
    shared = certify(throw, Coin(), parallel="processes:1")
    for name in ("failures", "reward", "risk_high"):
        assert getattr(shared, name) == getattr(alone, name)


def interrupted(step: Any) -> bool:
    """Press Ctrl-C in the 300th step, once."""
    interrupted.steps += 1
    if interrupted.steps == 300:
        os.kill(os.getpid(), signal.SIGINT)
    return False


def test_episodes_are_resumed(tmp_path):
    path = tmp_path / "episodes"
    again = vulcan.Checkpoint(path, resume=True)
    options = {"checkpoint": path, "until": "decided", "bound": 0.0588}
    certify(throw, Coin(), **options | {"episodes": 100})
    with pytest.raises(CheckpointError, match="exists already"):
        certify(throw, Coin(), checkpoint=path)
    broken = Coin()
    broken.sample = Coin(risk=0.0).sample  # only new episodes are without failures
    resumed = certify(throw, broken, **options | {"checkpoint": again, "episodes": 130})
    first = certify(throw, Coin(), episodes=100)
    assert resumed.episodes == 130
    assert resumed.failures == first.failures
    with pytest.raises(CheckpointError, match="seed: 1, not 2"):
        certify(throw, Coin(), checkpoint=again, seed=2)
    with pytest.raises(CheckpointError, match="episodes: until decided, not 400"):
        certify(throw, Coin(), checkpoint=again)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(CheckpointError, match="cut off"):
        certify(throw, Coin(), checkpoint=again)


def test_ctrl_c_leaves_limits_that_hold_at_all_times(tmp_path):
    path = tmp_path / "episodes"
    interrupted.steps = 0
    options = {"failure": interrupted, "episodes": 3000}
    found = certify(throw, Coin(0.0), checkpoint=path, **options)
    assert found.interrupted
    assert 100 <= found.episodes < 3000
    assert found.risk_high == pytest.approx(limit_risk_always(0, found.episodes, 0.05)[1])
    # Having seen it, one has looked: that is not forgotten.
    rest = certify(throw, Coin(0.0), checkpoint=vulcan.Checkpoint(path, resume=True), **options)
    assert not rest.interrupted
    assert rest.episodes == 3000
    assert rest.risk_high == pytest.approx(limit_risk_always(0, 3000, 0.05)[1])


def test_it_is_never_taken_for_an_exact_certificate():
    found = certify(throw, Coin())
    for text in (str(found), found._repr_html_()):
        assert "at 95 % confidence" in text
        assert "for independent episodes of a policy fixed beforehand" in text
        assert "seed" in text
        assert vulcan.__version__ in text
    assert not isinstance(found, vulcan.Certificate)
    assert "95 % confidence" in repr(found)
    document = json.loads(json.dumps(describe_statistical(found)))
    assert document["kind"] == "statistical certificate"
    assert document["confidence"] == 0.95
    assert "at 95 % confidence" in document["verdict"]
    assert "independent episodes" in document["sentence"]


def test_a_page(tmp_path):
    certify(throw, Coin()).save(tmp_path / "certificate.html")
    text = (tmp_path / "certificate.html").read_text(encoding="utf-8")
    assert "<title>safe at 95 % confidence</title>" in text


def test_void():
    found = certify(throw, Coin(0.0), reward_range=(0, 2))
    assert found.safe is None
    assert found.verdict == "✗ void"
    assert "outside the declared range" in str(found)


def test_seeds_of_planning_are_others():
    simulator = Simulator(Coin(), 5)
    first = np.random.SeedSequence(1, spawn_key=(CERTIFYING, 0, 0)).generate_state(2)
    assert not set(seed_planning(1, 0)) & set(first.tolist())
    simulator.reset(seed=3)
    other = simulator.copy(4)
    other.step(1)
    assert (simulator.steps, other.steps) == (0, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bound": "0.1*x"}, "reward_range"),
        ({"until": "soon"}, "decided"),
        ({"confidence": 1.0}, "between 0 and 1"),
        ({"horizon": None}, "horizon"),
        ({"failure": "reward = 3"}, "failure must be"),
        ({"reward_range": (1, 1)}, "reward_range must be"),
        ({"policy": 3}, "policy must be"),
        ({"episodes": 0}, "episodes"),
    ],
)
def test_bad_input(options, message):
    given = {"policy": throw, "simulator": Coin(), "bound": 0.1} | options
    with pytest.raises(OptionError, match=message):
        certify(given.pop("policy"), given.pop("simulator"), given.pop("bound"), **given)


def test_failures_are_read():
    from vulcan import Step

    step = Step(0, 0, 1, -1.0, True, False, {})
    assert [bool(read_failure(text)(step)) for text in ("terminated", "truncated")] == [True, False]
    assert read_failure("reward <= -1")(step)
    assert not read_failure("reward < -1")(step)
