"""Plans over a tree with several prices: the upper tree, evaluations below it, and policies.

**The choice of a price** in a history is, where the tree was sampled, the action of largest Q_λ.
Below the tree, and where one step is left, it is the action of largest

    γ^t R̄ - λ r + (1 - r) m,

with m the mean reward of samples from the next step on; 0 where one step is left, or
where the mission always ended after such an action.

**The upper tree of a plan** is a layered graph, on which fronts are computed. It grows from the
root, the most probable history first, until it has as many nodes as are wanted; upper nodes of the
search (`vulcan.kernels.price_tree`) come before all others. A history is expanded if it was sampled
often enough. Of its actions, the best for each price belong to the graph, and those that are close:
reach · (V_λ - Q_λ) <= closeness for some price. The nodes that are not expanded are *leaves*: a
leaf has an edge for each policy that is known from there on, without targets
(`vulcan.sampling.plan`). A history with one step left has all its actions.

The graph is that of `vulcan.graph.levels`, but `state` of a node is its history, a node of the
tree, and `action` of an edge the position of the action, or the price of a leaf.

**An evaluation** walks the policies of several prices from a history on, exactly and together. The
policies are shared as far as they agree: the walk goes through each history once for all prices
that reach it, and splits where they choose differently. Histories below the tree are walked as
well, to their end. Of a compiled model nothing is stored there: states are records in a scratch
array, one level below the other. A walk stops where a model in Python must be evaluated, and goes
on afterwards.

**A plan is written out** as a policy in preorder. The upper tree has actions of its own (`plan` of
a node), and below it each history follows one price (`price_index`). Nodes outside of the tree, and
their actions, are added to the rows of the graph as the walk reaches them.

    rows    [n]     the action row of each decision
    firsts  [n + 1] the first entry of each decision in
    below   [m]     the next decision after each safe outcome, or END

Reward and risk of the policy are sums over all decisions, weighted by the probability of reaching
them.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.kernels import codes
from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.exact_front import value_edge
from vulcan.kernels.expand import (
    call_outcomes,
    find_record,
    have_actions,
    have_outcomes,
    sum_up,
)
from vulcan.kernels.paper_tree import ends_mission, expect
from vulcan.kernels.price_tree import PRICES
from vulcan.numerics import END, NONE


@part
def prefer_sampled(problem, tree, number, price_index):
    """Return the position of the sampled action that a price prefers; NONE if none was sampled."""
    node = tree.nodes[number]
    if node.visits == 0 or node.first_edge == NONE:
        return NONE
    chosen, best = NONE, -np.inf
    for k in range(problem.states[node.state].action_count):
        e = node.first_edge + k
        if tree.edges[e].visits > 0:
            value = np.float64(tree.edge_values[e, price_index])
            if chosen == NONE or value > best:
                best, chosen = value, k
    return chosen


@part
def rate(returns, level, weight, price, to_go, action):
    """Return the estimate of an action that was not sampled."""
    worth = weight * action.expected_reward - price * action.immediate_risk
    if not ends_mission(returns[level], action):
        worth += (1.0 - action.immediate_risk) * to_go
    return worth


GROWTH: Final = np.dtype(
    [
        ("nodes", "i8"),
        ("edges", "i8"),
        ("targets", "i8"),
        ("state", "i8"),  # to be evaluated
        ("most", "i8"),  # the largest number of nodes
        ("fewest_visits", "i8"),
        ("closeness", "f8"),
    ],
    align=True,
)


UNQUEUED: Final = -1.0


class UpperArrays(NamedTuple):
    """The arrays of an upper tree: a layered graph, and what is known of its nodes.

    `priority` gives the order of expansion: upper nodes of the search first, then the most probable
    nodes; UNQUEUED for nodes that stay leaves, or are expanded already.
    """

    nodes: Any
    edges: Any
    targets: Any
    reach: Any  # the probability of each node, given its actions
    priority: Any
    growth: Any  # one record


@kernel
def grow_upper_tree(problem, tree, upper_nodes, judged, upper):
    """Expand an upper tree from its first nodes on; return DONE or a need."""
    problem, tree, judged = borrow(problem), borrow(tree), borrow(judged)
    upper = borrow(upper)
    growth = upper.growth[0]
    # The highest priority first; ties go to the smallest number.
    heap = [(-upper.priority[n], n) for n in range(growth.nodes) if upper.priority[n] != UNQUEUED]
    heapify(heap)
    while len(heap) > 0 and growth.nodes < growth.most:
        n = heap[0][1]
        node = tree.nodes[upper.nodes[n].state]
        last = node.level + 1 == len(problem.discounts)
        if last:
            growth.state = node.state
            status = have_actions(problem, node.state)
            if status != codes.KNOWN:
                return status
        added = growth.nodes
        status = expand(problem, tree, upper_nodes, judged, upper, growth, n, last)
        if status != codes.GO_ON:
            return status
        heappop(heap)
        upper.priority[n] = UNQUEUED
        for m in range(added, growth.nodes):
            if upper.priority[m] != UNQUEUED:
                heappush(heap, (-upper.priority[m], m))
    return codes.DONE


@part
def expand(problem, tree, upper_nodes, judged, upper, growth, n, last):
    """Add the edges of a node, and the nodes after them."""
    number = upper.nodes[n].state
    node = tree.nodes[number]
    state = problem.states[node.state]
    if growth.edges + state.action_count > len(upper.edges):
        return codes.NEEDS_ROOM
    edges, targets, nodes = growth.edges, growth.targets, growth.nodes
    for k in range(state.action_count):
        if not last and not belongs(
            tree, judged, node, number, upper.reach[n], growth.closeness, k
        ):
            continue
        action = problem.actions[state.first_action + k]
        edge = upper.edges[edges]
        edge.reward = problem.weights[node.level] * action.expected_reward
        edge.risk, edge.action = action.immediate_risk, k
        edge.first_target, edge.target_count = targets, 0
        edges += 1
        first = NONE if last else tree.edges[node.first_edge + k].first_child
        if first == NONE:
            continue
        if targets + action.safe_count > len(upper.targets):
            return codes.NEEDS_ROOM
        if nodes + action.safe_count > len(upper.nodes):
            return codes.NEEDS_ROOM
        edge.target_count = action.safe_count
        for j in range(action.safe_count):
            target = upper.targets[targets + j]
            target.probability = problem.outcomes[action.first_outcome + j].probability
            target.node = END
            if problem.states[tree.nodes[first + j].state].action_count != 0:
                target.node = nodes
                upper.nodes[nodes].state, upper.nodes[nodes].level = first + j, node.level + 1
                upper.nodes[nodes].first_edge, upper.nodes[nodes].edge_count = NONE, 0
                upper.reach[nodes] = upper.reach[n] * target.probability
                nodes += 1
        targets += action.safe_count
    upper.nodes[n].first_edge, upper.nodes[n].edge_count = growth.edges, edges - growth.edges
    for m in range(growth.nodes, nodes):
        number = upper.nodes[m].state
        upper.priority[m] = upper.reach[m]
        for k in range(len(upper_nodes)):
            if upper_nodes[k] == number:
                upper.priority[m] += 1.0
        node = tree.nodes[number]
        often = node.first_edge != NONE and (node.solved != 0 or node.visits > growth.fewest_visits)
        often = node.visits > 0 if node.level + 1 == len(problem.discounts) else often
        if upper.priority[m] <= 1.0 and not often:
            upper.priority[m] = UNQUEUED
    growth.edges, growth.targets, growth.nodes = edges, targets, nodes
    return codes.GO_ON


@part
def belongs(tree, judged, node, number, reach, closeness, k):
    """Whether an action is the best for some price, or close to it and all its outcomes sampled."""
    e = node.first_edge + k
    if tree.edges[e].visits == 0:
        return False
    if node.level == 0:
        best = -np.inf
        for i in range(len(judged)):
            best = max(best, judged[i].reward)
        if judged[k].reward >= best - 4.0 * closeness:
            return True
    close = False
    for price_index in range(PRICES):
        gap = np.float64(tree.node_values[number, price_index]) - tree.edge_values[e, price_index]
        if gap <= 0.0:
            return True
        close = close or (node.level > 0 and reach * gap <= closeness)
    edge = tree.edges[e]
    for c in range(edge.first_child, edge.first_child + edge.children):
        close = close and tree.nodes[c].visits > 0
    return close


@kernel
def estimate_leaves(values, prices, nodes, edges, leaves):
    """Fill the edges of leaves, one for each price, with the estimates of the tree.

    V is convex in the price, and its slope is the risk of the best policy:
    between two prices about (V_λ - V_λ') / (λ' - λ).
    """
    for n in leaves:
        first = nodes[n].first_edge
        nodes[n].edge_count = PRICES - 1
        least = np.inf
        for price_index in range(PRICES - 1):
            low, high = np.float64(prices[0, price_index]), np.float64(prices[0, price_index + 1])
            one, other = np.float64(values[n, price_index]), np.float64(values[n, price_index + 1])
            risk = min(least, max(0.0, (one - other) / max(high - low, 1e-300)))
            least = risk
            edge = edges[first + price_index]
            edge.risk, edge.reward = risk, min(one + low * risk, other + high * risk)
            edge.action, edge.first_target, edge.target_count = price_index, 0, 0


@kernel
def value_layers(layers, price, values):
    """Fill the largest reward - price · risk from each node of a layered graph on."""
    nodes, edges, targets = layers.nodes, layers.edges, layers.targets
    for n in range(len(nodes) - 1, -1, -1):
        values[n] = -1e300 if nodes[n].edge_count == 0 else -np.inf
        for e in range(nodes[n].first_edge, nodes[n].first_edge + nodes[n].edge_count):
            values[n] = max(values[n], value_edge(edges, targets, values, price, e))


ENTER: Final = 0
NEXT_ACTION: Final = 1
NEXT_OUTCOME: Final = 2

FRAME: Final = np.dtype(
    [
        ("record", "u8"),  # of the state, of a compiled model
        ("state", "i4"),  # its row, of a model in Python
        ("node", "i4"),  # NONE below the tree
        ("price_mask", "i4"),  # the prices that reach this history, as bits
        ("done", "i4"),
        ("group", "i4"),  # the prices that take the current action
        ("phase", "i4"),
        ("action", "i4"),
        ("first_child", "i4"),  # of the current action in the tree; NONE below
        ("first_outcome", "i4"),
        ("outcomes", "i4"),
        ("outcome", "i4"),
        ("ends", "i4"),
        ("reward", "f8"),
        ("risk", "f8"),
        ("chosen", "i4", (PRICES,)),
        ("best", "f8", (PRICES,)),
        ("rewards", "f8", (PRICES,)),  # of the current action
        ("risks", "f8", (PRICES,)),
        ("earned", "f8", (PRICES,)),  # from this history on
        ("risked", "f8", (PRICES,)),
    ],
    align=True,
)
WALK: Final = np.dtype(
    [
        ("level", "i8"),  # where the walk begins
        ("depth", "i8"),
        ("work", "i8"),
        ("pause", "i8"),
        ("state", "i8"),  # to be evaluated
        ("scratch", "u8"),  # address of the records below the tree
        ("evaluations", "i8"),
    ],
    align=True,
)


@kernel
def evaluate(problem, tree, returns, walk):
    """Walk until all is summed up in the first frame, or something is needed.

    The walk is a tuple: frames; the probabilities of the outcomes of the current action on each
    level; one row of an action, and one control record.
    """
    problem, tree, returns = borrow(problem), borrow(tree), borrow(returns)
    walk = borrow(walk)
    frames, _, _, controls = walk
    control = controls[0]
    while True:
        frame = frames[control.depth]
        if frame.phase == NEXT_OUTCOME:
            status = enter_outcome(problem, walk, control, frame)
        elif frame.phase == ENTER:
            if control.work >= control.pause:
                return codes.PAUSED
            control.work += 1
            status = choose(problem, tree, returns, walk, control, frame)
        else:
            status = begin_action(problem, tree, walk, control, frame)
        if status == codes.DONE:
            if control.depth == control.level:
                return codes.DONE
            control.depth -= 1
            leave(problem, walk, control, frame)
        elif status != codes.GO_ON:
            return status


@part
def choose(problem, tree, returns, walk, control, frame):
    """Choose an action for each price that reaches a history."""
    frame.phase, frame.done = NEXT_ACTION, 0
    last = control.depth + 1 == len(problem.discounts)
    if not last and frame.node != NONE and prefer_sampled(problem, tree, frame.node, 0) != NONE:
        for k in range(PRICES):
            if frame.price_mask >> k & 1:
                frame.chosen[k] = prefer_sampled(problem, tree, frame.node, k)
        return codes.GO_ON
    if not last:
        frame.node = NONE
    for k in range(PRICES):
        frame.chosen[k], frame.best[k] = NONE, -np.inf
    return rate_actions(problem, tree, returns, walk, control, frame)


@part
def rate_actions(problem, tree, returns, walk, control, frame):
    """Choose actions by estimates, in a history that is not in the tree."""
    depth, (_, _, scratch, _) = control.depth, walk
    last = depth + 1 == len(problem.discounts)
    source, weight = problem.source[0], problem.weights[depth]
    to_go = 0.0 if last else expect(returns, depth)
    compiled = source.outcomes != 0
    if not compiled and problem.states[frame.state].action_count < 0:
        control.state, frame.phase = frame.state, ENTER
        return codes.NEEDS_STATE
    count = source.numbers if compiled else problem.states[frame.state].action_count
    for number in range(count):
        if compiled:
            row = evaluate_record(problem, walk, frame.record, number, source.following)
            if row < 0:
                return codes.BROKEN
            if row == 0:
                continue
            control.evaluations += 1
            action = scratch[0]
        else:
            action = problem.actions[problem.states[frame.state].first_action + number]
        for k in range(PRICES):
            if frame.price_mask >> k & 1:
                price = np.float64(tree.prices[0, k])
                worth = rate(returns, depth, weight, price, to_go, action)
                if frame.chosen[k] == NONE or worth > frame.best[k]:
                    frame.best[k], frame.chosen[k] = worth, number
    return codes.GO_ON


@part
def evaluate_record(problem, walk, record, number, following):
    """Fill the scratch row with an action of a compiled model; return how many outcomes it has.

    -1 if they break a rule.
    """
    source, (_, _, scratch, _) = problem.source[0], walk
    count = call_outcomes(
        source.outcomes, source.parameters, record, np.int64(number), source.answers, following
    )
    action = scratch[0]
    if count != 0 and not sum_up(problem.answers, count, source.most_outcomes, action):
        source.state, source.action = 0, number
        return -1
    action.number = number
    return count


@part
def begin_action(problem, tree, walk, control, frame):
    """Take up the next action that some price chose; DONE if there is none."""
    price_index = NONE
    for k in range(PRICES - 1, -1, -1):
        if frame.price_mask >> k & 1 and not frame.done >> k & 1:
            price_index = k
    if price_index == NONE:
        return codes.DONE
    chosen = frame.chosen[price_index]
    frame.group = 0
    for k in range(PRICES):
        if frame.price_mask >> k & 1 and frame.chosen[k] == chosen:
            frame.group |= 1 << k
            frame.rewards[k], frame.risks[k] = 0.0, 0.0
            if chosen == NONE:  # the history ends here
                frame.earned[k], frame.risked[k] = 0.0, 0.0
    frame.done |= frame.group
    if chosen == NONE:
        return codes.GO_ON
    depth = control.depth
    last = depth + 1 == len(problem.discounts)
    status = look_at_action(problem, tree, walk, control, frame, chosen, last)
    if status != codes.KNOWN:
        frame.done &= ~frame.group
        return status
    frame.reward *= problem.weights[depth]
    frame.outcome = 0
    frame.ends = last
    frame.phase = NEXT_OUTCOME
    return codes.GO_ON


@part
def look_at_action(problem, tree, walk, control, frame, chosen, last):
    """Fill the reward and the risk of an action, and the place of its outcomes."""
    frame.action, frame.first_child = chosen, NONE
    source, depth = problem.source[0], control.depth
    sampled = frame.node != NONE and not last
    if sampled or source.outcomes == 0:
        state = tree.nodes[frame.node].state if sampled else frame.state
        row = problem.states[state].first_action + chosen
        if not last:
            status = have_outcomes(problem, state, row, True, depth)
            if status != codes.KNOWN:
                return status
        action = problem.actions[row]
        frame.reward, frame.risk = action.expected_reward, action.immediate_risk
        frame.outcomes, frame.first_outcome = action.safe_count, action.first_outcome
        if sampled:
            frame.first_child = tree.edges[tree.nodes[frame.node].first_edge + chosen].first_child
        return codes.KNOWN
    width = np.uint64(source.most_outcomes * source.state_size)
    following = control.scratch + np.uint64(depth) * width
    if evaluate_record(problem, walk, frame.record, chosen, following) < 0:
        return codes.BROKEN
    _, chances, scratch, _ = walk
    action = scratch[0]
    frame.reward, frame.risk = action.expected_reward, action.immediate_risk
    frame.outcomes, frame.first_outcome = action.safe_count, NONE
    for k in range(action.safe_count):
        chances[depth, k] = problem.answers[k].probability
    return codes.KNOWN


@part
def enter_outcome(problem, walk, control, frame):
    """Go to the history after the next outcome; after the last one, close the action."""
    if frame.ends or frame.outcome == frame.outcomes:
        for k in range(PRICES):
            if frame.group >> k & 1:
                frame.earned[k] = frame.reward + frame.rewards[k]
                frame.risked[k] = frame.risk + frame.risks[k]
        frame.phase = NEXT_ACTION
        return codes.GO_ON
    source, depth, (frames, _, _, _) = problem.source[0], control.depth, walk
    below = frames[depth + 1]
    below.node = NONE
    below.phase, below.price_mask = ENTER, frame.group
    if frame.first_outcome != NONE:
        below.state = problem.outcomes[frame.first_outcome + frame.outcome].state
        if frame.first_child != NONE:
            below.node = frame.first_child + frame.outcome
        if source.outcomes != 0:
            below.record = find_record(source, below.state)
    else:
        below.state = NONE
        width = np.uint64(source.most_outcomes * source.state_size)
        first = control.scratch + np.uint64(depth) * width
        below.record = first + np.uint64(frame.outcome * source.state_size)
    control.depth = depth + 1
    return codes.GO_ON


@part
def leave(problem, walk, control, below):
    """Add the rewards and risks of a history to the action that led there."""
    depth, (frames, chances, _, _) = control.depth, walk
    frame = frames[depth]
    if frame.first_outcome != NONE:
        chance = problem.outcomes[frame.first_outcome + frame.outcome].probability
    else:
        chance = chances[depth, frame.outcome]
    for k in range(PRICES):
        if frame.group >> k & 1:
            frame.rewards[k] += chance * below.earned[k]
            frame.risks[k] += chance * below.risked[k]
    frame.outcome += 1


LEVEL: Final = np.dtype(
    [
        ("node", "i4"),
        ("state", "i4"),
        ("price_index", "i4"),
        ("row", "i4"),  # NONE until the action is chosen
        ("number", "i4"),
        ("entry", "i4"),  # where the decision is written as the one after an outcome
        ("outcome", "i4"),
        ("reach", "f8"),
    ],
    align=True,
)
SUMMARY: Final = np.dtype(
    [("decisions", "i8"), ("entries", "i8"), ("reward", "f8"), ("risk", "f8")], align=True
)
WRITER: Final = np.dtype([("begin", "i8"), ("depth", "i8"), ("state", "i8")], align=True)
"""The level where the plan begins, that of the current history, and a state to evaluate."""


@kernel
def write_plan(problem, tree, returns, outline):
    """Write the decisions of a plan until done, or something is needed.

    The outline is a tuple: levels and writers of the walk, and the policy with its summary.
    """
    problem, tree, returns = borrow(problem), borrow(tree), borrow(returns)
    levels, rows, firsts, below, summaries, writers = borrow(outline)
    summary, writer = summaries[0], writers[0]
    while writer.depth >= writer.begin:
        here = levels[writer.depth]
        if here.row == NONE:
            writer.state = here.state
            status = decide(problem, tree, returns, here, writer.depth)
            if status != codes.KNOWN:
                return status
            if here.row == NONE:  # a safe terminal
                if here.entry != NONE:
                    below[here.entry] = END
                writer.depth -= 1
                continue
            if not enter(problem, here, writer.depth, rows, firsts, below, summary):
                here.row = NONE
                return codes.NEEDS_PLAN
        status = go_on(problem, tree, levels, writer, here, firsts, below)
        if status != codes.GO_ON:
            return status
    return codes.DONE


@part
def decide(problem, tree, returns, here, depth):
    """Choose the action row of a history; NONE if it ends there."""
    status = have_actions(problem, here.state)
    if status != codes.KNOWN:
        return status
    state = problem.states[here.state]
    if state.action_count == 0:
        return codes.KNOWN
    last = depth + 1 == len(problem.discounts)
    chosen = NONE
    if here.node != NONE:
        node = tree.nodes[here.node]
        if here.price_index == NONE and node.plan != NONE:
            chosen = node.plan
        elif not last:
            if here.price_index == NONE:
                here.price_index = node.price_index
            chosen = prefer_sampled(problem, tree, here.node, here.price_index)
            if chosen == NONE:
                here.node = NONE
    if chosen == NONE:
        if here.price_index == NONE:
            here.price_index = tree.nodes[here.node].price_index
        chosen = prefer_promising(problem, tree, returns, here, depth, last)
    row = state.first_action + chosen
    if not last:
        status = have_outcomes(problem, here.state, row, True, depth)
        if status != codes.KNOWN:
            return status
    here.row = row
    return codes.KNOWN


@part
def prefer_promising(problem, tree, returns, here, depth, last):
    """Return the position of the action with the largest estimate, below the tree."""
    state = problem.states[here.state]
    price = np.float64(tree.prices[0, here.price_index])
    to_go = 0.0 if last else expect(returns, depth)
    best, chosen = -np.inf, NONE
    for k in range(state.action_count):
        action = problem.actions[state.first_action + k]
        worth = rate(returns, depth, problem.weights[depth], price, to_go, action)
        if chosen == NONE or worth > best:
            best, chosen = worth, k
    return chosen


@part
def enter(problem, here, depth, rows, firsts, below, summary):
    """Write the next decision; False if there is no room for it."""
    action = problem.actions[here.row]
    here.number, here.outcome = summary.decisions, 0
    if here.number >= len(rows) or summary.entries + action.safe_count > len(below):
        return False
    rows[here.number] = here.row
    if here.entry != NONE:
        below[here.entry] = here.number
    summary.decisions += 1
    summary.entries += action.safe_count
    firsts[summary.decisions] = summary.entries
    summary.reward += problem.weights[depth] * here.reach * action.expected_reward
    summary.risk += here.reach * action.immediate_risk
    return True


@part
def go_on(problem, tree, levels, writer, here, firsts, below):
    """Go to the history after the next outcome, or back."""
    action = problem.actions[here.row]
    k = here.outcome
    if k == action.safe_count:
        writer.depth -= 1
        return codes.GO_ON
    entry = firsts[here.number] + k
    here.outcome += 1
    if writer.depth + 1 == len(problem.discounts):
        below[entry] = END
        return codes.GO_ON
    outcome = problem.outcomes[action.first_outcome + k]
    after = levels[writer.depth + 1]
    after.state, after.price_index = outcome.state, here.price_index
    after.row, after.entry = NONE, entry
    after.reach, after.node = here.reach * outcome.probability, NONE
    if here.node != NONE:
        node = tree.nodes[here.node]
        position = here.row - problem.states[here.state].first_action
        first_child = tree.edges[node.first_edge + position].first_child
        if first_child != NONE:
            after.node = first_child + k
    writer.depth += 1
    return codes.GO_ON
