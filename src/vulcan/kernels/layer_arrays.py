"""What kernels are given of a layered graph (see `vulcan.graphs.layered_graph`)."""

from __future__ import annotations

from vulcan.kernels.compilation import borrow, kernel, part

__all__ = ["borrow_layers", "evaluate_edges"]


@part
def borrow_layers(layers):
    """Return the arrays of a layered graph without counted references."""
    return borrow(layers.nodes), borrow(layers.edges), borrow(layers.targets)


@kernel
def evaluate_edges(layers, choice, rewards, risks):
    """Fill what a policy earns and risks from each node on that takes an edge in each."""
    nodes, edges, targets = borrow_layers(layers)
    choice, rewards, risks = borrow(choice), borrow(rewards), borrow(risks)
    for n in range(len(nodes) - 1, -1, -1):
        if nodes[n].edge_count == 0:
            continue
        edge = edges[choice[n]]
        rewards[n], risks[n] = edge.reward, edge.risk
        for t in range(edge.first_target, edge.first_target + edge.target_count):
            target = targets[t]
            if target.node >= 0:
                rewards[n] += target.probability * rewards[target.node]
                risks[n] += target.probability * risks[target.node]
