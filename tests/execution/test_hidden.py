"""Runs and simulations of policies for models with hidden states."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import vulcan
from tests.oracles.hidden import RandomHidden
from vulcan import BeliefModel, Policy
from vulcan.domains import Tiger
from vulcan.errors import PolicyError


@pytest.fixture(scope="module")
def result() -> Any:
    return vulcan.solve(vulcan.Problem(BeliefModel(Tiger(5)), 0.1))


def test_run_follows_observations(result: Any) -> None:
    run = result.policy.start()
    assert run.belief == {"left": 0.5, "right": 0.5}
    assert run.action == "listen"
    run.observe("growl left")
    assert run.belief == pytest.approx({"left": 0.85, "right": 0.15})
    with pytest.raises(PolicyError, match="has no outcome 'roar'"):
        run.observe("roar")
    assert run.level == 1
    while not run.finished:
        run.observe(next(iter(run.expected)))
    assert not run.failed


class Count:
    """A counter that is read with errors, 0 or 1: observations are numbers."""

    horizon = 2

    def initial_belief(self) -> dict[str, float]:
        return {"even": 0.75, "odd": 0.25}

    def actions(self, observation: int | None) -> list[str]:
        return ["read", "say even", "say odd"]

    def transitions(self, state: str, action: str) -> list[vulcan.Transition]:
        right = action in ("read", f"say {state}")
        move = vulcan.Transition(0.8, state, float(right and action != "read"))
        return [move, vulcan.Transition(0.2, state, 0.0, fails=not right)]

    def observations(self, state: str, action: str) -> dict[int, float]:
        return {1: 0.9, 0: 0.1} if state == "odd" else {1: 0.1, 0: 0.9}


def test_numbers_are_observations_not_positions() -> None:
    policy = vulcan.solve(vulcan.Problem(BeliefModel(Count()), 1.0)).policy
    for number in (0, 1):
        run = policy.start()
        run.observe(number)
        assert (run.belief["odd"] > 0.25) == (number == 1)


def test_simulation_plays_hidden_states(result: Any) -> None:
    played = vulcan.simulate(result.policy, episodes=20_000, seed=3)
    assert played.agrees
    assert played.engine == "compiled"
    assert vulcan.simulate(result.policy, result.problem.model, episodes=5_000).agrees


@pytest.mark.parametrize("seed", [2, 3, 10])
def test_simulation_counts_hidden_events(seed: int) -> None:
    model = BeliefModel(RandomHidden(seed, 3, events=True))
    problem = vulcan.Problem(model, 1.0, constraints=[vulcan.Risk(0.9, event="late")])
    policy = vulcan.solve(problem).policy
    played = vulcan.simulate(policy, episodes=20_000, seed=1)
    assert played.agrees
    assert played.constraints[0].exact > 0


def test_policy_is_followed_in_another_process(result: Any, tmp_path: Path) -> None:
    path = tmp_path / "plan.vulcan"
    result.policy.save(path)
    code = (
        "import sys, vulcan; from vulcan.domains import Tiger\n"
        "model = vulcan.BeliefModel(Tiger(5)); model.outcomes(model.initial_state(), 'open left')\n"
        "policy = vulcan.Policy.load(sys.argv[1]).bind(model)\n"
        "print(policy.table()); print(vulcan.certify(vulcan.Problem(model, 0.1), policy).safe)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, check=True)
    assert b"True" in done.stdout
    assert len(Policy.load(path)) == len(result.policy)
