"""What else could be done in the rows of a policy's table.

A row may join several decisions of the same step, state and action. What the whole plan would be
with another action at one place is linear in the probability of the place and in what lies ahead
of it (`vulcan.planning.explain`), so that the row is judged as if it were one place, and the answer
is what the whole would be with the other action at all of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.explanation import Alternative, Explanation
from vulcan.certificates.problem import Problem, require_problem
from vulcan.certificates.steps import Step, StepLevel
from vulcan.model.reader import ModelReader
from vulcan.parameters import require_number
from vulcan.planning.alternatives import Judge, World
from vulcan.planning.explain import describe_look
from vulcan.policies.places import find_values
from vulcan.policies.policy import open_own_model
from vulcan.policies.table import PolicyTable, to_words
from vulcan.policies.walk import Place, PolicyWalk
from vulcan.sentinels import NONE

__all__ = ["find_alternatives"]


def find_alternatives(
    problem: Problem, table: PolicyTable, *, look: float | None = None
) -> PolicyTable:
    """Look at what else could be done in each row of a policy's table.

    Each other action is put in the place of the one that is taken, the rest of the plan kept; see
    `vulcan.explain`. Of a long table, choose the rows before: the model is asked for each.

    Parameters
    ----------
    problem
        The model that the policy was made for, and the bound that it is judged by.
    table
        A table of its decisions, or some rows of one.
    look
        Where states do not merge, or are too many: how many seconds to search in each row for what
        could follow the other actions. Without it only the step itself is compared.

    Returns
    -------
    PolicyTable
        The same rows with `instead`, the best other action ("" if there is none), `instead_reward`
        and `instead_risk`, what the whole plan would earn and risk more by it, and `verdict`:
        "worth less", "as good", "too risky", "better" or "not known", as in `Alternative`. The
        `note` says what they were compared by.

    Raises
    ------
    MismatchError
        If the model is not the one that the policy was made for, or no longer answers the same.

    Examples
    --------
    >>> import vulcan
    >>> from vulcan.domains import Bandit
    >>> problem = vulcan.Problem(Bandit(horizon=3), "0.002*x")
    >>> table = vulcan.solve(problem).policy.table().top(1)
    >>> vulcan.find_alternatives(problem, table)["verdict"].tolist()
    ['worth less']
    """
    if look is not None:
        require_number("look, a number of seconds,", look, above=0.0)
    require_problem(problem, call="find_alternatives(Problem(model, {bound}), policy.table())")
    policy = table.places.policy
    reader = open_own_model(policy.about, problem.model)
    world = World(problem, reader)
    known = world if world.price is not None else None
    weights = zip(reader.weights.tolist(), reader.discounts.tolist(), strict=True)
    levels = [StepLevel([], *pair) for pair in weights]
    worth = _find_worth(table, reader)
    judge = Judge(problem.risk_bound, worth, levels, reader, known, look)
    found = [judge.find_best(step) for step in _Rows(table, reader).list_steps()]
    others = [Alternative("", math.nan, math.nan, math.nan, "") if a is None else a for a in found]
    return table.add(
        {
            "instead": to_words(other.action for other in others),
            "instead_reward": np.array([other.reward_change for other in others]),
            "instead_risk": np.array([other.risk_change for other in others]),
            "verdict": to_words(other.verdict for other in others),
        },
        note=f"instead: {describe_look(known is not None, look)}",
    )


def _find_worth(table: PolicyTable, reader: ModelReader) -> Explanation:
    """Return what the whole policy earns and risks."""
    rows, values = table.places.rows, find_values(table.places, reader)
    start = np.flatnonzero(rows["level"] == 0)
    reward, risk = (
        float(rows["reach"][start] @ values[name][start]) for name in ("reward_ahead", "risk_ahead")
    )
    return Explanation(reward, risk, (), (), ())


class _Rows:
    """The rows of a table as steps, with the states in which they are taken."""

    def __init__(self, table: PolicyTable, reader: ModelReader) -> None:
        self._table, self._places = table, table.places
        self._walk = PolicyWalk(table.places.policy, reader)
        self._found: dict[int, Any] = {NONE: reader.root}

    def list_steps(self) -> list[Step]:
        """Return a step for each row."""
        names = ("action", "reach", "fails", "risk_ahead", "reward_ahead")
        cells: list[NDArray[Any]] = [self._table[name] for name in names]
        steps = []
        for place, action, reach, fails, risk, reward in zip(
            self._table.place.tolist(), *(each.tolist() for each in cells), strict=True
        ):
            row = self._places.rows[place]
            member, node, level = int(row["member"]), int(row["node"]), int(row["level"])
            step = Step(Place(member, node, self._find_state(place)), level, action, reach, fails)
            policy = self._places.policy.members[member]
            own = slice(*policy.first_outcome[node : node + 2].tolist())
            step.safe_reward = float(policy.probability[own] @ policy.reward[own])
            step.reward_ahead, step.risk_ahead = reward, risk
            steps.append(step)
        return steps

    def _find_state(self, place: int) -> Any:
        """Return the state of a place, from the model if the table did not need it."""
        rows = self._places.rows
        if rows["state"][place] != NONE:
            return self._places.states[rows["state"][place]]
        state = self._found[NONE]
        for before, there in zip(steps := self._places.list_steps(place), steps[1:], strict=False):
            if there not in self._found:
                member, node, level = (int(rows[k][before]) for k in ("member", "node", "level"))
                ways = self._walk.follow(Place(member, node, state), level)
                first = self._places.policy.members[member].first_outcome[node]
                self._found[there] = ways[int(rows["outcome"][there] - first)][0].state
            state = self._found[there]
        return state
