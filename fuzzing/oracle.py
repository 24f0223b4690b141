"""The truth about a small problem, in exact arithmetic, by code that shares nothing with Vulcan.

Only the standard library is imported. A problem is plain data (`fuzzing.problems`, by its
attributes), and its meaning is implemented here independently.

- Outcomes of one action that an observer can't tell apart are one: those without labels that lead
  to the same place with the same reward. Its probability is the sum of theirs, as a float if theirs
  are floats. A policy chooses an action for each sequence of observations.
- F(s, k), the points (risk, reward) that policies can reach from state s with k steps left, is the
  union over actions of the sums over outcomes of

      p (0, r) + p · F(s', k - 1)      rewards of F times the discount, and F(failure) = (1, 0).

  A point is dropped if another has no more risk and no less reward: a bound that is nondecreasing
  accepts that one as well. What is left is the *front*.

Numbers are whole. With P, R, D the common denominators of all probabilities, all rewards and the
discount, a risk with k steps left is a whole number over P^k, and a reward one over R (P D)^k. So
nothing is ever rounded or reduced, which makes it many times faster than `fractions`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from fuzzing.problems import Key, PlainProblem, Way

__all__ = [
    "UNPLANNED",
    "Oracle",
    "Point",
    "TooLargeError",
    "Tree",
    "UnfollowableError",
    "add_up",
    "find_hull",
    "least_risk",
]

UNPLANNED = "unplanned"
"""In the place of a tree: nothing is planned there."""

MOST_PAIRS = 20_000
"""Sums of points that are looked at for one front, at the most."""

Tree = tuple[str, Mapping[Any, Any]] | str | None
"""A policy: an action and what is done after each observation; None where a history ends."""

Whole = tuple[int, int]


class Point(NamedTuple):
    """What a policy risks and earns."""

    risk: Fraction
    reward: Fraction


class TooLargeError(Exception):
    """A front has too many points to be computed."""


class UnfollowableError(Exception):
    """A policy has no plan for something that can be observed, or one for what can't."""


class _Group(NamedTuple):
    """Outcomes that can't be told apart: one outcome. Numbers are whole."""

    key: Key
    probability: int
    reward: int
    target: int | None


class Oracle:
    """Knows everything about a problem.

    Parameters
    ----------
    problem
        The problem. Its bound is not looked at.
    most_pairs
        Sums of points that are looked at for one front, at the most.
    """

    def __init__(self, problem: PlainProblem, most_pairs: int = MOST_PAIRS) -> None:
        self._horizon, self._most_pairs = problem.horizon, most_pairs
        ways = [way for *_, outcomes in problem.answers() for way in outcomes]
        self._chances = _common(way.probability for way in ways)
        self._rewards = _common(way.reward for way in ways)
        self._discount, self._discounts = _ratio(problem.discount)
        self._states = {
            state: {action: self._observe(outcomes) for action, outcomes in actions.items()}
            for state, actions in problem.states.items()
        }
        self._start: int | dict[str, list[_Group]]
        if isinstance(problem.start, int):
            self._start = problem.start
        else:
            self._start = {a: self._observe(outcomes) for a, outcomes in problem.start.items()}
        self._fronts: dict[tuple[int, int], list[Whole]] = {}
        self._points: list[Point] | None = None

    @property
    def levels(self) -> int:
        """How many decisions the longest history has, an initial action included."""
        return self._horizon + (not isinstance(self._start, int))

    def _observe(self, outcomes: Sequence[Way]) -> list[_Group]:
        """Return what can be observed, outcomes of probability 0 omitted."""
        together: dict[Key, list[Way]] = {}
        for way in outcomes:
            if way.probability:
                together.setdefault(way.key, []).append(way)
        return [
            _Group(
                key,
                _times(add_up(ways), self._chances),
                _times(ways[0].reward, self._rewards),
                ways[0].target,
            )
            for key, ways in together.items()
        ]

    # Scaling: what a number with k decisions left is a multiple of.

    def _risk_unit(self, left: int) -> int:
        unit: int = self._chances**left
        return unit

    def _reward_unit(self, left: int) -> int:
        unit: int = self._rewards * (self._chances * self._discounts) ** left
        return unit

    def _point(self, found: Whole, left: int) -> Point:
        risk, reward = found
        return Point(
            Fraction(risk, self._risk_unit(left)), Fraction(reward, self._reward_unit(left))
        )

    # Fronts.

    @property
    def front(self) -> list[Point]:
        """The points that no other policy dominates, in the order of their risks.

        Raises
        ------
        TooLargeError
            If there are too many.
        """
        if self._points is None:
            if isinstance(self._start, int):
                found = self._find_front(self._start, self._horizon)
            else:
                found = self._unite(self._start, self.levels, initial=True)
            self._points = [self._point(point, self.levels) for point in found]
        return self._points

    def _find_front(self, state: int, left: int) -> list[Whole]:
        actions = self._states.get(state)
        if not left or not actions:
            return [(0, 0)]
        known = self._fronts.get((state, left))
        if known is None:
            known = self._fronts[state, left] = self._unite(actions, left, initial=False)
        return known

    def _unite(
        self, actions: Mapping[str, Sequence[_Group]], left: int, *, initial: bool
    ) -> list[Whole]:
        """Return what the best of some actions lead to."""
        found: list[Whole] = []
        for groups in actions.values():
            found += self._add_up(groups, left, initial=initial)
        return _drop_dominated(found)

    def _add_up(self, groups: Sequence[_Group], left: int, *, initial: bool) -> list[Whole]:
        """Return what an action can lead to: sums over its outcomes of a point of each."""
        discount, paid = self._steps(left, initial)
        failed = self._risk_unit(left - 1)
        sums: list[Whole] = [(0, 0)]
        for _, probability, reward, target in groups:
            now = probability * reward * paid
            if target is None:
                later = [(probability * failed, now)]
            else:
                front = self._find_front(target, left - 1)
                weight = probability * discount
                later = [(probability * x, now + weight * y) for x, y in front]
            if len(sums) * len(later) > self._most_pairs:
                raise TooLargeError
            if len(later) == 1:
                ((risk, gain),) = later
                sums = [(x + risk, y + gain) for x, y in sums]
            else:
                pairs = product(sums, later)
                sums = _drop_dominated([(x + a, y + b) for (x, y), (a, b) in pairs])
        return sums

    def _steps(self, left: int, initial: bool) -> tuple[int, int]:
        """Return what later rewards and those of now are multiplied with, beside probabilities."""
        discount = self._discounts if initial else self._discount
        return discount, (self._chances * self._discounts) ** (left - 1) * self._discounts

    # Policies.

    def evaluate(self, tree: Tree) -> tuple[Point, Fraction]:
        """Return what a policy risks and earns, and how probably it leaves what is planned.

        Raises
        ------
        UnfollowableError
            If it takes an action that there is not, or does not know an observation.
        """
        left = self.levels
        if isinstance(self._start, int):
            risk, reward, lost = self._follow(self._states.get(self._start), tree, left, False)
        else:
            risk, reward, lost = self._follow(self._start, tree, left, True)
        return self._point((risk, reward), left), Fraction(lost, self._risk_unit(left))

    def _follow(
        self,
        actions: Mapping[str, Sequence[_Group]] | None,
        tree: Tree,
        left: int,
        initial: bool,
    ) -> tuple[int, int, int]:
        if tree == UNPLANNED:
            # Perhaps the history has ended: a search that never came here does not know.
            return 0, 0, self._risk_unit(left)
        if not left or not actions:
            if tree is not None:
                raise UnfollowableError(f"{tree!r} is planned where the history has ended")
            return 0, 0, 0
        if not isinstance(tree, tuple) or tree[0] not in actions:
            raise UnfollowableError(f"{tree!r} is planned where the actions are {list(actions)}")
        action, following = tree
        groups = actions[action]
        if {group.key for group in groups} != set(following):
            keys = [group.key for group in groups]
            raise UnfollowableError(
                f"{action!r} has outcomes {keys}, planned are {list(following)}"
            )
        discount, paid = self._steps(left, initial)
        risk = reward = lost = 0
        for key, probability, pay, target in groups:
            reward += probability * pay * paid
            if target is None:
                risk += probability * self._risk_unit(left - 1)
                continue
            later = self._follow(self._states.get(target), following[key], left - 1, False)
            risk += probability * later[0]
            reward += probability * discount * later[1]
            lost += probability * later[2]
        return risk, reward, lost


def add_up(ways: Sequence[Way]) -> Any:
    """Return the probability of outcomes that can't be told apart."""
    parts = [way.probability for way in ways]
    if len(parts) == 1:
        return parts[0]
    total = sum((Fraction(part) for part in parts), Fraction(0))
    return min(1, float(total) if isinstance(parts[0], float) else total)


def _drop_dominated(points: list[Whole]) -> list[Whole]:
    """Return the points that no other dominates, risks and rewards both increasing."""
    points.sort(key=lambda point: (point[0], -point[1]))
    kept: list[Whole] = []
    for point in points:
        if not kept or point[1] > kept[-1][1]:
            kept.append(point)
    return kept


def find_hull(front: Sequence[Point]) -> list[Point]:
    """Return the corners of the lower convex hull of a front: randomised policies lie on or above.

    A randomised policy is a mixture of deterministic ones.
    """
    hull: list[Point] = []
    for point in front:
        while len(hull) > 1 and _is_above(hull[-1], hull[-2], point):
            hull.pop()
        hull.append(point)
    return hull


def least_risk(hull: Sequence[Point], reward: Fraction) -> Fraction | None:
    """Return the least risk at which randomised policies earn so much; None if none does."""
    if reward <= hull[0].reward:
        return hull[0].risk
    for low, high in pairwise(hull):
        if reward <= high.reward:
            share = (reward - low.reward) / (high.reward - low.reward)
            return low.risk + share * (high.risk - low.risk)
    return None


def _is_above(middle: Point, low: Point, high: Point) -> bool:
    """Whether a point lies on or above the line between its neighbours."""
    rise = (high.risk - low.risk) * (middle.reward - low.reward)
    return (middle.risk - low.risk) * (high.reward - low.reward) >= rise


def _ratio(number: Any) -> tuple[int, int]:
    numerator, denominator = number.as_integer_ratio()
    return numerator, denominator


def _common(numbers: Iterable[Any]) -> int:
    """Return the least common denominator."""
    return math.lcm(*(_ratio(number)[1] for number in numbers))


def _times(number: Any, unit: int) -> int:
    """Return how many units a number is; it is a whole number of them."""
    numerator, denominator = _ratio(number)
    return numerator * (unit // denominator)
