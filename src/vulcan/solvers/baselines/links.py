"""How the nodes of a layered graph hang together, for solvers that look at all of it at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.layered_graph import Layers

__all__ = ["Choice", "Floats", "Links", "judge", "pick_edges"]

Floats = NDArray[np.float64]
Choice = NDArray[np.int32]
"""An edge for each node."""


class Links:
    """Which edges of a layered graph lead to which nodes.

    Attributes
    ----------
    owner
        The node of each edge.
    edge, source, node, probability
        Of each link: its edge, the nodes that it leads from and to, and how likely it does.
        Outcomes of an edge that lead to the same node are one link.
    levels
        The links that start in each level.
    """

    def __init__(self, layers: Layers) -> None:
        nodes, edges, targets = layers.arrays
        self.owner = np.repeat(np.arange(len(nodes)), nodes["edge_count"])
        edge = np.repeat(np.arange(len(edges)), edges["target_count"])
        inner = targets["node"] >= 0
        pairs = edge[inner] * len(nodes) + targets["node"][inner]
        links, which = np.unique(pairs, return_inverse=True)
        self.edge, self.node = np.divmod(links, len(nodes))
        self.probability = np.bincount(which, targets["probability"][inner], len(links))
        self.source = self.owner[self.edge]
        level = nodes["level"][self.source]
        self.levels = [np.flatnonzero(level == k) for k in range(int(nodes["level"][-1]))]

    def reach(self, choice: Choice) -> Floats:
        """Return the probability of being in each node under a policy."""
        taken = np.zeros(len(self.owner), bool)
        taken[choice] = True
        reach = np.zeros(len(choice))
        reach[0] = 1.0
        for level in self.levels:
            links = level[taken[self.edge[level]]]
            arriving = reach[self.source[links]] * self.probability[links]
            np.add.at(reach, self.node[links], arriving)
        return reach

    def find_single(self, nodes: int) -> NDArray[np.bool_]:
        """Return whether there is a single way from the root to each of this many nodes."""
        single = np.asarray(np.bincount(self.node, minlength=nodes) == 1)
        single[0] = True
        for links in self.levels:
            single[self.node[links]] &= single[self.source[links]]
        return single

    def find_most(self, nodes: int) -> Floats:
        """Return a bound on the probability of being in each node; exact where a way is single.

        A policy takes one edge of a node, so that of those that lead from one node to another the
        likeliest counts; those of different nodes add up.
        """
        most = np.zeros(nodes)
        most[0] = 1.0
        for links in self.levels:
            source, node = self.source[links], self.node[links]
            pairs, which = np.unique(source * nodes + node, return_inverse=True)
            arriving = np.zeros(len(pairs))
            np.maximum.at(arriving, which, most[source] * self.probability[links])
            np.add.at(most, pairs % nodes, arriving)
            np.minimum(most, 1.0, out=most)
        return np.maximum(most, np.finfo(float).tiny)  # what is too small for a float is no 0


def judge(layers: Layers, choice: Choice) -> tuple[float, float]:
    """Return exactly what the policy earns and risks that takes an edge in each node."""
    from vulcan.kernels.layer_arrays import evaluate_edges

    rewards, risks = np.zeros(len(layers)), np.zeros(len(layers))
    evaluate_edges(layers.arrays, choice, rewards, risks)
    return float(rewards[0]), float(risks[0])


def pick_edges(layers: Layers, values: Floats) -> Choice:
    """Return the edge of largest value of each node; the first one among equals."""
    nodes = layers.arrays.nodes
    largest = np.maximum.reduceat(values, nodes["first_edge"])
    places = np.flatnonzero(values == np.repeat(largest, nodes["edge_count"]))
    owners = np.repeat(np.arange(len(layers)), nodes["edge_count"])[places]
    return places[np.unique(owners, return_index=True)[1]].astype(np.int32)
