"""A search tree with the value of every history for several prices of failure at once.

**Values.** For a price λ let V_λ(h) be the largest E g - λ er from a history h on, and Q_λ(h, a)
the same after an action a. Rewards are weighed as seen from the start, γ^t, so that one price means
the same on every level. Values are vectors, an entry for each price:

    Q_λ(h, a) = γ^t R̄(s, a) - λ r(s, a) + Σ_safe p(s') V_λ(h'),        V_λ(h) = max_a Q_λ(h, a).

Where only some outcomes S' were sampled, the others are assumed to be like these; where the model
bounds the reward to go, U(s'), they are assumed to fall short of their bound as these do:

    Σ_safe p V  ≈  Σ_safe p U  +  (1 - r) Σ_{S'} p (V - U) / Σ_{S'} p.

    nodes        [N]     a history: state, level, edges (none until opened), visits, solved; and of
                         the outcome that led there its chance, reward γ^t g and outlook U
    edges        [E]     an action of an opened history: visits, solved, reward γ^t R̄, risk r,
                         and the nodes after its safe outcomes, consecutive
    node_values  [N, K]  V, in single precision: they are estimates. The value of a plan is
    edge_values  [E, K]  computed again, in double precision.                              Q

A history is solved when every continuation was sampled: then it is solved for every price.

There are always eight prices. Values of a row are handled as a tuple of eight, which the compiler
keeps in one register.

**Orders.** The upper tree decides which samples to take next. A first action a is judged by the
constrained value, as far as the tree knows it: no policy within the risk bound that begins with it
earns more than the largest y with

    y - λ Δ(y) <= Q_λ(a)

for any price λ, so the least of these over the prices is an upper estimate. The price that attains
it is the most informative: samples of the action follow it, or a price beside it. UCT on that value
chooses the action. The value of an action is biased by what was not yet tried below it, and this
bias may outlive the bonus: so, of N samples, each action gets at least N^0.8 / A, with A actions,
an even share at first that costs less and less. Its first samples follow each price once.

Histories with much of the tree below them are upper nodes, as the root is; there, orders choose
actions and draw outcomes as samples would. The history after an outcome that is not an upper node
is the root of a subtree. Orders are made for a batch of samples at a time, and each subtree takes
its own. Values of the upper tree are renewed after the batch, counts at once.

**Samples.** A sample follows one price. It walks down to the end of a history: at an opened history
it takes the action of largest

    Q_λ(h, a) + c · (1/2 + 1/t) · range(t) · sqrt(log N(h) / N(h, a)),

which explores more near the start, where a wrong choice is never found out below, and less where
there are many histories to learn from. An untried action counts as tried once, with the value after
the best tried action as the value after it. So actions with small rewards of their own are not all
tried at once. But the value of an action is biased by what was not tried below it: so in the first
half of the steps, of N visits of a history N^0.75 are shared evenly by its actions, right after the
first action N^0.8. In a history without tried actions, actions are compared by their rewards and
what samples have collected from the next step on, unless the mission always ended after them. Then
one of the outcomes that are not solved is drawn by its probability. A history with one step left is
solved at its first visit.

A sample that is *guided* follows the current plan instead, as far as that goes: most of the time
the plan's own action, and where the plan follows a price, that price.

Each subtree has random numbers and a record of returns of its own. So subtrees can be sampled in
any order, and at the same time.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.kernels import codes
from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.expand import have_actions, have_outcomes, peek
from vulcan.kernels.paper_tree import (
    ENDED,
    NUMBERS,
    WENT_ON,
    draw_uniform,
    ends_mission,
    expect,
    note_ending,
    tally,
    widen,
)
from vulcan.numerics import NONE

PRICES: Final = 8

NODE: Final = np.dtype(
    [
        ("state", "i4"),
        ("first_edge", "i4"),
        ("edge_count", "i4"),
        ("visits", "i4"),
        ("level", "i4"),
        ("chance", "f4"),
        ("reward", "f4"),
        ("outlook", "f4"),
        ("plan", "i4"),  # the position of the action of the current plan, or NONE
        ("price_index", "i2"),  # below its upper tree: the price it follows, or NONE
        ("solved", "i2"),
    ],
    align=True,
)
EDGE: Final = np.dtype(
    [
        ("visits", "i4"),
        ("first_child", "i4"),
        ("children", "i4"),
        ("solved", "i4"),
        ("reward", "f4"),
        ("risk", "f4"),
    ],
    align=True,
)
SIZE: Final = np.dtype([("nodes", "i8"), ("edges", "i8")], align=True)

LOWEST: Final = np.float32(-3e38)


class PriceTree(NamedTuple):
    """The arrays of a tree, the prices, and a record of how far they are filled."""

    nodes: Any
    edges: Any
    node_values: Any
    edge_values: Any
    prices: Any
    sizes: Any


@part
def load(values, n):
    """Return a row as a tuple."""
    v = values
    return v[n, 0], v[n, 1], v[n, 2], v[n, 3], v[n, 4], v[n, 5], v[n, 6], v[n, 7]


@part
def store(values, n, row):
    """Write a row."""
    values[n, 0], values[n, 1], values[n, 2], values[n, 3] = row[0], row[1], row[2], row[3]
    values[n, 4], values[n, 5], values[n, 6], values[n, 7] = row[4], row[5], row[6], row[7]


@part
def fill(value):
    """Return a row of the same value."""
    return value, value, value, value, value, value, value, value


@part
def add_scaled(row, more, scale):
    """Return a row plus a multiple of another."""
    return (
        row[0] + scale * more[0],
        row[1] + scale * more[1],
        row[2] + scale * more[2],
        row[3] + scale * more[3],
        row[4] + scale * more[4],
        row[5] + scale * more[5],
        row[6] + scale * more[6],
        row[7] + scale * more[7],
    )


@part
def pick(one, other):
    """Return the larger of two numbers, none of which is nan."""
    return one if one > other else other


@part
def take_larger(row, other):
    """Return the larger entries of two rows."""
    return (
        pick(row[0], other[0]),
        pick(row[1], other[1]),
        pick(row[2], other[2]),
        pick(row[3], other[3]),
        pick(row[4], other[4]),
        pick(row[5], other[5]),
        pick(row[6], other[6]),
        pick(row[7], other[7]),
    )


@part
def price_action(tree, reward, risk):
    """Return the immediate value of an action, for each price."""
    return add_scaled(fill(reward), load(tree.prices, 0), -risk)


@part
def open_node(problem, tree, node):
    """Add an edge for each known action of a history; False if there is no room."""
    size = tree.sizes[0]
    state = problem.states[node.state]
    if size.edges + state.action_count > len(tree.edges):
        return False
    node.first_edge, node.edge_count = size.edges, state.action_count
    weight = problem.weights[node.level]
    for k in range(state.action_count):
        action, edge = problem.actions[state.first_action + k], tree.edges[size.edges + k]
        edge.visits, edge.solved, edge.first_child, edge.children = 0, 0, NONE, 0
        edge.reward, edge.risk = weight * action.expected_reward, action.immediate_risk
        store(tree.edge_values, size.edges + k, fill(LOWEST))
    size.edges += state.action_count
    return True


@part
def add_children(problem, tree, node, action, edge):
    """Add a node for each known safe outcome of an action; False without room."""
    size = tree.sizes[0]
    if size.nodes + action.safe_count > len(tree.nodes):
        return False
    edge.first_child, edge.children = size.nodes, action.safe_count
    weight, later = problem.weights[node.level], 0.0
    if node.level + 1 < len(problem.weights):
        later = problem.weights[node.level + 1]
    for k in range(action.safe_count):
        outcome, child = problem.outcomes[action.first_outcome + k], tree.nodes[size.nodes + k]
        child.state, child.first_edge, child.visits = outcome.state, NONE, 0
        child.level, child.solved = node.level + 1, 0
        child.chance, child.reward = outcome.probability, weight * outcome.reward
        child.outlook = later * outcome.outlook
        child.plan, child.price_index = NONE, NONE
    size.nodes += action.safe_count
    return True


@part
def renew_edge(tree, e):
    """Renew the values and the label of an action from the outcomes that were sampled."""
    edge = tree.edges[e]
    nothing = np.float32(0.0)
    total, mass, own, baseline = fill(nothing), nothing, nothing, nothing
    solved, sampled = True, True
    for c in range(edge.first_child, edge.first_child + edge.children):
        child = tree.nodes[c]
        baseline += child.chance * child.outlook
        if child.visits == 0:
            sampled = solved = False
            continue
        total = add_scaled(total, load(tree.node_values, c), child.chance)
        mass += child.chance
        own += child.chance * child.outlook
        solved = solved and child.solved != 0
    if mass > nothing:
        value = price_action(tree, edge.reward, edge.risk)
        scale = (np.float32(1.0) - edge.risk) / mass if not sampled else np.float32(1.0)
        value = add_scaled(value, total, scale)
        if not sampled and abs(baseline) < np.inf:
            value = add_scaled(value, fill(baseline - scale * own), np.float32(1.0))
        store(tree.edge_values, e, value)
    edge.solved = solved


@part
def refresh(tree, node, number):
    """Renew the values and the label of an opened history from its actions."""
    best, solved = fill(LOWEST), True
    for e in range(node.first_edge, node.first_edge + node.edge_count):
        edge = tree.edges[e]
        solved = solved and edge.solved != 0
        if edge.visits > 0:
            best = take_larger(best, load(tree.edge_values, e))
    store(tree.node_values, number, best)
    node.solved = solved


@kernel
def move_values(tree, histories, left, share):
    """Move to other prices, each a share of the way from a former price, `left`, to the next.

    The values of leaves are interpolated. The values of all other histories are backed up from the
    histories after them, which come first.
    """
    tree = borrow(tree)
    for number in histories:
        node = tree.nodes[number]
        if node.visits == 0:
            continue
        if node.first_edge == NONE:
            row = load(tree.node_values, number)
            for k in range(PRICES):
                below = row[left[k]]
                tree.node_values[number, k] = below + share[k] * (row[left[k] + 1] - below)
            continue
        for e in range(node.first_edge, node.first_edge + node.edge_count):
            edge = tree.edges[e]
            if edge.visits > 0 and edge.first_child != NONE:
                renew_edge(tree, e)
            elif edge.visits > 0:
                store(tree.edge_values, e, price_action(tree, edge.reward, edge.risk))
        refresh(tree, node, number)


JUDGED: Final = np.dtype([("reward", "f8"), ("price_index", "i8")], align=True)
"""The constrained value of a first action, -inf if it has none; and the price that decides it."""

POWER: Final = 0.8  # of N samples, N to this power are shared evenly by all first actions
GUIDED: Final = 0.5  # the share of samples that follow the current plan

DRAWS: Final = np.dtype(
    [("random", "u8"), ("price_index", "i8"), ("guided", "i8"), ("exploration", "f8")], align=True
)
"""Random numbers of the upper tree, and the order that is being made."""


@kernel
def open_upper_node(problem, tree, number):
    """Add all actions of a history and their outcomes; return DONE or a need."""
    problem, tree = borrow(problem), borrow(tree)
    node = tree.nodes[number]
    status = have_actions(problem, node.state)
    if status != codes.KNOWN:
        return status
    state = problem.states[node.state]
    if state.action_count == 0:
        store(tree.node_values, number, fill(np.float32(0.0)))
        node.visits, node.solved = 1, 1
        return codes.DONE
    if node.first_edge == NONE and not open_node(problem, tree, node):
        return codes.NEEDS_ROOM
    last = len(problem.discounts) == node.level + 1
    for k in range(state.action_count):
        edge, row = tree.edges[node.first_edge + k], state.first_action + k
        if edge.first_child != NONE or edge.solved:
            continue
        status = have_outcomes(problem, node.state, row, not last, node.level)
        if status != codes.KNOWN:
            return status
        action = problem.actions[row]
        if last or action.safe_count == 0:
            worth = price_action(tree, edge.reward, edge.risk)
            store(tree.edge_values, node.first_edge + k, worth)
            edge.visits, edge.solved = 1, 1
        elif not add_children(problem, tree, node, action, edge):
            return codes.NEEDS_ROOM
    node.visits = max(1, node.visits)
    refresh(tree, node, number)
    return codes.DONE


@kernel
def judge(problem, tree, upper_nodes, bound, judged):
    """Renew the values of the upper tree, deepest nodes first, and judge the first actions.

    `bound` has the first of evenly spaced rewards, their distance, and the risk allowed for each,
    -inf where the risk bound allows none.
    """
    tree = borrow(tree)
    for number in upper_nodes[::-1]:
        node = tree.nodes[number]
        for e in range(node.first_edge, node.first_edge + node.edge_count):
            if tree.edges[e].first_child != NONE:
                renew_edge(tree, e)
        refresh(tree, node, number)
    root = tree.nodes[0]
    count = problem.states[root.state].action_count
    for k in range(count):
        e = root.first_edge + k
        edge = tree.edges[e]
        if edge.first_child != NONE:
            renew_edge(tree, e)
        judged[k].reward, judged[k].price_index = -np.inf, PRICES - 1
        if edge.visits > 0 and tree.edge_values[e, 0] > -1e38:
            reward = np.inf
            for price_index in range(PRICES):
                value = np.float64(tree.edge_values[e, price_index])
                most = limit_reward(bound, value, np.float64(tree.prices[0, price_index]))
                if most < reward:
                    reward, judged[k].price_index = most, price_index
            judged[k].reward = reward
    refresh(tree, root, 0)


@part
def limit_reward(bound, value, price):
    """Return about the largest reward y with y - price Δ(y) <= value; -inf if there is none."""
    if price <= 0.0:
        return value
    low, distance, allowed = bound
    last = len(allowed) - 1
    above = 0.0
    for i in range(last, -1, -1):
        excess = low + i * distance - price * allowed[i] - value
        if excess <= 0.0:
            share = -excess / (above - excess) if i < last and above < np.inf else 0.0
            return low + (i + share) * distance
        above = excess
    return -np.inf


@kernel
def write_orders(problem, tree, upper_nodes, returns, judged, scale, draws, orders, roots):
    """Order a batch of samples: for each its subtree, its price, and whether the plan guides it."""
    problem, returns = borrow(problem), borrow(returns)
    tree, judged, orders, roots = borrow(tree), borrow(judged), borrow(orders), borrow(roots)
    draw, root = draws[0], tree.nodes[0]
    count = problem.states[root.state].action_count
    for i in range(len(orders)):
        guided = root.plan != NONE and draw_uniform(draw) < GUIDED
        if guided and (
            tree.edges[root.first_edge + root.plan].solved or draw_uniform(draw) > FOLLOW
        ):
            guided = False
        k = root.plan if guided else choose_first(tree, judged, root, count, scale)
        if k == NONE:
            return i
        edge = tree.edges[root.first_edge + k]
        price_index = judged[k].price_index
        if edge.visits < PRICES:
            price_index = edge.visits
        else:
            luck = draw_uniform(draw)
            if luck < 0.25:
                price_index = max(0, price_index - 1)
            elif luck < 0.5:
                price_index = min(PRICES - 1, price_index + 1)
        draw.price_index, draw.guided = price_index, guided
        roots[i] = walk_down(problem, tree, upper_nodes, returns, draw, root, edge)
        orders[i].price_index, orders[i].guided = draw.price_index, draw.guided
    return len(orders)


@part
def walk_down(problem, tree, upper_nodes, returns, draw, node, edge):
    """Return the first history after an action that is not an upper node."""
    while True:
        number = edge.first_child + draw_child(tree, edge, draw)
        edge.visits += 1
        node.visits += 1
        place = NONE
        for k in range(len(upper_nodes)):
            if upper_nodes[k] == number:
                place = k
        if place == NONE:
            return number
        node = tree.nodes[number]
        edge = tree.edges[choose_edge(problem, tree, returns[place], node, draw)]


@part
def choose_first(tree, judged, root, count, scale):
    """Choose a first action that is not solved; NONE if there is none."""
    best, chosen = -np.inf, NONE
    fewest, rarest = np.inf, NONE
    hopeless = True
    for k in range(count):
        hopeless = hopeless and judged[k].reward == -np.inf
    bonus = scale * np.sqrt(np.log(np.float64(root.visits) + 1.0))
    for k in range(count):
        edge = tree.edges[root.first_edge + k]
        if edge.solved:
            continue
        visits = np.float64(edge.visits)
        if visits < fewest:
            fewest, rarest = visits, k
        if visits > 0.0:
            worth = judged[k].reward
            if hopeless:  # then the best at the largest price comes closest
                worth = np.float64(tree.edge_values[root.first_edge + k, PRICES - 1])
            score = worth + bonus / np.sqrt(visits)
            if score > best:
                best, chosen = score, k
    if chosen == NONE or fewest < PRICES or fewest < np.float64(root.visits) ** POWER / count:
        return rarest
    return chosen


SECOND: Final = 0.8
LATER: Final = 0.75
"""Of N visits of a history, N to this power are shared evenly by its actions: by the second actions
of a mission, and by later actions in the first half of its steps."""

FOLLOW: Final = 0.85  # how often a guided sample takes the plan's own action, history by history

ORDER: Final = np.dtype([("price_index", "i2"), ("guided", "i2")], align=True)
"""A sample to take: the price it follows, and whether the plan guides it."""

CONTROL: Final = np.dtype(
    [
        ("root", "i8"),  # of the subtree
        ("begin", "i8"),  # its level
        ("number", "i8"),  # of the action that led there
        ("depth", "i8"),
        ("done", "i8"),  # samples taken
        ("price_index", "i8"),  # of the current sample
        ("guided", "i8"),
        ("random", "u8"),
        ("exploration", "f8"),
    ],
    align=True,
)


@kernel
def sample(problem, tree, returns, path, orders, controls):
    """Take samples until all are taken, the subtree is solved, or something is needed."""
    problem, tree = borrow(problem), borrow(tree)
    returns, path, orders = borrow(returns), borrow(path), borrow(orders)
    control = controls[0]
    while control.done < len(orders):
        if control.depth == 0:
            if tree.nodes[control.root].solved:
                control.done = len(orders)
                break
            control.depth = control.begin
            path[control.begin].node, path[control.begin].edge = control.root, NONE
            control.price_index = orders[control.done].price_index
            control.guided = orders[control.done].guided
        status = step_down(problem, tree, returns, path, control)
        if status == codes.END_SAMPLE:
            back_up(tree, returns, path, control)
        elif status != codes.GO_ON:
            return status
    return codes.DONE


@part
def step_down(problem, tree, returns, path, control):
    """Choose an action and an outcome of the deepest history of the path, and go there."""
    depth = control.depth
    step = path[depth]
    node = tree.nodes[step.node]
    if depth + 1 == len(problem.discounts):
        return decide_last_step(problem, tree, returns, path, control)
    if step.edge == NONE:
        if node.first_edge == NONE:
            status = open_history(problem, tree, returns, path, control)
            if status != codes.GO_ON:
                return status
        step.edge = choose_edge(problem, tree, returns, node, control)
        if step.edge == NONE:
            node.visits, node.solved = node.visits + 1, 1
            return codes.END_SAMPLE
    edge = tree.edges[step.edge]
    if edge.first_child == NONE:
        row = problem.states[node.state].first_action + step.edge - node.first_edge
        status = have_outcomes(problem, node.state, row, True, depth)
        if status != codes.KNOWN:
            return status
        action = problem.actions[row]
        if action.safe_count == 0:
            edge.solved = 1
            store(tree.edge_values, step.edge, price_action(tree, edge.reward, edge.risk))
            finish_edge(tree, step, node)
            return codes.END_SAMPLE
        if not add_children(problem, tree, node, action, edge):
            return codes.NEEDS_ROOM
    step.outcome = draw_child(tree, edge, control)
    path[depth + 1].node, path[depth + 1].edge = edge.first_child + step.outcome, NONE
    control.depth = depth + 1
    return codes.GO_ON


@part
def open_history(problem, tree, returns, path, control):
    """Add the actions of a history; one without any ends there."""
    step = path[control.depth]
    node = tree.nodes[step.node]
    status = have_actions(problem, node.state)
    if status != codes.KNOWN:
        return status
    ended = problem.states[node.state].action_count == 0
    if not ended and not open_node(problem, tree, node):
        return codes.NEEDS_ROOM
    note_end(problem, tree, returns, path, control, ended)
    if ended:
        store(tree.node_values, step.node, fill(np.float32(0.0)))
        node.visits, node.solved = node.visits + 1, 1
        return codes.END_SAMPLE
    return codes.GO_ON


@part
def decide_last_step(problem, tree, returns, path, control):
    """Solve a history with one step left: the values of its actions are exact."""
    depth = control.depth
    number = path[depth].node
    node = tree.nodes[number]
    source, s = problem.source[0], node.state
    compiled = source.outcomes != 0
    if not compiled and problem.states[s].action_count < 0:
        return codes.NEEDS_STATE
    count = source.numbers if compiled else problem.states[s].action_count
    best, actions = fill(LOWEST), 0
    weight = problem.weights[depth]
    for k in range(count):
        a = source.actions if compiled else problem.states[s].first_action + k
        status = peek(problem, s, k) if compiled else codes.KNOWN
        if status == codes.NO_ACTION:
            continue
        if status != codes.KNOWN:
            return status
        actions += 1
        action = problem.actions[a]
        reward = np.float32(weight * action.expected_reward)
        best = take_larger(best, price_action(tree, reward, np.float32(action.immediate_risk)))
        widen(returns[depth], weight * action.expected_reward)
    if compiled:
        source.evaluations += actions
    note_end(problem, tree, returns, path, control, actions == 0)
    store(tree.node_values, number, best if actions > 0 else fill(np.float32(0.0)))
    if actions > 0:
        tally(returns[depth], np.float64(tree.node_values[number, 0]))
    node.visits, node.solved = node.visits + 1, 1
    return codes.END_SAMPLE


@part
def note_end(problem, tree, returns, path, control, ended):
    """Note whether the action before a new history ended the mission."""
    depth = control.depth
    if depth > control.begin:
        note_ending(problem, tree, returns, path, depth, ended)
    elif control.number < NUMBERS:
        returns[depth - 1].endings[control.number] |= ENDED if ended else WENT_ON


@part
def choose_edge(problem, tree, returns, node, control):
    """Return the action that the sample tries next; NONE if all are solved."""
    if control.guided:
        control.guided = 0
        if node.price_index != NONE:
            control.price_index = node.price_index
        elif node.plan != NONE and draw_uniform(control) < FOLLOW:
            planned = node.first_edge + node.plan
            if tree.edges[planned].solved == 0:
                control.guided = 1
                return planned
    seen = returns[node.level]
    bonus = control.exploration * (0.5 + 1.0 / node.level) * (seen.most - seen.least)
    bonus *= np.sqrt(np.log(np.float64(node.visits) + 1.0))
    best, chosen = -np.inf, NONE
    fewest, rarest = np.inf, NONE
    for e in range(node.first_edge, node.first_edge + node.edge_count):
        edge = tree.edges[e]
        if edge.solved:
            continue
        visits = np.float64(edge.visits)
        if visits < fewest:
            fewest, rarest = visits, e
        if visits > 0.0:
            score = tree.edge_values[e, control.price_index] + bonus / np.sqrt(visits)
            if score > best:
                best, chosen = score, e
    if fewest == 0.0:
        chosen = choose_untried(
            problem, tree, returns, node, control.price_index, bonus, best, chosen
        )
    if 2 * node.level <= len(problem.discounts):
        power = SECOND if node.level == 1 else LATER
        if fewest < np.float64(node.visits) ** power / node.edge_count - 1.0:
            return rarest
    return rarest if chosen == NONE else chosen  # scores may be nan for infinite rewards


@part
def choose_untried(problem, tree, returns, node, price_index, bonus, best, chosen):
    """Return an untried action if its estimate is larger than the best score."""
    to_go, seen = find_best_to_go(tree, node, price_index), returns[node.level]
    fresh = to_go == -np.inf
    if fresh:
        bonus, to_go = 0.0, expect(returns, node.level)
    price = np.float64(tree.prices[0, price_index])
    first = problem.states[node.state].first_action
    for k in range(node.edge_count):
        edge = tree.edges[node.first_edge + k]
        if edge.solved or edge.visits > 0:
            continue
        score = edge.reward - price * edge.risk + bonus
        if not (fresh and ends_mission(seen, problem.actions[first + k])):
            score += (1.0 - edge.risk) * to_go
        if score > best or chosen == NONE:
            best, chosen = score, node.first_edge + k
    return chosen


@part
def find_best_to_go(tree, node, price_index):
    """Return the largest value after a tried action of a history; -inf if none was tried."""
    price = np.float64(tree.prices[0, price_index])
    to_go = -np.inf
    for e in range(node.first_edge, node.first_edge + node.edge_count):
        edge = tree.edges[e]
        if edge.visits > 0 and edge.risk < 1.0:
            after = np.float64(tree.edge_values[e, price_index]) - edge.reward + price * edge.risk
            to_go = max(to_go, after / (1.0 - edge.risk))
    return to_go


@part
def draw_child(tree, edge, control):
    """Draw an outcome whose history is not solved."""
    mass = 0.0
    first = edge.first_child
    for c in range(first, first + edge.children):
        if tree.nodes[c].solved == 0:
            mass += tree.nodes[c].chance
    left = draw_uniform(control) * mass
    chosen = 0
    for c in range(first, first + edge.children):
        if tree.nodes[c].solved == 0:
            chosen = c - first
            left -= tree.nodes[c].chance
            if left < 0.0:
                break
    return chosen


@part
def finish_edge(tree, step, node):
    """Count a sample of an action, and renew its history."""
    tree.edges[step.edge].visits += 1
    node.visits += 1
    refresh(tree, node, step.node)


@part
def back_up(tree, returns, path, control):
    """Back up the end of a sample to the root of the subtree."""
    collected = np.float64(tree.node_values[path[control.depth].node, control.price_index])
    for depth in range(control.depth - 1, control.begin - 1, -1):
        step = path[depth]
        node = tree.nodes[step.node]
        renew_edge(tree, step.edge)
        finish_edge(tree, step, node)
        collected += tree.nodes[path[depth + 1].node].reward
        widen(returns[depth], collected)
        tally(returns[depth], collected)
    control.done += 1
    control.depth = 0
