"""What a plan of a given size can earn at most, about, computed on the merged twin of a mission.

A dynamic program over the twin's state–step pairs with a price of failure and a price per decision
gives plans of many sizes, nearly the best ones. Histories that a plan does not open are closed by
the action that ends the mission, or counted with the default bounds.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from benchmarks.histories.missions import Merged, Mission
from vulcan.bounds.parse import parse
from vulcan.kernels.growth import GroupArrays, forecast, value_groups
from vulcan.model.reader import ModelReader
from vulcan.numerics import END

BINS = 64


def unroll(mission: Mission) -> GroupArrays:
    """Return the state–step pairs of the twin as groups."""
    reader = ModelReader(Merged(mission))
    number: dict[Any, int] = {(0, reader.root): 0}
    order: list[tuple[int, Any]] = [(0, reader.root)]
    first_row, first_outcome = [0], [0]
    reward, risk, probability, child, level, closing = [], [], [], [], [], []
    place = 0
    while place < len(order):
        step, state = order[place]
        place += 1
        level.append(step)
        close = (-math.inf, 0.0, 1.0)
        if mission.default_action is not None:
            most, least = mission.default_bounds(state, step)
            close = (least, most, 0.0)
        for label, action in reader.actions(state).items():
            outcomes = reader.outcomes(state, action)
            mean = sum(o.probability * o.reward for o in outcomes)
            failing = sum(o.probability for o in outcomes if o.fails)
            if label == mission.end:
                close = (mean, failing, 1.0)
            reward.append(mean)
            risk.append(failing)
            for o in outcomes:
                if o.fails:
                    continue
                probability.append(o.probability)
                if step + 1 == reader.levels or not reader.actions(o.state):
                    child.append(END)
                    continue
                key = (step + 1, o.state)
                if key not in number:
                    number[key] = len(order)
                    order.append(key)
                child.append(number[key])
            first_outcome.append(len(child))
        first_row.append(len(reward))
        closing.append(close)
    closings = np.array(closing)
    levels = np.array(level)
    return GroupArrays(
        order=np.argsort(-levels, kind="stable"),
        first_row=np.array(first_row),
        close_reward=closings[:, 0].copy(),
        close_risk=closings[:, 1].copy(),
        close_size=closings[:, 2].copy(),
        reward=np.array(reward),
        risk=np.array(risk),
        first_outcome=np.array(first_outcome),
        probability=np.array(probability),
        child=np.array(child),
    )


def trace_sizes(mission: Mission) -> list[tuple[float, float, float]]:
    """Return (decisions, reward, risk) of acceptable plans, for a falling price per decision."""
    arrays = unroll(mission)
    bound = parse(mission.bound)
    shape = (len(arrays.order), BINS)
    values, actions = np.zeros(shape), np.zeros(shape, np.int64)
    mass, number, found = np.zeros(shape), np.zeros(shape), np.zeros(3)

    scale = float(np.abs(arrays.reward).max()) * mission.horizon
    bins = scale * 2.0 ** (np.arange(BINS) - BINS + 1)
    prices = [0.0, *(scale * 1.25**k for k in range(-10, 40))]
    best: dict[int, tuple[float, float, float]] = {}
    for price in prices:
        value_groups(arrays, price, bins, values, actions)
        for start in range(BINS - 1, 0, -1):
            forecast(arrays, actions, start, mass, number, found)
            if (
                found[1] <= bound(float(found[0]))
                and found[0] > best.get(start, (0, -math.inf, 0))[1]
            ):
                best[start] = (found[2], found[0], found[1])
        if max(best, default=0) and all(start in best for start in range(1, BINS)):
            break
    return sorted(best.values())


def evaluate_default(mission: Mission) -> float:
    """Return the reward of the action that ends the mission, or of the default action alone."""
    action = mission.end or mission.default_action
    assert action is not None

    @cache
    def earn(state: Any, step: int) -> float:
        if step == mission.horizon or not mission.actions(state):
            return 0.0
        return sum(
            p * (reward + (0.0 if then is None else earn(then, step + 1)))
            for p, reward, then, _ in mission.outcomes(state, action)
        )

    return earn(mission.initial, 0)


def best_of_size(curve: list[tuple[float, float, float]], size: float) -> float:
    """Return the reward of the best plan of a size, interpolated over the logarithm of sizes."""
    sizes, rewards = [math.log(max(1.0, s)) for s, _, _ in curve], [r for _, r, _ in curve]
    return float(np.interp(math.log(max(1.0, size)), sizes, np.maximum.accumulate(rewards)))
