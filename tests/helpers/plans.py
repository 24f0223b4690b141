"""Policies of the library from plans of the brute-force oracle."""

from __future__ import annotations

from typing import Any

from tests.helpers.tables import Table
from tests.oracles.brute_force import Plan
from vulcan import Outcome, Policy
from vulcan.model.observations import label_outcomes
from vulcan.model.reader import ModelReader
from vulcan.policies.policy import About, PolicyBuilder
from vulcan.sentinels import END, FAILED


def about(model: Any) -> About:
    reader = ModelReader(model)
    frame = (reader.horizon, reader.discount)
    initial = reader.levels > reader.horizon
    return About(repr(model), reader.fingerprint(), *frame, None, "test", initial)


def build(table: Table, plan: Plan) -> Policy:
    """Return any policy of a table, admissible or not, in the library's form."""
    builder = PolicyBuilder(about(table))
    pending = [(plan.choice, 0)]
    nodes: list[tuple[str, list[Outcome], list[int]]] = []
    while pending:
        (name, below), state = pending.pop(0)
        outcomes = sorted(table.table[state][name], key=lambda outcome: outcome.fails)
        safe = iter(below)
        children = []
        for outcome in outcomes:
            choice = None if outcome.fails else next(safe)
            if choice is None:
                children.append(FAILED if outcome.fails else END)
            else:
                children.append(len(nodes) + len(pending) + 1)
                pending.append((choice, outcome.state))
        nodes.append((name, outcomes, children))
    for name, outcomes, children in nodes:
        builder.add(
            name,
            label_outcomes(outcomes),
            [o.probability for o in outcomes],
            [o.reward for o in outcomes],
            children,
        )
    return builder.build()
