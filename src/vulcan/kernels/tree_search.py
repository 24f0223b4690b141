"""Algorithms 2 and 3 of the paper, Vulcan and Sample, as a kernel that can stop and go on.

One sample walks from the root to the end of a history. At an opened history it chooses an action
(`vulcan.kernels.selection`), and then one of its outcomes by their probabilities. A finished
history that fails the local constraint has its last action deleted, and so has one all of whose
actions are deleted; the sample goes on from the parent. Solved parts are not sampled again, and a
solved root ends the search. A history with one step left is solved when it is first met: its best
action is the one that earns most of those that pass.

All that the kernel knows is in its arrays. It returns when it needs a state asked (a compiled model
it asks itself), the bound's table made finer, or room, and takes up the sample where it was; no
random number is drawn twice.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vulcan.kernels.codes import (
    ADMITTED,
    DONE,
    END_SAMPLE,
    GO_ON,
    KNOWN,
    NEEDS_BOUND,
    NEEDS_CHOICE,
    NEEDS_LIMITS,
    NEEDS_ROOM,
    NEEDS_STATE,
    NO_ACTION,
    PAUSED,
    REFUSED,
    REJECT,
    UNDECIDED,
)
from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.constraints import finish, try_action
from vulcan.kernels.expansion import have_actions, limit_action, peek
from vulcan.kernels.problem_arrays import borrow_problem
from vulcan.kernels.selection import (
    SHARE,
    choose_greedy,
    choose_uct,
    choose_untried,
    draw_uniform,
    note_ending,
    tally,
    widen,
)
from vulcan.kernels.tree import (
    LIVE,
    SOLVED,
    action_row,
    add_child,
    borrow_tree,
    count_outcomes,
    delete_edge,
    open_edge,
    open_node,
    refresh,
    renew_edge,
    weigh_edge,
)
from vulcan.sentinels import FAILURE_STATE, NONE

# What to do next at the deepest history of the path.
OPEN: Final = 0
SELECT: Final = 1
TRY: Final = 2

# Default policies.
RANDOM: Final = 0
GREEDY: Final = 1
ASKED: Final = 2  # the user's own

STEP: Final = np.dtype([("node", "i4"), ("edge", "i4"), ("outcome", "i4")], align=True)
CONTROL: Final = np.dtype(
    [
        ("depth", "i8"),
        ("phase", "i8"),
        ("samples", "i8"),
        ("budget", "i8"),  # stop after this many samples
        ("most_histories", "i8"),  # or with this many histories in the tree
        ("work", "i8"),  # steps so far; a sample takes many where much is refused
        ("pause", "i8"),  # look at the clock after this many
        ("exhausted", "i8"),  # whether the root has no action left
        ("default_policy", "i8"),
        ("choice", "i8"),  # position of the action that the user chose
        ("random", "u8"),  # state of the random numbers
        ("exploration", "f8"),
        ("literal", "i8"),  # whether that constant is literal, not in units of the range
    ],
    align=True,
)


@kernel
def sample(problem, tree, returns, path, tests, controls):
    """Take samples until the budget is used up, the root is settled, or something is needed."""
    problem, tree = borrow_problem(problem), borrow_tree(tree)
    returns, path = borrow(returns), borrow(path)
    test, control = tests[0], controls[0]
    while (
        not tree.nodes[0].solved
        and control.samples < control.budget
        and tree.sizes[0].nodes < control.most_histories
    ):
        if control.work >= control.pause:
            return PAUSED
        control.work += 1
        if control.phase == TRY:
            news = try_edge(problem, tree, returns, path, test, control)
        elif control.phase == OPEN:
            news = open_history(problem, tree, returns, path, test, control)
        else:
            news = select_edge(problem, tree, returns, path, control)
        if news == END_SAMPLE:
            back_up(problem, tree, returns, path, control)
        elif news == REJECT:
            if control.depth == 0:
                control.exhausted = 1
                break
            control.depth -= 1
            step = path[control.depth]
            delete_edge(problem, tree, tree.nodes[step.node], step.edge)
            control.phase = SELECT
        elif news != GO_ON:
            return news
    return DONE


@part
def open_history(problem, tree, returns, path, test, control):
    """Enter a history: test it if it is finished, else give it its actions."""
    node = tree.nodes[path[control.depth].node]
    verdict = ADMITTED
    if node.state != FAILURE_STATE:
        ends = control.depth == len(problem.discounts)
        if control.depth + 1 == len(problem.discounts) and not tree.sizes[0].counted:
            return decide_last_step(problem, tree, returns, path, test, control.depth)
        news = KNOWN if ends else have_actions(problem, node.state)
        if news != KNOWN:
            return news
        fresh = not ends and node.first_edge == NONE
        if fresh:
            ended = problem.states[node.state].action_count == 0
            note_ending(problem, tree, returns, path, control.depth, ended)
        if not ends and problem.states[node.state].action_count > 0:
            if not open_node(problem, tree, node):
                return NEEDS_ROOM
            control.phase = SELECT
            if fresh and tree.sizes[0].bounded:
                return limit_edges(problem, tree, node, control.depth)
            return GO_ON
        verdict = finish(test, problem.pieces, node.survival, node.credit)
        if verdict == UNDECIDED:
            return NEEDS_BOUND
    if verdict == REFUSED:
        return REJECT
    node.visits += 1
    node.value = 0.0
    node.solved = not tree.sizes[0].counted
    return END_SAMPLE


@part
def decide_last_step(problem, tree, returns, path, test, depth):
    """Solve a history of which one step is left: all that its actions earn is known at once."""
    node = tree.nodes[path[depth].node]
    source, s = problem.source[0], node.state
    compiled = source.outcomes != 0
    if not compiled and problem.states[s].action_count < 0:
        return NEEDS_STATE
    count = source.numbers if compiled else problem.states[s].action_count
    best, actions = -np.inf, 0
    for k in range(count):
        a = source.actions if compiled else problem.states[s].first_action + k
        news = peek(problem, s, k) if compiled else KNOWN
        if news == NO_ACTION:
            continue
        if news != KNOWN:
            return news
        actions += 1
        action = problem.actions[a]
        weight = problem.weights[depth]
        verdict = try_action(problem, test, action, weight, True, node.survival, node.credit)
        if verdict == UNDECIDED:
            return NEEDS_BOUND
        if verdict == ADMITTED:
            best = max(best, action.expected_reward)
            for j in range(action.first_outcome, action.first_outcome + action.outcome_count):
                widen(returns[depth], problem.outcomes[j].reward)
    if actions == 0:
        verdict = finish(test, problem.pieces, node.survival, node.credit)
        if verdict == UNDECIDED:
            return NEEDS_BOUND
        best = 0.0 if verdict == ADMITTED else -np.inf
    if compiled:
        source.evaluations += actions
    note_ending(problem, tree, returns, path, depth, actions == 0)
    if best == -np.inf:
        return REJECT
    if actions > 0:
        tally(returns[depth], best)
    node.visits, node.value, node.solved = node.visits + 1, best, 1
    return END_SAMPLE


@part
def limit_edges(problem, tree, node, depth):
    """Bound the value of each action of a history; of a Python model, have that done."""
    if not problem.source[0].bound:
        return NEEDS_LIMITS
    for e in range(node.first_edge, node.first_edge + problem.states[node.state].action_count):
        row, discount = action_row(problem, node, e), problem.discounts[depth]
        tree.edges[e].limit = limit_action(problem, node.state, row, depth, discount)
    return GO_ON


@part
def select_edge(problem, tree, returns, path, control):
    """Choose an action: an untried one first, else the one that UCT prefers."""
    step = path[control.depth]
    node = tree.nodes[step.node]
    if control.default_policy == ASKED and node.visits == 0 and control.choice == NONE:
        return NEEDS_CHOICE
    if control.default_policy == GREEDY:
        step.edge = choose_greedy(problem, tree, returns, node, control.depth)
    else:
        step.edge = choose_untried(problem, tree, node, control)
    if step.edge == NONE:
        seen = returns[control.depth]
        scale = control.exploration * (1.0 if control.literal else seen.most - seen.least)
        share = 0.0 if control.literal else SHARE
        step.edge = choose_uct(problem, tree, node, scale, share)
    if step.edge != NONE:
        control.phase = TRY
        return GO_ON
    return END_SAMPLE if node.solved else REJECT


@part
def try_edge(problem, tree, returns, path, test, control):
    """Test the chosen action, and go on with one of its outcomes unless it ends every history."""
    depth = control.depth
    step = path[depth]
    node, edge = tree.nodes[step.node], tree.edges[step.edge]
    row = action_row(problem, node, step.edge)
    action = problem.actions[row]
    verdict = weigh_edge(problem, test, depth, False, node, row, edge)
    if verdict == UNDECIDED:
        return NEEDS_BOUND
    if verdict == REFUSED:
        delete_edge(problem, tree, node, step.edge)
        control.phase = SELECT
        return GO_ON
    if verdict != ADMITTED:
        return verdict
    if action.safe_count == 0:
        edge.visits += 1
        edge.value, edge.mark = action.expected_reward, SOLVED
        if tree.sizes[0].counted:
            edge.mark = LIVE
        refresh(problem, tree, node)
        for k in range(action.first_outcome, action.first_outcome + action.outcome_count):
            widen(returns[depth], problem.outcomes[k].reward)
        return END_SAMPLE
    if tree.sizes[0].nodes >= len(tree.nodes) or not open_edge(tree, action, edge):
        return NEEDS_ROOM
    k = draw_outcome(problem, tree, action, edge, control)
    if k == NONE:  # completion solved them all
        renew_edge(problem, tree, problem.discounts[depth], node, step.edge)
        refresh(problem, tree, node)
        control.phase = SELECT
        return GO_ON
    child = tree.children[edge.first_child + k]
    if child == NONE:
        child = add_child(problem, tree, test, action, problem.weights[depth], node, edge, k)
    step.outcome = action.first_outcome + k
    path[depth + 1].node = child
    control.depth = depth + 1
    control.phase = OPEN
    return GO_ON


@part
def draw_outcome(problem, tree, action, edge, control):
    """Draw an outcome whose history is not solved."""
    count = count_outcomes(tree, action)
    mass = 0.0
    for k in range(count):
        child = tree.children[edge.first_child + k]
        if child == NONE or not tree.nodes[child].solved:
            mass += problem.outcomes[action.first_outcome + k].probability
    left = draw_uniform(control) * mass
    chosen = NONE
    for k in range(count):
        child = tree.children[edge.first_child + k]
        if child == NONE or not tree.nodes[child].solved:
            chosen = k
            left -= problem.outcomes[action.first_outcome + k].probability
            if left < 0.0:
                break
    return chosen


@part
def back_up(problem, tree, returns, path, control):
    """Carry the end of a sample up to the root."""
    # What its last step earns was not sampled, if it was solved.
    collected = tree.nodes[path[control.depth].node].value
    for depth in range(control.depth - 1, -1, -1):
        step = path[depth]
        node = tree.nodes[step.node]
        tree.edges[step.edge].visits += 1
        renew_edge(problem, tree, problem.discounts[depth], node, step.edge)
        refresh(problem, tree, node)
        collected = problem.outcomes[step.outcome].reward + problem.discounts[depth] * collected
        widen(returns[depth], collected)
        tally(returns[depth], collected)
    control.samples += 1
    control.depth = 0
    control.phase = OPEN
