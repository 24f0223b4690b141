"""The check that every problem gets: a planner solves it, and all that it says is looked at."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import vulcan
from fuzzing.checks.case import Trial
from fuzzing.claims import Fault, check_claims, check_verdict
from fuzzing.following import evaluate, execute
from fuzzing.oracle import Point

__all__ = ["check_answer", "check_execution", "check_numbers"]


def check_answer(trial: Trial) -> Iterator[Fault]:
    """Solve, and hold certificate, status, upper bound and execution against the truth."""
    problem = trial.make()
    result = trial.solve(problem)
    policy, certificate = result.policy, result.certificate
    trial.counts[result.status.value] += 1
    point = None
    if policy is not None and certificate is not None:
        point, lost = trial.weigh(policy)
        yield from check_numbers(trial, certificate, point, lost)
        yield from check_verdict(trial.truth, certificate, point)
        trial.counts["safe"] += certificate.safe
        trial.counts["too close"] += getattr(certificate, "undecided", False)
        draw = trial.random.random()
        if draw < 0.1:
            yield from check_exact(trial, problem, policy, point)
        elif draw < 0.25:
            yield from check_execution(trial, problem, policy, point)
    elif policy is not None or certificate is not None:
        yield Fault("answer", f"a policy or a certificate without the other: {result!r}")
    yield from check_claims(trial.truth, trial.case.planner, result, point)


def check_numbers(trial: Trial, certificate: Any, point: Point, lost: Fraction) -> Iterator[Fault]:
    """Hold the numbers of a certificate against the truth."""
    for name, true in (("reward", point.reward), ("risk", point.risk), ("frontier", lost)):
        told, error = getattr(certificate, name), getattr(certificate, f"{name}_error")
        if error < math.inf and abs(Fraction(told) - true) > Fraction(error):
            message = f"{float(told)!r} within {float(error)!r}, true is {float(true)!r}"
            yield Fault(f"certificate's {name}", message)
    if certificate.complete != (lost == 0):
        yield Fault("certificate's complete", f"{certificate.complete}, frontier {float(lost)!r}")


def check_exact(
    trial: Trial, problem: vulcan.Problem, policy: Any, point: Point
) -> Iterator[Fault]:
    """Hold the certificate in rational numbers against the truth: they are the same."""
    trial.counts["exact"] += 1
    certificate = trial.means.certify(problem, policy, exact=True)
    told = Point(Fraction(certificate.risk), Fraction(certificate.reward))
    if told != point:
        yield Fault("exact", f"{told} is not {point}")
    yield from check_verdict(trial.truth, certificate, point)


def check_execution(
    trial: Trial, problem: vulcan.Problem, policy: Any, point: Point
) -> Iterator[Fault]:
    """Follow a policy by what can be observed: it earns and risks what it is certified to."""
    trial.counts["executed"] += 1
    trees = [
        execute(trial.problem, member.bind(problem.model).start(), problem.model)
        for member in policy.members
    ]
    executed, _ = evaluate(trial.truth.oracle, trees, policy.weights)
    if executed != point:
        yield Fault("executed", f"{executed} is not what is certified, {point}")
