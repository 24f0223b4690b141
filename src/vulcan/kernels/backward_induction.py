"""Dynamic programs over the levels of a state graph (see `vulcan.graphs.levels`).

With w the weight of reward and k that of risk, a sweep from the last level to the first finds

    V(n) = max over the actions of n of   w γ^t R̄ - k r + Σ_safe p V(target),

and with it the policy that attains it, and what that policy earns and risks from each node on:
V = w reward - k risk. Only the values of a level and the next are needed at a time, by state (or by
place in the level, where every history is a node), so that a sweep takes no memory per node but
what its caller asks for. A node that is not expanded, a tip, has the values that it is given.
"""

from __future__ import annotations

import numpy as np

from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.level_arrays import borrow_levels
from vulcan.sentinels import NONE

__all__ = ["sweep"]


@part
def follow(levels, after, level, row, child):
    """Return reward and risk of an action and all that comes after it, and the next child."""
    reward, risk = levels.weights[level] * levels.expected_reward[row], levels.immediate_risk[row]
    begin = levels.first_outcome[row]
    for o in range(begin, begin + levels.safe_count[row]):
        place = levels.target[o]
        if child != NONE:  # every history is a node
            if levels.action_count[place] == 0:
                continue
            place = child
            child += 1
        reward += levels.probability[o] * after[place].reward
        risk += levels.probability[o] * after[place].risk
    return reward, risk, child


@part
def find_place(levels, level, n):
    """Return where the value of a node is kept, and where those of its children begin."""
    if len(levels.first_child) == 0:
        return levels.state[n], np.int32(NONE)
    place = np.int32(n - levels.first[level])
    if level + 2 == len(levels.first):
        return place, np.int32(NONE)  # all that comes after is 0
    return place, np.int32(levels.first_child[n] - levels.first[level + 1])


@kernel
def sweep(levels, reward_weight, risk_weight, tips, pair, choice, values, begin, end):
    """Fill the best action of each node and its value; among equals the one of least risk wins.

    It does so for the nodes from `begin` to `end` - 1: all nodes, whole levels, or a block of one,
    once the levels after them are done.

    `choice` and `values` are filled if they have an entry per node. `pair` has room for two levels,
    and is 0 before; in the end pair[0] has the value of the root.
    """
    levels = borrow_levels(levels)
    tips, choice, values = borrow(tips), borrow(choice), borrow(values)
    last = np.searchsorted(levels.first, end - 1, side="right") - 1
    for level in range(last, -1, -1):
        if levels.first[level + 1] <= begin:
            break
        after, here = borrow(pair[(level + 1) % 2]), borrow(pair[level % 2])
        top, bottom = max(begin, levels.first[level]), min(end, levels.first[level + 1])
        for n in range(top, bottom):
            place, child = find_place(levels, level, n)
            best, best_reward, best_risk, best_row = -np.inf, 0.0, 0.0, np.int32(NONE)
            if len(levels.expanded) > 0 and not levels.expanded[n]:
                best_reward, best_risk = tips[n].reward, tips[n].risk
            else:
                first = levels.first_action[levels.state[n]]
                for row in range(first, first + levels.action_count[levels.state[n]]):
                    reward, risk, child = follow(levels, after, level, row, child)
                    value = reward_weight * reward - risk_weight * risk
                    better = value > best
                    if value == best:
                        better = risk < best_risk or (risk == best_risk and reward > best_reward)
                    if better:
                        best, best_reward, best_risk, best_row = value, reward, risk, np.int32(row)
            here[place].reward, here[place].risk = best_reward, best_risk
            if len(choice) > 0:
                choice[n] = best_row
            if len(values) > 0:
                values[n].reward, values[n].risk = best_reward, best_risk
