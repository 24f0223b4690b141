"""All functions of state and step of a small model, as policies."""

from __future__ import annotations

from itertools import product

from tests.helpers.tables import Table
from tests.oracles.hulls import Point


def enumerate_functions(table: Table) -> list[Point]:
    """Return reward and risk of every function of state and step."""
    places, pending = [], [(table.start, 0)]
    while pending:
        state, step = pending.pop()
        actions = table.table.get(state, {}) if step < table.horizon else {}
        if actions and (state, step) not in places:
            places.append((state, step))
            for outcomes in actions.values():
                pending += [(o.state, step + 1) for o in outcomes if not o.fails]
    places.sort(key=lambda place: -place[1])
    found = []
    for names in product(*(table.table[state] for state, _ in places)):
        values: dict[object, Point] = {}
        for (state, step), name in zip(places, names, strict=True):
            reward = risk = 0.0
            for o in table.table[state][name]:
                g, x = (0.0, 1.0) if o.fails else values.get((o.state, step + 1), (0.0, 0.0))
                reward += o.probability * (table.discount**step * o.reward + g)
                risk += o.probability * x
            values[state, step] = (reward, risk)
        found.append(values.get((table.start, 0), (0.0, 0.0)))
    return found
