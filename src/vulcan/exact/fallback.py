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
from typing import Final

import numpy as np

from vulcan.bounds.base import RiskBound
from vulcan.exact.sweeps import PolicyPoint, Sweeps
from vulcan.graph.levels import join_levels
from vulcan.graph.states import StateGraph
from vulcan.numerics import TOLERANCE, UNEVALUATED
from vulcan.runtime.arrays import ranges, starts
from vulcan.solvers.finding import Sufficient, Worth

MOST_PROGRAMS: Final = 100
"""A guard only: a few are usual."""


def find_multiple(
    bound: RiskBound, known: Sequence[Worth], sweeps: Sweeps, may_go_on: Callable[[], bool]
) -> Sufficient | None:
    """Return the smallest multiple of a bound that accepts a policy; None if none does.

    `known` is what some policies are worth, among them one that earns as much as any. `may_go_on`
    is called before each dynamic program.
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
        point = sweeps.find_best(multiple * tangent.slope, 1.0)
        found = Worth(point.reward, point.risk)
        least = found.risk >= multiple * tangent(found.reward) - TOLERANCE
        if least or ratio(found) >= multiple:
            break
        best, multiple = found, ratio(found)
    return Sufficient(multiple, best.reward, best.risk, least)


def find_least_risk_policy(graph: StateGraph, may_go_on: Callable[[], bool]) -> PolicyPoint | None:
    """Return the policy that looks one step ahead, evaluating the model; None if stopped."""
    taken: list[np.ndarray] = []
    pairs: list[np.ndarray] = []
    reward = risk = 0.0
    states, reach = np.zeros(1, np.int32), np.ones(1)
    for weight in graph.reader.weights.tolist():
        if not _evaluate(graph, states, may_go_on):
            return None
        goes_on = graph.states.array["action_count"][states] != 0
        states, reach = states[goes_on], reach[goes_on]
        if not len(states):
            break
        rows = _choose(graph, states)
        actions = graph.actions.array[rows]
        reward += weight * float((reach * actions["expected_reward"]).sum())
        risk += float((reach * actions["immediate_risk"]).sum())
        taken.append(rows)
        pairs.append(states)
        outcomes = graph.outcomes.array[ranges(actions["first_outcome"], actions["safe_count"])]
        arriving = np.repeat(reach, actions["safe_count"]) * outcomes["probability"]
        states, places = np.unique(outcomes["state"].astype(np.int32), return_inverse=True)
        reach = np.bincount(places, arriving, len(states)).astype(float, copy=False)
    if not taken:
        return PolicyPoint(0.0, 0.0)
    levels, choice = join_levels(graph, pairs), np.concatenate(taken).astype(np.int32)
    return PolicyPoint(reward, risk, lambda: levels.decide(choice))


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
