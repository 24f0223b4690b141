"""Gymnasium's own environments by default: how long, how close, and what happens in them.

Each is solved at three horizons and five bounds, and one policy of each is followed for 100,000
episodes by the environment's own `step`, whose mean reward and rate of failures must agree with
the certificate within intervals of 99.9 %. Times are of this process: what others do on the
machine does not count. Run with `make bench`.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import vulcan
from vulcan.formats import from_gymnasium
from vulcan.numerics import FAILED

gymnasium = pytest.importorskip("gymnasium")

ENVIRONMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "lake 4x4": ("FrozenLake-v1", {"map_name": "4x4"}),
    "lake 8x8": ("FrozenLake-v1", {"map_name": "8x8"}),
    "slippery cliff": ("CliffWalking-v1", {"is_slippery": True}),
    "rainy taxi": ("Taxi-v4", {"is_rainy": True}),
}
HORIZONS = (20, 50, 100)
BOUNDS = (0.01, 0.05, 0.1, 0.2, 0.5)
GAP, SECONDS = 1e-3, 2.0
EPISODES = 100_000
SIGMAS = 3.2905  # 99.9 % of a normal distribution, both sides


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """Compile what is used before anything is timed."""
    for bound in (0.01, 0.1):
        vulcan.solve(vulcan.Problem(from_gymnasium("FrozenLake-v1", horizon=8), bound))
    vulcan.solve(vulcan.Problem(from_gymnasium("Taxi-v4", is_rainy=True, horizon=20), 0.1))


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_policies_are_close_and_quick(name: str, report: Any) -> None:
    environment, options = ENVIRONMENTS[name]
    gaps, seconds = {}, {}
    for horizon in HORIZONS:
        for bound in BOUNDS:
            began = time.process_time()
            model = from_gymnasium(environment, horizon=horizon, **options)
            result = vulcan.solve(vulcan.Problem(model, bound))
            seconds[horizon, bound] = time.process_time() - began
            gaps[horizon, bound] = result.gap
            assert result.safe
            assert result.certificate.complete
    worst, longest = max(gaps.values()), max(seconds.values())
    report(
        f"{name}, {len(gaps)} problems: worst gap in %, longest seconds",
        f"{100 * worst:.4f}, {longest:.2f}",
    )
    assert worst <= GAP
    assert longest < SECONDS


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environments_do_what_certificates_say(name: str, report: Any) -> None:
    environment, options = ENVIRONMENTS[name]
    model = from_gymnasium(environment, horizon=100, **options)
    result = vulcan.solve(vulcan.Problem(model, 0.1))
    made = gymnasium.make(environment, **options).unwrapped
    rewards, failures = follow(made, result.policy, model)
    certificate = result.certificate
    interval = SIGMAS * rewards.std() / EPISODES**0.5
    assert abs(rewards.mean() - certificate.reward) <= interval + 1e-9
    chance = SIGMAS * (certificate.risk * (1 - certificate.risk) / EPISODES) ** 0.5
    assert abs(failures.mean() - certificate.risk) <= chance + 1e-9
    report(
        f"{name}, {EPISODES:,} episodes: reward and certificate, ± 99.9 %",
        f"{rewards.mean():.4f}, {certificate.reward:.4f} ± {interval:.4f}",
    )
    report(
        f"{name}, {EPISODES:,} episodes: failures and certificate, ± 99.9 %",
        f"{failures.mean():.5f}, {certificate.risk:.5f} ± {chance:.5f}",
    )


def follow(environment: Any, policy: Any, model: Any) -> tuple[Any, Any]:
    """Return the reward and the failure of each episode of a policy in an environment."""
    actions = [
        model.action_labels.index(policy.labels[a]) if policy.labels[a] != "start" else -1
        for a in policy.action.tolist()
    ]
    below: dict[Any, int] = {}

    def descend(node: int, state: Any, step: Any) -> int:
        """Return the next node after a step; every step of a node is looked up once."""
        key = (node, *step[:3]) if len(step) > 2 else (node, step[0])
        if key not in below:
            label = model.locate(state, actions[node], step)
            rows = policy.outcomes(node)
            labels = [policy.labels[policy.label[row]] for row in rows]
            below[key] = int(policy.child[rows[labels.index(label)]])
        return below[key]

    environment.reset(seed=0)
    root = model.initial_state()
    rewards, failures = np.zeros(EPISODES), np.zeros(EPISODES, bool)
    for episode in range(EPISODES):
        began = environment.reset()
        node, state, total = 0, began[0], 0.0
        if model.is_drawn:
            node = descend(node, root, began)
        while node >= 0:
            step = environment.step(actions[node])
            node, state, total = descend(node, state, step), step[0], total + step[1]
        rewards[episode], failures[episode] = total, node == FAILED
    return rewards, failures
