"""Dynamic programs over the levels of a state graph (see `vulcan.graph.levels`).

With w the weight of reward and k the weight of risk, a sweep from the last level to the first
computes for each state–step pair n

    V(n) = max over the actions of n of   w γ^t R̄ - k r + Σ_safe p V(target),

with the policy that attains it, and the reward and risk of that policy from each pair on:
V = w reward - k risk. A sweep needs the values of two levels at a time, by state, so that it takes
no memory per pair unless its caller wants the result of each pair. A pair that is not expanded, a
tip, has given values.

The other kernels find the states of the next level when a graph is unrolled, and number the
decisions of a policy level by level.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.numerics import END, NONE

VALUE: Final = np.dtype([("reward", "f8"), ("risk", "f8")])
"""Reward and risk of a policy from a pair on."""


class LevelArrays(NamedTuple):
    """The levels of a state graph; see `vulcan.graph.levels`."""

    first: Any  # the pairs of level t are first[t] to first[t + 1] - 1
    state: Any  # of each pair
    expanded: Any  # whether each pair is expanded; empty if all are
    weights: Any  # γ^t of each level
    first_action: Any  # of each state: its actions are consecutive rows
    action_count: Any
    expected_reward: Any  # of each action row: R̄, r, and its safe outcomes, also consecutive
    immediate_risk: Any
    first_outcome: Any
    safe_count: Any
    probability: Any  # of each outcome, and the state that it leads to
    target: Any
    place: Any  # scratch, per state: its pair in the next level (`put_in_place`)


HOPELESS: Final = -1e300  # the value of pairs from which on no policy keeps a cap


@part
def find_level(levels, n):
    """Return the level of a pair; `np.searchsorted` takes half a second to compile."""
    low, high = 0, len(levels.first)
    while low < high:
        middle = (low + high) // 2
        if levels.first[middle] <= n:
            low = middle + 1
        else:
            high = middle
    return low - 1


@kernel
def sweep(levels, reward_weight, risk_weight, tips, two_levels, choice, values, begin, end):
    """Compute the best action and the value of each pair; ties go to the least risk.

    The pairs are numbers `begin` to `end` - 1: all pairs, whole levels, or a block of one level,
    once later levels are done. `choice` and `values` are filled if they have an entry per pair.
    `two_levels` is 0 before; in the end two_levels[0] has the value of the root.
    """
    levels = borrow(levels)
    tips, choice, values = borrow(tips), borrow(choice), borrow(values)
    last = find_level(levels, end - 1)
    for level in range(last, -1, -1):
        if levels.first[level + 1] <= begin:
            break
        after, here = borrow(two_levels[(level + 1) % 2]), borrow(two_levels[level % 2])
        top, bottom = max(begin, levels.first[level]), min(end, levels.first[level + 1])
        for n in range(top, bottom):
            state = levels.state[n]
            best, best_reward, best_risk, best_row = -np.inf, 0.0, 0.0, np.int32(NONE)
            if len(levels.expanded) > 0 and not levels.expanded[n]:
                best_reward, best_risk = tips[n].reward, tips[n].risk
            else:
                first = levels.first_action[state]
                for row in range(first, first + levels.action_count[state]):
                    reward, risk = follow(levels, after, level, row)
                    value = reward_weight * reward - risk_weight * risk
                    better = value > best
                    if value == best:
                        better = risk < best_risk or (risk == best_risk and reward > best_reward)
                    if better:
                        best, best_reward, best_risk, best_row = value, reward, risk, np.int32(row)
            here[state].reward, here[state].risk = best_reward, best_risk
            if len(choice) > 0:
                choice[n] = best_row
            if len(values) > 0:
                values[n].reward, values[n].risk = best_reward, best_risk


@part
def follow(levels, after, level, row):
    """Return reward and risk from an action on."""
    reward, risk = levels.weights[level] * levels.expected_reward[row], levels.immediate_risk[row]
    begin = levels.first_outcome[row]
    for o in range(begin, begin + levels.safe_count[row]):
        target = after[levels.target[o]]
        reward += levels.probability[o] * target.reward
        risk += levels.probability[o] * target.risk
    return reward, risk


@kernel
def sweep_several(levels, charges, weights, values, cap, least):
    """Fill the value, reward and charges from each pair on of the policy that is best for weights.

    `charges` has what each action row is charged, in any number of columns, and `weights` the
    weight of reward and the price of each charge. A pair's row of `values` has, in this order, the
    value weight · reward - Σ price · charge, the reward, and the charges. Ties go to the first
    action. Unless `least`, of `find_least_risks`, is empty, actions after which the risk can't stay
    within the cap are not taken, and pairs without any other have the value `HOPELESS`.
    """
    levels, charges, least = borrow(levels), borrow(charges), borrow(least)
    weights, values = borrow(weights), borrow(values)
    width = charges.shape[1]
    for level in range(len(levels.first) - 2, -1, -1):
        if level + 2 < len(levels.first):
            put_in_place(levels, level + 1)
        for n in range(levels.first[level], levels.first[level + 1]):
            row = find_best_row(levels, charges, weights, values, level, n, cap, least)
            values[n, 1] = levels.weights[level] * levels.expected_reward[row]
            for k in range(width):
                values[n, 2 + k] = charges[row, k]
            begin = levels.first_outcome[row]
            for o in range(begin, begin + levels.safe_count[row]):
                after = find_next(levels, level, o)
                if after >= 0:
                    for k in range(1, 2 + width):
                        values[n, k] += levels.probability[o] * values[after, k]
            values[n, 0] = weights[0] * values[n, 1]
            for k in range(width):
                values[n, 0] -= weights[1 + k] * values[n, 2 + k]
            if len(least) > 0 and least[n] == np.inf:
                values[n, 0] = HOPELESS


@kernel
def find_least_risks(levels, charges, cap, least):
    """Fill the least risk from each pair on where it stays within a cap; inf where it can't."""
    levels, charges, least = borrow(levels), borrow(charges), borrow(least)
    for level in range(len(levels.first) - 2, -1, -1):
        if level + 2 < len(levels.first):
            put_in_place(levels, level + 1)
        for n in range(levels.first[level], levels.first[level + 1]):
            first, least[n] = levels.first_action[levels.state[n]], np.inf
            for row in range(first, first + levels.action_count[levels.state[n]]):
                risk = add_least_risk(levels, charges, level, row, least)
                if risk <= cap:
                    least[n] = min(least[n], risk)


@part
def add_least_risk(levels, charges, level, row, least):
    """Return the least risk from an action on; the next level is in place."""
    risk, begin = charges[row, 0], levels.first_outcome[row]
    for o in range(begin, begin + levels.safe_count[row]):
        after = find_next(levels, level, o)
        if after >= 0:
            risk += levels.probability[o] * least[after]
    return risk


@part
def find_best_row(levels, charges, weights, values, level, n, cap, least):
    """Return the action row of the largest value in a pair; its next level is in place."""
    first = levels.first_action[levels.state[n]]
    best, best_row = -np.inf, first
    for row in range(first, first + levels.action_count[levels.state[n]]):
        if len(least) > 0 and add_least_risk(levels, charges, level, row, least) > cap:
            continue
        value = value_row(levels, charges, weights, values, level, row)
        if value > best:
            best, best_row = value, row
    return best_row


@part
def value_row(levels, charges, weights, values, level, row):
    """Return the largest value from an action on; the next level is in place."""
    value = weights[0] * levels.weights[level] * levels.expected_reward[row]
    for k in range(charges.shape[1]):
        value -= weights[1 + k] * charges[row, k]
    begin = levels.first_outcome[row]
    for o in range(begin, begin + levels.safe_count[row]):
        after = find_next(levels, level, o)
        if after >= 0:
            value += levels.probability[o] * values[after, 0]
    return value


@kernel
def choose_several(levels, charges, weights, values, choice, cap, least):
    """Fill the action row that the policy of `sweep_several` takes in each pair."""
    levels, charges, least = borrow(levels), borrow(charges), borrow(least)
    weights, values, choice = borrow(weights), borrow(values), borrow(choice)
    for level in range(len(levels.first) - 2, -1, -1):
        if level + 2 < len(levels.first):
            put_in_place(levels, level + 1)
        for n in range(levels.first[level], levels.first[level + 1]):
            choice[n] = find_best_row(levels, charges, weights, values, level, n, cap, least)


@kernel
def evaluate_edges(layers, choice, rewards, risks):
    """Fill reward and risk from each node on of the policy that takes an edge in each node."""
    nodes, edges, targets = borrow(layers)
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


@part
def put_in_place(levels, level):
    """Record the pair of each state of a level."""
    for n in range(levels.first[level], levels.first[level + 1]):
        levels.place[levels.state[n]] = n


@part
def find_next(levels, level, o):
    """Return the pair after an outcome at a level, END if the history ends there."""
    state = levels.target[o]
    if level + 2 >= len(levels.first) or levels.action_count[state] == 0:
        return END
    return levels.place[state]


@kernel
def find_following(states, actions, outcomes, here, level, last_seen, following):
    """Fill the states that a level leads to, each once, and return their number.

    `here` has the expanded states of the level, and `last_seen` the last level that led to each
    state.
    """
    states, actions, outcomes = borrow(states), borrow(actions), borrow(outcomes)
    here, last_seen, following = borrow(here), borrow(last_seen), borrow(following)
    count = 0
    for k in range(len(here)):
        state = states[here[k]]
        for a in range(state.first_action, state.first_action + state.action_count):
            action = actions[a]
            for o in range(action.first_outcome, action.first_outcome + action.safe_count):
                target = outcomes[o].state
                if last_seen[target] != level:
                    last_seen[target] = level
                    following[count] = target
                    count += 1
    return count


DECISION: Final = np.dtype([("pair", "i4"), ("row", "i4"), ("first_way", "i4")])
"""An explicit decision and the index of its first successor in `ways`."""


@kernel
def number_decisions(levels, choice, given, ways, found):
    """Assign numbers to decisions level by level; return the number of decisions and of children.

    Each row of `choice` has the action row of each pair, NONE for a tip. `given` are explicit
    decisions, the root first, and `ways` has for each of their safe outcomes the given decision
    that follows, or NONE - k where row k of `choice` does. The arrays of `found` are filled: row,
    pair and given decision (or NONE - k) of each decision, and one child for each of its safe
    outcomes. The last array is scratch, -1 before: for each row of `choice`, the decision of each
    state.
    """
    levels, choice = borrow(levels), borrow(choice)
    given, ways = borrow(given), borrow(ways)
    rows, pairs, own, children, numbers = borrow(found)
    count, written, begin = 1, 0, 0
    pairs[0], own[0] = 0, 0 if len(given) > 0 else NONE
    for level in range(len(levels.first) - 1):
        last = level + 2 == len(levels.first)
        if not last:
            put_in_place(levels, level + 1)
        end = count
        for decision in range(begin, end):
            after, way = own[decision], NONE
            if after >= 0:
                row, way = given[after].row, given[after].first_way
            else:
                row = choice[NONE - after, pairs[decision]]
            rows[decision] = row
            if row == NONE:
                continue
            first = levels.first_outcome[row]
            for k in range(levels.safe_count[row]):
                state = levels.target[first + k]
                if way != NONE:
                    after = ways[way + k]
                if last or levels.action_count[state] == 0:
                    children[written] = END
                elif after >= 0:
                    pairs[count], own[count] = given[after].pair, after
                    children[written] = count
                    count += 1
                else:
                    if numbers[NONE - after, state] < end:
                        pairs[count], own[count] = levels.place[state], after
                        numbers[NONE - after, state] = count
                        count += 1
                    children[written] = numbers[NONE - after, state]
                written += 1
        begin = end
    return count, written
