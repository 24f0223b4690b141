"""Policies of what a tree knows, and no more: the model has failed, and can't be asked.

Of the actions of a history that were sampled, the one is taken that is worth most for a price; at
the last step, where nothing is sampled, of all. Where there is a complete policy, only actions are
taken that can be followed to the end. Otherwise the policy has a frontier where nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.base import Graph
from vulcan.sentinels import END, NONE, UNPLANNED
from vulcan.solvers.tree.draft import KNOWN, Draft
from vulcan.solvers.tree.price_run import PriceRun

__all__ = ["plan_known"]


def plan_known(run: PriceRun) -> Iterator[Draft]:
    """Yield policies for all prices of a search: complete ones, and as much as is known."""
    sampled = run.edges["visits"] > 0
    for usable in (_find_whole(run, sampled), sampled):
        for lane in range(run.prices.shape[1]):
            draft = _write(run, usable, lane)
            if len(draft) or not draft.frontier:  # nothing is known of how to begin otherwise
                yield draft


def _find_whole(run: PriceRun, sampled: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which actions can be followed to the end, whatever happens."""
    counts = run.count_actions(run.nodes["state"])
    last = run.nodes["level"] == run.reader.levels - 1
    ends = (counts == 0) | (last & (counts > 0))
    whole = np.zeros(len(run.edges), bool)
    for node in range(run.histories - 1, -1, -1):  # a history comes before those that follow it
        first, count = int(run.nodes["first_edge"][node]), int(counts[node])
        if ends[node] or first == NONE:
            continue
        for edge in first + np.flatnonzero(sampled[first : first + count]):
            child = int(run.edges["first_child"][edge])
            whole[edge] = ends[child : child + int(run.edges["children"][edge])].all()
        ends[node] = whole[first : first + count].any()
    return whole


def _write(run: PriceRun, usable: NDArray[np.bool_], lane: int) -> Draft:
    """Return the policy of a price that takes usable actions only."""
    states, actions = run.graph.states.array, run.graph.actions.array
    rows: list[int] = []
    firsts, below = [0], list[int]()
    reward = risk = frontier = 0.0
    pending = [(NONE, 0, Graph.ROOT, 0, 1.0)]  # entry, node, state, level and reach
    while pending:
        entry, node, state, level, reach = pending.pop()
        row = _choose(run, usable, lane, (node, state, level))
        if row == NONE:
            ended = states["action_count"][state] == 0
            frontier += 0.0 if ended else reach
            if entry != NONE:
                below[entry] = END if ended else UNPLANNED
            continue
        if entry != NONE:
            below[entry] = len(rows)
        action = actions[row]
        reward += float(run.reader.weights[level] * reach * action["expected_reward"])
        risk += float(reach * action["immediate_risk"])
        begin, count = len(below), int(action["safe_count"])
        rows.append(row)
        below += count * [END]
        firsts.append(len(below))
        if level == run.reader.levels - 1:
            continue
        position = row - states["first_action"][state]
        child = int(run.edges["first_child"][run.nodes["first_edge"][node] + position])
        outcomes = run.graph.outcomes.array[action["first_outcome"] :][:count]
        for k, outcome in enumerate(outcomes):
            there = int(outcome["state"]), level + 1, reach * float(outcome["probability"])
            pending.append((begin + k, child + k, *there))
    return Draft(
        np.array(rows, np.int32),
        np.array(firsts, np.int32),
        np.array(below, np.int32),
        reward,
        risk,
        run.allow(reward),
        frontier,
        KNOWN,
    )


def _choose(
    run: PriceRun, usable: NDArray[np.bool_], lane: int, place: tuple[int, int, int]
) -> int:
    """Return the action row of a history; NONE if it ends, or nothing is known of it."""
    node, state, level = place
    first, count = run.graph.states.array[state].tolist()
    begin = int(run.nodes["first_edge"][node])
    if count > 0 and level == run.reader.levels - 1:
        actions = run.graph.actions.array[first : first + count]
        worth = run.reader.weights[level] * actions["expected_reward"]
        return int(first + np.argmax(worth - run.prices[0, lane] * actions["immediate_risk"]))
    if count <= 0 or begin == NONE or not usable[begin : begin + count].any():
        return NONE
    values = run.edge_values[begin : begin + count, lane]
    return int(first + np.argmax(np.where(usable[begin : begin + count], values, -np.inf)))
