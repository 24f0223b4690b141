"""Exploration missions by dense linear algebra and plain recursion."""

from __future__ import annotations

import math

import numpy as np

from vulcan.domains.exploration.field import Field
from vulcan.domains.exploration.maps import Map
from vulcan.domains.exploration.model import Exploration, History


def predict(mission: Exploration, state: History, cell: tuple[int, int]) -> tuple[float, float]:
    """Return mean and deviation of the next sample by dense solves, from the values seen."""
    field, area = mission.field, mission.map
    first = mission.first_sample
    visited, values = (
        [area.start],
        [field.mean(area.locate(area.start)) if first is None else first],
    )
    nodes = math.sqrt(2) * np.polynomial.hermite.hermgauss(mission.degree)[0]
    for place in state.path:
        if place not in visited:
            mean, deviation = condition(field, area, visited, values, place)
            values.append(mean + deviation * nodes[state.nodes[len(visited) - 1]])
            visited.append(place)
    assert len(visited) == len(state.nodes) + 1
    return condition(field, area, visited, values, cell)


def condition(field: Field, area: Map, visited, values, cell) -> tuple[float, float]:
    """Return mean and deviation of the field in a cell, given its values in others."""
    places = np.array([area.locate(c) for c in [*visited, cell]])
    squares = ((places[:, None] - places) ** 2).sum(axis=2)
    kernel = field.variance * np.exp(-squares / (2 * field.length**2))
    means = field.constant + places @ field.slope
    weights = np.linalg.solve(kernel[:-1, :-1], kernel[:-1, -1])
    mean = means[-1] + weights @ (np.array(values) - means[:-1])
    return mean, math.sqrt(kernel[-1, -1] - weights @ kernel[:-1, -1])


def value(mission: Exploration, state: History, step: int, price: float = 0.0) -> float:
    """Return what the best policy still earns, less the price of its risk."""
    if step == mission.horizon:
        return 0.0
    return (
        max(
            sum(
                o.probability
                * (
                    o.reward - price
                    if o.fails
                    else o.reward + mission.discount * value(mission, o.state, step + 1, price)
                )
                for o in mission.outcomes(state, action)
            )
            for action in mission.actions(state)
        )
        if mission.actions(state)
        else 0.0
    )
