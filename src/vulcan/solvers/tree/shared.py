"""Completion where states merge: what the tree left unexplored is planned once for each pair.

The tree decides at the top, and a dynamic program over pairs (state, level) below it
(`vulcan.kernels.shared_decisions`). Which one, a price of risk says: the decisions that earn most
less the price times the risk. Without a price they earn most, and with the largest they risk least.
Between these, prices are tried until no policy lies between the last that the bound accepts and the
first that it does not, as in docs/theory.md ("Bounds from above"), but with exact reward and risk
of the whole policy, top included. Then the risk that is left is spent: points of the frontier go
over to the riskier decisions, the most probable ones first, as long as the bound accepts it.

A few tops are tried, by how often the actions of a history must have been tried for the tree to
decide there. If no price makes any of them pass, the same is tried without the tree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import BoundError
from vulcan.graphs.base import Graph
from vulcan.sentinels import END, NONE, UNASKED
from vulcan.solvers.tree.allowance import Allowance
from vulcan.solvers.tree.draft import Draft
from vulcan.tolerance import TOLERANCE

if TYPE_CHECKING:
    from vulcan.solvers.tree.sampling import TreeRun

__all__ = ["compile_kernels", "complete_by_pairs"]

FIRST_LENGTH: Final = 1 << 12
BYTES_PER_PAIR: Final = 40
TRIALS: Final = (1, 16, 256)
"""The tree decides where each action was tried this often; the best of these policies counts."""
MOST_PRICES: Final = 60
MOST_SWITCHES: Final = 1 << 12
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


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs that can follow a frontier, and which of them its points are; NONE at an end."""

    first: NDArray[np.int32]
    states: NDArray[np.int32]
    place: NDArray[np.int32]
    points: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Completed:
    """Decisions for all pairs: what the frontier's points earn and risk, and the whole policy."""

    choice: NDArray[np.int32]
    rewards: NDArray[np.float64]
    risks: NDArray[np.float64]
    reward: float
    risk: float


def complete_by_pairs(run: TreeRun, allowance: Allowance) -> Draft | None:
    """Return the policy of the tree, completed; None if it takes too much, or nothing passes.

    Parameters
    ----------
    run
        The search.
    allowance
        What it may take.
    """
    found: list[Draft] = []
    length = NONE
    for least in TRIALS:
        top = _write_top(run, least)
        if len(top.decisions) != length:
            length = len(top.decisions)
            draft = _complete(run, top, allowance)
            found += [] if draft is None else [draft]
    if not found and length:
        draft = _complete(run, _leave_out_the_tree(), allowance)
        found += [] if draft is None else [draft]
    return max(found, key=lambda draft: draft.reward, default=None)


def compile_kernels(run: TreeRun) -> None:
    """Have the kernels compiled, by work on nothing at all."""
    from vulcan.kernels.shared_decisions import reach_level

    nothing = np.zeros(0, np.int32)
    reach_level(run.arrays(), nothing, nothing, nothing, nothing)
    first, end = np.zeros(run.reader.levels + 1, np.int32), np.full(1, NONE, np.int32)
    _write_top(run, 1)
    completion = Completion(run, _leave_out_the_tree(), Pairs(first, nothing, nothing, end))
    completion.lay_out([completion.sweep(1.0, 0.0)], np.zeros(1, np.int32))


def _complete(run: TreeRun, top: Top, allowance: Allowance) -> Draft | None:
    pairs = _unroll(run, top.frontier, allowance)
    return None if pairs is None else Completion(run, top, pairs).find(allowance)


def _write_top(run: TreeRun, least: int) -> Top:
    """Return what the tree decides where every action was tried at least so often."""
    from vulcan.kernels import shared_decisions as kernels

    length, found = FIRST_LENGTH, np.zeros(1, kernels.TOP)
    while True:
        decisions = np.zeros(length, kernels.DECISION)
        below, frontier = np.zeros(2 * length, np.int32), np.zeros(2 * length, kernels.FRONTIER)
        if kernels.write_top(run.arrays(), run.tree(), least, decisions, below, frontier, found):
            break
        length *= 2
    size = found[0]
    return Top(
        decisions[: size["decisions"]].copy(),
        below[: size["entries"]].copy(),
        frontier[: size["frontier"]].copy(),
        float(size["reward"]),
        float(size["risk"]),
    )


def _leave_out_the_tree() -> Top:
    from vulcan.kernels import shared_decisions as kernels

    root = np.array([(Graph.ROOT, 0, NONE, 1.0)], kernels.FRONTIER)
    return Top(np.zeros(0, kernels.DECISION), np.zeros(0, np.int32), root, 0.0, 0.0)


def _unroll(run: TreeRun, frontier: NDArray[Any], allowance: Allowance) -> Pairs | None:
    """Return the pairs that can follow a frontier, asking the model for what is missing."""
    from vulcan.kernels.shared_decisions import reach_level

    order = np.argsort(frontier["level"], kind="stable")
    ends = np.searchsorted(frontier["level"][order], np.arange(run.reader.levels + 1))
    points = np.full(len(frontier), NONE, np.int32)
    levels: list[NDArray[np.int32]] = []
    states, place = np.zeros(0, np.int32), np.zeros(0, np.int32)
    count, questions = 0, 0
    for level in range(run.reader.levels):
        here = order[ends[level] : ends[level + 1]]
        place = _lengthen(place, run.graph.states.count)
        found = np.empty(len(place), np.int32)
        seeds = frontier["state"][here]
        size = reach_level(run.arrays(), states, seeds, place, found)
        reached = found[:size]
        for state in reached[run.count_actions(reached) == UNASKED].tolist():
            questions += 1
            if allowance.forbids(count, questions) or not run.ask(state):
                return None
        states = reached[run.count_actions(reached) > 0]
        place[states] = np.arange(count, count + len(states))
        points[here] = place[seeds]
        place[states] = NONE
        count += len(states)
        levels.append(states)
        if allowance.forbids(count) or not run.has_room(BYTES_PER_PAIR * count):
            return None
    first = np.cumsum([0, *map(len, levels)], dtype=np.int32)
    place = _lengthen(place, run.graph.states.count)
    return Pairs(first, np.concatenate(levels).astype(np.int32), place, points)


def _lengthen(place: NDArray[np.int32], length: int) -> NDArray[np.int32]:
    """Return an array of places for this many states."""
    return np.concatenate([place, np.full(length - len(place), NONE, np.int32)])


class Completion:
    """The decisions below a top, at different prices."""

    def __init__(self, run: TreeRun, top: Top, pairs: Pairs) -> None:
        self._run, self._top, self._pairs = run, top, pairs
        goes_on = pairs.points != NONE
        self._reach = np.where(goes_on, top.frontier["reach"], 0.0)
        # Points at which the mission is over have a reach of 0: any pair does.
        self._points = np.where(goes_on, pairs.points, 0)

    def find(self, allowance: Allowance) -> Draft | None:
        """Return the best policy that the bound accepts; None if it accepts none."""
        low = self.sweep(1.0, 0.0)
        if not self._run.constraint.constrains or self._passes(low.reward, low.risk):
            return self._write([low], np.zeros(len(self._points), np.int32))
        low, high = self._approach(low, self.sweep(0.0, 1.0), allowance)
        if not self._passes(high.reward, high.risk):
            return None
        return self._write([high, low], self._spend(low, high))

    def _approach(
        self, low: Completed, high: Completed, allowance: Allowance
    ) -> tuple[Completed, Completed]:
        """Return policies with none between them, the riskier of which does not pass.

        The other one does if any does: until one is found, the slope of the bound says on which
        side more of the risk would be allowed.
        """
        passed = self._passes(high.reward, high.risk)
        for _ in range(MOST_PRICES):
            earned, saved = low.reward - high.reward, low.risk - high.risk
            if not (earned > 0 and saved > 0) or allowance.late:
                break
            price = earned / saved
            middle = self.sweep(1.0, price)
            value, other = middle.reward - price * middle.risk, low.reward - price * low.risk
            if value <= other + ALIKE * max(1.0, abs(other)):
                break
            if self._passes(middle.reward, middle.risk):
                high, passed = middle, True
            elif not passed and self._slope(middle.reward) * price >= 1:
                high = middle
            else:
                low = middle
        return low, high

    def _slope(self, reward: float) -> float:
        """Return how much risk the bound allows for a little more reward."""
        try:
            return self._run.problem.risk_bound.tangent(reward).slope
        except BoundError:
            return math.inf  # it allows nothing there, but may further on

    def _passes(self, reward: float, risk: float) -> bool:
        """Whether the bound accepts a policy, with room for the roundings of a certificate."""
        try:
            return risk <= self._run.problem.risk_bound(reward) + TOLERANCE / 2
        except BoundError:  # it has no value where no history of the search ever came
            return False

    def sweep(self, weight: float, price: float) -> Completed:
        """Return the decisions that earn most at a price of risk."""
        from vulcan.kernels.shared_decisions import sweep_levels

        size = len(self._pairs.states)
        choice = np.zeros(size, np.int32)
        rewards, risks = np.zeros(max(1, size)), np.zeros(max(1, size))
        sweep_levels(*self._arrays(), weight, price, rewards, risks, choice)
        earned, risked = rewards[self._points] * self._reach, risks[self._points] * self._reach
        reward = self._top.reward + float(earned.sum())
        return Completed(choice, earned, risked, reward, self._top.risk + float(risked.sum()))

    def _spend(self, low: Completed, high: Completed) -> NDArray[np.int32]:
        """Return which points of the frontier take the riskier decisions: 1, others 0."""
        gain, cost = low.rewards - high.rewards, low.risks - high.risks
        taken = np.zeros(len(gain), np.int32)
        reward, risk = high.reward, high.risk
        wanted = np.flatnonzero(gain > 0)
        for k in wanted[np.argsort(-cost[wanted], kind="stable")][:MOST_SWITCHES].tolist():
            if self._passes(reward + gain[k], risk + cost[k]):
                taken[k] = 1
                reward, risk = reward + gain[k], risk + cost[k]
        return taken

    def _write(self, plans: list[Completed], which: NDArray[np.int32]) -> Draft:
        """Return the policy whose points of the frontier follow one of some plans each."""
        top = self._top
        reward, risk = (
            own + float(np.choose(which, [getattr(plan, name) for plan in plans]).sum())
            for own, name in ((top.reward, "rewards"), (top.risk, "risks"))
        )
        allowed = float(self._run.problem.risk_bound(reward))
        return Draft(*self.lay_out(plans, which), reward, risk, allowed, 0.0)

    def lay_out(
        self, plans: list[Completed], which: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Return the decisions of a policy, as a `Draft` has them."""
        from vulcan.kernels import shared_decisions as kernels

        top, points = self._top, self._pairs.points
        choice = np.stack([plan.choice for plan in plans])
        numbers = np.full(choice.shape, NONE, np.int32)
        goes_on = points != NONE
        numbers[which[goes_on], points[goes_on]] = 0
        decisions, entries = len(top.decisions), len(top.below)
        count, more = kernels.number_shared(*self._arrays(), choice, numbers, decisions)
        rows = np.empty(decisions + count, np.int32)
        firsts = np.empty(decisions + count + 1, np.int32)
        below = np.empty(entries + more, np.int32)
        rows[:decisions], firsts[:decisions] = top.decisions["row"], top.decisions["first"]
        firsts[decisions], below[:entries] = entries, top.below
        if decisions:
            after = np.full(len(points), END, np.int32)
            after[goes_on] = numbers[which[goes_on], points[goes_on]]
            below[top.frontier["entry"]] = after
        kernels.write_shared(*self._arrays(), choice, numbers, decisions, rows, firsts, below)
        return rows, firsts, below

    def _arrays(self) -> tuple[Any, ...]:
        pairs = self._pairs
        return self._run.arrays(), pairs.first, pairs.states, pairs.place
