"""Answers where the pipeline has none: the least risky policy, and how far off the bound is.

**Least risk, one step ahead.** For problems too large for anything better: in each state the action
of least immediate risk, and of those the one with the largest expected reward. Only the states that
this policy reaches are evaluated. It is rarely good, and often acceptable.

**No policy is within the bound.** The smallest multiple m of Δ that accepts a policy is the least
risk / Δ(reward) over all policies for which Δ is positive. For a policy with the ratio m, and the
tangent T >= Δ at its reward, one dynamic program finds the policy with the smallest risk -
m T(reward). If that is not negative, then all policies, and all their mixtures, have

    risk  >=  m T(reward)  >=  m Δ(reward),

and no smaller multiple would do. If it is negative, the policy that was found often has a smaller
ratio, and takes the place of the first; for a straight Δ it always has, and this is Dinkelbach's
method. Where it has not, some policy between the two might, and m is the least ratio so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from vulcan.bounds.base import RiskBound
from vulcan.exact.sweeps import PolicyPoint, Sweeps
from vulcan.graph.levels import Decisions
from vulcan.graph.states import StateGraph
from vulcan.numerics import END, TOLERANCE, UNEVALUATED
from vulcan.runtime.arrays import ranges, starts
from vulcan.solvers.finding import Finding, Sufficient, Worth

__all__ = ["explain_infeasible", "find_least_risk_policy", "find_multiple"]

MOST_PROGRAMS: Final = 100
"""A guard only: a few are usual."""


def explain_infeasible(
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
        point = sweeps.find_best(reward_weight, risk_weight)
        return Worth(point.reward, point.risk)

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
        Called before each of them; False stops the search.
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


def find_least_risk_policy(graph: StateGraph, may_go_on: Callable[[], bool]) -> PolicyPoint | None:
    """Return the policy that looks one step ahead; None if it was not allowed to go on.

    Parameters
    ----------
    graph
        What is known of the model; it grows.
    may_go_on
        Called often; False stops the search.
    """
    reader = graph.reader
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    reward = risk = 0.0
    states, reach = np.zeros(1, np.int32), np.ones(1)
    count = 1
    if not _evaluate(graph, states, may_go_on):
        return None
    if graph.states.array["action_count"][0] == 0:
        return PolicyPoint(0.0, 0.0)
    for level in range(reader.levels):
        rows = _choose(graph, states)
        actions = graph.actions.array[rows]
        reward += float(reader.weights[level]) * float((reach * actions["expected_reward"]).sum())
        risk += float((reach * actions["immediate_risk"]).sum())
        outcomes = graph.outcomes.array[ranges(actions["first_outcome"], actions["safe_count"])]
        targets = outcomes["state"].astype(np.int32)
        following, places = np.unique(targets, return_inverse=True)
        children = np.full(len(targets), END, np.int32)
        arriving = np.repeat(reach, actions["safe_count"]) * outcomes["probability"]
        reach = np.bincount(places, arriving, len(following)).astype(float, copy=False)
        if level + 1 < reader.levels:
            if not _evaluate(graph, following, may_go_on):
                return None
            goes_on = graph.states.array["action_count"][following] != 0
            numbers = np.where(goes_on, count + starts(goes_on.astype(np.intp)), END)
            children = numbers[places].astype(np.int32)
            states, reach = following[goes_on], reach[goes_on]
            count += len(states)
        parts.append((rows, children))
        if level + 1 == reader.levels or not len(states):
            break
    rows, children = (np.concatenate(part).astype(np.int32) for part in zip(*parts, strict=True))
    decisions = Decisions(rows, children, np.zeros(len(rows), np.int32))
    return PolicyPoint.made(reward, risk, decisions)


def _evaluate(graph: StateGraph, states: np.ndarray, may_go_on: Callable[[], bool]) -> bool:
    """Evaluate states that were not evaluated yet; False if a limit was reached."""
    waiting = states[graph.states.array["action_count"][states] == UNEVALUATED].tolist()
    return graph.expand_while(waiting, may_go_on)


def _choose(graph: StateGraph, states: np.ndarray) -> np.ndarray:
    """Return for each state the row of least risk, and of those the one that pays best."""
    here = graph.states.array[states]
    rows = ranges(here["first_action"], here["action_count"])
    owner = np.repeat(np.arange(len(states)), here["action_count"])
    actions = graph.actions.array[rows]
    order = np.lexsort((rows, -actions["expected_reward"], actions["immediate_risk"], owner))
    return rows[order[starts(here["action_count"])]]
