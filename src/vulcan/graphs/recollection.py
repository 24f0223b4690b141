"""The rows of a compiled model that come from a file: what they must be, and the model asked again.

Rows are walked from the first state on, level by level. What they say of others must lie within
its array, and belong to nobody else: so there are no cycles. Then the model is asked for every
state whose actions are there, and makes the records of the states after them
(`vulcan.kernels.second_asking`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import CheckpointError
from vulcan.runtime.packing import claim, require
from vulcan.sentinels import FAILURE_STATE, NO_STATE, NONE, UNASKED

if TYPE_CHECKING:
    from vulcan.graphs.compiled_graph import CompiledGraph

__all__ = ["recollect"]


def recollect(
    graph: CompiledGraph, records: NDArray[Any], following: NDArray[Any], level: int
) -> None:
    """Make all records of a graph but the first, or say why its rows are none.

    Parameters
    ----------
    graph
        Whose rows come from a file.
    records, following
        Where the model's states are, and where it writes those that come next.
    level
        How many decisions come before the first state.
    """
    from vulcan.kernels.problem_arrays import ProblemArrays
    from vulcan.kernels.second_asking import ask_again

    asked, levels = _list_asked(graph, level)
    reader, none = graph.reader, np.zeros(0)
    rows = (graph.states.array, graph.actions.array, graph.outcomes.array)
    steps = (reader.discounts, reader.weights)
    problem = ProblemArrays(*rows, none, *steps, graph.source, graph.answers)
    scratch = np.zeros(1, graph.actions.array.dtype)
    places = (_view_bytes(records), _view_bytes(following), asked, levels, scratch)
    if ask_again(problem, *places) != NONE:
        raise CheckpointError("the model no longer answers as it did before the checkpoint")


def _view_bytes(records: NDArray[Any]) -> NDArray[np.uint8]:
    return records.view(np.uint8).reshape(len(records), records.itemsize)


def _list_asked(graph: CompiledGraph, level: int) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return the states that were asked, parents before children, and their levels."""
    states, actions, outcomes = (rows.array[: rows.count] for rows in graph.kinds())
    met, own, drawn = (np.zeros(len(rows), bool) for rows in (states, actions, outcomes))
    require(len(met), "there is no first state")
    met[0] = True
    here, found, levels = np.zeros(1, np.intp), list[NDArray[np.intp]](), list[int]()
    while len(here):
        counts = states["action_count"][here]
        require((counts >= UNASKED).all(), "a state has fewer than no actions")
        found.append(here[counts >= 0])
        levels.append(level)
        here = here[counts > 0]
        taken = actions[claim(own, states["first_action"][here], counts[counts > 0], "actions")]
        _check_actions(taken, graph)
        stored = taken[taken["first_outcome"] != NONE]
        rows = claim(drawn, stored["first_outcome"], stored["outcome_count"], "outcomes")
        here = _follow(stored, outcomes["state"][rows], met)
        level += 1
    sizes = [len(some) for some in found]
    return np.concatenate(found), np.repeat(np.array(levels, np.int64), sizes)


def _check_actions(actions: Any, graph: CompiledGraph) -> None:
    names, most = len(graph.compiled.actions), graph.compiled.most_outcomes
    require(((actions["number"] >= 0) & (actions["number"] < names)).all(), "an action has no name")
    some = (actions["outcome_count"] >= 1) & (actions["outcome_count"] <= most)
    safe = (actions["safe_count"] >= 0) & (actions["safe_count"] <= actions["outcome_count"])
    require((some & safe).all(), "an action has more outcomes than there can be")


def _follow(actions: Any, states: NDArray[np.int32], met: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the states after actions, whose outcomes lead to these; they are in a row."""
    counts, safe = (actions[name].astype(np.intp) for name in ("outcome_count", "safe_count"))
    places = np.arange(len(states)) - np.repeat(np.cumsum(counts) - counts, counts)
    fails = places >= np.repeat(safe, counts)
    require((states[fails] == FAILURE_STATE).all(), "an outcome that fails leads to a state")
    firsts = states[places == 0].astype(np.intp)
    expected = np.repeat(np.where(firsts == NO_STATE, NO_STATE, firsts), counts)
    expected = np.where(expected == NO_STATE, NO_STATE, expected + places)
    require((states == expected)[~fails].all(), "outcomes lead to states that are not in a row")
    reached = (safe > 0) & (firsts != NO_STATE)
    return claim(met, firsts[reached], safe[reached], "states")
