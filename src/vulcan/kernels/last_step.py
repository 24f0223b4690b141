"""The last step of a history: nothing comes after it, so that its best action is known at once.

All histories that end at the horizon after one action share their survival, and under most
constraints their credit: they are tested once per action.
"""

from __future__ import annotations

import numpy as np

from vulcan.kernels.codes import ADMITTED, KNOWN, NEEDS_BOUND, UNDECIDED
from vulcan.kernels.compilation import part
from vulcan.kernels.constraints import try_action
from vulcan.kernels.expansion import have_outcomes
from vulcan.sentinels import NONE


@part
def choose_last_action(problem, test, s, survival, credit, weight):
    """Choose the action that earns most of those that pass, in a state whose actions are known.

    Returns
    -------
    tuple
        KNOWN or what is needed to tell, the action row (NONE if none passes), and how many
        histories there are: this one and those after it.
    """
    state = problem.states[s]
    best, chosen, histories = -np.inf, NONE, 1
    for a in range(state.first_action, state.first_action + state.action_count):
        if test.by_outcome:
            news = have_outcomes(problem, s, a, False, 0)
            if news != KNOWN:
                return news, NONE, 0
        action = problem.actions[a]
        histories += action.open_count
        verdict = try_action(problem, test, action, weight, True, survival, credit)
        if verdict == UNDECIDED:
            return NEEDS_BOUND, NONE, 0
        if verdict == ADMITTED and action.expected_reward > best:
            best, chosen = action.expected_reward, a
    return KNOWN, chosen, histories
