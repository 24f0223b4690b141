"""All policies of a small model, with everything that the theory says about them.

Written from the definitions of the design, in plain recursion over histories, and sharing nothing
with the library but the model. A policy is a nested tuple (action, (subpolicy per safe outcome)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import vulcan
from tests.helpers.tables import Table

TOLERANCE = 1e-12


@dataclass(frozen=True)
class History:
    """A finished history: how it ended, and what happened on the way."""

    probability: float
    survival: float  # product of 1 - r over its actions
    reward: float  # g
    credit: float  # f1
    credit_received: float  # g again, for constraint A with f = g
    credit_own: float  # the user's f
    credit_survival: float  # the credit of constraint B
    failed: bool
    sure: bool  # failed in an action of immediate risk 1


@dataclass(frozen=True)
class Plan:
    """One policy and all its histories."""

    choice: Any
    histories: tuple[History, ...]

    @property
    def reward(self) -> float:
        return math.fsum(h.probability * h.reward for h in self.histories)

    @property
    def risk(self) -> float:
        return math.fsum(h.probability for h in self.histories if h.failed)


def own_credit(state: Any, action: str, table: Table) -> float:
    """A credit of a user's own: a little below the expected reward, unevenly."""
    mean = sum(o.probability * o.reward for o in table.table[table._last(state)][action])
    return mean - (0.1 if action == "b" else 0.0)


def enumerate_plans(table: Table) -> list[Plan]:
    """Return every policy of a model."""
    start = History(1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, False, False)
    return [Plan(c, tuple(hs)) for c, hs in _extend(table, table.start, 0, start)]


def _extend(
    table: Table, state: Any, step: int, so_far: History
) -> list[tuple[Any, list[History]]]:
    actions = table.table.get(state, {})
    if step == table.horizon or not actions:
        return [(None, [so_far])]
    found = []
    for name, outcomes in actions.items():
        risk = sum(o.probability for o in outcomes if o.fails)
        if all(o.fails for o in outcomes):
            risk = 1.0
        mean = sum(o.probability * o.reward for o in outcomes)
        weight = table.discount**step
        own = own_credit((state,) if not table.merges else state, name, table)
        failing, branches = [], []
        for o in outcomes:
            after = History(
                so_far.probability * o.probability,
                so_far.survival * (1 - risk),
                so_far.reward + weight * o.reward,
                so_far.credit + weight * mean,
                so_far.credit_received + weight * o.reward,
                so_far.credit_own + weight * own,
                so_far.credit_survival + weight * so_far.survival * mean,
                o.fails,
                o.fails and risk == 1.0,
            )
            if o.fails:
                failing.append(after)
            else:
                branches.append(_extend(table, o.state, step + 1, after))
        for combination in product(*branches):
            choice = (name, tuple(c for c, _ in combination))
            found.append((choice, failing + [h for _, hs in combination for h in hs]))
    return found


def admits(kind: str, bound: vulcan.RiskBound, plan: Plan) -> bool:
    """Whether a local test admits a policy: "A", "A received", "A own" or "B"."""
    return all(_passes(kind, bound, history) for history in plan.histories)


def _passes(kind: str, bound: vulcan.RiskBound, h: History) -> bool:
    if kind == "B":
        if h.failed and not h.sure:
            return True
        return 1 - h.survival <= bound(h.credit_survival) + TOLERANCE
    credit = {"A": h.credit, "A received": h.credit_received, "A own": h.credit_own}[kind]
    if h.failed:
        return not h.sure and bound(credit) >= -TOLERANCE
    return (1 - h.survival) / h.survival <= bound(credit) + TOLERANCE


def policy_choice(policy: vulcan.Policy, node: int = 0) -> Any:
    """Return a policy of the library as a nested tuple, with outcomes in the order of labels."""
    if node < 0:
        return None
    rows = [r for r in policy.outcomes(node) if policy.child[r] != -2]
    name = policy.labels[policy.action[node]]
    return (name, tuple(policy_choice(policy, int(policy.child[r])) for r in rows))
