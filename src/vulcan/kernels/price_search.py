"""Samples of a tree with several prices, in one of its parts.

A sample follows one price. It walks down to the end of a history: at an opened history it takes the
action of largest

    Q_λ(h, a) + c · (1/2 + 1/t) · range(t) · sqrt(log N(h) / N(h, a)),

more eager near the start, where a wrong choice is never found out below, and less so where there
are many histories to learn from. There an action that was never tried counts as if what comes after
it were worth as much as after the best that was, and as tried once. So actions that earn little by
themselves are not all tried at once. But what is known of an action is biased by what was not tried
below it: so in the first half of the steps, of N visits of a history N^0.75 are shared evenly by
its actions, right after the first one N^0.8. In a history where nothing was tried yet, actions are
compared by what they earn and what samples have collected from the next step on, unless the mission
always ended after them. Then one of the outcomes that are not solved is drawn by its probability. A
history with one step left is solved when it is first met.

A sample that is *guided* follows the current plan instead, as far as that goes: most of the time
the plan's own action, and where the plan leaves all to a price, that price.

Each part, which is all that follows one history below the top of the tree
(`vulcan.kernels.price_root`), has random numbers and a record of returns of its own. So parts can
be sampled in any order, and at the same time.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vulcan.kernels.codes import (
    DONE,
    END_SAMPLE,
    GO_ON,
    KNOWN,
    NEEDS_ROOM,
    NEEDS_STATE,
    NO_ACTION,
)
from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.expansion import have_actions, have_outcomes, peek
from vulcan.kernels.price_tree import (
    LOWEST,
    add_children,
    borrow_prices,
    fill,
    open_node,
    price_action,
    refresh,
    renew_edge,
    store,
    take_larger,
)
from vulcan.kernels.problem_arrays import borrow_problem
from vulcan.kernels.selection import (
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
from vulcan.kernels.tree_search import STEP
from vulcan.sentinels import NONE

__all__ = ["CONTROL", "FOLLOW", "ORDER", "STEP", "sample"]

SECOND: Final = 0.8
LATER: Final = 0.75
"""Of N visits of a history, N to this power are shared evenly by its actions: by the second ones of
a mission, and by later ones in the first half of its steps."""

FOLLOW: Final = 0.85
"""How often a guided sample takes the plan's own action, history by history."""

ORDER: Final = np.dtype([("lane", "i2"), ("guided", "i2")], align=True)
"""A sample that is wanted: which price it follows, and whether the plan comes first."""

CONTROL: Final = np.dtype(
    [
        ("root", "i8"),  # the history that the part begins with
        ("begin", "i8"),  # its level
        ("number", "i8"),  # of the action that led there
        ("depth", "i8"),
        ("done", "i8"),  # orders carried out
        ("lane", "i8"),  # of the present sample
        ("guided", "i8"),
        ("random", "u8"),
        ("exploration", "f8"),
    ],
    align=True,
)


@kernel
def sample(problem, tree, returns, path, orders, controls):
    """Carry out orders until they are done, the part is solved, or something is needed."""
    problem, tree = borrow_problem(problem), borrow_prices(tree)
    returns, path, orders = borrow(returns), borrow(path), borrow(orders)
    control = controls[0]
    while control.done < len(orders):
        if control.depth == 0:
            if tree.nodes[control.root].solved:
                control.done = len(orders)
                break
            control.depth = control.begin
            path[control.begin].node, path[control.begin].edge = control.root, NONE
            control.lane = orders[control.done].lane
            control.guided = orders[control.done].guided
        news = step_down(problem, tree, returns, path, control)
        if news == END_SAMPLE:
            back_up(tree, returns, path, control)
        elif news != GO_ON:
            return news
    return DONE


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
            news = open_history(problem, tree, returns, path, control)
            if news != GO_ON:
                return news
        step.edge = choose_edge(problem, tree, returns, node, control)
        if step.edge == NONE:
            node.visits, node.solved = node.visits + 1, 1
            return END_SAMPLE
    edge = tree.edges[step.edge]
    if edge.first_child == NONE:
        row = problem.states[node.state].first_action + step.edge - node.first_edge
        news = have_outcomes(problem, node.state, row, True, depth)
        if news != KNOWN:
            return news
        action = problem.actions[row]
        if action.safe_count == 0:
            edge.solved = 1
            store(tree.edge_values, step.edge, price_action(tree, edge.reward, edge.risk))
            finish_edge(tree, step, node)
            return END_SAMPLE
        if not add_children(problem, tree, node, action, edge):
            return NEEDS_ROOM
    step.outcome = draw_child(tree, edge, control)
    path[depth + 1].node, path[depth + 1].edge = edge.first_child + step.outcome, NONE
    control.depth = depth + 1
    return GO_ON


@part
def open_history(problem, tree, returns, path, control):
    """Give a history its actions; one without any ends there."""
    step = path[control.depth]
    node = tree.nodes[step.node]
    news = have_actions(problem, node.state)
    if news != KNOWN:
        return news
    ended = problem.states[node.state].action_count == 0
    if not ended and not open_node(problem, tree, node):
        return NEEDS_ROOM
    note_end(problem, tree, returns, path, control, ended)
    if ended:
        store(tree.node_values, step.node, fill(np.float32(0.0)))
        node.visits, node.solved = node.visits + 1, 1
        return END_SAMPLE
    return GO_ON


@part
def decide_last_step(problem, tree, returns, path, control):
    """Solve a history of which one step is left: all that its actions are worth is known."""
    depth = control.depth
    number = path[depth].node
    node = tree.nodes[number]
    source, s = problem.source[0], node.state
    compiled = source.outcomes != 0
    if not compiled and problem.states[s].action_count < 0:
        return NEEDS_STATE
    count = source.numbers if compiled else problem.states[s].action_count
    best, actions = fill(LOWEST), 0
    weight = problem.weights[depth]
    for k in range(count):
        a = source.actions if compiled else problem.states[s].first_action + k
        news = peek(problem, s, k) if compiled else KNOWN
        if news == NO_ACTION:
            continue
        if news != KNOWN:
            return news
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
    return END_SAMPLE


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
        if node.lane != NONE:
            control.lane = node.lane
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
            score = tree.edge_values[e, control.lane] + bonus / np.sqrt(visits)
            if score > best:
                best, chosen = score, e
    if fewest == 0.0:
        chosen = choose_untried(problem, tree, returns, node, control.lane, bonus, best, chosen)
    if 2 * node.level <= len(problem.discounts):
        power = SECOND if node.level == 1 else LATER
        if fewest < np.float64(node.visits) ** power / node.edge_count - 1.0:
            return rarest
    return rarest if chosen == NONE else chosen  # scores of rewards beyond all bounds are none


@part
def choose_untried(problem, tree, returns, node, lane, bonus, best, chosen):
    """Return an action that was never tried if it promises more, by what may come after it."""
    to_go, seen = find_best_to_go(tree, node, lane), returns[node.level]
    fresh = to_go == -np.inf
    if fresh:
        bonus, to_go = 0.0, expect(returns, node.level)
    price = np.float64(tree.prices[0, lane])
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
def find_best_to_go(tree, node, lane):
    """Return the most that is known to come after an action of a history; -inf if none is."""
    price = np.float64(tree.prices[0, lane])
    to_go = -np.inf
    for e in range(node.first_edge, node.first_edge + node.edge_count):
        edge = tree.edges[e]
        if edge.visits > 0 and edge.risk < 1.0:
            after = np.float64(tree.edge_values[e, lane]) - edge.reward + price * edge.risk
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
    """Carry the end of a sample up to where the part begins."""
    collected = np.float64(tree.node_values[path[control.depth].node, control.lane])
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
