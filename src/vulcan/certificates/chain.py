"""The Markov chain of a policy: the places that its histories can be in, and the ways from them.

A place is a decision of the policy in a state; histories that come to the same place go on as one.
Places are numbered level by level, and an outcome at a place is a *way* from there: to a place of
the next level, to failure, to an end, or to where nothing is planned. A chain has the numbers that
the model said, and nothing is added up here (`vulcan.certificates.sums` does that).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.model.reader import ModelReader
from vulcan.policies.walk import Place, PolicyWalk
from vulcan.runtime.ranges import starts
from vulcan.sentinels import FAILED, UNPLANNED

__all__ = ["Chain", "Watch", "follow_places"]

NEGLIGIBLE: Final = 1e-200
"""A probability that no sum would show; it counts as 0."""

BLOCK: Final = 4_096
"""Places that are computed with at once, where levels are small."""

Floats = NDArray[np.float64]

Watch = Callable[[float], None]
"""Told now and then which share of the levels is done."""


class Chain:
    """The places of a policy, level by level, and the ways from them.

    Parameters
    ----------
    sizes
        How many places each level has.
    ways
        Four columns, with each way in the order of places: the place that it leads from; the place
        that it leads to, or `END`, `FAILED` or `UNPLANNED`; and probability and reward as the
        model said them, plain floats in arrays or numbers of any kind.
    discounts
        The discount after each level, as the model said it.
    """

    def __init__(self, sizes: Sequence[int], ways: Iterable[Any], discounts: Iterable[Any]) -> None:
        self.sizes = np.array(sizes, np.intp)
        source, target, *self.said = ways
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
        """The probability of each way, as a float."""
        return np.asarray(self.said[0], float)

    @cached_property
    def reward(self) -> Floats:
        """The reward of each way, as a float."""
        return np.asarray(self.said[1], float)

    @cached_property
    def weights(self) -> Floats:
        """γ^t at each place."""
        discounts = np.array([1.0, *map(float, self.discounts[:-1])])[: len(self.sizes)]
        return np.repeat(np.cumprod(discounts), self.sizes)

    @cached_property
    def most_outcomes(self) -> int:
        """The largest number of ways from one place."""
        return int(np.bincount(self.source).max(initial=0))

    @cached_property
    def entries(self) -> NDArray[np.intp]:
        """Of each level, the largest number of ways to one of its places."""
        counts = np.bincount(self.target[self.target >= 0], minlength=len(self))
        return np.maximum.reduceat(counts, self.firsts[:-1]) if len(self) else counts

    @cached_property
    def fails(self) -> NDArray[np.bool_]:
        """Whether each way leads to failure."""
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
        """Return the sum over the ways from each place."""
        return np.bincount(self.source, parts, len(self)).astype(float, copy=False)

    @cached_property
    def _onward(self) -> tuple[NDArray[np.intp], NDArray[np.int32], NDArray[np.intp]]:
        """The ways to other places in the order of these, and the first of them to each place.

        Between the two, where each way leads from, counted from the first place of its level.
        """
        onward = np.flatnonzero(self.target >= 0)
        order = onward[np.argsort(self.target[onward], kind="stable")]
        before = np.repeat(self.firsts[:-1].astype(np.int32), self.sizes)
        source = self.source[order]
        counts = np.bincount(self.target[order], minlength=len(self))
        return order, source - before[source], np.append(starts(counts), len(order))

    @cached_property
    def blocks(self) -> list[tuple[int, int]]:
        """Levels from one to another that are computed with at once, the last one excluded."""
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
            That of each place of the first level, in any number of columns.
        probability
            Of each way.
        survive
            Of some places, what the ways from each of them are multiplied by, in as many columns.
        """
        order, source, first = self._onward
        likely = probability[order].reshape(-1, *(1,) * (start.ndim - 1))
        reach = np.zeros((len(self), *start.shape[1:]))
        reach[: len(start)] = start
        firsts = self.firsts.tolist()
        for begin, end in self.blocks:
            offset = firsts[begin]
            survival = None if survive is None else survive(slice(offset, firsts[end]))
            for level in range(begin, min(end, len(firsts) - 2)):
                before, here, after = firsts[level : level + 3]
                leaving = reach[before:here]
                if survival is not None:
                    leaving = leaving * survival[before - offset : here - offset]
                ways = slice(first[here], first[after])
                flow = leaving.take(source[ways], axis=0)
                flow *= likely[ways]
                # Arithmetic at the lower end of floating point takes a hundred times as long.
                flow[flow < NEGLIGIBLE] = 0.0
                np.add.reduceat(
                    flow, first[here:after] - first[here], axis=0, out=reach[here:after]
                )
        return reach


def follow_places(walk: PolicyWalk, reader: ModelReader, watch: Watch) -> Chain:
    """Return the chain of a policy, place by place; the first level has one for each member."""
    ways: list[tuple[int, int, Any, Any]] = []
    sizes: list[int] = []
    places, first = walk.begin(), 0
    for level in range(reader.levels):
        if not places:
            break
        after = first + len(places)
        following: dict[Place, int] = {}
        for number, place in enumerate(places, first):
            for outcome, child in walk.follow(place, level):
                target = child
                if child >= 0:
                    then = Place(place.member, child, outcome.state)
                    target = following.setdefault(then, after + len(following))
                ways.append((number, target, outcome.probability, outcome.reward))
        sizes.append(len(places))
        places, first = list(following), after
        watch((level + 1) / reader.levels)
    columns = zip(*ways, strict=True) if ways else ((),) * 4
    discounts = (reader.discount_after(level) for level in range(len(sizes)))
    return Chain(sizes, columns, discounts)
