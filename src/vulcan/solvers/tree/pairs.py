"""Pairs of a state and a level: decisions that are shared by all histories in the same pair.

Where states merge, there are far fewer pairs than histories. All that can follow some of them are
unrolled level by level, and a dynamic program finds the best decisions for a price of risk, and
what they earn and risk from every pair on (`vulcan.kernels.shared_decisions`). So all stubs of a
plan are known at once (`PairCompletion`), exactly, and for every price the policy is the best that
there is, not the best that was sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import BoundError
from vulcan.graphs.base import Graph
from vulcan.sentinels import END, NONE, UNASKED
from vulcan.solvers.tree.allowance import Allowance
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.kernel_run import CappedRun, KernelRun
from vulcan.solvers.tree.plans import Plan
from vulcan.tolerance import TOLERANCE

if TYPE_CHECKING:
    from vulcan.solvers.tree.completion import Points
    from vulcan.solvers.tree.price_run import PriceRun

__all__ = ["PairCompletion", "Pairs", "Swept", "Top", "approach", "passes", "unroll"]

BYTES_PER_PAIR: Final = 40
"""With one or two sets of decisions."""

BYTES_PER_PRICE: Final = 24
"""And with more of them, what each takes."""

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
        rows = np.empty(decisions + count, np.int32)
        firsts = np.empty(decisions + count + 1, np.int32)
        below = np.empty(entries + more, np.int32)
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


def unroll(
    run: CappedRun, frontier: NDArray[Any], allowance: Allowance, prices: int = 0
) -> Pairs | None:
    """Return the pairs that can follow a frontier; None if they take too much.

    Parameters
    ----------
    run
        The search. The model is asked for what is missing.
    frontier
        States and levels.
    allowance
        What it may take.
    prices
        For how many prices at once there must be room.
    """
    from vulcan.kernels.shared_decisions import reach_level

    order = np.argsort(frontier["level"], kind="stable")
    ends = np.searchsorted(frontier["level"][order], np.arange(run.reader.levels + 1))
    levels: list[NDArray[np.int32]] = []
    states, place = np.zeros(0, np.int32), np.zeros(0, np.int32)
    count, questions = 0, 0
    size = BYTES_PER_PAIR + BYTES_PER_PRICE * prices
    for level in range(run.reader.levels):
        place = _lengthen(place, run.graph.states.count)
        found = np.empty(len(place), np.int32)
        seeds = frontier["state"][order[ends[level] : ends[level + 1]]]
        reached = found[: reach_level(run.arrays(), states, seeds, place, found)]
        for state in reached[run.count_actions(reached) == UNASKED].tolist():
            questions += 1
            if allowance.forbids(count, questions) or not run.ask(state):
                return None
        states = np.sort(reached[run.count_actions(reached) > 0])
        count += len(states)
        levels.append(states)
        if allowance.forbids(count) or not run.has_room(size * count):
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


@dataclass(frozen=True)
class Ends:
    """What a policy earns and risks from the root on."""

    reward: float
    risk: float


def find_price(run: KernelRun, pairs: Pairs, allowance: Allowance) -> float:
    """Return the price that decides, where pairs are all that can follow the root.

    At this price a policy within the bound is worth as much as one beyond it; 0 where risk need not
    count, and infinite where it alone must.
    """
    if not len(pairs):
        return 0.0

    def sweep(weight: float, price: float) -> Ends:
        swept = pairs.sweep(run, weight, price)
        return Ends(float(swept.rewards[0]), float(swept.risks[0]))

    low, high = approach(run, sweep, allowance)
    if low is high:
        return 0.0
    earned, saved = low.reward - high.reward, low.risk - high.risk
    return earned / saved if earned > 0 and saved > 0 else math.inf


class PairCompletion:
    """Evaluates and writes plans whose stubs follow the best decisions for their price.

    Parameters
    ----------
    run
        The search.
    pairs
        All that can follow the root.
    """

    def __init__(self, run: PriceRun, pairs: Pairs) -> None:
        self._run, self._pairs = run, pairs
        prices = run.prices[0].astype(np.float64).tolist()
        self._swept = [pairs.sweep(run, 1.0, price) for price in prices]

    def evaluate(self, node: int, may_go_on: Callable[[], bool]) -> Points:
        """Return what each price earns and risks from a history on."""
        number = self._locate(self._run.nodes[node : node + 1])[0]
        if number == NONE:
            return np.zeros(len(self._swept)), np.zeros(len(self._swept))
        return (
            np.array([swept.rewards[number] for swept in self._swept]),
            np.array([swept.risks[number] for swept in self._swept]),
        )

    def plan_all(self) -> Plan | None:
        """Return the best acceptable plan that follows one price from the root on."""
        earned, risked = self.evaluate(0, lambda: True)
        plans = [
            Plan(reward, risk, [], [(0, lane)])
            for lane, (reward, risk) in enumerate(
                zip(earned.tolist(), risked.tolist(), strict=True)
            )
        ]
        accepted = [plan for plan in plans if passes(self._run, plan)]
        return max(accepted, key=lambda plan: plan.reward, default=None)

    def write(self) -> Draft | None:
        """Return the plan that is marked in the tree as a policy; None without room for it."""
        run = self._run
        top, nodes = self._write_top()
        points, which = self._locate(run.nodes[nodes]), run.nodes["lane"][nodes].astype(np.int32)
        reach = top.frontier["reach"]
        reward, risk = top.reward, top.risk
        for lane, swept in enumerate(self._swept):
            taken = (which == lane) & (points != NONE)
            reward += float(reach[taken] @ swept.rewards[points[taken]])
            risk += float(reach[taken] @ swept.risks[points[taken]])
        choices = [swept.choice for swept in self._swept]
        decisions = self._pairs.lay_out(run, top, choices, points, which)
        return Draft(*decisions, reward, risk, run.allow(reward), 0.0)

    def _locate(self, nodes: NDArray[Any]) -> NDArray[np.int32]:
        return self._pairs.locate(nodes["state"], nodes["level"])

    def _write_top(self) -> tuple[Top, NDArray[np.int64]]:
        """Return what the plan decides above its stubs, and the histories of these."""
        from vulcan.kernels import shared_decisions as kernels

        run, states = self._run, self._run.graph.states.array
        decisions: list[tuple[Any, ...]] = []
        below: list[int] = []
        frontier: list[tuple[Any, ...]] = []
        stubs: list[int] = []
        reward = risk = 0.0

        def add(number: int, reach: float) -> int:
            """Add a history to the decisions, or to the frontier; return how it is known."""
            node = run.nodes[number]
            level, state = int(node["level"]), int(node["state"])
            if node["plan"] == NONE:
                frontier.append((state, level, len(below), reach))
                stubs.append(number)
                return END  # until it is laid out
            row = int(states["first_action"][state]) + int(node["plan"])
            decisions.append((number, level, row, 0, reach))
            return len(decisions) - 1

        add(0, 1.0)
        k = 0
        while k < len(decisions):
            number, level, row, _, reach = decisions[k]
            decisions[k] = (number, level, row, len(below), reach)
            action = run.graph.actions.array[row]
            reward += float(run.reader.weights[level]) * reach * float(action["expected_reward"])
            risk += reach * float(action["immediate_risk"])
            node = run.nodes[number]
            last = level + 1 == run.reader.levels
            edge = run.edges[node["first_edge"] + node["plan"]]
            child = int(edge["first_child"])
            for j in range(int(action["safe_count"])):
                chance = float(run.graph.outcomes.array["probability"][action["first_outcome"] + j])
                below.append(END if last else add(child + j, reach * chance))
            k += 1
        top = Top(
            np.array(decisions, kernels.DECISION),
            np.array(below, np.int32),
            np.array(frontier, kernels.FRONTIER),
            reward,
            risk,
        )
        return top, np.array(stubs, np.int64)
