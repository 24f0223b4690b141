"""VulcanFS, the paper's algorithm 1, as a kernel that can stop and go on.

    Q(h) = 0                                        if h is finished and passes the constraint
    Q(h) = -inf                                     if h is finished and does not
    Q(h) = max_a  R̄(s, a) + γ Σ_safe p(s') Q(h')    otherwise; π(h) is the a that attains it

The recursion is a stack of frames, one per level, in an array. So the kernel can return in the
middle, to have a state asked or the bound's table made finer, to let Python look at the clock, and
go on where it was. Its memory is the stack and the policy under construction.

The policy is recorded in preorder in `plan`, an array of action rows. Open history h keeps
plan[segment] for its own action, then the subtrees of its best action so far up to `kept`, then
those of the action under trial. When an action wins, its subtrees move down over those of the last
winner.

All histories that end at the horizon after one action share their survival, and under most
constraints their credit; the last level tests them once per action (`decide_last_step`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vulcan.constraint import SEQUENCE_BY_OUTCOME
from vulcan.kernels.ask import KNOWN, have_actions, have_outcomes
from vulcan.kernels.compile import borrow, kernel, part
from vulcan.kernels.local import ADMITTED, UNDECIDED, add_credit, fail, finish
from vulcan.kernels.world import borrow_world

# What the kernel wants when it returns.
DONE: Final = 0
# NEEDS_STATE: the actions of frames[depth].state; NEEDS_ROWS, BROKEN: see kernels.ask
NEEDS_BOUND: Final = 2  # a finer table at test.asked
NEEDS_PLAN: Final = 3  # a longer plan array
PAUSED: Final = 4  # nothing; the budget of histories is used up

# What to do next with the deepest frame.
OPEN: Final = 0
NEXT_ACTION: Final = 1
NEXT_OUTCOME: Final = 2
CLOSE: Final = 3

NONE: Final = -1

FRAME: Final = np.dtype(
    [
        ("state", "i4"),
        ("action", "i4"),  # the action row under trial
        ("end", "i4"),  # one past the last action row
        ("outcome", "i4"),  # the outcome row under trial
        ("survival", "f8"),  # of the history
        ("credit", "f8"),
        ("survival_after", "f8"),  # of the history and the action
        ("credit_after", "f8"),
        ("value", "f8"),  # of the action under trial; of the history once it is closed
        ("admissible", "i4"),  # likewise
        ("found", "i4"),  # whether some action was admissible
        ("best", "f8"),
        ("segment", "i8"),
        ("kept", "i8"),
    ],
    align=True,
)

CONTROL: Final = np.dtype(
    [
        ("depth", "i8"),
        ("phase", "i8"),
        ("length", "i8"),  # of the plan so far
        ("histories", "i8"),
        ("budget", "i8"),  # pause when as many histories were visited
        ("work", "i8"),  # histories entered and actions tested, whether they count or not
        ("pause", "i8"),  # pause when there was as much work
        ("cut_short", "i8"),
    ],
    align=True,
)


@kernel
def search(world, frames, plan, tests, controls):
    """Go on with the search until it is done or needs something."""
    world, frames, plan = borrow_world(world), borrow(frames), borrow(plan)
    test, control = tests[0], controls[0]
    depth, phase = control.depth, control.phase
    wants = DONE
    while wants == DONE:
        frame = frames[depth]
        if phase == NEXT_OUTCOME:
            if enter_outcome(world, frame, frames[depth + 1], test, control, depth):
                depth += 1
                phase = OPEN
            else:
                settle_action(frame, plan, control)
                phase = NEXT_ACTION
        elif phase == OPEN:
            wants = open_history(world, frame, plan, test, control, depth)
            if wants == DONE:
                phase = control.phase
        elif phase == NEXT_ACTION:
            if frame.action + 1 == frame.end:
                frame.value, frame.admissible = frame.best, frame.found
                phase = CLOSE
            else:
                wants = begin_action(world, frame, test, depth)
                if wants == DONE:
                    phase = NEXT_OUTCOME
        elif depth == 0:
            break
        else:
            depth -= 1
            close_history(world, frames[depth], frame, depth)
            phase = NEXT_OUTCOME
    control.depth, control.phase = depth, phase
    return wants


@part
def enter_outcome(world, frame, child, test, control, depth):
    """Go to the next safe outcome of the action under trial, unless there is none to try."""
    action = world.actions[frame.action]
    k = frame.outcome
    if k == action.first_outcome + action.safe_count or (
        control.cut_short and not frame.admissible
    ):
        return False
    child.state = world.outcomes[k].state
    child.survival = frame.survival_after
    child.credit = frame.credit_after
    if test.form == SEQUENCE_BY_OUTCOME:
        child.credit = frame.credit + world.weights[depth] * world.outcomes[k].reward
    return True


@part
def open_history(world, frame, plan, test, control, depth):
    """Enter a history: test it if it is finished, else get ready to try its actions."""
    news = have_actions(world, frame.state)
    if news != KNOWN:
        return news
    state = world.states[frame.state]
    if control.length >= len(plan):
        return NEEDS_PLAN
    if control.work >= control.pause or control.histories >= control.budget:
        return PAUSED
    control.work += 1 + state.action_count
    control.phase = CLOSE
    if state.action_count == 0:
        verdict = finish(test, world.pieces, frame.survival, frame.credit)
        frame.value, frame.admissible = 0.0, verdict
        return NEEDS_BOUND if verdict == UNDECIDED else DONE
    if depth + 1 == len(world.discounts):
        return decide_last_step(world, frame, plan, test, control, depth)
    control.histories += 1
    frame.action, frame.end = state.first_action - 1, state.first_action + state.action_count
    frame.best, frame.found = -np.inf, 0
    frame.segment, frame.kept = control.length, control.length + 1
    plan[control.length] = NONE
    control.length += 1
    control.phase = NEXT_ACTION
    return DONE


@part
def begin_action(world, frame, test, depth):
    """Get ready to try the outcomes of the next action."""
    news = have_outcomes(world, frame.state, frame.action + 1, True, depth)
    if news != KNOWN:
        return news
    action, weight = world.actions[frame.action + 1], world.weights[depth]
    frame.survival_after = frame.survival * (1.0 - action.immediate_risk)
    frame.credit_after = add_credit(test, action, frame.survival, frame.credit, weight)
    frame.value = action.expected_reward
    frame.outcome = action.first_outcome
    verdict = fail(
        test, world.pieces, action, world.outcomes, frame.credit, frame.credit_after, weight
    )
    if verdict == ADMITTED and action.safe_count == 0:
        verdict = finish(test, world.pieces, 0.0, frame.credit_after)
    if verdict == UNDECIDED:
        return NEEDS_BOUND
    frame.admissible = verdict
    frame.action += 1
    return DONE


@part
def close_history(world, parent, frame, depth):
    """Add the value of a history to that of the action which led to it."""
    if frame.admissible:
        chance = world.outcomes[parent.outcome].probability
        parent.value += world.discounts[depth] * chance * frame.value
    else:
        parent.admissible = 0
    parent.outcome += 1


@part
def settle_action(frame, plan, control):
    """Keep the action that was tried if it is the best so far, else forget its plan."""
    if frame.admissible and frame.value > frame.best:
        frame.best, frame.found = frame.value, 1
        start = frame.segment + 1
        plan[frame.segment] = frame.action
        moved = control.length - frame.kept
        if frame.kept != start:
            for k in range(moved):
                plan[start + k] = plan[frame.kept + k]
        frame.kept = start + moved
    control.length = frame.kept


@part
def decide_last_step(world, frame, plan, test, control, depth):
    """Choose the action of a history of which one step is left."""
    weight = world.weights[depth]
    state = world.states[frame.state]
    visited = 1
    best, chosen = -np.inf, NONE
    for a in range(state.first_action, state.first_action + state.action_count):
        action = world.actions[a]
        visited += action.open_count
        if test.form == SEQUENCE_BY_OUTCOME:
            news = have_outcomes(world, frame.state, a, False, 0)
            if news != KNOWN:
                return news
            verdict = finish_by_outcome(world, action, weight, frame, test)
        else:
            # A failing history has the same credit as the safe ones, and passes where they do.
            survival = frame.survival * (1.0 - action.immediate_risk)
            credit = add_credit(test, action, frame.survival, frame.credit, weight)
            verdict = finish(test, world.pieces, survival, credit)
        if verdict == UNDECIDED:
            return NEEDS_BOUND
        if verdict == ADMITTED and action.expected_reward > best:
            best, chosen = action.expected_reward, a
    control.histories += visited
    frame.value, frame.admissible = best, chosen != NONE
    plan[control.length] = chosen
    control.length += 1
    return DONE


@part
def finish_by_outcome(world, action, weight, frame, test):
    """Test the last histories one by one, where their credits differ."""
    verdict = fail(test, world.pieces, action, world.outcomes, frame.credit, frame.credit, weight)
    if verdict != ADMITTED:
        return verdict
    survival = frame.survival * (1.0 - action.immediate_risk)
    for k in range(action.first_outcome, action.first_outcome + action.safe_count):
        credit = frame.credit + weight * world.outcomes[k].reward
        verdict = finish(test, world.pieces, survival, credit)
        if verdict != ADMITTED:
            return verdict
    return ADMITTED
