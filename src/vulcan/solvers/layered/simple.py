"""A policy that only looks one step ahead: for problems too large for anything better.

It takes in each state the action of least immediate risk, and of those the one that pays best. So
only the states are asked about that it comes to itself. It is rarely good, and often acceptable:
what to return rather than nothing when time or memory are up.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vulcan.graphs.decisions import DecidedPlan, Decisions
from vulcan.graphs.state_graph import StateGraph
from vulcan.runtime.ranges import ranges, starts
from vulcan.sentinels import END, UNASKED
from vulcan.solvers.layered.corners import Corner

__all__ = ["find_cautious"]

PORTION = 64
"""States that are asked about between two looks at the limits."""


def find_cautious(graph: StateGraph, may_go_on: Callable[[], bool]) -> Corner | None:
    """Return the policy that looks one step ahead; None if it was not allowed to go on.

    Parameters
    ----------
    graph
        What is known of the model; it grows.
    may_go_on
        Asked again and again.
    """
    reader = graph.reader
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    reward = risk = 0.0
    states, reach = np.zeros(1, np.int32), np.ones(1)
    count = 1
    if not _ask(graph, states, may_go_on):
        return None
    if graph.states.array["action_count"][0] == 0:
        return Corner(0.0, 0.0, DecidedPlan(Decisions(*np.zeros((3, 0), np.int32))))
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
            if not _ask(graph, following, may_go_on):
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
    return Corner(reward, risk, DecidedPlan(decisions))


def _ask(graph: StateGraph, states: np.ndarray, may_go_on: Callable[[], bool]) -> bool:
    """Ask the model about states that were not asked; False if it was not allowed."""
    waiting = states[graph.states.array["action_count"][states] == UNASKED].tolist()
    for begin in range(0, len(waiting), PORTION):
        if not may_go_on():
            return False
        graph.expand_all(waiting[begin : begin + PORTION])
    return may_go_on()


def _choose(graph: StateGraph, states: np.ndarray) -> np.ndarray:
    """Return for each state the row of least risk, and of those the one that pays best."""
    here = graph.states.array[states]
    rows = ranges(here["first_action"], here["action_count"])
    owner = np.repeat(np.arange(len(states)), here["action_count"])
    actions = graph.actions.array[rows]
    order = np.lexsort((rows, -actions["expected_reward"], actions["immediate_risk"], owner))
    return rows[order[starts(here["action_count"])]]
