"""Plain problems as compiled models: tables of one size, so that all share the machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from fuzzing.following import observable
from fuzzing.models import TableModel
from fuzzing.oracle import add_up
from fuzzing.problems import PlainProblem
from vulcan.kernels.compilation import answer
from vulcan.model.compiled import CompiledModel, outcomes_signature

__all__ = ["CompiledTable", "make_compiled"]

MOST_STATES, MOST_OUTCOMES = 32, 6
ACTIONS = ("a", "b", "c", "d")
SIZES = (MOST_STATES, len(ACTIONS))

STATE = np.dtype([("number", "i8")])
TABLE = np.dtype(
    [
        ("count", "i8", SIZES),
        ("probability", "f8", (*SIZES, MOST_OUTCOMES)),
        ("reward", "f8", (*SIZES, MOST_OUTCOMES)),
        ("target", "i8", (*SIZES, MOST_OUTCOMES)),
    ],
    align=True,
)
FAILS = -1


@answer(outcomes_signature(STATE, TABLE))
def outcomes(parameters, states, action, answers, following):  # type: ignore[no-untyped-def]
    """Write the outcomes of an action; see `vulcan.model.compiled`."""
    table, state = carray(parameters, 1)[0], carray(states, 1)[0].number
    written, after = carray(answers, MOST_OUTCOMES), carray(following, MOST_OUTCOMES)
    count = table.count[state, action]
    for k in range(count):
        target = table.target[state, action, k]
        written[k].probability = table.probability[state, action, k]
        written[k].reward = table.reward[state, action, k]
        written[k].fails = 1 if target == FAILS else 0
        if target != FAILS:
            after[k].number = target
    return count


class CompiledTable(TableModel):
    """A plain problem whose states are whole histories, with a compiled form."""

    compiled: CompiledModel | None = None

    def without_form(self) -> CompiledTable:
        """Return the same model, evaluated in Python."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, compiled=None)
        return other


def make_compiled(problem: PlainProblem) -> CompiledTable | None:
    """Return the model with its compiled form; None where the table can't hold it."""
    fits = isinstance(problem.start, int) and all(
        state is not None and state < MOST_STATES and len(ways) <= MOST_OUTCOMES
        for state, _, ways in problem.answers()
    )
    if not fits or any((w.target or 0) >= MOST_STATES for *_, ws in problem.answers() for w in ws):
        return None
    table: Any = np.zeros(1, TABLE)
    for state, action, ways in problem.answers():
        place = (0, state, ACTIONS.index(action))
        seen = observable(ways)
        table["count"][place] = len(seen)
        for k, way in enumerate(seen):
            alike = [other for other in ways if other.key == way.key]
            table["probability"][(*place, k)] = add_up(alike)
            table["reward"][(*place, k)] = way.reward
            table["target"][(*place, k)] = FAILS if way.target is None else way.target
    initial = np.zeros(1, STATE)
    initial["number"] = problem.start
    model = CompiledTable(problem, merges=False)
    model.compiled = CompiledModel(initial, table, ACTIONS, MOST_OUTCOMES, outcomes)
    return model
