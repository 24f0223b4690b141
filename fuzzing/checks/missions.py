"""Missions under way: plans that are made anew, and episodes that are played."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import vulcan
from fuzzing.checks.case import Trial
from fuzzing.claims import UNDERFLOW, Fault
from fuzzing.following import execute
from vulcan.numerics import TOLERANCE

__all__ = ["check_replans", "check_simulation"]

ROUNDING = 64 * Fraction(2) ** -53
"""What rounding may do to rewards, as a share of the largest that can be earned."""

EPISODES = 3000


def check_replans(trial: Trial) -> Iterator[Fault]:
    """Replan at some histories of a mission: the whole keeps what was promised."""
    problem = trial.make()
    result = trial.solve(problem)
    policy = result.policy
    if policy is None or len(policy.members) > 1 or not policy.complete or not len(policy):
        return
    before, _ = trial.weigh(policy)

    def replan(run: vulcan.policy.Run) -> None:
        if trial.random.random() < 0.4:
            changed = trial.means.replan(run, risk_bound=problem.risk_bound).changed
            trial.counts["replans that change" if changed else "replans"] += 1

    tree = execute(trial.problem, policy.start(), problem.model, replan)
    after, _ = trial.truth.oracle.evaluate(tree)
    rounding = ROUNDING * Fraction(trial.problem.reach) + UNDERFLOW
    if after.reward < before.reward - rounding:
        yield Fault("replans", f"earn {float(after.reward)!r} instead of {float(before.reward)!r}")
    slack, first = trial.truth.slack(after), trial.truth.slack(before)
    if slack < min(first, 0) - TOLERANCE:
        yield Fault("replans", f"leave a slack of {float(slack)!r} instead of {float(first)!r}")


def check_simulation(trial: Trial) -> Iterator[Fault]:
    """Play episodes: what is seen is what the exact values say."""
    problem = trial.make()
    result = trial.solve(problem)
    if result.policy is None:
        return
    trial.counts["simulations"] += 1
    model = problem.model if trial.random.random() < 0.5 else None
    seed = trial.random.randrange(1 << 32)
    try:
        found = trial.means.simulate(result.policy, model, episodes=EPISODES, seed=seed, parallel=1)
    except vulcan.errors.SimulationWarning as warning:
        yield Fault("simulation", str(warning))
    else:
        if not found.agrees:
            yield Fault("simulation", f"{found!r} does not agree, without a warning")
