"""The truth about a small problem with several limits, in fractions.

Only the standard library is imported; see `fuzzing.oracle`, whose observations and trees these are.
A policy is worth

    reward     E g, discounted
    charges    the probability of failing; then, for each limit on a cost or an event, its expected
               total, or the probability that it ever happens: only the first time on a history
               counts, so that what happened before belongs to the state
    ahead      the largest probability of failing from any history on that the policy reaches

Worths of an action are sums over its outcomes of a worth of each; those of a state are the worths
of all its actions. Worths that another one equals or exceeds in everything are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from fuzzing.oracle import UNPLANNED, TooLargeError, Tree, UnfollowableError, add_up

if TYPE_CHECKING:
    from fuzzing.problems import Key, Limit, PlainProblem, Way

__all__ = ["SeveralOracle", "Worth", "mix"]

Events = frozenset[str]
NOTHING: Events = frozenset()


class Worth(NamedTuple):
    """What a policy is worth."""

    reward: Fraction
    charges: tuple[Fraction, ...]
    ahead: Fraction

    def exceeds(self, other: Worth) -> bool:
        """Whether it is at least as good in everything."""
        return (
            self.reward >= other.reward
            and self.ahead <= other.ahead
            and all(x <= y for x, y in zip(self.charges, other.charges, strict=True))
        )


class _Group(NamedTuple):
    """Outcomes that can't be told apart: one outcome."""

    key: Key
    probability: Fraction
    way: Way


class SeveralOracle:
    """Knows everything about a problem with several limits.

    Parameters
    ----------
    problem
        The problem. Only the quantities that its limits are on are used.
    most_pairs
        Sums of worths that are looked at for one state, at the most.
    drop
        Whether to drop worths that another one exceeds.
    """

    def __init__(self, problem: PlainProblem, most_pairs: int = 20_000, drop: bool = True) -> None:
        self._problem, self._most_pairs, self._drop = problem, most_pairs, drop
        self._summed = [limit for limit in problem.limits if limit.kind != "cap"]
        self._events = {limit.name for limit in self._summed if limit.kind == "event"}
        self._discount = Fraction(problem.discount)
        self._nothing = Worth(Fraction(0), (Fraction(0),) * (1 + len(self._summed)), Fraction(0))
        self._known: dict[Any, list[Worth]] = {}
        self._worths: list[Worth] | None = None

    @property
    def worths(self) -> list[Worth]:
        """What policies are worth.

        Raises
        ------
        TooLargeError
            If there are too many.
        """
        if self._worths is None:
            start, horizon = self._problem.start, self._problem.horizon
            if isinstance(start, int):
                self._worths = self._follow(start, horizon, NOTHING)
            else:
                self._worths = self._unite(start, horizon, Fraction(1), NOTHING)
        return self._worths

    def _follow(self, state: int, left: int, happened: Events) -> list[Worth]:
        actions = self._problem.states.get(state)
        if not left or not actions:
            return [self._nothing]
        key = state, left, happened
        if key not in self._known:
            self._known[key] = self._unite(actions, left - 1, self._discount, happened)
        return self._known[key]

    def _unite(
        self,
        actions: Mapping[str, Sequence[Way]],
        left: int,
        discount: Fraction,
        happened: Events,
    ) -> list[Worth]:
        """Return what some actions lead to, with as many decisions left after them."""
        found: list[Worth] = []
        for ways in actions.values():
            groups = _observe(ways)
            laters = [
                [self._nothing]
                if way.target is None
                else self._follow(way.target, left, self._after(way, happened))
                for _, _, way in groups
            ]
            pairs = 1
            for later in laters:
                pairs *= len(later)
            if pairs > self._most_pairs:
                raise TooLargeError
            found += (self._add(groups, each, discount, happened) for each in product(*laters))
        return _drop_exceeded(found) if self._drop else list(dict.fromkeys(found))

    def _after(self, way: Way, happened: Events) -> Events:
        return happened | self._events.intersection((way.event,))

    def _add(
        self,
        groups: Sequence[_Group],
        laters: Sequence[Worth],
        discount: Fraction,
        happened: Events,
    ) -> Worth:
        """Return what an action is worth with what follows each of its outcomes."""
        reward = worst = Fraction(0)
        charges = [Fraction(0)] * (1 + len(self._summed))
        for (_, p, way), later in zip(groups, laters, strict=True):
            reward += p * (Fraction(way.reward) + discount * later.reward)
            charges[0] += p * (1 if way.target is None else later.charges[0])
            for k, limit in enumerate(self._summed, 1):
                charges[k] += p * (_charge(limit, way, happened) + later.charges[k])
            worst = max(worst, later.ahead)
        return Worth(reward, tuple(charges), max(worst, charges[0]))

    def evaluate(self, tree: Tree) -> tuple[Worth, Fraction]:
        """Return what a policy is worth, and how probably it leaves what is planned.

        Raises
        ------
        UnfollowableError
            If it takes an action that there is not, or does not know an observation.
        """
        start = self._problem.start
        if isinstance(start, int):
            actions = self._problem.states.get(start)
            return self._visit(actions, tree, self._problem.horizon, self._discount, NOTHING)
        return self._visit(start, tree, self._problem.horizon + 1, Fraction(1), NOTHING)

    def _visit(
        self,
        actions: Mapping[str, Sequence[Way]] | None,
        tree: Tree,
        left: int,
        discount: Fraction,
        happened: Events,
    ) -> tuple[Worth, Fraction]:
        if tree == UNPLANNED:
            return self._nothing, Fraction(1)
        if not left or not actions:
            if tree is not None:
                raise UnfollowableError(f"{tree!r} is planned where the history has ended")
            return self._nothing, Fraction(0)
        if not isinstance(tree, tuple) or tree[0] not in actions:
            raise UnfollowableError(f"{tree!r} is planned where the actions are {list(actions)}")
        action, following = tree
        groups, laters, lost = _observe(actions[action]), [], Fraction(0)
        if {group.key for group in groups} != set(following):
            raise UnfollowableError(f"{action!r} has other outcomes than {list(following)}")
        for key, p, way in groups:
            later, off = self._nothing, Fraction(0)
            if way.target is not None:
                there = self._problem.states.get(way.target), following[key], left - 1
                later, off = self._visit(*there, self._discount, self._after(way, happened))
            laters.append(later)
            lost += p * off
        return self._add(groups, laters, discount, happened), lost


def _charge(limit: Limit, way: Way, happened: Events) -> Fraction:
    """Return what an outcome is charged."""
    if limit.kind == "event":
        return Fraction(way.event == limit.name and limit.name not in happened)
    return Fraction(dict(way.costs).get(limit.name, 0))


def _observe(ways: Sequence[Way]) -> list[_Group]:
    """Return what can be observed, outcomes of probability 0 omitted."""
    together: dict[Key, list[Way]] = {}
    for way in ways:
        if way.probability:
            together.setdefault(way.key, []).append(way)
    return [_Group(key, Fraction(add_up(same)), same[0]) for key, same in together.items()]


def _drop_exceeded(worths: Iterable[Worth]) -> list[Worth]:
    """Return the worths that no other one exceeds."""
    kept: list[Worth] = []
    for worth in sorted(set(worths), key=lambda worth: (-worth.reward, worth[1:])):
        if not any(other.exceeds(worth) for other in kept):
            kept.append(worth)
    return kept


def mix(worths: Sequence[Worth], weights: Iterable[float]) -> Worth:
    """Return what a randomised policy is worth; the largest weight takes their rounding."""
    shares = [Fraction(weight) for weight in weights]
    shares[shares.index(max(shares))] += 1 - sum(shares)
    pairs = [(share, worth) for share, worth in zip(shares, worths, strict=True) if share]
    charges = zip(*(worth.charges for _, worth in pairs), strict=True)
    return Worth(
        sum((share * worth.reward for share, worth in pairs), Fraction(0)),
        tuple(
            sum((s * x for (s, _), x in zip(pairs, column, strict=True)), Fraction(0))
            for column in charges
        ),
        max(worth.ahead for _, worth in pairs),
    )
