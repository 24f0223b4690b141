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
import time
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RiskBound
from vulcan.exact.acceptance import accepts
from vulcan.model.answers import Answers
from vulcan.model.interface import FAILURE, Outcome
from vulcan.model.reader import ModelReader
from vulcan.numerics import END

BINS: Final = 48  # prices of a decision, each half of the next one

# Answers that differ by less are those of one group. Rewards count relative to the largest expected
# reward, probabilities as they are.
COARSEST: Final = 0.3  # at first
FINEST: Final = 0.002  # in the end
FARTHEST: Final = 1e6  # rewards beyond this many times the usual size are all alike
DEAREST: Final = 1e12  # a price of failure that is never exceeded
REFINEMENTS: Final = 6  # how often the rule is computed while its groups are refined
TRIALS: Final = 10  # prices of failure tried between one too low and one high enough
MOST_READ: Final = 1_000  # answers of the model read at once
OFTEN: Final = 0.05  # seconds between two looks at the limits
NEGATIVE: Final = -6.0  # what negative risks are compressed to, about
COLLAPSE: Final = 0.3  # share of the reward, hardly lost by a slightly larger price of failure


class Row(msgspec.Struct, frozen=True, gc=False):
    """An evaluated action: its label, expected reward, immediate risk and outcomes."""

    label: str
    reward: float
    risk: float
    outcomes: list[Outcome]


class ActionEvaluator:
    """Evaluates actions of a model, and counts these evaluations.

    `wants_stop` is called after every 32 of them, or `OFTEN`; True ends what is under way. If
    `answers` are given, those of the model are kept there, and it is not called again for them.
    """

    def __init__(
        self,
        reader: ModelReader,
        wants_stop: Callable[[], bool] = lambda: False,
        answers: MutableMapping[Any, Any] | None = None,
    ) -> None:
        self.reader, self.count = reader, 0
        self.actions, self._outcomes = reader.actions, reader.outcomes
        self._known = answers
        if answers is not None:
            self.actions = partial(_recall, answers, reader.actions)
            self._outcomes = partial(_recall, answers, reader.outcomes)
        self._wants_stop, self._stopped, self._looked = wants_stop, False, time.perf_counter()
        self._portion = 1

    @contextmanager
    def finishing(self) -> Iterator[None]:
        """Ignore stop requests inside; errors still end it, `TimeUp` too."""
        wants_stop, self._wants_stop, self._stopped = self._wants_stop, lambda: False, False
        try:
            yield
        finally:
            self._wants_stop = wants_stop

    def resume(self) -> None:
        """Go on after a stop."""
        self._stopped = False

    def may_go_on(self, until: int) -> bool:
        """Return whether there is time for more evaluations, up to a number of them."""
        return self.count < until and not self._stopped

    def _count(self, more: int = 1) -> None:
        before, self.count = self.count, self.count + more
        if self.count // 32 > before // 32 or time.perf_counter() - self._looked > OFTEN:
            self._stopped, self._looked = self._wants_stop(), time.perf_counter()

    def row(self, state: Any, label: str, action: Any) -> Row:
        """Return an evaluated action."""
        self._count()
        outcomes = self._outcomes(state, action)
        reward = risk = 0.0
        for outcome in outcomes:
            reward += outcome.probability * outcome.reward
            if outcome.state is FAILURE:
                risk += outcome.probability
        return Row(label, float(reward), float(risk), outcomes)

    def read(self, states: Sequence[Any], actions: Sequence[Any]) -> Answers:
        """Return the outcomes of (state, action) pairs: of all, or of the first ones at a stop."""
        parts = [Answers.gather(())]
        for some in self._portions(len(states)):
            if self._known is None:
                parts.append(self.reader.read(states[some], actions[some]))
            else:
                found = map(self._outcomes, states[some], actions[some])
                parts.append(Answers.gather(list(found)))
            self._count(len(parts[-1].counts))
        return parts[-1] if len(parts) < 3 else Answers.join(parts)

    def list_actions(self, states: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the actions of states by their labels: of all, or of the first ones at a stop."""
        found: list[dict[str, Any]] = []
        for some in self._portions(len(states)):
            if self._known is None:
                found += self.reader.list_actions(states[some])
            else:
                found += map(self.actions, states[some])
            self._count(0)
        return found

    def _portions(self, count: int) -> Iterator[slice]:
        """Yield ranges of answers, shorter ones where each takes longer, until the search stops."""
        done = 0
        while done < count and not self._stopped:
            began, some = time.perf_counter(), slice(done, done + self._portion)
            yield some
            done = some.stop
            short = time.perf_counter() - began < OFTEN / 4
            self._portion = min(MOST_READ, 2 * self._portion) if short else self._portion // 2 or 1

    def bound(self, claim: str, state: Any, level: int) -> tuple[float, float]:
        """Return the largest risk and the least reward after a state, by a claim of the model."""
        self._count()
        risk, reward = self.reader.bound_continuation(claim, state, level)
        return float(risk), float(reward)

    def rows(self, state: Any) -> list[Row]:
        """Return all actions of a state, evaluated."""
        return [self.row(state, *item) for item in self.actions(state).items()]


def _recall(answers: MutableMapping[Any, Any], call: Callable[..., Any], *where: Any) -> Any:
    """Return an answer of the model, from those before if it is there."""
    found = answers.get(where)
    answers[where] = found = call(*where) if found is None else found
    return found


class OpeningRule(NamedTuple):
    """Which groups to open, and how."""

    price: float  # of failure
    start: int  # the price of a decision at the root, as a number of a bin
    reward: float  # estimates
    risk: float
    bins: NDArray[np.float64]  # prices of a decision
    values: NDArray[np.float64]  # by group and bin: U of `vulcan.kernels.growth`
    actions: NDArray[np.int64]  # by group and bin: the position of an action, or negative
    mass: NDArray[np.float64]  # by group and bin: the probability of the histories there


def compress(risk: float) -> float:
    """Return a number in which risks that differ by a factor differ as much as others.

    Negative ones, as sums of costs may be, are far from all others.
    """
    return 0.1 * math.log(risk + 1e-9) if risk >= 0 else NEGATIVE - 0.1 * math.log(1e-9 - risk)


def expand(number: float) -> float:
    """Return the risk that was compressed to a number."""
    if number > NEGATIVE / 2:
        return math.exp(10 * number) - 1e-9
    return 1e-9 - math.exp(10 * (NEGATIVE - number))


Answer = tuple[float, float, list[float]]
"""Reward, risk and probabilities of an action."""

Closing = tuple[float, float, float]
"""Reward, risk and decisions of the default from a history on; the reward is -inf without one."""


class Groups:
    """Groups of histories; `close` returns what closes a state at a level."""

    def __init__(self, evaluator: ActionEvaluator, close: Callable[[Any, int], Closing]) -> None:
        self._evaluator, self._reader, self._close = evaluator, evaluator.reader, close
        self.rows: list[list[Row]] = []
        self._level: list[int] = []
        self._likely: list[float] = []  # the probability of the likeliest history
        self._origin: list[int] = []  # the group that it was split from, or -1
        self._children: list[dict[int, list[int]]] = []  # by the positions of actions
        self._closings: list[Closing] = []
        # Of `_arrays`: first rows, first outcomes, rewards, risks and probabilities.
        self._columns: tuple[list[int], list[int], list[float], list[float], list[float]]
        self._columns = [0], [0], [], [], []
        self._known: dict[Any, tuple[list[int], NDArray[np.float64]]] = {}
        self._tolerance = COARSEST
        # What to do next, the likeliest first: expand an action, or place one of its outcomes anew.
        self._waiting: list[tuple[float, int, int, int]] = []
        # Outcomes that are not quite like their groups: how far they are, and their answers.
        self._rough: dict[tuple[float, int, int, int], tuple[float, list[Row]]] = {}
        self._scale = self._find_scale()
        self.place(self._reader.root, 0, 1.0, evaluator.rows(self._reader.root))

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.rows)

    def describe(self, level: int, rows: list[Row]) -> tuple[Any, NDArray[np.float64]]:
        """Return what the histories of a group share, and the numbers that differ a little.

        These are reward, risk and probabilities of each action; see `read_numbers`.
        """
        numbers: list[float] = []
        for row in rows:
            numbers.append(max(-FARTHEST, min(FARTHEST, row.reward / self._scale)))
            numbers.append(compress(row.risk))
            numbers.extend(outcome.probability for outcome in row.outcomes)
        return (level, *((row.label, len(row.outcomes)) for row in rows)), np.array(numbers)

    def read_numbers(self, group: int, point: NDArray[np.float64]) -> list[Answer]:
        """Return reward, risk and probabilities of the actions of a history like a group."""
        numbers, answers, first = point.tolist(), list[Answer](), 0
        for row in self.rows[group]:
            last = first + 2 + len(row.outcomes)
            reward, risk, *probabilities = numbers[first:last]
            answers.append((reward * self._scale, expand(risk), probabilities))
            first = last
        return answers

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

    def find_rule(self, bound: RiskBound, size: float, until: int, price: float) -> OpeningRule:
        """Refine the groups up to a number of evaluations, and return the best rule of a size.

        It is the rule for about the least price of failure that the bound accepts; the search for
        that begins with `price`. If that rule hardly earns anything, and one for a little less
        risks too much, it is the latter: of what is opened by it, the plan keeps as much as the
        bound accepts.
        """
        chunk = (until - self._evaluator.count) // (2 * REFINEMENTS) + 1
        left = True
        while left and self._evaluator.may_go_on(until):
            solve, _ = self._prepare_rules(size)
            left = self._improve(solve(price), until, chunk)
        solve, scale = self._prepare_rules(size)

        def passes(rule: OpeningRule) -> bool:
            return accepts(bound, rule.reward, rule.risk)

        rule = solve(0.0)
        if passes(rule):
            return rule
        low, high = 0.0, price or scale
        while not passes(solve(high)) and high < 1e12 * scale:
            low, high = high, 4 * high
        for _ in range(TRIALS):
            middle = (low + high) / 2 if low else high / 4
            low, high = (low, middle) if passes(solve(middle)) else (middle, high)
        rule, below = solve(high), solve(low)
        return below if rule.reward < below.reward - COLLAPSE * abs(below.reward) else rule

    def _prepare_rules(self, size: float) -> tuple[Callable[[float], OpeningRule], float]:
        """Return what solves for rules of a size, given prices of failure, and a usual price."""
        arrays = self._arrays()
        bins = list_bins(arrays, self._reader.levels)
        return partial(solve_rule, arrays, bins, size), float(bins[-1])

    def _improve(self, rule: OpeningRule, until: int, chunk: int) -> bool:
        """Expand what a rule takes, and refine; return whether anything was left to do."""
        expanded = self._expand_rule(rule, min(until, self._evaluator.count + chunk))
        return self._refine(min(until, self._evaluator.count + chunk)) or expanded

    def _find_scale(self) -> float:
        """Return the largest expected reward along the likeliest history of each action."""
        largest = 0.0
        for label in self._evaluator.actions(self._reader.root):
            state = self._reader.root
            for _ in range(self._reader.levels):
                actions = self._evaluator.actions(state)
                taken = label if label in actions else next(iter(actions))
                row = self._evaluator.row(state, taken, actions[taken])
                largest = max(largest, abs(row.reward))
                likeliest = max(row.outcomes, key=lambda o: 0.0 if o.fails else o.probability)
                if likeliest.fails or not self._evaluator.actions(likeliest.state):
                    break
                state = likeliest.state
        return largest or 1.0

    def place(self, state: Any, level: int, likely: float, rows: list[Row]) -> tuple[int, float]:
        """Return the group of a history and its distance; a new group if no other is close."""
        kind, point = described = self.describe(level, rows)
        found, distance = self.find(described)
        if distance <= self._tolerance:
            self._likely[found] = max(self._likely[found], likely)
            return found, distance
        closing = self._close(state, level)  # the model may raise: nothing is changed before
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
        self._closings.append(closing)
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
        child, distance = self.place(outcome.state, self._level[group] + 1, likely, rows)
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

    def _expand_rule(self, rule: OpeningRule, until: int) -> bool:
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

        first_row, first_outcome, reward, risk, probability = self._columns
        for group in range(len(first_row) - 1, len(self.rows)):
            weight = float(self._reader.weights[self._level[group]])
            for row in self.rows[group]:
                reward.append(weight * row.reward)
                risk.append(row.risk)
                probability += [o.probability for o in row.outcomes if not o.fails]
                first_outcome.append(len(probability))
            first_row.append(len(reward))
        child, found = list[int](), list[list[list[int]]]()
        for group, known in enumerate(self._children):
            origin, first = self._origin[group], first_row[group]
            below = found[origin] if origin >= 0 else []
            following = list[list[int]]()
            for action in range(first_row[group + 1] - first):
                safe = first_outcome[first + action + 1] - first_outcome[first + action]
                own = known.get(action)
                if own is None or len(own) != safe:
                    own = below[action] if below else []
                if len(own) != safe:
                    own = self.find_children(group, action) or [UNKNOWN] * safe
                following.append(own)
                child += own
            found.append(following)
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


def list_bins(arrays: Any, levels: int) -> NDArray[np.float64]:
    """Return the prices of a decision; the last one is dearer than anything it may gain."""
    scale = max(1e-12, float(np.abs(arrays.reward).max()) * levels)
    return np.array([scale * 2.0 ** (number - BINS + 1) for number in range(BINS)])


def solve_rule(arrays: Any, bins: NDArray[Any], size: float, price: float) -> OpeningRule:
    """Return the rule for a price of failure, as large as the size allows: a dynamic program."""
    from vulcan.kernels.growth import forecast, value_groups

    shape = len(arrays.close_reward), len(bins)
    values, actions = np.zeros(shape), np.zeros(shape, np.int64)
    mass, number, found = np.zeros(shape), np.zeros(shape), np.zeros(3)
    value_groups(arrays, price, bins, values, actions)
    low, high = 0, len(bins) - 1
    while low < high:
        middle = (low + high) // 2
        forecast(arrays, actions, middle, mass, number, found)
        low, high = (low, middle) if found[2] <= size else (middle + 1, high)
    forecast(arrays, actions, low, mass, number, found)
    estimates = float(found[0]), float(found[1])
    return OpeningRule(price, low, *estimates, bins, values, actions, mass)
