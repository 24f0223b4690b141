"""What the policies of several prices earn and risk from a history on, exactly, in one walk.

The policies are shared as far as they agree: the walk goes through each history once for all prices
that come there, and splits where they choose differently (`vulcan.kernels.plan_choices`). Histories
below the tree are walked as well, to their end. Of a compiled model nothing is stored there: states
are records in a scratch array, one level below the other. A walk stops where a model in Python must
be asked, and goes on afterwards.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from vulcan.kernels.codes import BROKEN, DONE, GO_ON, KNOWN, NEEDS_STATE, PAUSED
from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.expansion import call_outcomes, find_record, have_outcomes, sum_up
from vulcan.kernels.plan_choices import prefer_sampled, rate
from vulcan.kernels.price_tree import PRICES, borrow_prices
from vulcan.kernels.problem_arrays import borrow_problem
from vulcan.kernels.selection import expect
from vulcan.sentinels import NONE

ENTER: Final = 0
NEXT_ACTION: Final = 1
NEXT_OUTCOME: Final = 2

FRAME: Final = np.dtype(
    [
        ("record", "u8"),  # of the state, of a compiled model
        ("state", "i4"),  # its row, of a model in Python
        ("node", "i4"),  # NONE below the tree
        ("lanes", "i4"),  # which prices come here, as bits
        ("done", "i4"),
        ("group", "i4"),  # those that take the present action
        ("phase", "i4"),
        ("action", "i4"),
        ("first_child", "i4"),  # of the present action in the tree; NONE below
        ("first_outcome", "i4"),
        ("outcomes", "i4"),
        ("outcome", "i4"),
        ("ends", "i4"),
        ("reward", "f8"),
        ("risk", "f8"),
        ("chosen", "i4", (PRICES,)),
        ("best", "f8", (PRICES,)),
        ("rewards", "f8", (PRICES,)),  # of the present action
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
        ("state", "i8"),  # to be asked
        ("scratch", "u8"),  # address of the records below the tree
        ("evaluations", "i8"),
    ],
    align=True,
)


class Walk(NamedTuple):
    """The arrays of a walk.

    Attributes
    ----------
    frames
        One per level.
    chances
        The probabilities of the outcomes of the present action on each level, and room for one
        action's row.
    actions
        Scratch for one row.
    controls
        One record.
    """

    frames: Any
    chances: Any
    actions: Any
    controls: Any


@kernel
def evaluate(problem, tree, returns, walk):
    """Walk until all is summed up in the first frame, or something is needed."""
    problem, tree, returns = borrow_problem(problem), borrow_prices(tree), borrow(returns)
    walk = Walk(
        borrow(walk.frames), borrow(walk.chances), borrow(walk.actions), borrow(walk.controls)
    )
    control = walk.controls[0]
    while True:
        frame = walk.frames[control.depth]
        if frame.phase == NEXT_OUTCOME:
            news = enter_outcome(problem, tree, walk, control, frame)
        elif frame.phase == ENTER:
            if control.work >= control.pause:
                return PAUSED
            control.work += 1
            news = choose(problem, tree, returns, walk, control, frame)
        else:
            news = begin_action(problem, tree, walk, control, frame)
        if news == DONE:
            if control.depth == control.level:
                return DONE
            control.depth -= 1
            leave(problem, walk, control, frame)
        elif news != GO_ON:
            return news


@part
def choose(problem, tree, returns, walk, control, frame):
    """Choose an action for each price that comes to a history."""
    frame.phase, frame.done = NEXT_ACTION, 0
    last = control.depth + 1 == len(problem.discounts)
    if not last and frame.node != NONE and prefer_sampled(problem, tree, frame.node, 0) != NONE:
        for k in range(PRICES):
            if frame.lanes >> k & 1:
                frame.chosen[k] = prefer_sampled(problem, tree, frame.node, k)
        return GO_ON
    if not last:
        frame.node = NONE
    for k in range(PRICES):
        frame.chosen[k], frame.best[k] = NONE, -np.inf
    return rate_actions(problem, tree, returns, walk, control, frame)


@part
def rate_actions(problem, tree, returns, walk, control, frame):
    """Choose by what actions promise: the tree does not know this history."""
    depth = control.depth
    last = depth + 1 == len(problem.discounts)
    source, weight = problem.source[0], problem.weights[depth]
    to_go = 0.0 if last else expect(returns, depth)
    compiled = source.outcomes != 0
    if not compiled and problem.states[frame.state].action_count < 0:
        control.state, frame.phase = frame.state, ENTER
        return NEEDS_STATE
    count = source.numbers if compiled else problem.states[frame.state].action_count
    for number in range(count):
        if compiled:
            row = ask_record(problem, walk, control, frame.record, number, source.following)
            if row < 0:
                return BROKEN
            if row == 0:
                continue
            control.evaluations += 1
            action = walk.actions[0]
        else:
            action = problem.actions[problem.states[frame.state].first_action + number]
        for k in range(PRICES):
            if frame.lanes >> k & 1:
                price = np.float64(tree.prices[0, k])
                worth = rate(returns, depth, weight, price, to_go, action)
                if frame.chosen[k] == NONE or worth > frame.best[k]:
                    frame.best[k], frame.chosen[k] = worth, number
    return GO_ON


@part
def ask_record(problem, walk, control, record, number, following):
    """Fill the scratch row with an action of a compiled model; return how many outcomes it has.

    -1 if they break a rule.
    """
    source = problem.source[0]
    count = call_outcomes(
        source.outcomes, source.parameters, record, np.int64(number), source.answers, following
    )
    action = walk.actions[0]
    if count != 0 and not sum_up(problem.answers, count, source.most_outcomes, action):
        source.state, source.action = 0, number
        return -1
    action.number = number
    return count


@part
def begin_action(problem, tree, walk, control, frame):
    """Take up the next action that some price chose; DONE if there is none."""
    lane = NONE
    for k in range(PRICES - 1, -1, -1):
        if frame.lanes >> k & 1 and not frame.done >> k & 1:
            lane = k
    if lane == NONE:
        return DONE
    chosen = frame.chosen[lane]
    frame.group = 0
    for k in range(PRICES):
        if frame.lanes >> k & 1 and frame.chosen[k] == chosen:
            frame.group |= 1 << k
            frame.rewards[k], frame.risks[k] = 0.0, 0.0
            if chosen == NONE:  # the history ends here
                frame.earned[k], frame.risked[k] = 0.0, 0.0
    frame.done |= frame.group
    if chosen == NONE:
        return GO_ON
    depth = control.depth
    last = depth + 1 == len(problem.discounts)
    news = look_at_action(problem, tree, walk, control, frame, chosen, last)
    if news != KNOWN:
        frame.done &= ~frame.group
        return news
    frame.reward *= problem.weights[depth]
    frame.outcome = 0
    frame.ends = last
    frame.phase = NEXT_OUTCOME
    return GO_ON


@part
def look_at_action(problem, tree, walk, control, frame, chosen, last):
    """Fill what an action earns and risks, and where its outcomes are."""
    frame.action, frame.first_child = chosen, NONE
    source, depth = problem.source[0], control.depth
    sampled = frame.node != NONE and not last
    if sampled or source.outcomes == 0:
        state = tree.nodes[frame.node].state if sampled else frame.state
        row = problem.states[state].first_action + chosen
        if not last:
            news = have_outcomes(problem, state, row, True, depth)
            if news != KNOWN:
                return news
        action = problem.actions[row]
        frame.reward, frame.risk = action.expected_reward, action.immediate_risk
        frame.outcomes, frame.first_outcome = action.safe_count, action.first_outcome
        if sampled:
            frame.first_child = tree.edges[tree.nodes[frame.node].first_edge + chosen].first_child
        return KNOWN
    width = np.uint64(source.most_outcomes * source.state_size)
    following = control.scratch + np.uint64(depth) * width
    if ask_record(problem, walk, control, frame.record, chosen, following) < 0:
        return BROKEN
    action = walk.actions[0]
    frame.reward, frame.risk = action.expected_reward, action.immediate_risk
    frame.outcomes, frame.first_outcome = action.safe_count, NONE
    for k in range(action.safe_count):
        walk.chances[depth, k] = problem.answers[k].probability
    return KNOWN


@part
def enter_outcome(problem, tree, walk, control, frame):
    """Go to the history after the next outcome; after the last one, close the action."""
    if frame.ends or frame.outcome == frame.outcomes:
        for k in range(PRICES):
            if frame.group >> k & 1:
                frame.earned[k] = frame.reward + frame.rewards[k]
                frame.risked[k] = frame.risk + frame.risks[k]
        frame.phase = NEXT_ACTION
        return GO_ON
    source, depth = problem.source[0], control.depth
    below = walk.frames[depth + 1]
    below.node = NONE
    below.phase, below.lanes = ENTER, frame.group
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
    return GO_ON


@part
def leave(problem, walk, control, below):
    """Add what a history is worth to the action that led there."""
    depth = control.depth
    frame = walk.frames[depth]
    if frame.first_outcome != NONE:
        chance = problem.outcomes[frame.first_outcome + frame.outcome].probability
    else:
        chance = walk.chances[depth, frame.outcome]
    for k in range(PRICES):
        if frame.group >> k & 1:
            frame.rewards[k] += chance * below.earned[k]
            frame.risks[k] += chance * below.risked[k]
    frame.outcome += 1
