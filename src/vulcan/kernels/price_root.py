"""The top of a tree with several prices: which samples are wanted next.

A first action a is judged by the constrained value, as far as the tree knows it: no policy within
the risk bound that begins with it earns more than the largest y with

    y - λ Δ(y) <= Q_λ(a)

for any price λ, so that the least of these over the prices is what can be hoped for. The price that
attains it is the one to look at: samples of the action follow it, or one beside it. Which action,
UCT says, on that value. What is known of an action is biased by what was not yet tried below it,
and this bias may outlive the bonus: so, of N samples, each action gets at least N^0.8 / A, with A
actions, an even share at first that costs less and less. Its first samples follow each price once.

Histories below which much of the tree lies belong to the top, as the root does; there, orders
choose actions and draw outcomes as samples would. What follows an outcome that does not belong to
it is a part. Orders are made for a batch of samples at a time, and carried out part by part
(`vulcan.kernels.price_search`). Values of the top are renewed after the batch, counts at once.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.kernels.codes import DONE, KNOWN, NEEDS_ROOM
from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.expansion import have_actions, have_outcomes
from vulcan.kernels.price_search import FOLLOW, choose_edge, draw_child
from vulcan.kernels.price_tree import (
    PRICES,
    add_children,
    borrow_prices,
    fill,
    open_node,
    price_action,
    refresh,
    renew_edge,
    store,
)
from vulcan.kernels.problem_arrays import borrow_problem
from vulcan.kernels.selection import draw_uniform
from vulcan.sentinels import NONE

JUDGED: Final = np.dtype([("reward", "f8"), ("lane", "i8")], align=True)
"""What can be hoped for from a first action, -inf for nothing; and which price says so."""

POWER: Final = 0.8
"""Of N samples, N to this power are shared evenly by all first actions."""

GUIDED: Final = 0.5
"""How many samples follow the current plan."""

DRAWS: Final = np.dtype(
    [("random", "u8"), ("lane", "i8"), ("guided", "i8"), ("exploration", "f8")], align=True
)
"""Random numbers of the top, and the order that is being made."""


class AllowedRisks(NamedTuple):
    """The risk bound at evenly spaced rewards, -inf where it allows nothing."""

    low: float
    step: float
    allowed: Any


@kernel
def open_top(problem, tree, number):
    """Give a history all its actions and their outcomes: DONE, or what is needed for that."""
    problem, tree = borrow_problem(problem), borrow_prices(tree)
    node = tree.nodes[number]
    news = have_actions(problem, node.state)
    if news != KNOWN:
        return news
    state = problem.states[node.state]
    if state.action_count == 0:
        store(tree.node_values, number, fill(np.float32(0.0)))
        node.visits, node.solved = 1, 1
        return DONE
    if node.first_edge == NONE and not open_node(problem, tree, node):
        return NEEDS_ROOM
    last = len(problem.discounts) == node.level + 1
    for k in range(state.action_count):
        edge, row = tree.edges[node.first_edge + k], state.first_action + k
        if edge.first_child != NONE or edge.solved:
            continue
        news = have_outcomes(problem, node.state, row, not last, node.level)
        if news != KNOWN:
            return news
        action = problem.actions[row]
        if last or action.safe_count == 0:
            worth = price_action(tree, edge.reward, edge.risk)
            store(tree.edge_values, node.first_edge + k, worth)
            edge.visits, edge.solved = 1, 1
        elif not add_children(problem, tree, node, action, edge):
            return NEEDS_ROOM
    node.visits = max(1, node.visits)
    refresh(tree, node, number)
    return DONE


@kernel
def judge(problem, tree, tops, bound, judged):
    """Renew the values of the top, deepest histories first, and judge the first actions."""
    tree = borrow_prices(tree)
    for number in tops[::-1]:
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
        judged[k].reward, judged[k].lane = -np.inf, PRICES - 1
        if edge.visits > 0 and tree.edge_values[e, 0] > -1e38:
            reward = np.inf
            for lane in range(PRICES):
                value, price = np.float64(tree.edge_values[e, lane]), tree.prices[0, lane]
                most = limit_reward(bound, value, np.float64(price))
                if most < reward:
                    reward, judged[k].lane = most, lane
            judged[k].reward = reward
    refresh(tree, root, 0)


@part
def limit_reward(bound, value, price):
    """Return the largest reward y with y - price Δ(y) <= value, about; -inf if there is none."""
    if price <= 0.0:
        return value
    last = len(bound.allowed) - 1
    above = 0.0
    for i in range(last, -1, -1):
        excess = bound.low + i * bound.step - price * bound.allowed[i] - value
        if excess <= 0.0:
            share = -excess / (above - excess) if i < last and above < np.inf else 0.0
            return bound.low + (i + share) * bound.step
        above = excess
    return -np.inf


@kernel
def write_orders(problem, tree, tops, returns, judged, scale, draws, orders, parts):
    """Order a batch of samples: for each the history it begins with, the price and the plan."""
    problem, returns = borrow_problem(problem), borrow(returns)
    tree, judged, orders, parts = borrow_prices(tree), borrow(judged), borrow(orders), borrow(parts)
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
        lane = judged[k].lane
        if edge.visits < PRICES:
            lane = edge.visits
        else:
            luck = draw_uniform(draw)
            if luck < 0.25:
                lane = max(0, lane - 1)
            elif luck < 0.5:
                lane = min(PRICES - 1, lane + 1)
        draw.lane, draw.guided = lane, guided
        parts[i] = walk_down(problem, tree, tops, returns, draw, root, edge)
        orders[i].lane, orders[i].guided = draw.lane, draw.guided
    return len(orders)


@part
def walk_down(problem, tree, tops, returns, draw, node, edge):
    """Return the first history after an action that does not belong to the top."""
    while True:
        number = edge.first_child + draw_child(tree, edge, draw)
        edge.visits += 1
        node.visits += 1
        place = NONE
        for k in range(len(tops)):
            if tops[k] == number:
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
            if hopeless:  # then what is worth most at the largest price comes closest
                worth = np.float64(tree.edge_values[root.first_edge + k, PRICES - 1])
            score = worth + bonus / np.sqrt(visits)
            if score > best:
                best, chosen = score, k
    if chosen == NONE or fewest < PRICES or fewest < np.float64(root.visits) ** POWER / count:
        return rarest
    return chosen
