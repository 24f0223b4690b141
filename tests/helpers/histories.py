"""Exact values of all histories of the first moves of a compiled mission, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vulcan.model.compiled import ANSWER, CompiledModel


def value_first_moves(model: Any, price: float, degree: int = 4) -> NDArray[np.float64]:
    """Return the largest reward less price times risk of the histories before the last steps.

    Shortest first, in the order of their actions, and among these of their outcomes; a history
    that does not exist has any value.
    """
    form = model.compiled
    parameters, moves = form.parameters.copy(), model.horizon - form.last_steps
    values = [np.full((len(form.actions) * degree) ** d, -1e30) for d in range(moves + 1)]

    def visit(state: Any, step: int, actions: int, readings: int) -> float:
        place = (actions << 2 * step) + readings
        if step == moves:
            given = parameters.ctypes.data, state.ctypes.data, step, price
            best = form.last_value.ctypes(*given)
        else:
            best = max(
                _value(form, parameters, state, a, price, visit, (step, actions, readings))
                for a in range(len(form.actions))
            )
        values[step][place] = best
        return float(best)

    visit(form.initial.copy(), 0, 0, 0)
    return np.concatenate(values)


def _value(
    form: CompiledModel, parameters: Any, state: Any, a: int, price: float, visit: Any, at: Any
) -> float:
    """Return the value of an action; -inf if there is none."""
    step, actions, readings = at
    answers = np.zeros(form.most_outcomes, ANSWER)
    following = np.zeros(form.most_outcomes, form.initial.dtype)
    written = answers.ctypes.data, following.ctypes.data
    count = form.outcomes.ctypes(parameters.ctypes.data, state.ctypes.data, a, *written)
    total = 0.0
    for k in range(count):
        chance, reward, fails = answers[k].item()
        worth = reward - price if fails else reward
        if not fails:
            after = following[k : k + 1].copy()
            worth += visit(after, step + 1, 8 * actions + a, 4 * readings + k)
        total += chance * worth
    return total if count else -np.inf
