"""The Markov chain of a policy.

A place is a decision point of the policy: a member, a node of it, and a state. Histories that reach
the same place are merged. Places are numbered level by level. Each outcome at a place is a
transition: to a place of the next level, to failure, to an end, or to a history without a planned
action. A chain holds the model's numbers; `vulcan.certificate.sums` computes with them.

`follow_policy` builds the chain. It evaluates each (state, action) pair once, numbers states, and
compares every answer with the policy's record (`ModelCheck`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.model.reader import ModelReader
from vulcan.numerics import END, FAILED, NONE, UNPLANNED
from vulcan.policy.policy import AnyPolicy
from vulcan.policy.walk import MemberLists, ModelAnswer, ModelCheck
from vulcan.runtime.arrays import ranges, starts
from vulcan.runtime.limits import check_time

__all__ = ["Chain", "Watch", "follow_policy"]

NEGLIGIBLE: Final = 1e-200
"""Smaller probabilities count as 0."""

BLOCK: Final = 4_096
"""Number of places computed at once, where levels are small."""

Floats = NDArray[np.float64]

Watch = Callable[[float], None]
"""Called with the share of the levels that is done."""


class Chain:
    """The places of a policy, level by level, and the transitions between them.

    Parameters
    ----------
    sizes
        Number of places of each level.
    transitions
        Four columns, in the order of source places: source place; target place, `END`, `FAILED` or
        `UNPLANNED`; and probability and reward as given by the model, floats in arrays or numbers
        of any kind.
    discounts
        The discount after each level, as given by the model.
    """

    def __init__(
        self, sizes: Sequence[int], transitions: Iterable[Any], discounts: Iterable[Any]
    ) -> None:
        self.sizes = np.array(sizes, np.intp)
        source, target, *self.model_numbers = transitions
        self.source: NDArray[np.int32] = np.asarray(source, np.int32)
        self.target: NDArray[np.int32] = np.asarray(target, np.int32)
        self.discounts = list(discounts)

    def __len__(self) -> int:
        """Return the number of places."""
        return int(self.sizes.sum())

    @cached_property
    def firsts(self) -> NDArray[np.intp]:
        """The first place of each level, and the number of places."""
        return np.append(starts(self.sizes), self.sizes.sum())

    @cached_property
    def probability(self) -> Floats:
        """The probability of each transition, as a float."""
        return np.asarray(self.model_numbers[0], float)

    @cached_property
    def reward(self) -> Floats:
        """The reward of each transition, as a float."""
        return np.asarray(self.model_numbers[1], float)

    @cached_property
    def weights(self) -> Floats:
        """γ^t at each place."""
        discounts = np.array([1.0, *map(float, self.discounts[:-1])])[: len(self.sizes)]
        return np.repeat(np.cumprod(discounts), self.sizes)

    @cached_property
    def most_outcomes(self) -> int:
        """The largest number of transitions from one place."""
        return int(np.bincount(self.source).max(initial=0))

    @cached_property
    def entries(self) -> NDArray[np.intp]:
        """For each level, the largest number of transitions to one of its places."""
        counts = np.bincount(self.target[self.target >= 0], minlength=len(self))
        return np.maximum.reduceat(counts, self.firsts[:-1]) if len(self) else counts

    @cached_property
    def fails(self) -> NDArray[np.bool_]:
        """Whether each transition leads to failure."""
        return np.asarray(self.target == FAILED)

    @cached_property
    def risk(self) -> Floats:
        """The immediate risk at each place."""
        return self.gather(self.probability * self.fails)

    @cached_property
    def unplanned(self) -> Floats:
        """The probability of leaving the plan at each place."""
        return self.gather(self.probability * (self.target == UNPLANNED))

    def gather(self, parts: Floats) -> Floats:
        """Return the sum over the transitions from each place."""
        return np.bincount(self.source, parts, len(self)).astype(float, copy=False)

    @cached_property
    def _onward(self) -> tuple[NDArray[np.intp], NDArray[np.int32], NDArray[np.intp]]:
        """The transitions to places, sorted by target; their sources; the first of each target.

        Sources are counted from the first place of their level.
        """
        onward = np.flatnonzero(self.target >= 0)
        order = onward[np.argsort(self.target[onward], kind="stable")]
        before = np.repeat(self.firsts[:-1].astype(np.int32), self.sizes)
        source = self.source[order]
        counts = np.bincount(self.target[order], minlength=len(self))
        return order, source - before[source], np.append(starts(counts), len(order))

    @cached_property
    def blocks(self) -> list[tuple[int, int]]:
        """Ranges of levels that are computed at once."""
        blocks, begin = [], 0
        for level in range(1, len(self.sizes) + 1):
            after = self.firsts[min(level + 1, len(self.sizes))]
            if level == len(self.sizes) or after - self.firsts[begin] > BLOCK:
                blocks.append((begin, level))
                begin = level
        return blocks

    def spread(
        self, start: Floats, probability: Floats, survive: Callable[[slice], Floats] | None = None
    ) -> Floats:
        """Return the probability of being in each place.

        Parameters
        ----------
        start
            Probability of each place of the first level, in any number of columns.
        probability
            Probability of each transition.
        survive
            Returns factors for a range of places, in as many columns; the transitions from a place
            are multiplied by its factor.
        """
        order, source, first = self._onward
        likely = probability[order].reshape(-1, *(1,) * (start.ndim - 1))
        reach = np.zeros((len(self), *start.shape[1:]))
        reach[: len(start)] = start
        firsts = self.firsts.tolist()
        for begin, end in self.blocks:
            check_time()
            offset = firsts[begin]
            survival = None if survive is None else survive(slice(offset, firsts[end]))
            for level in range(begin, min(end, len(firsts) - 2)):
                before, here, after = firsts[level : level + 3]
                leaving = reach[before:here]
                if survival is not None:
                    leaving = leaving * survival[before - offset : here - offset]
                arriving = slice(first[here], first[after])
                flow = leaving.take(source[arriving], axis=0)
                flow *= likely[arriving]
                # Arithmetic with subnormal numbers takes a hundred times as long.
                flow[flow < NEGLIGIBLE] = 0.0
                np.add.reduceat(
                    flow, first[here:after] - first[here], axis=0, out=reach[here:after]
                )
        return reach


def follow_policy(
    policy: AnyPolicy, reader: ModelReader, watch: Watch | None = None
) -> tuple[Chain, int]:
    """Return the chain of a policy, and the number of (state, action) pairs evaluated.

    The first level has one place for each member.
    """
    check = ModelCheck(policy.about, reader)
    evaluated = _Evaluations(check, reader)
    members = [MemberLists(member) for member in policy.members]
    for member in members:
        if not member.action:
            check.require_end(reader.root, 0)
    # A place is the number of a member, a node of it, and the number of a state.
    places = [(number, 0, 0) for number, member in enumerate(members) if member.action]
    rows: list[int] = []
    targets: list[int] = []
    sizes: list[int] = []
    for level in range(reader.levels):
        if not places:
            break
        following: dict[tuple[int, int, int], int] = {}
        after = len(rows) + len(places)
        last = level + 1 == reader.levels
        for member_number, node, state in places:
            check_time()
            recorded, children = members[member_number].read(node)
            row, answer, arrivals = evaluated.find(state, recorded.action, level)
            check.compare(answer, recorded, evaluated.states[state], level)
            rows.append(row)
            for child, arrival in zip(children, arrivals, strict=True):
                if child >= 0:
                    if last:
                        check.require_step(evaluated.states[arrival], level + 1)
                    place = (member_number, child, arrival)
                    targets.append(following.setdefault(place, after + len(following)))
                else:
                    targets.append(child)
                    if child == END and not last:
                        evaluated.require_end(arrival, level + 1)
        sizes.append(len(places))
        places = list(following)
        evaluated.release(arrival for _, _, arrival in places)
        if watch is not None:
            watch((level + 1) / reader.levels)
    discounts = map(reader.discount_after, range(len(sizes)))
    return Chain(sizes, evaluated.list_transitions(rows, targets), discounts), evaluated.count


class _Answer(NamedTuple):
    """An evaluated pair: its number, the answer, and the number of each next state."""

    row: int
    answer: ModelAnswer
    arrivals: list[int]


class _Evaluations:
    """The answers for the (state, action) pairs of a policy, each evaluated once."""

    def __init__(self, check: ModelCheck, reader: ModelReader) -> None:
        self.states: dict[int, Any] = {0: reader.root}
        self.count = 0
        self._check, self._reader = check, reader
        self._numbers: dict[Any, int] = {reader.root: 0}
        self._next = 1
        self._answers: dict[tuple[int, str], _Answer] = {}
        self._ends: set[int] = set()
        self._outcome_counts: list[int] = []
        self._probabilities: list[Any] = []
        self._rewards: list[Any] = []

    def find(self, state: int, action: str, level: int) -> _Answer:
        """Return the answer for an action of a state."""
        found = self._answers.get((state, action))
        if found is None:
            answer = self._check.evaluate(self.states[state], action, level)
            arrivals = [NONE if o.fails else self._number(o.state) for o in answer.outcomes]
            found = _Answer(self.count, answer, arrivals)
            self._answers[state, action] = found
            self.count += 1
            self._outcome_counts.append(len(answer.outcomes))
            self._probabilities += [outcome.probability for outcome in answer.outcomes]
            self._rewards += [outcome.reward for outcome in answer.outcomes]
        return found

    def require_end(self, state: int, level: int) -> None:
        """Refuse a state that has actions, where the policy ends."""
        if state not in self._ends:
            self._check.require_end(self.states[state], level)
            self._ends.add(state)

    def release(self, kept: Iterable[int]) -> None:
        """Forget all states but these, if states never merge: they are not reached again."""
        if not self._reader.merges:
            self.states = {number: self.states[number] for number in kept}
            self._answers.clear()

    def list_transitions(self, rows: list[int], targets: list[int]) -> Iterable[Any]:
        """Return the columns of a chain whose places have these pairs and targets."""
        counts = np.array(self._outcome_counts, np.intp)
        here = np.array(rows, np.intp)
        flat = ranges(starts(counts)[here], counts[here])
        source = np.repeat(np.arange(len(here)), counts[here])
        numbers = (_to_array(column)[flat] for column in (self._probabilities, self._rewards))
        return source, targets, *numbers

    def _number(self, state: Any) -> int:
        number = self._next
        if self._reader.merges:
            try:
                number = self._numbers.setdefault(state, number)
            except Exception as error:
                raise self._reader.refuse_comparison(state, error) from error
        if number == self._next:
            self.states[number] = state
            self._next += 1
        return number


def _to_array(numbers: list[Any]) -> NDArray[Any]:
    """Return numbers as floats, or as they are if some would be rounded."""
    kind = float if all(type(n) is float or float(n) == n for n in numbers) else object
    return np.array(numbers, kind)
