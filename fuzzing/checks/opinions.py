"""What others say of a policy: Storm, and `vulcan-check`; and what it says of its own margin."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import vulcan
import vulcan_check
from fuzzing.checks.case import Trial
from fuzzing.claims import Fault
from fuzzing.following import evaluate, read_tree
from fuzzing.oracle import Oracle, Point
from fuzzing.risk_bounds import allow
from vulcan.numerics import TOLERANCE

__all__ = ["check_checker", "check_margin", "check_storm"]


@cache
def has_storm() -> bool:
    """Whether Storm is installed."""
    return find_spec("stormpy") is not None


def check_storm(trial: Trial) -> Iterator[Fault]:
    """Let Storm compute what a policy earns and risks."""
    if not has_storm() and trial.means.verify is vulcan.verify:
        trial.counts["no Storm"] += 1
        return
    problem = trial.make()
    result = trial.solve(problem)
    if result.policy is not None:
        trial.counts["verified"] += 1
        found = trial.means.verify(problem, result.policy)
        if not found.agrees:
            yield Fault("Storm", f"{found!r} for {result!r}")


def check_checker(trial: Trial) -> Iterator[Fault]:
    """Let `vulcan-check` judge a policy's file: it finds the very same numbers."""
    problem = trial.make()
    result = trial.solve(problem)
    policy = result.policy
    if policy is None:
        return
    point, lost = trial.weigh(policy)
    found: dict[str, Any] = {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "plan.vulcan"
        policy.save(path)
        try:
            _, code = vulcan_check.judge(str(path), None, found)
        except vulcan_check.NoAnswerError as error:
            _, code = error.args
    trial.counts[vulcan_check.ANSWERS[code]] += 1
    told = Point(found.get("risk", Fraction(-1)), found.get("reward", Fraction(0)))
    if told != point:
        yield Fault("checker", f"{told} is not {point}")
    slack = trial.truth.slack(point)
    if code == vulcan_check.OWN_BOUND and (lost or slack < -TOLERANCE):
        yield Fault("checker", f"called safe; slack {float(slack)!r}, frontier {float(lost)!r}")
    if code == vulcan_check.NOT_SAFE and not lost and trial.truth.accepts(point):
        yield Fault("checker", f"called not safe, with slack {float(slack)!r}")


def check_margin(trial: Trial) -> Iterator[Fault]:
    """Multiply all risks: up to the margin the bound holds."""
    problem = trial.make()
    result = trial.solve(problem)
    policy, certificate = result.policy, result.certificate
    if policy is None or certificate is None or not certificate.safe or certificate.margin < 1:
        return
    trees = [read_tree(trial.problem, member) for member in policy.members]
    largest = max(trial.problem.immediate_risks(), default=Fraction(0))
    # Beyond this some action surely fails, and what follows it is no longer reached.
    most = min(certificate.margin, float(1 / largest) if largest else math.inf) * (1 - 1e-6)
    if most <= 1:
        return
    trial.counts["margins"] += 1
    most = min(most, 1e6)
    for share in (0.25, 0.5, 1.0, trial.random.random()):
        factor = Fraction(1 + (most - 1) * share)
        scaled = trial.problem.with_risks_times(factor)
        point, _ = evaluate(Oracle(scaled), trees, policy.weights)
        slack = allow(trial.problem.bound, point.reward)[1] - point.risk
        if slack < -2 * TOLERANCE:
            yield Fault(
                "margin",
                f"{certificate.margin!r}, but at {float(factor)!r} slack is {float(slack)!r}",
            )
            return
