"""The same model in another form: merged or not, as arrays, compiled, evaluated by threads."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import vulcan
from fuzzing.checks.answer import check_numbers
from fuzzing.checks.case import Trial
from fuzzing.claims import Fault, Truth, check_claims, check_verdict
from fuzzing.compiled import make_compiled
from fuzzing.following import evaluate, execute
from fuzzing.models import make_arrays, make_bound
from fuzzing.oracle import Oracle
from vulcan.numerics import EXACT_GAP

__all__ = ["check_arrays", "check_compiled", "check_merging", "check_repetition"]


def check_merging(trial: Trial) -> Iterator[Fault]:
    """Solve with merged states and with whole histories: what is proved is the same."""
    merged, unmerged = (trial.solve(trial.make(merges=merges)) for merges in (True, False))
    worths = []
    for result in (merged, unmerged):
        trial.counts[result.status.value] += 1
        point = None if result.policy is None else trial.weigh(result.policy)[0]
        yield from check_claims(trial.truth, trial.case.planner, result, point)
        worths.append(point)
    one, other = worths
    proved = {result.status.value for result in (merged, unmerged)} == {"solved"}
    if proved and one is not None and other is not None and not trial.case.planner.gap:
        away = abs(one.reward - other.reward)
        size = max(trial.truth.size, abs(one.reward))
        # Either may use the tolerance where the other does not.
        acceptable = trial.truth.accepts(one) == trial.truth.accepts(other)
        if acceptable and away > 2 * Fraction(EXACT_GAP) * size:
            yield Fault(
                "merging", f"merged {float(one.reward)!r}, unmerged {float(other.reward)!r}"
            )


def check_arrays(trial: Trial) -> Iterator[Fault]:
    """Solve the model as arrays: it is the same problem."""
    problem = trial.problem.without_labels()
    model = make_arrays(problem)
    if model is None:
        trial.counts["no arrays"] += 1
        return
    arrays = vulcan.Problem(model, make_bound(problem.bound))
    truth = Truth(problem, Oracle(problem))
    result = trial.solve(arrays)
    trial.counts[result.status.value] += 1
    point = None
    if result.policy is not None:
        # By their labels: arrays have an order of their own.
        trees = [execute(problem, member.start()) for member in result.policy.members]
        point, lost = evaluate(truth.oracle, trees, result.policy.weights)
        yield from check_numbers(trial, result.certificate, point, lost)
        yield from check_verdict(truth, result.certificate, point)
    yield from check_claims(truth, trial.case.planner, result, point)


def check_compiled(trial: Trial) -> Iterator[Fault]:
    """Solve the model as machine code: it is the same problem, and the same search."""
    model = make_compiled(trial.problem)
    if model is None:
        trial.counts["not compiled"] += 1
        return
    bound = make_bound(trial.problem.bound)
    result = trial.solve(vulcan.Problem(model, bound))
    plain = trial.solve(vulcan.Problem(model.without_form(), bound))
    trial.counts[result.status.value] += 1
    point = None
    if result.policy is not None:
        point, lost = trial.weigh(result.policy)
        yield from check_numbers(trial, result.certificate, point, lost)
        yield from check_verdict(trial.truth, result.certificate, point)
    yield from check_claims(trial.truth, trial.case.planner, result, point)
    # Machine code may add in another order, which decides where the last digits do.
    if not trial.truth.is_touchy and not _same(result.policy, plain.policy):
        yield Fault("compiled", f"another policy than that of the plain model: {result!r}")


def check_repetition(trial: Trial) -> Iterator[Fault]:
    """Solve twice, sometimes by two threads: the policy is the same, bit for bit."""
    first = trial.solve(trial.make())
    workers = trial.random.choice((None, None, 1, 2))
    second = trial.solve(trial.make(), parallel=f"threads:{workers}" if workers else None)
    trial.counts[first.status.value] += 1
    same = first.status is second.status and first.upper_bound == second.upper_bound
    if not same or not _same(first.policy, second.policy):
        yield Fault("repetition", f"workers={workers}: {first!r} and then {second!r}")


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return bool(one.weights == other.weights and one.members == other.members)
