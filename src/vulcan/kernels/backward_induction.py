"""Dynamic programs over a layered graph (see `vulcan.graphs.layered_graph`).

With w the weight of reward and k that of risk, a sweep from the last node to the first finds

    V(n) = max over the edges e of n of   w reward(e) - k risk(e) + Σ_safe p V(target),

and with it the policy that attains it, and what that policy earns and risks from each node on:
V = w reward - k risk. A node without edges keeps what `rewards` and `risks` held for it.
"""

from __future__ import annotations

import numpy as np

from vulcan.kernels.compilation import borrow, kernel, part

__all__ = ["borrow_layers", "evaluate", "sweep"]


@part
def borrow_layers(layers):
    """Return the arrays of a layered graph without counted references."""
    return borrow(layers.nodes), borrow(layers.edges), borrow(layers.targets)


@part
def follow(edges, targets, rewards, risks, e):
    """Return reward and risk of an edge and all that comes after it."""
    edge = edges[e]
    reward, risk = edge.reward, edge.risk
    for t in range(edge.first_target, edge.first_target + edge.target_count):
        target = targets[t]
        if target.node >= 0:
            reward += target.probability * rewards[target.node]
            risk += target.probability * risks[target.node]
    return reward, risk


@kernel
def sweep(layers, reward_weight, risk_weight, rewards, risks, choice):
    """Fill reward, risk and best edge of each node; among equals the one of least risk wins."""
    nodes, edges, targets = borrow_layers(layers)
    rewards, risks, choice = borrow(rewards), borrow(risks), borrow(choice)
    for n in range(len(nodes) - 1, -1, -1):
        node = nodes[n]
        best = -np.inf
        for e in range(node.first_edge, node.first_edge + node.edge_count):
            reward, risk = follow(edges, targets, rewards, risks, e)
            value = reward_weight * reward - risk_weight * risk
            better = value > best
            if value == best:
                better = risk < risks[n] or (risk == risks[n] and reward > rewards[n])
            if better:
                best = value
                rewards[n], risks[n], choice[n] = reward, risk, e


@kernel
def evaluate(layers, choice, rewards, risks):
    """Fill what a given policy earns and risks from each node on."""
    nodes, edges, targets = borrow_layers(layers)
    choice, rewards, risks = borrow(choice), borrow(rewards), borrow(risks)
    for n in range(len(nodes) - 1, -1, -1):
        if nodes[n].edge_count > 0:
            rewards[n], risks[n] = follow(edges, targets, rewards, risks, choice[n])
