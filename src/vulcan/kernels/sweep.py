"""Dynamic programs over a layered graph (see `vulcan.layers`).

With w the weight of reward and k that of risk, a sweep from the last node to the first finds

    V(n) = max over the edges e of n of   w reward(e) - k risk(e) + Σ_safe p V(target),

and with it the policy that attains it, and what that policy earns and risks from each node on:
V = w reward - k risk. A node without edges keeps what `rewards` and `risks` held for it.
"""

from __future__ import annotations

import numpy as np

from vulcan.kernels.compile import borrow, kernel, part

__all__ = ["blend", "evaluate", "reach_forwards", "sweep"]


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


@kernel
def reach_forwards(layers, choice, reach):
    """Fill the probability that a policy reaches each node."""
    nodes, edges, targets = borrow_layers(layers)
    choice, reach = borrow(choice), borrow(reach)
    reach[:] = 0.0
    reach[0] = 1.0
    for n in range(len(nodes)):
        if reach[n] > 0 and nodes[n].edge_count > 0:
            spread(edges, targets, choice[n], reach, n)


@part
def spread(edges, targets, e, reach, n):
    """Pass the probability of a node on to the targets of an edge."""
    edge = edges[e]
    for t in range(edge.first_target, edge.first_target + edge.target_count):
        target = targets[t]
        if target.node >= 0:
            reach[target.node] += reach[n] * target.probability


@kernel
def blend(layers, choice, daring, rewards, risks, reach, limit):
    """Let a policy dare what another dares, node by node, as long as the risk stays acceptable.

    The policy `choice` earns and risks `rewards` and `risks` from each node on. Going forwards, a
    node takes the edge of `daring` if that earns more and its risk stays below a line; what comes
    after it still follows `choice`, so that the change is exactly reach times the difference.

    Parameters
    ----------
    limit
        The line (at, value, slope), and the largest reward up to which it is below the bound.
    """
    nodes, edges, targets = borrow_layers(layers)
    choice, daring, reach = borrow(choice), borrow(daring), borrow(reach)
    rewards, risks = borrow(rewards), borrow(risks)
    at, allowed, slope, most = limit
    reach[:] = 0.0
    reach[0] = 1.0
    reward, risk = rewards[0], risks[0]
    for n in range(len(nodes)):
        if reach[n] == 0 or nodes[n].edge_count == 0:
            continue
        if daring[n] != choice[n]:
            after, danger = follow(edges, targets, rewards, risks, daring[n])
            more = reward + reach[n] * (after - rewards[n])
            danger = risk + reach[n] * (danger - risks[n])
            if reward < more <= most and danger <= allowed + slope * (more - at):
                reward, risk = more, danger
                choice[n] = daring[n]
        spread(edges, targets, choice[n], reach, n)
