"""How long a million simulated episodes take, on all cores and on one.

    python -m pytest benchmarks/test_simulation.py --quiet

Seconds are those of the clock on all cores, and of the processor on one: the latter mean the same
on a machine that has other work to do. The model is not evaluated: that is the certificate's time,
which is measured beside it. The plan of the exploration mission has some 87,000 decisions, and
takes a minute to make.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

import vulcan
from benchmarks.exploration_table import Setting
from benchmarks.spend_risk import find_problem
from vulcan.domains import Bandit

EPISODES = 1_000_000
Report = Callable[[str, str], None]


def plan_bandit() -> tuple[vulcan.Problem, vulcan.Policy]:
    problem = vulcan.Problem(Bandit(horizon=9), "0.002*x")
    return problem, vulcan.solve(problem).policy


def plan_mission() -> tuple[vulcan.Problem, vulcan.Policy]:
    problem = find_problem(Setting("narrow", None, 9, "Δ"))
    return problem, vulcan.solve(problem, vulcan.Vulcan(), samples=60_000).policy


@pytest.mark.parametrize(
    ("name", "plan", "most"),
    [("bandit, horizon 9", plan_bandit, 2.0), ("exploration, nine moves", plan_mission, 20.0)],
)
def test_a_million_episodes(
    name: str,
    plan: Callable[[], tuple[vulcan.Problem, vulcan.Policy]],
    most: float,
    report: Report,
) -> None:
    problem, policy = plan()
    vulcan.simulate(policy, problem.model, episodes=100)  # loads or compiles the kernels
    began = time.perf_counter()
    found = vulcan.simulate(policy, episodes=EPISODES)
    seconds = time.perf_counter() - began
    began = time.process_time()
    alone = vulcan.simulate(policy, episodes=EPISODES, parallel=1)
    processor = time.process_time() - began
    began = time.process_time()
    vulcan.simulate(policy, problem.model, episodes=1)
    evaluating = time.process_time() - began
    report(f"a million episodes, {name} ({len(policy):,} decisions)", f"{seconds:.2f} s")
    report(f"  threads: {found.workers}; on one, seconds of the processor", f"{processor:.2f} s")
    report("  with the model, evaluated by the certificate, in addition", f"{evaluating:.2f} s")
    assert found.agrees
    assert alone.reward == found.reward
    assert processor < most
