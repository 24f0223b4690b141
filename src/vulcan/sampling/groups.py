"""A rule for histories: groups with similar answers, and the best way to open them.

Histories of one step whose answers (expected reward, risk and probabilities of every action) are
close to each other form a group. Each group has one representative. The children of that one are
evaluated and put into groups of the next step. On this small graph a dynamic program with a price
of failure and a price per decision (`vulcan.kernels.growth`) decides which groups to open, and how.

Groups are coarse at first and reach the horizon soon. Then the likeliest ones are split, again and
again. A group that was not expanded yet uses the children of the group that it was split from.

A rule only guides: what it says of reward and risk is an estimate.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RiskBound
from vulcan.errors import BoundError
from vulcan.model.interface import FAILURE, Outcome
from vulcan.model.reader import ModelReader
from vulcan.numerics import END, TOLERANCE

BINS: Final = 48  # prices of a decision, each half of the next one

# Answers that differ by less are those of one group. Rewards count relative to the largest expected
# reward, probabilities as they are.
COARSEST: Final = 0.3  # at first
FINEST: Final = 0.002  # in the end
FARTHEST: Final = 1e6  # rewards beyond this many times the usual size are all alike
REFINEMENTS: Final = 6  # how often the rule is computed while its groups are refined
TRIALS: Final = 10  # prices of failure tried between one too low and one high enough
COLLAPSE: Final = 0.3  # share of the reward, hardly lost by a slightly larger price of failure


def accepts(bound: RiskBound, reward: float, risk: float) -> bool:
    """Return whether a bound accepts a risk; not where it has no value."""
    try:
        return risk <= bound(reward) + TOLERANCE / 2
    except BoundError:
        return False


class Row(msgspec.Struct, frozen=True, gc=False):
    """An evaluated action: its label, expected reward, immediate risk and outcomes."""

    label: str
    reward: float
    risk: float
    outcomes: list[Outcome]


class Evaluator:
    """Evaluates actions of a model, and counts these evaluations.

    `wants_stop` is called after every 32 of them; True ends what is under way.
    """

    def __init__(self, reader: ModelReader, wants_stop: Callable[[], bool]) -> None:
        self.reader, self.count = reader, 0
        self._wants_stop, self._stopped = wants_stop, False

    def may_go_on(self, until: int) -> bool:
        """Return whether there is time for more evaluations, up to a number of them."""
        return self.count < until and not self._stopped

    def _count(self) -> None:
        self.count += 1
        if self.count % 32 == 0:
            self._stopped = self._wants_stop()

    def row(self, state: Any, label: str, action: Any) -> Row:
        """Return an evaluated action."""
        self._count()
        outcomes = self.reader.outcomes(state, action)
        reward = risk = 0.0
        for outcome in outcomes:
            reward += outcome.probability * outcome.reward
            if outcome.state is FAILURE:
                risk += outcome.probability
        return Row(label, float(reward), float(risk), outcomes)

    def bound(self, claim: str, state: Any, level: int) -> tuple[float, float]:
        """Return the largest risk and the least reward after a state, by a claim of the model."""
        self._count()
        risk, reward = self.reader.bound_continuation(claim, state, level)
        return float(risk), float(reward)

    def rows(self, state: Any) -> list[Row]:
        """Return all actions of a state, evaluated."""
        return [self.row(state, *item) for item in self.reader.actions(state).items()]


class Rule(NamedTuple):
    """Which groups to open, and how."""

    price: float  # of failure
    start: int  # the price of a decision at the root, as a number of a bin
    reward: float  # estimates
    risk: float
    actions: NDArray[np.int64]  # by group and bin: the position of an action, or negative
    mass: NDArray[np.float64]  # by group and bin: the probability of the histories there


Closing = tuple[float, float, float]
"""Reward, risk and decisions of the default from a history on; the reward is -inf without one."""


class Groups:
    """Groups of histories; `close` returns what closes a state at a level."""

    def __init__(self, evaluator: Evaluator, close: Callable[[Any, int], Closing]) -> None:
        self._evaluator, self._reader, self._close = evaluator, evaluator.reader, close
        self.rows: list[list[Row]] = []
        self._level: list[int] = []
        self._likely: list[float] = []  # the probability of the likeliest history
        self._origin: list[int] = []  # the group that it was split from, or -1
        self._children: list[dict[int, list[int]]] = []  # by the positions of actions
        self._closings: list[Closing] = []
        self._known: dict[Any, tuple[list[int], NDArray[np.float64]]] = {}
        self._tolerance = COARSEST
        # What to do next, the likeliest first: expand an action, or place one of its outcomes anew.
        self._waiting: list[tuple[float, int, int, int]] = []
        # Outcomes that are not quite like their groups: how far they are, and their answers.
        self._rough: dict[tuple[float, int, int, int], tuple[float, list[Row]]] = {}
        self._scale = self._find_scale()
        self._place(self._reader.root, 0, 1.0, evaluator.rows(self._reader.root))

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.rows)

    def describe(self, level: int, rows: list[Row]) -> tuple[Any, NDArray[np.float64]]:
        """Return what the histories of a group share, and the numbers that differ a little."""
        numbers: list[float] = []
        for row in rows:
            numbers.append(max(-FARTHEST, min(FARTHEST, row.reward / self._scale)))
            numbers.append(0.1 * math.log(row.risk + 1e-9))
            numbers.extend(outcome.probability for outcome in row.outcomes)
        return (level, *((row.label, len(row.outcomes)) for row in rows)), np.array(numbers)

    def find(self, described: tuple[Any, NDArray[np.float64]]) -> tuple[int, float]:
        """Return the closest group and its distance; -1 without one."""
        kind, point = described
        if kind not in self._known:
            return -1, math.inf
        known, points = self._known[kind]
        distances = np.abs(points[: len(known)] - point).max(axis=1)
        best = int(distances.argmin())
        return known[best], float(distances[best])

    def find_children(self, group: int, action: int) -> list[int] | None:
        """Return the group after each safe outcome of an action, or END; None if it is unknown."""
        safe = sum(not outcome.fails for outcome in self.rows[group][action].outcomes)
        while group >= 0:
            known = self._children[group].get(action)
            if known is not None and len(known) == safe:
                return known
            group = self._origin[group]
        return None

    def find_rule(self, bound: RiskBound, size: float, until: int, price: float) -> Rule:
        """Refine the groups up to a number of evaluations, and return the best rule of a size.

        The search for the price of failure begins with `price`.
        """
        begin = self._evaluator.count
        chunk = (until - begin) // (2 * REFINEMENTS) + 1
        left = True
        while left and self._evaluator.may_go_on(until):
            rule = RuleProgram(self._arrays(), size, self._reader.levels).solve(price)
            expanded = self._expand_rule(rule, min(until, self._evaluator.count + chunk))
            left = self._refine(min(until, self._evaluator.count + chunk)) or expanded
        return RuleProgram(self._arrays(), size, self._reader.levels).find(bound, price)

    def _find_scale(self) -> float:
        """Return the largest expected reward along the likeliest history of each action."""
        largest = 0.0
        for label in self._reader.actions(self._reader.root):
            state = self._reader.root
            for _ in range(self._reader.levels):
                rows = self._evaluator.rows(state)
                largest = max(largest, *(abs(row.reward) for row in rows))
                row = next((row for row in rows if row.label == label), rows[0])
                likeliest = max(row.outcomes, key=lambda o: 0.0 if o.fails else o.probability)
                if likeliest.fails or not self._reader.actions(likeliest.state):
                    break
                state = likeliest.state
        return largest or 1.0

    def _place(self, state: Any, level: int, likely: float, rows: list[Row]) -> tuple[int, float]:
        """Return the group of a history and its distance; a new group if no other is close."""
        kind, point = described = self.describe(level, rows)
        found, distance = self.find(described)
        if distance <= self._tolerance:
            self._likely[found] = max(self._likely[found], likely)
            return found, distance
        known, points = self._known.get(kind, ([], np.zeros((16, len(point)))))
        if len(points) == len(known):
            points = np.concatenate([points, np.zeros_like(points)])
        group = len(self.rows)
        points[len(known)] = point
        known.append(group)
        self._known[kind] = known, points
        self.rows.append(rows)
        self._level.append(level)
        self._likely.append(likely)
        self._origin.append(found)
        self._children.append({})
        self._closings.append(self._close(state, level))
        for action in range(len(rows)):
            heapq.heappush(self._waiting, (-likely, group, action, -1))
        return group, 0.0

    def _expand(self, group: int, action: int) -> None:
        """Find the groups after an action."""
        safe = sum(not outcome.fails for outcome in self.rows[group][action].outcomes)
        self._children[group][action] = [END] * safe
        if self._level[group] + 1 < self._reader.levels:
            for position in range(safe):  # safe outcomes come first
                self._place_child(group, action, position)

    def _place_child(
        self, group: int, action: int, position: int, rows: list[Row] | None = None
    ) -> None:
        """Put the history after an outcome into a group; its answers may be known."""
        outcome = self.rows[group][action].outcomes[position]
        rows = rows or self._evaluator.rows(outcome.state)
        if not rows:
            return  # the mission has ended
        likely = self._likely[group] * outcome.probability
        child, distance = self._place(outcome.state, self._level[group] + 1, likely, rows)
        self._children[group][action][position] = child
        if distance > FINEST:
            self._rough[-likely, group, action, position] = distance, rows

    def _refine(self, until: int) -> bool:
        """Expand likely groups, then split them; return whether anything was left to do."""
        while self._evaluator.may_go_on(until):
            if not self._waiting:
                if self._tolerance <= FINEST:
                    return False
                self._tolerance /= 3
                self._waiting = [k for k, (far, _) in self._rough.items() if far > self._tolerance]
                heapq.heapify(self._waiting)
                continue
            _, group, action, position = item = heapq.heappop(self._waiting)
            if position >= 0:
                self._place_child(group, action, position, self._rough.pop(item)[1])
            elif action not in self._children[group]:
                self._expand(group, action)
        return True

    def _expand_rule(self, rule: Rule, until: int) -> bool:
        """Expand actions that a rule takes, the likeliest groups first; return whether any were."""
        expanded = False
        reach = rule.mass.sum(axis=1)
        for group in np.argsort(-reach, kind="stable").tolist():
            if reach[group] == 0 or not self._evaluator.may_go_on(until):
                break
            taken = np.unique(rule.actions[group, np.flatnonzero(rule.mass[group])]).tolist()
            for action in taken:
                if action >= 0 and action not in self._children[group]:
                    self._expand(group, action)
                    expanded = True
        return expanded

    def _arrays(self) -> Any:
        """Return the arrays for kernels."""
        from vulcan.kernels.growth import UNKNOWN, GroupArrays

        weights = self._reader.weights.tolist()
        first_row, first_outcome = [0], [0]
        reward, risk, probability, child = [], [], [], []
        for group, rows in enumerate(self.rows):
            for action, row in enumerate(rows):
                reward.append(weights[self._level[group]] * row.reward)
                risk.append(row.risk)
                safe = [o.probability for o in row.outcomes if not o.fails]
                probability += safe
                child += self.find_children(group, action) or [UNKNOWN] * len(safe)
                first_outcome.append(len(child))
            first_row.append(len(reward))
        level = np.array(self._level)
        closings = np.array(self._closings, np.float64)
        return GroupArrays(
            order=np.argsort(-level, kind="stable"),
            first_row=np.array(first_row),
            close_reward=closings[:, 0].copy(),
            close_risk=closings[:, 1].copy(),
            close_size=closings[:, 2].copy(),
            reward=np.array(reward),
            risk=np.array(risk),
            first_outcome=np.array(first_outcome),
            probability=np.array(probability, np.float64),
            child=np.array(child, np.int64),
        )


class RuleProgram:
    """Rules of at most `size` decisions for any price of failure: one dynamic program each."""

    def __init__(self, arrays: Any, size: float, levels: int) -> None:
        self._arrays, self._size = arrays, size
        shape = (len(arrays.order), BINS)
        self._values, self._actions = np.zeros(shape), np.zeros(shape, np.int64)
        self._mass, self._number, self._found = np.zeros(shape), np.zeros(shape), np.zeros(3)
        self._scale = max(1e-12, float(np.abs(arrays.reward).max()) * levels)
        self._bins = self._scale * 2.0 ** (np.arange(BINS) - BINS + 1)

    def solve(self, price: float) -> Rule:
        """Return the rule for a price of failure, as large as the size allows."""
        from vulcan.kernels.growth import value_groups

        value_groups(self._arrays, price, self._bins, self._values, self._actions)
        low, high = 0, BINS - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._follow(middle) <= self._size else (middle + 1, high)
        self._follow(low)
        reward, risk, _ = self._found.tolist()
        return Rule(price, low, reward, risk, self._actions.copy(), self._mass.copy())

    def find(self, bound: RiskBound, price: float) -> Rule:
        """Return the rule for about the least price of failure that the bound accepts.

        If that rule hardly earns anything, and one for a little less risks too much, it is the
        latter: of what is opened by it, the plan keeps as much as the bound accepts.
        """

        def passes(rule: Rule) -> bool:
            return accepts(bound, rule.reward, rule.risk)

        rule = self.solve(0.0)
        if passes(rule):
            return rule
        low, high = 0.0, price or self._scale
        while not passes(self.solve(high)) and high < 1e12 * self._scale:
            low, high = high, 4 * high
        for _ in range(TRIALS):
            middle = (low + high) / 2 if low else high / 4
            low, high = (low, middle) if passes(self.solve(middle)) else (middle, high)
        rule, below = self.solve(high), self.solve(low)
        return below if rule.reward < below.reward - COLLAPSE * abs(below.reward) else rule

    def _follow(self, start: int) -> float:
        """Follow the actions from the root at a price per decision; return the decisions."""
        from vulcan.kernels.growth import forecast

        forecast(self._arrays, self._actions, start, self._mass, self._number, self._found)
        return float(self._found[2])
