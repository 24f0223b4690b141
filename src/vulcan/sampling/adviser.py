"""What to do next, where a plan over histories can't see far enough.

A plan is limited by its size, and late rewards are out of its sight. Groups (`Groups`) reach the
horizon at any size, but are only estimates: so they choose the next action, and a plan says whether
it is safe.

Here the level is one of the numbers that tell groups apart, and a weak one. While groups are
coarse, histories of all levels share them, so that an action is evaluated once and not at every
level; as they are refined, levels part. The rule is found on the pairs of a level and a group that
can be reached from the current state.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RiskBound
from vulcan.exact.acceptance import accepts
from vulcan.numerics import END
from vulcan.runtime.arrays import ranges
from vulcan.sampling.groups import (
    DEAREST,
    REFINEMENTS,
    TRIALS,
    ActionEvaluator,
    Closing,
    Groups,
    OpeningRule,
    Row,
    list_bins,
    solve_rule,
)

BETWEEN_LEVELS: Final = 0.03  # distance of histories that differ in their level alone
MOST_AT_ONCE: Final = 400  # evaluations for groups before their rule is computed again


class Foreseen(NamedTuple):
    """What is expected after an outcome."""

    reward: float  # discounted from the start of the mission; -inf if unknown
    risk: float
    label: str  # of the next action; "" if the mission ends, or is closed by the default


class Advice(NamedTuple):
    """Which action to take, what is to be expected, and how to continue safely.

    Pairs of a level and a group are numbered from 0, which is the state that was asked about.
    """

    labels: list[str]  # the best one first; "" for the default, where that is better than any
    foreseen: dict[str, list[Foreseen]]  # after each safe outcome of an action
    price: float  # of failure, for which the most risk is left unused
    arrays: Any
    names: list[list[str]]  # the actions of pairs
    levels: int

    def follow(self, pair: int, label: str) -> list[int]:
        """Return the pairs after the outcomes of an action that do not end the mission."""
        row = self.arrays.first_row[pair] + self.names[pair].index(label)
        first, last = self.arrays.first_outcome[row : row + 2]
        return [child for child in self.arrays.child[first:last].tolist() if child >= 0]

    def find_rule(self, size: float) -> OpeningRule:
        """Return the rule of a size that leaves the most risk unused."""
        return solve_rule(self.arrays, list_bins(self.arrays, self.levels), size, self.price)


class Adviser(Groups):
    """Groups of histories of any level; `claims` says that what closes them lasts to the end."""

    def __init__(
        self,
        evaluator: ActionEvaluator,
        close: Callable[[Any, int], Closing],
        claims: bool,
    ) -> None:
        self._claims = claims
        self._pairs = np.zeros(0, np.int64)  # the group of each pair of a level and a group
        super().__init__(evaluator, close)

    def describe(self, level: int, rows: list[Row]) -> tuple[Any, NDArray[np.float64]]:
        (_, *kind), point = super().describe(level, rows)
        return tuple(kind), np.append(point, BETWEEN_LEVELS * level)

    def advise(
        self, evaluator: ActionEvaluator, state: Any, level: int, bound: RiskBound, until: int
    ) -> Advice:
        """Return which actions seem best in a state.

        The bound is for rewards that are discounted from here on, and `until` is the number of
        evaluations of this step, which the evaluator counts.
        """
        self._evaluator = evaluator
        root, _ = self.place(state, level, 1.0, evaluator.rows(state))
        for action in range(len(self.rows[root])):
            heapq.heappush(self._waiting, (-1.0, root, action, -1))
        chunk, left = min(MOST_AT_ONCE, until // (2 * REFINEMENTS) + 1), True
        while True:
            arrays = self._unroll(root, level)
            rule = _find_free_rule(arrays, bound)
            if not left or not evaluator.may_go_on(until):
                return self._conclude(arrays, rule, level, bound)
            left = self._improve(rule, until, chunk)

    def _conclude(self, arrays: Any, rule: OpeningRule, level: int, bound: RiskBound) -> Advice:
        """Return the advice that a rule gives for its root."""
        root, weight = int(self._pairs[0]), float(self._reader.weights[level]) or 1.0
        ordered, foreseen = list[tuple[float, str]](), dict[str, list[Foreseen]]()
        for action, row in enumerate(self.rows[root]):
            value, later = row.reward - rule.price * row.risk, list[Foreseen]()
            for k in range(*arrays.first_outcome[arrays.first_row[0] + action :][:2].tolist()):
                after = self._foresee(arrays, rule, int(arrays.child[k]))
                value += arrays.probability[k] * (after.reward - rule.price * after.risk)
                later.append(after._replace(reward=weight * after.reward))
            ordered.append((value, row.label))
            foreseen[row.label] = later
        if rule.actions[0, 0] < 0:
            ordered.append((float(rule.values[0, 0]), ""))
        ordered.sort(key=lambda pair: -pair[0])
        labels, price = [label for _, label in ordered], find_dearest(bound, rule.reward)
        names = [[row.label for row in self.rows[group]] for group in self._pairs]
        return Advice(labels, foreseen, price, arrays, names, self._reader.levels)

    def _foresee(self, arrays: Any, rule: OpeningRule, pair: int) -> Foreseen:
        """Return what a rule is expected to earn and to risk from a pair on."""
        from vulcan.kernels.growth import forecast

        if pair < 0:
            return Foreseen(0.0 if pair == END else -math.inf, 0.0, "")
        later = arrays.order[: len(arrays.order) - 1 - pair]
        mass, number, found = np.zeros_like(rule.mass), np.zeros_like(rule.mass), np.zeros(3)
        ahead = arrays._replace(order=np.append(later, pair))
        forecast(ahead, rule.actions, 0, mass, number, found)
        action = int(rule.actions[pair, 0])
        label = "" if action < 0 else self.rows[self._pairs[pair]][action].label
        return Foreseen(float(found[0]), float(found[1]), label)

    def _expand(self, group: int, action: int) -> None:
        if self._level[group] + 1 < self._reader.levels:
            super()._expand(group, action)
        else:  # its children tell nothing of earlier levels
            self._children[group][action] = []

    def _expand_rule(self, rule: OpeningRule, until: int) -> bool:
        expanded = False
        for pair in np.argsort(-rule.mass[:, 0], kind="stable").tolist():
            if rule.mass[pair, 0] == 0 or not self._evaluator.may_go_on(until):
                break
            group, action = int(self._pairs[pair]), int(rule.actions[pair, 0])
            if action >= 0 and action not in self._children[group]:
                self._expand(group, action)
                expanded = True
        return expanded

    def _unroll(self, root: int, level: int) -> Any:
        """Return the arrays of pairs of a level and a group; discounting begins at the level."""
        groups, levels, weights = self._arrays(), self._reader.levels, self._reader.weights
        own = np.array(self._level)
        usual = np.array([float(weights[n]) or 1.0 for n in own])
        parts: dict[str, list[Any]] = {name: [] for name in groups._fields}
        layers, here, after, rows_before, outcomes_before = [], np.array([root]), 0, 0, 0
        parts["first_row"].append([0])
        parts["first_outcome"].append([0])
        for now in range(level, levels):
            if not len(here):
                break
            after += len(here)
            layers.append(here)
            factor = float(weights[now]) / (float(weights[level]) or 1.0) / usual[here]
            counts = groups.first_row[here + 1] - groups.first_row[here]
            rows = ranges(groups.first_row[here], counts)
            widths = groups.first_outcome[rows + 1] - groups.first_outcome[rows]
            outcomes = ranges(groups.first_outcome[rows], widths)
            child = np.full(len(outcomes), END)
            following = np.zeros(0, np.int64)
            if now + 1 < levels:
                child = groups.child[outcomes]
                live = child >= 0
                following, place = np.unique(child[live], return_inverse=True)
                child[live] = after + place
            left = (levels - now) / (levels - own[here]) if self._claims else 1.0
            parts["first_row"].append(rows_before + np.cumsum(counts))
            parts["first_outcome"].append(outcomes_before + np.cumsum(widths))
            rows_before, outcomes_before = rows_before + len(rows), outcomes_before + len(outcomes)
            parts["close_reward"].append(groups.close_reward[here] * factor * left)
            parts["close_risk"].append(groups.close_risk[here] * left)
            parts["close_size"].append(groups.close_size[here])
            parts["reward"].append(groups.reward[rows] * np.repeat(factor, counts))
            parts["risk"].append(groups.risk[rows])
            parts["probability"].append(groups.probability[outcomes])
            parts["child"].append(child)
            here = following
        self._pairs = np.concatenate(layers)
        parts["order"] = [np.arange(after)[::-1]]
        return groups._replace(**{name: np.concatenate(part) for name, part in parts.items()})


def _find_free_rule(arrays: Any, bound: RiskBound) -> OpeningRule:
    """Return the rule of any size for the least price of failure that a bound accepts."""
    solve = partial(solve_rule, arrays, np.zeros(1), math.inf)
    best = solve(0.0)
    if accepts(bound, best.reward, best.risk):
        return best
    dearest = find_dearest(bound, best.reward)
    low, high = 0.0, min(dearest, max(1.0, float(np.abs(arrays.reward).max())))
    while not accepts(bound, (best := solve(high)).reward, best.risk) and high < dearest:
        low, high = high, min(dearest, 4 * high)
    for _ in range(TRIALS):
        rule = solve((low + high) / 2)
        if accepts(bound, rule.reward, rule.risk):
            best, high = rule, rule.price
        else:
            low = rule.price
    return best


def find_dearest(bound: RiskBound, reward: float) -> float:
    """Return the price of failure for which the most of what a bound allows is left unused.

    Where a bound has slope d, that is d g - er, hence a price of 1 / d.
    """
    slope = bound.tangent(reward).slope
    return min(DEAREST, 1 / slope) if slope > 0 else DEAREST
