"""What a search knew when it ended, for another one that begins further on.

A search keeps what the model said (a state graph) and what samples found (a tree for several
prices, `vulcan.kernels.price_tree`). Once some decisions were taken, all that lies below the
history is still true, and what lies beside it is not needed any more. Where states merge, the
graph goes on as a whole, with another root. Where every history is a state of its own, what is
below the history is cut out, rows and nodes alike, and the rest is let go.

In a tree rewards are weighed as seen from its root, so that after some decisions with discount w
the values, rewards and prices of what is cut out are divided by w:

    V_λ / w  is the value for the price  λ / w.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.array_graph import ArrayGraph
from vulcan.graphs.base import Graph, renumber
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.reader import ModelReader
from vulcan.runtime.ranges import ranges
from vulcan.sentinels import NONE

__all__ = ["Knowledge", "Path", "cut_tree"]

Path = Sequence[tuple[str, int]]
"""Decisions so far: the label of the action, and the position of what happened."""


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What a search knew.

    Attributes
    ----------
    graph
        What the model said.
    tree
        A `PriceTree`, as far as its arrays are filled; None without one.
    level
        How many decisions of the mission came before.
    """

    graph: Graph
    tree: Any = None
    level: int = 0

    def begin_at(self, reader: ModelReader, path: Path) -> Knowledge | None:
        """Return what is known below a history; None if nothing is.

        Parameters
        ----------
        reader
            The model of what is left, which begins there.
        path
            All decisions of the mission so far.
        """
        graph, level = self.graph, len(path)
        if isinstance(graph, ArrayGraph):
            return None  # such a model has it all in its own arrays
        if graph.merges:
            assert isinstance(graph, StateGraph)
            graph.begin_at(reader)
            return Knowledge(graph, None, level)
        found = self._find(path[self.level :])
        if found is None:
            return None
        state, node = found
        below = graph.cut(state, reader)
        if below is None:
            return None
        weight = float(graph.reader.weights[level - self.level])
        tree = None
        if node != NONE and self.tree.nodes["visits"][node] and weight > 0:
            tree = _begin_with(cut_tree(self.tree, node, below[1]), weight)
        return Knowledge(below[0], tree, level)

    def _find(self, path: Path) -> tuple[int, int] | None:
        """Return the state after some decisions, and its node or NONE; None if it is not known."""
        graph, state = self.graph, Graph.ROOT
        node = NONE if self.tree is None else 0
        for label, position in path:
            labels = graph.action_labels(state)
            if label not in labels:
                return None
            k = labels.index(label)
            action = graph.actions.array[graph.states.array["first_action"][state] + k]
            if action["first_outcome"] == NONE or not 0 <= position < action["safe_count"]:
                return None
            state = int(graph.outcomes.array["state"][action["first_outcome"] + position])
            if state < 0:
                return None
            first = NONE
            if node != NONE and self.tree.nodes["first_edge"][node] != NONE:
                edge = self.tree.nodes["first_edge"][node] + k
                first = self.tree.edges["first_child"][edge]
            node = NONE if first == NONE else int(first) + position
        return state, node


def _begin_with(tree: Any, weight: float) -> Any:
    """Return a tree as seen from its root, after decisions with a discount."""
    nodes, edges, share = tree.nodes, tree.edges, np.float32(weight)
    nodes["level"] -= nodes["level"][0]
    nodes["plan"] = nodes["lane"] = NONE
    for rows, names in ((nodes, ("reward", "outlook")), (edges, ("reward",))):
        for name in names:
            rows[name] /= weight
    return tree._replace(
        node_values=tree.node_values / share,
        edge_values=tree.edge_values / share,
        prices=tree.prices / share,
    )


def cut_tree(
    tree: Any, root: int, states: NDArray[np.intp], scratch: Sequence[NDArray[np.intp]] = ()
) -> Any:
    """Return what is below a node as a tree of its own.

    Parameters
    ----------
    tree, root
        The tree and the node.
    states
        The new numbers of states.
    scratch
        Arrays for the numbers of nodes and edges; see `Graph.cut_into`.
    """
    kept_nodes, kept_edges = _list_below(tree, root)
    nodes, edges = tree.nodes[kept_nodes], tree.edges[kept_edges]
    places = scratch or (None, None)
    node_numbers = renumber(kept_nodes, len(tree.nodes), places[0])
    edge_numbers = renumber(kept_edges, len(tree.edges), places[1])
    opened, followed = nodes["first_edge"] != NONE, edges["first_child"] != NONE
    nodes["first_edge"][opened] = edge_numbers[nodes["first_edge"][opened]]
    edges["first_child"][followed] = node_numbers[edges["first_child"][followed]]
    nodes["state"] = states[nodes["state"]]
    sizes = np.zeros_like(tree.sizes)
    sizes["nodes"], sizes["edges"] = len(nodes), len(edges)
    return tree._replace(
        nodes=nodes,
        edges=edges,
        node_values=tree.node_values[kept_nodes],
        edge_values=tree.edge_values[kept_edges],
        prices=tree.prices.copy(),
        sizes=sizes,
    )


def _list_below(tree: Any, root: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return nodes and edges below a node, itself included, level by level."""
    nodes, edges = [np.array([root], np.intp)], [np.zeros(0, np.intp)]
    while len(nodes[-1]):
        here = tree.nodes[nodes[-1]]
        opened = here[here["first_edge"] != NONE]
        edges.append(ranges(opened["first_edge"], opened["edge_count"]))
        taken = tree.edges[edges[-1]]
        taken = taken[taken["first_child"] != NONE]
        nodes.append(ranges(taken["first_child"], taken["children"]))
    return np.concatenate(nodes), np.concatenate(edges)
