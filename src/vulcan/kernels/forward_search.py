"""VulcanFS, the paper's algorithm 1, as a kernel that can stop and continue.

    Q(h) = 0                                        if h is finished and passes the constraint
    Q(h) = -inf                                     if h is finished and does not
    Q(h) = max_a  R̄(s, a) + γ Σ_safe p(s') Q(h')    otherwise; π(h) is the a that attains it

The recursion is a stack of frames, one per level, in an array. So the kernel can return at any
point, when it needs a state or a finer table of the bound or when Python should check the clock,
and continue from there. Its memory is the stack and the policy under construction.

The policy is recorded in preorder in `plan`, an array of action rows. Open history h keeps
plan[segment] for its own action, then the subtrees of its best action so far up to `kept`, then
those of the action under trial. When an action wins, its subtrees move down over those of the last
winner.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vulcan.kernels import codes
from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.expand import have_actions, have_outcomes
from vulcan.kernels.local_tests import (
    add_credit,
    add_outcome_credit,
    choose_last_action,
    finish,
    try_action,
)
from vulcan.numerics import NONE

# The next phase of the deepest frame.
OPEN: Final = 0
NEXT_ACTION: Final = 1
NEXT_OUTCOME: Final = 2
CLOSE: Final = 3


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
        ("work", "i8"),  # histories entered and actions tested
        ("pause", "i8"),  # pause when there was as much work
        ("cut_short", "i8"),
    ],
    align=True,
)


@kernel
def search(problem, frames, plan, tests, controls):
    """Continue the search until it is done or needs something."""
    problem, frames, plan = borrow(problem), borrow(frames), borrow(plan)
    test, control = tests[0], controls[0]
    depth, phase = control.depth, control.phase
    wants = codes.DONE
    while wants == codes.DONE:
        frame = frames[depth]
        if phase == NEXT_OUTCOME:
            if enter_outcome(problem, frame, frames[depth + 1], test, control, depth):
                depth += 1
                phase = OPEN
            else:
                keep_best(frame, plan, control)
                phase = NEXT_ACTION
        elif phase == OPEN:
            wants = open_history(problem, frame, plan, test, control, depth)
            if wants == codes.DONE:
                phase = control.phase
        elif phase == NEXT_ACTION:
            if frame.action + 1 == frame.end:
                frame.value, frame.admissible = frame.best, frame.found
                phase = CLOSE
            else:
                wants = begin_action(problem, frame, test, depth)
                if wants == codes.DONE:
                    phase = NEXT_OUTCOME
        elif depth == 0:
            break
        else:
            depth -= 1
            close_history(problem, frames[depth], frame, depth)
            phase = NEXT_OUTCOME
    control.depth, control.phase = depth, phase
    return wants


@part
def enter_outcome(problem, frame, child, test, control, depth):
    """Go to the next safe outcome of the action under trial; False if there is none to try."""
    action = problem.actions[frame.action]
    k = frame.outcome
    if k == action.first_outcome + action.safe_count or (
        control.cut_short and not frame.admissible
    ):
        return False
    child.state = problem.outcomes[k].state
    child.survival = frame.survival_after
    child.credit = add_outcome_credit(
        test, problem.outcomes[k], frame.credit, frame.credit_after, problem.weights[depth]
    )
    return True


@part
def open_history(problem, frame, plan, test, control, depth):
    """Enter a history: test it if it is finished, else prepare to try its actions."""
    status = have_actions(problem, frame.state)
    if status != codes.KNOWN:
        return status
    state = problem.states[frame.state]
    if control.length >= len(plan):
        return codes.NEEDS_PLAN
    if control.work >= control.pause or control.histories >= control.budget:
        return codes.PAUSED
    control.work += 1 + state.action_count
    control.phase = CLOSE
    if state.action_count == 0:
        verdict = finish(test, problem.pieces, frame.survival, frame.credit)
        frame.value, frame.admissible = 0.0, verdict == codes.ADMITTED
        return codes.NEEDS_BOUND if verdict == codes.UNDECIDED else codes.DONE
    if depth + 1 == len(problem.discounts):
        return decide_last_step(problem, frame, plan, test, control, depth)
    control.histories += 1
    frame.action, frame.end = state.first_action - 1, state.first_action + state.action_count
    frame.best, frame.found = -np.inf, 0
    frame.segment, frame.kept = control.length, control.length + 1
    plan[control.length] = NONE
    control.length += 1
    control.phase = NEXT_ACTION
    return codes.DONE


@part
def begin_action(problem, frame, test, depth):
    """Test the next action, and prepare to try its outcomes."""
    status = have_outcomes(problem, frame.state, frame.action + 1, True, depth)
    if status != codes.KNOWN:
        return status
    action, weight = problem.actions[frame.action + 1], problem.weights[depth]
    frame.survival_after = frame.survival * (1.0 - action.immediate_risk)
    frame.credit_after = add_credit(test, action, frame.survival, frame.credit, weight)
    frame.value = action.expected_reward
    frame.outcome = action.first_outcome
    verdict = try_action(
        problem, test, action, weight, action.safe_count == 0, frame.survival, frame.credit
    )
    if verdict == codes.UNDECIDED:
        return codes.NEEDS_BOUND
    frame.admissible = verdict == codes.ADMITTED
    frame.action += 1
    return codes.DONE


@part
def close_history(problem, parent, frame, depth):
    """Add the value of a history to that of the action which led to it."""
    if frame.admissible:
        chance = problem.outcomes[parent.outcome].probability
        parent.value += problem.discounts[depth] * chance * frame.value
    else:
        parent.admissible = 0
    parent.outcome += 1


@part
def keep_best(frame, plan, control):
    """Keep the action that was tried if it is the best so far, else drop its plan."""
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
def decide_last_step(problem, frame, plan, test, control, depth):
    """Choose the action of a history with one step left."""
    status, chosen, histories = choose_last_action(
        problem, test, frame.state, frame.survival, frame.credit, problem.weights[depth]
    )
    if status != codes.KNOWN:
        return status
    control.histories += histories
    frame.admissible = chosen != NONE
    frame.value = problem.actions[chosen].expected_reward if frame.admissible else -np.inf
    plan[control.length] = chosen
    control.length += 1
    return codes.DONE
