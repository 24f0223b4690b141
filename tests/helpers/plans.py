"""Policies of the library from plans of the brute-force oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import structs

from tests.helpers.builder import PolicyBuilder
from tests.helpers.tables import Table
from tests.oracles.brute_force import Plan
from vulcan import Outcome, Policy
from vulcan.model.reader import ModelReader
from vulcan.numerics import END, FAILED, UNPLANNED
from vulcan.policy.policy import About


def about(model: Any) -> About:
    reader = ModelReader(model)
    frame = (reader.horizon, reader.discount)
    initial = reader.levels > reader.horizon
    return About(repr(model), reader.fingerprint(), *frame, None, "test", initial)


def edit(policy: Any, *, first_child: int | None = None, origin: Any = None, **arrays: Any) -> Any:
    """Return the policy with other arrays, another child of its first outcome, another origin."""
    kept = {name: getattr(policy, name) for name in policy.ARRAYS} | arrays
    if first_child is not None:
        kept["child"] = np.append(np.int32(first_child), kept["child"][1:])
    return Policy(structs.replace(policy.about, **(origin or {})), policy.labels, **kept)


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
    for node in nodes:
        builder.decide(*node)
    return builder.build()


def build_merged(
    model: Any,
    choose: Callable[[int, Any, list[str]], str | None] = lambda level, state, names: names[0],
) -> Policy:
    """Return the policy that does the same wherever a state is reached after as many decisions.

    Decisions are numbered as they are met, level by level.

    Parameters
    ----------
    model
        Any model.
    choose
        Of a level, a state and the labels of its actions, the one to take; None to plan nothing.
    """
    reader, builder = ModelReader(model), PolicyBuilder(about(model))
    places, first = [reader.root] if reader.actions(reader.root) else [], 0
    for level in range(reader.levels):
        first += len(places)
        following: dict[Any, int] = {}
        for state in places:
            actions = reader.actions(state)
            name = choose(level, state, list(actions))
            assert name is not None
            outcomes = reader.outcomes(state, actions[name])
            children = []
            for outcome in outcomes:
                names = [] if outcome.fails else list(reader.actions(outcome.state))
                if outcome.fails:
                    children.append(FAILED)
                elif level + 1 == reader.levels or not names:
                    children.append(END)
                elif choose(level + 1, outcome.state, names) is None:
                    children.append(UNPLANNED)
                else:
                    number = following.setdefault(outcome.state, first + len(following))
                    children.append(number)
            builder.decide(name, outcomes, children)
        places = list(following)
    return builder.build()
