"""What an answer of Vulcan claims, held against what is true.

Of a policy with risk x and reward g, both exact, and a bound Δ known to lie between two values
(`fuzzing.risk_bounds`; they are the same for bounds of straight pieces):

    truly acceptable        x <= the least that Δ(g) may be
    acceptable if rounded   x <= the most that Δ(g) may be, and the tolerance of `vulcan.numerics`

An answer that calls a policy safe claims that it is acceptable if rounded; "solved", an upper bound
and "infeasible" claim that no truly acceptable policy is better, earns more, or exists. In between
lies what rounding may decide either way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import vulcan
from fuzzing.admission import find_best_admitted
from fuzzing.oracle import Oracle, Point, find_hull, least_risk
from fuzzing.planners import Planner
from fuzzing.problems import Bound, PlainProblem
from fuzzing.risk_bounds import allow, find_slope, is_straight
from vulcan.numerics import EXACT_GAP, TOLERANCE
from vulcan.solvers.base import Coverage

__all__ = ["UNDERFLOW", "Fault", "Truth", "check_claims", "check_verdict"]

ROUNDING_OF_REWARDS = 1e-11
"""What rounding may do to rewards, as a share of the largest that any policy has."""


UNDERFLOW = Fraction(1e-318)
"""What rounding may do to rewards at the lower end of floating point."""

INFINITE = (float("inf"), -float("inf"))

ROUNDED_TOLERANCE = Fraction(1.01 * TOLERANCE)
"""What a search of single histories may exceed a bound by: the tolerance, and its roundings."""

TOUCHY = 1e3
"""Where a bound rises by this many risks over the rewards that there are, roundings decide."""


@dataclass(frozen=True)
class Fault:
    """Something that an answer says and that is not so.

    Attributes
    ----------
    check
        Which check found it.
    message
        What was said, and what is true.
    """

    check: str
    message: str


class Truth:
    """What is true of a problem.

    Parameters
    ----------
    problem, oracle
        The problem, and who knows it.
    """

    def __init__(self, problem: PlainProblem, oracle: Oracle) -> None:
        self.problem, self.oracle = problem, oracle
        self.bound: Bound = problem.bound
        self._best: Point | str | None = "unknown"

    @property
    def front(self) -> list[Point]:
        """What policies can earn and risk."""
        return self.oracle.front

    @cached_property
    def hull(self) -> list[Point]:
        """The corners of what randomised policies can earn and risk."""
        return find_hull(self.front)

    @property
    def best(self) -> Point | None:
        """The best truly acceptable deterministic policy; None if there is none."""
        if isinstance(self._best, str):
            self._best = next((p for p in reversed(self.front) if self.accepts(p)), None)
        return self._best

    def accepts(self, point: Point) -> bool:
        """Whether a policy is truly acceptable."""
        return point.risk <= allow(self.bound, point.reward)[0]

    def slack(self, point: Point) -> Any:
        """Return the most that the slack of a policy may be."""
        return allow(self.bound, point.reward)[1] - point.risk

    def mixes(self, reward: Fraction) -> bool:
        """Whether a randomised policy that earns so much is truly acceptable."""
        risk = least_risk(self.hull, reward)
        return risk is not None and risk <= allow(self.bound, reward)[0]

    @property
    def is_touchy(self) -> bool:
        """Whether the last digits of a reward decide what is allowed."""
        reach = max(self.problem.reach, 1.0)
        return find_slope(self.bound, reach) * reach > TOUCHY

    @property
    def size(self) -> Fraction:
        """How large the rewards are of the policies that matter."""
        return max(abs(point.reward) for point in self.front)


def check_verdict(truth: Truth, certificate: Any, point: Point) -> Iterator[Fault]:
    """Yield what is wrong with the verdict of a certificate on a policy that is worth a point."""
    slack = truth.slack(point)
    if certificate.passes and slack < -TOLERANCE:
        yield Fault("unsafe", f"called safe; slack is {float(slack):.3g}: {_show(truth, point)}")
    if getattr(certificate, "undecided", False):
        if is_straight(truth.bound):
            yield Fault("undecided", f"fractions would decide: {_show(truth, point)}")
    elif not certificate.passes and truth.accepts(point):
        yield Fault("refused", f"not called safe, but acceptable: {_show(truth, point)}")


def check_claims(
    truth: Truth, planner: Planner, result: vulcan.Result, point: Point | None
) -> Iterator[Fault]:
    """Yield what is wrong with the status and the upper bound of a result.

    Parameters
    ----------
    truth
        What is true.
    planner
        The solver and its options.
    result
        Its result.
    point
        What the policy of the answer is worth; None without one.
    """
    status = result.status.value
    if planner.local:
        if result.upper_bound is not None:
            yield from _check_upper_bound(truth, result, every=False)
        if "local_test" in planner.parameters and not planner.parameters.get("as_printed"):
            yield from _check_admitted(truth, planner, result, point)
        return
    if planner.markov:
        status = "done"
    randomised = bool(planner.parameters.get("randomised")) or planner.name == "linear-program"
    if status == "infeasible":
        yield from _check_infeasible(truth, randomised)
    elif status == "solved" and point is not None:
        yield from _check_solved(truth, planner, result, point, randomised)
    if result.upper_bound is not None:
        every = randomised or planner.covers is Coverage.EVERY
        yield from _check_upper_bound(truth, result, every=every)


def _check_admitted(
    truth: Truth, planner: Planner, result: vulcan.Result, point: Point | None
) -> Iterator[Fault]:
    """Hold what is said of the policies of a local test against what it admits."""
    status, constraint = result.status.value, planner.parameters["local_test"]
    if status not in ("solved", "infeasible") or truth.is_touchy:
        return
    problem, bound = truth.problem, truth.bound
    surely = find_best_admitted(problem, constraint, lambda credit: allow(bound, credit)[0])
    if status == "infeasible":
        if surely is not None:
            yield Fault("not admitted", f"none is said to be admitted; one earns {float(surely)!r}")
        return
    margin = max(Fraction(EXACT_GAP) * max(truth.size, Fraction(problem.reach)), UNDERFLOW)
    reward = Fraction(0) if point is None else point.reward
    if surely is not None and surely > reward + margin:
        yield Fault("admitted", f"{float(reward)!r} is called the best, not {float(surely)!r}")
    perhaps = find_best_admitted(
        problem, constraint, lambda credit: allow(bound, credit)[1] + ROUNDED_TOLERANCE
    )
    if perhaps is None or perhaps < reward - margin:
        most = None if perhaps is None else float(perhaps)
        yield Fault("admitted", f"{float(reward)!r} is more than is admitted, {most!r}")


def _check_infeasible(truth: Truth, randomised: bool) -> Iterator[Fault]:
    found = truth.best
    if found is not None:
        yield Fault("infeasible", f"called infeasible, but there is {_show(truth, found)}")
    elif randomised and any(
        truth.mixes((low.reward + high.reward) / 2) for low, high in pairwise(truth.hull)
    ):
        yield Fault("infeasible", "called infeasible, but a randomised policy is acceptable")


def _check_solved(
    truth: Truth, planner: Planner, result: vulcan.Result, point: Point, randomised: bool
) -> Iterator[Fault]:
    margin = _rounding(truth, result)
    if planner.gap:
        share = Fraction(planner.gap) * abs(Fraction(result.upper_bound or 0.0))
        margin = max(margin, share)
    best = truth.best
    if best is not None and best.reward > point.reward + margin:
        yield Fault(
            "proved",
            f"called the best: {_show(truth, point)}; better is {_show(truth, best)}",
        )
    elif randomised and truth.mixes(point.reward + margin + Fraction(1, 10**30)):
        yield Fault(
            "proved", f"called the best of all mixtures, which it is not: {_show(truth, point)}"
        )


def _check_upper_bound(truth: Truth, result: vulcan.Result, *, every: bool) -> Iterator[Fault]:
    assert result.upper_bound is not None
    best = truth.best
    if result.upper_bound == -float("inf"):
        if best is not None:
            yield Fault("upper bound", f"-inf, but there is {_show(truth, best)}")
        return
    if result.upper_bound == float("inf"):
        return
    upper = Fraction(result.upper_bound)
    margin = UNDERFLOW if hasattr(result, "rounding") else _rounding(truth, result)
    if best is not None and best.reward > upper + margin:
        yield Fault("upper bound", f"{float(upper)!r} is below {_show(truth, best)}")
    elif every and truth.mixes(upper + margin + Fraction(1, 10**30)):
        yield Fault("upper bound", f"{float(upper)!r} is below what a randomised policy earns")


def _rounding(truth: Truth, result: vulcan.Result) -> Fraction:
    upper = abs(Fraction(result.upper_bound or 0.0)) if result.upper_bound not in INFINITE else 0
    stated = getattr(result, "rounding", None)
    rounding = Fraction(ROUNDING_OF_REWARDS) * truth.size if stated is None else Fraction(stated)
    return max(Fraction(EXACT_GAP) * upper, rounding, UNDERFLOW)


def _show(truth: Truth, point: Point) -> str:
    least, most = allow(truth.bound, point.reward)
    allowed = f"{float(least)!r}" if least == most else f"{float(least)!r} to {float(most)!r}"
    risk, reward = float(point.risk), float(point.reward)
    return f"a policy of reward {reward!r}, risk {risk!r}, allowed {allowed}"
