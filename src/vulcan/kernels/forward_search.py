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

A search can be one of a part only: of the histories that begin with one at level `top`, or of those
above level `cut`, whose values others find out. How parts make up the whole is at the head of
`vulcan.solvers.tree.split_search`. A search that is `guided` tries one action per history, the one
whose number it finds in `plan`, and so writes the rows of a policy that is known already.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vulcan.kernels.codes import (
    ADMITTED,
    DONE,
    KNOWN,
    NEEDS_BOUND,
    NEEDS_PIECE,
    NEEDS_PLAN,
    PAUSED,
    UNDECIDED,
)
from vulcan.kernels.compilation import borrow, kernel, part
from vulcan.kernels.constraints import add_credit, add_outcome_credit, finish, try_action
from vulcan.kernels.expansion import have_actions, have_outcomes
from vulcan.kernels.last_step import choose_last_action
from vulcan.kernels.problem_arrays import borrow_problem
from vulcan.sentinels import NONE

# What to do next with the deepest frame.
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
        ("work", "i8"),  # histories entered and actions tested, whether they count or not
        ("pause", "i8"),  # pause when there was as much work
        ("cut_short", "i8"),
        ("top", "i8"),  # the level that the search begins at
        ("cut", "i8"),  # the level that others search from; NONE for no such level
        ("guided", "i8"),  # whether the plan says which actions to try
        ("noted", "i8"),  # whether visits are noted
        ("entered", "i8"),  # how many states were
    ],
    align=True,
)

VISIT: Final = np.dtype(
    [
        ("entry", "i4"),  # the how-manieth state it was that the search entered; 0 for none
        ("ends", "i4"),  # how many histories one with one step left counts for, beside itself
        ("last", "i8"),  # how many of these came here
    ],
    align=True,
)
"""What is noted of a state, where others have to count as if they had visited it."""


@kernel
def search(problem, frames, plan, tests, controls, visits):
    """Go on with the search until it is done or needs something."""
    problem, frames, plan = borrow_problem(problem), borrow(frames), borrow(plan)
    visits = borrow(visits)
    test, control = tests[0], controls[0]
    depth, phase = control.depth, control.phase
    wants = DONE
    while wants == DONE:
        frame = frames[depth]
        if phase == NEXT_OUTCOME:
            if enter_outcome(problem, frame, frames[depth + 1], test, control, depth):
                depth += 1
                phase = OPEN
            else:
                settle_action(frame, plan, control)
                phase = NEXT_ACTION
        elif phase == OPEN:
            wants = open_history(problem, frame, plan, test, control, visits, depth)
            if wants == DONE:
                phase = control.phase
        elif phase == NEXT_ACTION:
            if frame.action + 1 == frame.end:
                frame.value, frame.admissible = frame.best, frame.found
                phase = CLOSE
            else:
                wants = begin_action(problem, frame, test, depth)
                if wants == DONE:
                    phase = NEXT_OUTCOME
        elif depth == control.top:
            break
        else:
            depth -= 1
            close_history(problem, frames[depth], frame, depth)
            phase = NEXT_OUTCOME
    control.depth, control.phase = depth, phase
    return wants


@part
def enter_outcome(problem, frame, child, test, control, depth):
    """Go to the next safe outcome of the action under trial, unless there is none to try."""
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
def open_history(problem, frame, plan, test, control, visits, depth):
    """Enter a history: test it if it is finished, else get ready to try its actions."""
    if depth == control.cut:
        return NEEDS_PIECE
    news = have_actions(problem, frame.state)
    if news != KNOWN:
        return news
    state = problem.states[frame.state]
    if control.length >= len(plan):
        return NEEDS_PLAN
    if control.work >= control.pause or control.histories >= control.budget:
        return PAUSED
    control.work += 1 + state.action_count
    control.phase = CLOSE
    last = depth + 1 == len(problem.discounts) and state.action_count > 0
    if control.noted and not last:
        note_entry(visits[frame.state], control)
    if state.action_count == 0:
        verdict = finish(test, problem.pieces, frame.survival, frame.credit)
        frame.value, frame.admissible = 0.0, verdict == ADMITTED
        return NEEDS_BOUND if verdict == UNDECIDED else DONE
    if last:
        return decide_last_step(problem, frame, plan, test, control, visits, depth)
    control.histories += 1
    frame.action, frame.end = state.first_action - 1, state.first_action + state.action_count
    if control.guided:
        follow_plan(problem, frame, plan[control.length])
    frame.best, frame.found = -np.inf, 0
    frame.segment, frame.kept = control.length, control.length + 1
    plan[control.length] = NONE
    control.length += 1
    control.phase = NEXT_ACTION
    return DONE


@part
def note_entry(visit, control):
    """Note that the search came to a state."""
    if visit.entry == 0:
        control.entered += 1
        visit.entry = control.entered


@part
def follow_plan(problem, frame, number):
    """Leave only the action of a number to be tried."""
    for a in range(frame.action + 1, frame.end):
        if problem.actions[a].number == number:
            frame.action, frame.end = a - 1, a + 1
            return


@part
def begin_action(problem, frame, test, depth):
    """Get ready to try the outcomes of the next action."""
    news = have_outcomes(problem, frame.state, frame.action + 1, True, depth)
    if news != KNOWN:
        return news
    action, weight = problem.actions[frame.action + 1], problem.weights[depth]
    frame.survival_after = frame.survival * (1.0 - action.immediate_risk)
    frame.credit_after = add_credit(test, action, frame.survival, frame.credit, weight)
    frame.value = action.expected_reward
    frame.outcome = action.first_outcome
    verdict = try_action(
        problem, test, action, weight, action.safe_count == 0, frame.survival, frame.credit
    )
    if verdict == UNDECIDED:
        return NEEDS_BOUND
    frame.admissible = verdict == ADMITTED
    frame.action += 1
    return DONE


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
def decide_last_step(problem, frame, plan, test, control, visits, depth):
    """Choose the action of a history of which one step is left."""
    news, chosen, histories = choose_last_action(
        problem, test, frame.state, frame.survival, frame.credit, problem.weights[depth]
    )
    if news != KNOWN:
        return news
    if control.noted:
        visit = visits[frame.state]
        if visit.last == 0:
            note_entry(visit, control)
        visit.last += 1
        histories = 1 + visit.ends
    control.histories += histories
    frame.admissible = chosen != NONE
    frame.value = problem.actions[chosen].expected_reward if frame.admissible else -np.inf
    plan[control.length] = chosen
    control.length += 1
    return DONE
