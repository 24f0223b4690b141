"""What to say where no policy is within the risk bound: which multiple of it would do.

The smallest multiple m of Δ that accepts a policy is the least risk / Δ(reward) over all policies
for which Δ is positive. For a policy with the ratio m, and the tangent T >= Δ at its reward, one
dynamic program finds the policy with the smallest risk - m T(reward). If that is not negative, then
all policies, and all their mixtures, have

    risk  >=  m T(reward)  >=  m Δ(reward),

and no smaller multiple would do. If it is negative, the policy that was found often has a smaller
ratio, and takes the place of the first; for a straight Δ it always has, and this is Dinkelbach's
method. Where it has not, some policy between the two might, and m is the least ratio so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from vulcan.bounds.base import RiskBound
from vulcan.solvers.finding import Finding, Sufficient, Worth
from vulcan.solvers.layered.sweeps import Sweeps
from vulcan.tolerance import TOLERANCE

__all__ = ["explain_refusal", "find_multiple"]

MOST_PROGRAMS = 100
"""A guard only: a few are usual."""


def explain_refusal(
    finding: Finding,
    bound: RiskBound,
    known: Sequence[Worth],
    sweeps: Sweeps,
    may_go_on: Callable[[], bool],
) -> Finding:
    """Return the same finding with what comes closest to the bound.

    Parameters
    ----------
    finding
        That no policy is within the bound.
    bound, known, may_go_on
        As in `find_multiple`.
    sweeps
        The dynamic programs.
    """

    def weigh(reward_weight: float, risk_weight: float) -> Worth:
        corner = sweeps.find_best(reward_weight, risk_weight)
        return Worth(corner.reward, corner.risk)

    return replace(
        finding,
        safest=min(known, key=lambda worth: (worth.risk, -worth.reward)),
        sufficient=find_multiple(bound, known, weigh, may_go_on),
    )


def find_multiple(
    bound: RiskBound,
    known: Sequence[Worth],
    weigh: Callable[[float, float], Worth],
    may_go_on: Callable[[], bool],
) -> Sufficient | None:
    """Return the smallest multiple of a bound that accepts a policy; None if none does.

    Parameters
    ----------
    bound
        The bound, which accepts none of them itself.
    known
        What some policies are worth, among them one that earns as much as any.
    weigh
        What the best policy for some weights of reward and risk is worth: one dynamic program.
    may_go_on
        Asked before each of them.
    """

    def ratio(policy: Worth) -> float:
        allowed = bound(policy.reward)
        return policy.risk / allowed if allowed > 0 else math.inf

    best = min(known, key=ratio)
    multiple, least = ratio(best), False
    if multiple == math.inf:
        return None
    for _ in range(MOST_PROGRAMS):
        if not may_go_on():
            break
        tangent = bound.tangent(best.reward)
        found = weigh(multiple * tangent.slope, 1.0)
        least = found.risk >= multiple * tangent(found.reward) - TOLERANCE
        if least or ratio(found) >= multiple:
            break
        best, multiple = found, ratio(found)
    return Sufficient(multiple, best.reward, best.risk, least)
