"""Pairs of a state and a level: decisions that are shared by all histories in the same pair.

Where states merge, there are far fewer pairs than histories. All that can follow some of them are
unrolled level by level, and a dynamic program finds the best decisions for a price of risk, and
what they earn and risk from every pair on (`vulcan.kernels.shared_decisions`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import BoundError
from vulcan.graphs.base import Graph
from vulcan.sentinels import END, NONE, UNASKED
from vulcan.solvers.tree.allowance import Allowance
from vulcan.solvers.tree.kernel_run import CappedRun, KernelRun
from vulcan.tolerance import TOLERANCE

__all__ = ["Pairs", "Swept", "Top", "approach", "passes", "unroll"]

BYTES_PER_PAIR: Final = 40
MOST_PRICES: Final = 60
ALIKE: Final = 1e-11
"""Values of policies that differ by less, relative to their size, are the same."""


@dataclass(frozen=True, eq=False)
class Top:
    """What the tree decides, and where it ends; see `vulcan.kernels.shared_decisions`."""

    decisions: NDArray[Any]
    below: NDArray[np.int32]
    frontier: NDArray[Any]
    reward: float
    risk: float

    @classmethod
    def leave_out(cls) -> Top:
        """Return a top without decisions: the root alone is its frontier."""
        from vulcan.kernels import shared_decisions as kernels

        root = np.array([(Graph.ROOT, 0, NONE, 1.0)], kernels.FRONTIER)
        return cls(np.zeros(0, kernels.DECISION), np.zeros(0, np.int32), root, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Swept:
    """The best decisions for a price, and what they earn and risk from each pair on."""

    choice: NDArray[np.int32]
    rewards: NDArray[np.float64]
    risks: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs, and all that can follow them.

    Attributes
    ----------
    first
        Where the pairs of each level begin.
    states
        The state of each pair; they ascend on each level.
    place
        Scratch for kernels.
    """

    first: NDArray[np.int32]
    states: NDArray[np.int32]
    place: NDArray[np.int32]

    def __len__(self) -> int:
        """Return how many pairs there are."""
        return len(self.states)

    def locate(self, states: NDArray[np.int32], levels: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the number of each pair; NONE where the mission is over."""
        found = np.full(len(states), NONE, np.int32)
        for level in np.unique(levels).tolist():
            begin, end = self.first[level : level + 2]
            here = np.flatnonzero(levels == level)
            known = self.states[begin:end]
            at = np.searchsorted(known, states[here])
            inside = at < len(known)
            inside[inside] = known[at[inside]] == states[here][inside]
            found[here[inside]] = begin + at[inside]
        return found

    def sweep(self, run: KernelRun, weight: float, price: float) -> Swept:
        """Return the decisions that earn most at a price of risk."""
        from vulcan.kernels.shared_decisions import sweep_levels

        size = len(self)
        swept = Swept(np.zeros(size, np.int32), np.zeros(size), np.zeros(size))
        values = (swept.rewards, swept.risks, swept.choice)
        sweep_levels(*self.arrays(run), weight, price, *values)
        return swept

    def lay_out(
        self,
        run: KernelRun,
        top: Top,
        choices: Sequence[NDArray[np.int32]],
        points: NDArray[np.int32],
        which: NDArray[np.int32],
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Return the decisions of a policy, as a `Draft` has them.

        Parameters
        ----------
        run
            The search.
        top
            How the policy begins.
        choices
            Sets of decisions for all pairs.
        points
            Which pairs the points of the top's frontier are.
        which
            And which set each of them follows.
        """
        from vulcan.kernels import shared_decisions as kernels

        choice = np.stack(choices)
        numbers = np.full(choice.shape, NONE, np.int32)
        goes_on = points != NONE
        numbers[which[goes_on], points[goes_on]] = 0
        decisions, entries = len(top.decisions), len(top.below)
        count, more = kernels.number_shared(*self.arrays(run), choice, numbers, decisions)
        rows = np.zeros(decisions + count, np.int32)
        firsts = np.zeros(decisions + count + 1, np.int32)
        below = np.zeros(entries + more, np.int32)
        rows[:decisions], firsts[:decisions] = top.decisions["row"], top.decisions["first"]
        firsts[decisions], below[:entries] = entries, top.below
        if decisions:
            after = np.full(len(points), END, np.int32)
            after[goes_on] = numbers[which[goes_on], points[goes_on]]
            below[top.frontier["entry"]] = after
        kernels.write_shared(*self.arrays(run), choice, numbers, decisions, rows, firsts, below)
        return rows, firsts, below

    def arrays(self, run: KernelRun) -> tuple[Any, ...]:
        """Return what kernels are given."""
        return run.arrays(), self.first, self.states, self.place


def unroll(run: CappedRun, frontier: NDArray[Any], allowance: Allowance) -> Pairs | None:
    """Return the pairs that can follow a frontier; None if they take too much.

    Parameters
    ----------
    run
        The search. The model is asked for what is missing.
    frontier
        States and levels.
    allowance
        What it may take.
    """
    from vulcan.kernels.shared_decisions import reach_level

    order = np.argsort(frontier["level"], kind="stable")
    ends = np.searchsorted(frontier["level"][order], np.arange(run.reader.levels + 1))
    levels: list[NDArray[np.int32]] = []
    states, place = np.zeros(0, np.int32), np.zeros(0, np.int32)
    count, questions = 0, 0
    for level in range(run.reader.levels):
        place = _lengthen(place, run.graph.states.count)
        found = np.zeros(len(place), np.int32)
        seeds = frontier["state"][order[ends[level] : ends[level + 1]]]
        reached = found[: reach_level(run.arrays(), states, seeds, place, found)]
        for state in reached[run.count_actions(reached) == UNASKED].tolist():
            questions += 1
            if allowance.forbids(count, questions) or not run.ask(state):
                return None
        states = np.sort(reached[run.count_actions(reached) > 0])
        count += len(states)
        levels.append(states)
        if allowance.forbids(count) or not run.has_room(BYTES_PER_PAIR * count):
            return None
    first = np.cumsum([0, *map(len, levels)], dtype=np.int32)
    place = _lengthen(place, run.graph.states.count)
    return Pairs(first, np.concatenate(levels).astype(np.int32), place)


def _lengthen(place: NDArray[np.int32], length: int) -> NDArray[np.int32]:
    """Return an array of places for this many states."""
    return np.concatenate([place, np.full(length - len(place), NONE, np.int32)])


class Worth(Protocol):
    """What a policy earns and risks."""

    @property
    def reward(self) -> float: ...
    @property
    def risk(self) -> float: ...


P = TypeVar("P", bound=Worth)


def approach(
    run: KernelRun, sweep: Callable[[float, float], P], allowance: Allowance
) -> tuple[P, P]:
    """Return policies with none between them, the riskier of which does not pass.

    The other one does if any does: until one is found, the slope of the bound says on which side
    more of the risk would be allowed. Where the one that earns most passes, it is returned twice.
    """
    low = sweep(1.0, 0.0)
    if passes(run, low):
        return low, low
    high = sweep(0.0, 1.0)
    passed = passes(run, high)
    for _ in range(MOST_PRICES):
        earned, saved = low.reward - high.reward, low.risk - high.risk
        if not (earned > 0 and saved > 0) or allowance.late:
            break
        price = earned / saved
        middle = sweep(1.0, price)
        value, other = middle.reward - price * middle.risk, low.reward - price * low.risk
        if value <= other + ALIKE * max(1.0, abs(other)):
            break
        if passes(run, middle):
            high, passed = middle, True
        elif not passed and _slope(run, middle.reward) * price >= 1:
            high = middle
        else:
            low = middle
    return low, high


def passes(run: KernelRun, worth: Worth) -> bool:
    """Whether the bound accepts a policy, with room for the roundings of a certificate."""
    return worth.risk <= run.allow(worth.reward) + TOLERANCE / 2


def _slope(run: KernelRun, reward: float) -> float:
    """Return how much risk the bound allows for a little more reward."""
    try:
        return run.problem.risk_bound.tangent(reward).slope
    except BoundError:
        return math.inf  # it allows nothing there, but may further on
