"""Problems with several limits: all that an answer says, against what is true in fractions.

A linear program looks for a randomised policy better than what is claimed, in
floating point; what it finds is weighed in fractions before anything is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import linprog

import vulcan
from fuzzing.checks.case import Trial
from fuzzing.claims import UNDERFLOW, Fault
from fuzzing.following import execute, read_tree
from fuzzing.limit_shapes import MOST_PAIRS
from fuzzing.problems import Bound, PlainProblem
from fuzzing.risk_bounds import allow, is_straight
from fuzzing.several import SeveralOracle, Worth, mix
from vulcan.numerics import EXACT_GAP, TOLERANCE
from vulcan.solvers.base import Coverage, load_solvers

__all__ = ["SeveralTruth", "check_several"]


class SeveralTruth:
    """What is true of a problem with several limits."""

    def __init__(self, problem: PlainProblem) -> None:
        self.problem = problem
        self.oracle = SeveralOracle(problem, MOST_PAIRS)

    def limits(self, worth: Worth) -> list[tuple[Bound, Fraction]]:
        """Return each bound with what it limits, the risk first."""
        charges = iter(worth.charges[1:])
        return [
            (self.problem.bound, worth.charges[0]),
            *(
                (limit.bound, worth.ahead if limit.kind == "cap" else next(charges))
                for limit in self.problem.limits
            ),
        ]

    def slacks(self, worth: Worth) -> list[tuple[Any, Any]]:
        """Return the least and the most that the slack of each limit may be."""
        return [
            (least - value, most - value)
            for bound, value in self.limits(worth)
            for least, most in (allow(bound, worth.reward),)
        ]

    def accepts(self, worth: Worth) -> bool:
        """Whether a policy is truly acceptable."""
        return all(least >= 0 for least, _ in self.slacks(worth))

    def find_better(self, reward: Fraction | None, randomised: bool) -> Worth | None:
        """Return a truly acceptable policy that earns more than this, or any; None if unknown."""
        worths = self.oracle.worths
        better = (w for w in worths if self.accepts(w) and (reward is None or w.reward > reward))
        found = next(better, None)
        if found is not None or not randomised:
            return found
        for margin in (0.0, 1e-9, 1e-6):
            mixture = self._mix(margin)
            if mixture is not None and self.accepts(mixture):
                return mixture if reward is None or mixture.reward > reward else None
        return None

    @np.errstate(over="ignore", invalid="ignore")  # what is not finite is not mixed
    def _mix(self, margin: float) -> Worth | None:
        """Return the best mixture for straight bounds, lowered by a relative margin."""
        worths = [w for w in self.oracle.worths if self._keeps_caps(w)]
        summed = [limit.bound for limit in self.problem.limits if limit.kind != "cap"]
        bounds = [self.problem.bound, *summed]
        if not worths or not all(map(is_straight, bounds)):
            return None
        try:
            rewards = np.array([float(w.reward) for w in worths])
            charges = np.array([[float(x) for x in w.charges] for w in worths])
            rows, limits = [], []
            for k, bound in enumerate(bounds):
                for slope, offset in list_lines(bound):
                    row = charges[:, k] - slope * rewards
                    scale = max(float(np.abs(row).max()), abs(offset), 1e-300)
                    rows.append(row / scale)
                    limits.append(offset / scale - margin)
            unit = max(float(np.abs(rewards).max()), 1e-300)
            if not np.isfinite([*np.ravel(rows), *limits]).all():
                return None
            found = linprog(
                -rewards / unit, rows, limits, [np.ones(len(worths))], [1.0], method="highs-ds"
            )
        except (OverflowError, ValueError):
            return None
        if found.status != 0:
            return None
        return mix(worths, np.maximum(found.x, 0.0).tolist())

    def _keeps_caps(self, worth: Worth) -> bool:
        caps = [limit.bound for limit in self.problem.limits if limit.kind == "cap"]
        return all(worth.ahead <= allow(cap, worth.reward)[0] for cap in caps)


def list_lines(bound: Bound) -> list[tuple[float, float]]:
    """Return slope and offset of lines: a straight bound is the least of them."""
    if bound.kind == "constant":
        return [(0.0, float(bound.numbers[0]))]
    if bound.kind == "linear":
        return [(float(bound.numbers[0]), float(bound.numbers[1]))]
    lines = [(0.0, float(bound.numbers[-1][1]))]
    for (x0, y0), (x1, y1) in pairwise(bound.numbers):
        slope = (Fraction(y1) - Fraction(y0)) / (Fraction(x1) - Fraction(x0))
        lines.append((float(slope), float(Fraction(y0) - slope * Fraction(x0))))
    return lines


def check_several(trial: Trial) -> Iterator[Fault]:
    """Solve a problem with several limits, and hold the answer against the truth."""
    if not trial.problem.limits:
        trial.counts["one risk bound"] += 1
        return
    capped = any(limit.kind == "cap" for limit in trial.problem.limits)
    if capped and load_solvers()[trial.case.planner.name].sums_only:
        trial.counts["capped"] += 1
        return
    truth, problem = SeveralTruth(trial.problem), trial.make()
    result = trial.solve(problem)
    policy, certificate = result.policy, result.certificate
    trial.counts[result.status.value] += 1
    worth = None
    if policy is not None and certificate is not None:
        worth, lost = _weigh(truth, policy.weights, _read_trees(trial, policy))
        yield from _check_certificate(truth, certificate, worth, lost)
        trial.counts["safe"] += certificate.safe
        trial.counts["too close"] += certificate.undecided
        draw = trial.random.random()
        if draw < 0.2:
            trial.counts["exact"] += 1
            exact = trial.means.certify(problem, policy, exact=True)
            yield from _check_certificate(truth, exact, worth, lost)
        elif draw < 0.3:
            trial.counts["executed"] += 1
            trees = [
                execute(trial.problem, member.bind(problem.model).start(), problem.model)
                for member in policy.members
            ]
            if _weigh(truth, policy.weights, trees)[0] != worth:
                yield Fault("executed", f"executed is not what is certified, {worth}")
    elif policy is not None or certificate is not None:
        yield Fault("answer", f"a policy or a certificate without the other: {result!r}")
    yield from _check_claims(truth, trial, result, worth)


def _read_trees(trial: Trial, policy: Any) -> list[Any]:
    return [read_tree(trial.problem, member) for member in policy.members]


def _weigh(
    truth: SeveralTruth, weights: Sequence[float], trees: Sequence[Any]
) -> tuple[Worth, Fraction]:
    """Return what a policy is worth, and how probably it leaves its plan."""
    found = [truth.oracle.evaluate(tree) for tree in trees]
    lost = max(off for _, off in found)
    return mix([worth for worth, _ in found], weights), lost


def _check_certificate(
    truth: SeveralTruth, certificate: Any, worth: Worth, lost: Fraction
) -> Iterator[Fault]:
    """Hold numbers and verdicts of a certificate against the truth."""
    told = [
        ("reward", certificate.reward, certificate.reward_error, worth.reward),
        ("risk", certificate.risk, certificate.risk_error, worth.charges[0]),
    ]
    values = [value for _, value in truth.limits(worth)][1:]
    for limited, value in zip(certificate.constraints, values, strict=True):
        told.append((limited.quantity, limited.value, limited.value_error, value))
    for name, number, error, true in told:
        if error < math.inf and abs(Fraction(number) - true) > Fraction(error):
            message = f"{float(number)!r} within {float(error)!r}, true is {float(true)!r}"
            yield Fault(f"certificate's {name}", message)
    if certificate.complete != (lost == 0):
        yield Fault("certificate's complete", f"{certificate.complete}, frontier {float(lost)!r}")
    slacks = truth.slacks(worth)
    verdicts = [certificate.risk_verdict, *(one.decided for one in certificate.constraints)]
    for (bound, value), (least, most), verdict in zip(
        truth.limits(worth), slacks, verdicts, strict=True
    ):
        shown = f"{float(value)!r} under {bound}, slack {float(least):.3g} to {float(most):.3g}"
        if verdict is True and most < -TOLERANCE:
            yield Fault("unsafe", f"called acceptable: {shown}")
        elif verdict is False and least >= 0:
            yield Fault("refused", f"called not acceptable: {shown}")
        elif verdict is None and is_straight(bound):
            yield Fault("undecided", f"fractions would decide: {shown}")
    if certificate.passes and not all(verdict is True for verdict in verdicts):
        yield Fault("unsafe", f"passes, with verdicts {verdicts}")


def _check_claims(
    truth: SeveralTruth, trial: Trial, result: vulcan.Result, worth: Worth | None
) -> Iterator[Fault]:
    """Hold status and upper bound against the truth."""
    planner = trial.case.planner
    status = "done" if planner.markov else result.status.value
    randomised = bool(planner.parameters.get("randomised")) or planner.name == "linear-program"
    if status == "infeasible":
        found = truth.find_better(None, randomised)
        if found is not None:
            yield Fault("infeasible", f"called infeasible, but there is {_show(truth, found)}")
    upper = result.upper_bound
    margin = Fraction(getattr(result, "rounding", 0.0) or 0.0) + UNDERFLOW
    if status == "solved" and worth is not None:
        size = abs(Fraction(upper)) if upper is not None and math.isfinite(upper) else Fraction(0)
        allowed = max(margin, Fraction(max(EXACT_GAP, planner.gap)) * size)
        found = truth.find_better(worth.reward + allowed, randomised)
        if found is not None:
            yield Fault("proved", f"best: {_show(truth, worth)}; better: {_show(truth, found)}")
    if upper is None or upper == math.inf:
        return
    every = randomised or planner.covers is Coverage.EVERY
    most = None if upper == -math.inf else Fraction(upper) + UNDERFLOW
    found = truth.find_better(most, every)
    if found is not None:
        yield Fault("upper bound", f"{upper!r} is below {_show(truth, found)}")


def _show(truth: SeveralTruth, worth: Worth) -> str:
    parts = [f"{float(value)!r} under {bound}" for bound, value in truth.limits(worth)]
    return f"a policy of reward {float(worth.reward)!r}, {', '.join(parts)}"
