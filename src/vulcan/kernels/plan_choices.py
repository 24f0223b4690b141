"""What a price does in a history: the choice that plans are evaluated and written with.

Where the tree was sampled, the action of largest Q_λ. Below it, and where one step is left, the
action of largest

    γ^t R̄ - λ r + (1 - r) m,

with m what samples have collected on average from the next step on; 0 where one step is left, or
where the mission always ended after such an action.
"""

from __future__ import annotations

import numpy as np

from vulcan.kernels.compilation import part
from vulcan.kernels.selection import ends_mission
from vulcan.sentinels import NONE


@part
def prefer_sampled(problem, tree, number, lane):
    """Return the position of the sampled action that a price prefers; NONE if none was sampled."""
    node = tree.nodes[number]
    if node.visits == 0 or node.first_edge == NONE:
        return NONE
    chosen, best = NONE, -np.inf
    for k in range(problem.states[node.state].action_count):
        e = node.first_edge + k
        if tree.edges[e].visits > 0:
            value = np.float64(tree.edge_values[e, lane])
            if chosen == NONE or value > best:
                best, chosen = value, k
    return chosen


@part
def rate(returns, level, weight, price, to_go, action):
    """Return what an action promises, of which no sample says more."""
    worth = weight * action.expected_reward - price * action.immediate_risk
    if not ends_mission(returns[level], action):
        worth += (1.0 - action.immediate_risk) * to_go
    return worth
