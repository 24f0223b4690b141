"""The local tests that searches are tested under."""

from __future__ import annotations

from typing import Any

import vulcan
from tests.helpers.tables import Table
from tests.oracles.brute_force import own_credit

KINDS = ["A", "A received", "A own", "B"]


def constraint(kind: str, table: Table) -> Any:
    """Return the library's constraint of a kind."""
    if kind == "B":
        return vulcan.solvers.SurvivalConstraint()
    if kind == "A own":
        return vulcan.solvers.SequenceConstraint(
            lambda state, action: own_credit(state, action, table)
        )
    return vulcan.solvers.SequenceConstraint("received" if kind == "A received" else "expected")


def sort_choice(choice: Any, table: Table, state: Any = 0) -> Any:
    """Bring the children of a choice from the library's order into the model's."""
    if choice is None:
        return None
    name, children = choice
    safe = [o for o in table.table[state][name] if not o.fails]
    return (
        name,
        tuple(sort_choice(c, table, o.state) for c, o in zip(children, safe, strict=True)),
    )
