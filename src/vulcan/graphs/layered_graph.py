"""The layered graph: every action of every node of some levels written out.

Fronts and programs look at each pair (state, level) by itself, so that for them the levels
(`vulcan.graphs.levels`) are written out, with the same nodes:

    nodes    [N]  state, level, first_edge, edge_count
    edges    [E]  reward γ^t R̄, risk r, first_target, target_count, action (row of the state graph)
    targets  [T]  probability, node: one for each safe outcome, END where the history ends there

What comes after a node always has a larger number. A tip has no edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.decisions import Choice
from vulcan.graphs.levels import Levels
from vulcan.runtime.ranges import ranges, starts
from vulcan.sentinels import END

__all__ = ["KINDS", "LayerArrays", "Layers", "count_bytes", "write_layers"]

NODE: Final = np.dtype(
    [("state", "i4"), ("level", "i4"), ("first_edge", "i4"), ("edge_count", "i4")], align=True
)
EDGE: Final = np.dtype(
    [
        ("reward", "f8"),
        ("risk", "f8"),
        ("first_target", "i4"),
        ("target_count", "i4"),
        ("action", "i4"),
    ],
    align=True,
)
TARGET: Final = np.dtype([("probability", "f8"), ("node", "i4")], align=True)
KINDS: Final = (NODE, EDGE, TARGET)


class LayerArrays(NamedTuple):
    """What kernels are given: the three arrays of the head of this module."""

    nodes: Any
    edges: Any
    targets: Any


@dataclass(frozen=True)
class Layers:
    """A layered graph."""

    arrays: LayerArrays

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.arrays.nodes)

    def follow(self, edge: int) -> list[int]:
        """Return the nodes after an edge, END where the history ends."""
        first, count = self.arrays.edges[["first_target", "target_count"]][edge].tolist()
        nodes: list[int] = self.arrays.targets["node"][first : first + count].tolist()
        return nodes

    def find_edges(self, levels: Levels, choice: Choice) -> NDArray[np.int32]:
        """Return the edge of each node that takes a given row."""
        nodes = self.arrays.nodes
        places = choice - levels.arrays.first_action[nodes["state"]]
        return np.asarray(nodes["first_edge"] + places, np.int32)


def count_bytes(levels: Levels) -> int:
    """Return how many bytes the layered graph of some levels would take."""
    arrays = levels.arrays
    counts = np.maximum(0, arrays.action_count)
    ends = np.concatenate(([0], np.cumsum(arrays.safe_count, dtype=np.int64)))
    outcomes = ends[arrays.first_action + counts] - ends[arrays.first_action]
    per_state = EDGE.itemsize * counts + TARGET.itemsize * outcomes
    return int(per_state[arrays.state].sum()) + NODE.itemsize * len(levels)


def write_layers(levels: Levels) -> Layers:
    """Return the layered graph of some levels."""
    arrays = levels.arrays
    nodes = np.zeros(len(levels), NODE)
    nodes["state"], nodes["level"] = arrays.state, levels.levels
    nodes["edge_count"] = np.maximum(0, arrays.action_count[arrays.state])
    if len(arrays.expanded):
        nodes["edge_count"][~arrays.expanded] = 0
    nodes["first_edge"] = starts(nodes["edge_count"])
    rows = ranges(arrays.first_action[arrays.state], nodes["edge_count"])
    edges = np.zeros(len(rows), EDGE)
    edges["action"], edges["risk"] = rows, arrays.immediate_risk[rows]
    level = np.repeat(nodes["level"], nodes["edge_count"])
    edges["reward"] = arrays.weights[level] * arrays.expected_reward[rows]
    edges["target_count"] = arrays.safe_count[rows]
    edges["first_target"] = starts(edges["target_count"])
    outcomes = ranges(arrays.first_outcome[rows], edges["target_count"])
    targets = np.zeros(len(outcomes), TARGET)
    targets["probability"] = arrays.probability[outcomes]
    level = np.repeat(level, edges["target_count"])
    targets["node"] = _find_nodes(levels, arrays.target[outcomes], level)
    return Layers(LayerArrays(nodes, edges, targets))


def _find_nodes(
    levels: Levels, states: NDArray[np.int32], level: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return the nodes of some states after a level each, in the order of nodes and rows."""
    arrays = levels.arrays
    found = np.full(len(states), END, np.int32)
    goes_on = (level + 2 < len(arrays.first)) & (arrays.action_count[states] != 0)
    if len(arrays.first_child):
        found[goes_on] = 1 + np.arange(int(goes_on.sum()))  # the root comes after nothing
        return found
    ends = np.searchsorted(level, np.arange(len(arrays.first)))
    places = np.zeros(len(arrays.action_count), np.int32)
    for k in range(len(arrays.first) - 2):
        here = np.arange(arrays.first[k + 1], arrays.first[k + 2])
        places[arrays.state[here]] = here
        span = slice(ends[k], ends[k + 1])
        found[span] = np.where(goes_on[span], places[states[span]], END)
    return found
