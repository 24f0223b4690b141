"""The bandit as machine code, where every history is a state of its own.

What a machine does next depends on how often it has paid either reward, so a record is these counts
although histories do not merge. The probability of the first reward comes from a table over both
counts, which the plain model fills, so that both forms give the very same numbers.

Records have a fixed size, so that horizons are rounded up to one of `CAPACITIES`, and code is
compiled once for each of these and each number of machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numba import carray

from vulcan.kernels.compilation import answer
from vulcan.model.compiled import CompiledModel, outcomes_signature

if TYPE_CHECKING:
    from vulcan.domains.bandit import Bandit

CAPACITIES: Final = (12, 24)  # horizons; there are too many histories for longer ones

MOST_OUTCOMES: Final = 3


def outcomes(parameters, states, action, answers, following):
    """Write the outcomes of stopping (action 0) or of a play; see `vulcan.model.compiled`."""
    tables, state = carray(parameters, 1)[0], carray(states, 1)[0]
    if state.stopped:
        return 0
    answer, then = carray(answers, MOST_OUTCOMES), carray(following, MOST_OUTCOMES)
    safe = 1 if action == 0 else 2
    for k in range(safe):
        answer[k].fails, then[k].stopped, then[k].plays = 0, 0, state.plays + 1
        for i in range(len(state.paid)):
            then[k].paid[i] = state.paid[i]
    if action == 0:
        left = tables.horizon - state.plays
        answer[0].probability, answer[0].reward = 1.0, tables.stop_reward * left
        then[0].stopped = 1
        return 1
    first, second = 2 * (action - 1), 2 * (action - 1) + 1
    chance = tables.first_chances[action - 1, state.paid[first], state.paid[second]]
    risk = tables.risks[action - 1]
    answer[0].probability, answer[0].reward = (1.0 - risk) * chance, tables.rewards[first]
    answer[1].probability, answer[1].reward = (1.0 - risk) * (1.0 - chance), tables.rewards[second]
    then[0].paid[first] += 1
    then[1].paid[second] += 1
    if risk > 0.0:  # outcomes of probability 0 are left out
        answer[2].probability, answer[2].reward, answer[2].fails = risk, 0.0, 1
        return 3
    return 2


def compile_bandit(bandit: Bandit, paid: Sequence[int]) -> CompiledModel | None:
    """Return the compiled form of a bandit whose machines have paid so often already.

    None if it is too long, or some play has an outcome of probability 0 or 1.
    """
    capacity = next((size for size in CAPACITIES if size >= bandit.horizon), None)
    probabilities = [p for m in bandit.machines for p in (m.p1, m.p2)]
    sure = any(not 0 < p < 1 for p in probabilities) or any(m.risk >= 1 for m in bandit.machines)
    if capacity is None or sure:
        return None
    count = len(bandit.machines)
    state = np.dtype([("stopped", "u1"), ("plays", "u1"), ("paid", "u1", (2 * count,))])
    parameters = np.dtype(
        [
            ("horizon", "i8"),
            ("stop_reward", "f8"),
            ("risks", "f8", (count,)),
            ("rewards", "f8", (2 * count,)),
            ("first_chances", "f8", (count, capacity + 1, capacity + 1)),  # by times paid
        ],
        align=True,
    )
    tables = np.zeros(1, parameters)
    tables["horizon"], tables["stop_reward"] = bandit.horizon, bandit.stop_reward
    for i, machine in enumerate(bandit.machines):
        tables["risks"][0, i] = machine.risk
        tables["rewards"][0, 2 * i : 2 * i + 2] = machine.rewards
        for first in range(bandit.horizon + 1):
            for second in range(bandit.horizon + 1 - first):
                tables["first_chances"][0, i, first, second] = machine.first_chance(first, second)
    initial = np.zeros(1, state)
    initial["plays"], initial["paid"] = sum(paid), paid
    return CompiledModel(
        initial=initial,
        parameters=tables,
        actions=tuple(bandit.actions(bandit.initial_state())),
        most_outcomes=MOST_OUTCOMES,
        outcomes=answer(outcomes_signature(state, parameters))(outcomes),
    )
