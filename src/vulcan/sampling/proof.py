"""A proved upper bound on the reward of any policy within the risk bound, where nothing merges.

For a price k of failure let V_k be the largest E g - k er of any policy, randomised or not. With
any U >= V_k, no policy that the risk bound accepts earns more than the largest y with

    y - k Δ(y) <= U

(`vulcan.bounds.base`). Here U comes from a best-first search over histories
(`vulcan.kernels.value_bounds`), one tree for each price that is tried. It falls with every history
that is opened, and the least y over the prices is the bound. Trees share the graph of the model.

For each price the bound falls to the best that this price can prove, which is quasiconvex in the
price. So work goes to one price until it proves no more, then to the price that decides now, and
then to prices around the best so far, closer and closer.

Sums are rounded. Where histories have n decisions and actions m outcomes, a value is the sum of n
means of at most m numbers, each no larger than some M; that is n (m + 3) roundings, each of them
relative to a sum of at most n M. So n² (m + 3) ε M is added to U, where ε is the distance from 1 to
the next number. The model's own bounds are assumed to be rounded no worse than that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from vulcan.bounds.base import limit_reward
from vulcan.errors import BoundError
from vulcan.graph.compiled import CompiledGraph, find_compiled
from vulcan.graph.states import ACTION, StateGraph, find_growth
from vulcan.kernels import codes
from vulcan.model.reader import ModelReader
from vulcan.numerics import NONE
from vulcan.problem import Problem
from vulcan.runtime.arrays import lengthen
from vulcan.sampling.kernel_run import KernelRun
from vulcan.solvers.local_tests import LocalConstraint

WIDEST: Final = 1.2  # the ratio of the first price on either side of the best
CLOSEST: Final = 1.02  # prices closer than this ratio prove about the same
FAR: Final = 1.3  # prices farther apart than this ratio are not the same any more
HISTORIES_AT_ONCE: Final = 256  # opened before `hurried` is checked again


class Proof(KernelRun):
    """Upper bounds for any number of prices.

    `upper` is the least bound that `improve` has proved, inf at first, and `work` its calls so far:
    the same work gives the same bound. `full` says whether memory has run out, so that no bound can
    get any tighter. The risk bound was evaluated at `rewards` and between them. `hurried` says
    whether to end early, so that an interrupted search answers soon.
    """

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        memory: int | None = None,
        known: StateGraph | None = None,
        hurried: Callable[[], bool] = lambda: False,
    ) -> None:
        from vulcan.kernels import value_bounds

        form = find_compiled(reader)
        names = ("reward_to_go_bound", "value_to_go_bound")
        self._bounded = any(hasattr(reader.model, name) for name in names)
        # A bound in Python gets the model's own states.
        compiled = form is not None and (
            form.bound is not None or form.value_bound is not None or not self._bounded
        )
        super().__init__(problem, reader, LocalConstraint(), known, memory, compiled)
        self._kernels, self._hurried = value_bounds, hurried
        self._trees: dict[float, Any] = {}  # of `value_bounds.Bounds`, by price
        self.full = False
        self.rewards: list[float] = []
        self._proved: dict[float, float] = {}  # by prices that prove no more
        self._price: float | None = None
        self.upper = math.inf
        self.work: list[tuple[float, int]] = []

    def improve(self, price: float, histories: int) -> None:
        """Open this many histories, given the price that decides now, and lower `upper`."""
        self.work.append((price, histories))
        end = self.opened + histories
        if not self._proved and (self._price is None or _is_far(price, self._price)):
            self._price = price
        while self.opened < end and not self.full and self._price is not None:
            before = self.opened
            self.advance(self._price, end - before)
            try:
                self.upper = min(self.upper, self.bound_reward())
            except BoundError:  # it has no value at rewards beyond all policies
                return
            if self.is_final(self._price):
                value = self.bound_value(self._price)
                given = self.problem.risk_bound, (1.0, self._price), value
                proved = limit_reward(*given, -math.inf, value + self._price)[0]
                self._proved[self._price] = proved
                self._price = self._choose_price(price)
            elif self.opened == before:
                return

    def _choose_price(self, wanted: float) -> float | None:
        """Return the wanted price, or one beside the best so far; None if all are close."""
        proved = self._proved
        if all(_is_far(wanted, other, CLOSEST) for other in proved):
            return wanted
        best = min(proved, key=lambda price: (proved[price], price))
        if best == 0.0:
            return None  # no price is below 0
        below = max((price for price in proved if price < best), default=None)
        above = min((price for price in proved if price > best), default=None)
        if above is None:
            return best * WIDEST
        if below is None:
            return best / WIDEST
        # The least is between the neighbours, probably on the side of the lower one.
        for other in sorted((below, above), key=lambda price: proved[price]):
            if _is_far(best, other, CLOSEST):
                return math.sqrt(best * other) if other > 0 else best / WIDEST
        return None

    def advance(self, price: float, histories: int | None = None) -> float:
        """Open at most this many histories to tighten the bound on V_k, k >= 0, and return it."""
        progress = self._tree_of(price).progress[0]
        end = math.inf if histories is None else int(progress["opened"]) + histories
        while not self.is_final(price) and progress["opened"] < end and not self._hurried():
            progress["pause"] = min(end, int(progress["opened"]) + HISTORIES_AT_ONCE)
            wants = int(self._kernels.tighten(self.arrays(), self._tree_of(price)))
            if not self._answer(price, wants):
                self.full = True
                break
        return self.bound_value(price)

    def bound_value(self, price: float) -> float:
        """Return the current upper bound on V_k."""
        tree, levels = self._tree_of(price), self.reader.levels
        largest = float(tree.progress["largest"][0]) + price
        margin = levels**2 * (self._find_widest() + 3) * np.finfo(float).eps * largest
        return float(tree.nodes["upper"][0]) + margin

    def is_final(self, price: float) -> bool:
        """Whether the bound on V_k is V_k itself, but for the rounding."""
        return not self._tree_of(price).nodes["promise"][0] > 0.0

    def bound_reward(self) -> float:
        """Return the least upper bound over all prices tried; -inf if no policy is acceptable."""
        self._tree_of(0.0)
        values = {price: self.bound_value(price) for price in self._trees}
        # A risk is at most 1, so no reward is above V_k + k.
        most = min(value + price for price, value in values.items())
        if most == math.inf:
            return math.inf
        least = min(
            limit_reward(self.problem.risk_bound, (1.0, price), value, -math.inf, most)[0]
            for price, value in values.items()
        )
        self.rewards += [most] if least == -math.inf else [least, most]
        return least

    @property
    def capacity(self) -> int:
        """Bytes of trees and graph."""
        trees = sum(tree.nodes.nbytes + tree.edges.nbytes for tree in self._trees.values())
        return int(trees) + self.graph.capacity

    memory = capacity

    @property
    def opened(self) -> int:
        """Histories opened so far, for all prices."""
        return sum(int(tree.progress["opened"][0]) for tree in self._trees.values())

    def _tree_of(self, price: float) -> Any:
        """Return the histories that were opened for a price."""
        if price not in self._trees:
            kernels, levels = self._kernels, self.reader.levels
            tree = self._trees[price] = kernels.Bounds(
                nodes=np.zeros(64, kernels.NODE),
                edges=np.zeros(64, kernels.EDGE),
                path=np.zeros(levels + 1, kernels.STEP),
                falls=np.ones(levels + 1, kernels.FALL),
                scratch=np.zeros(1, ACTION),
                progress=np.zeros(1, kernels.PROGRESS),
            )
            upper = math.inf
            if levels == self.reader.horizon:
                upper = self._bound_state(StateGraph.ROOT, 0, price)
            tree.nodes[0] = (StateGraph.ROOT, NONE, upper, 1.0)
            tree.progress["price"], tree.progress["nodes"] = price, 1
            tree.progress["largest"] = abs(upper) if math.isfinite(upper) else 0.0
        return self._trees[price]

    def _grow(self, price: float) -> bool:
        """Lengthen the arrays of a tree; False if there is no memory for it."""
        tree = self._trees[price]
        share = find_growth([tree.nodes, tree.edges], self.limit - self.capacity)
        if not share:
            return False
        longer = {}
        for kind in ("nodes", "edges"):
            array, filled = getattr(tree, kind), int(tree.progress[kind][0])
            longer[kind] = lengthen(array, filled, int((1 + share) * len(array)))
        self._trees[price] = tree._replace(**longer)
        return True

    def _find_widest(self) -> int:
        """Return the largest number of outcomes of an action."""
        if isinstance(self.graph, CompiledGraph):
            return self.graph.compiled.most_outcomes
        actions = self.graph.actions
        return int(actions.array["outcome_count"][: actions.count].max(initial=1))

    def _answer(self, price: float, wants: int) -> bool:
        """Provide what a kernel needs; False without room for it."""
        if wants == codes.NEEDS_ROOM:
            return self._grow(price)
        tree = self._trees[price]
        progress = tree.progress[0]
        if wants == codes.NEEDS_LIMITS:  # bounds of the histories that the kernel is about to add
            level = int(progress["level"]) + 1
            for number in range(int(progress["children"]), int(progress["last_child"])):
                state = int(tree.nodes["state"][number])
                tree.nodes["upper"][number] = self._bound_state(state, level, price)
            progress["limited"] = 1
            return True
        return self.satisfy(wants, int(tree.nodes["state"][progress["node"]]), self.limit)

    def _bound_state(self, state: int, level: int, price: float) -> float:
        """Return the model's bound on V_k from a state on; inf if it has none."""
        weight = float(self.reader.weights[level])
        if weight == 0.0:
            return 0.0  # nothing is earned from there on
        if not self._bounded:
            return math.inf
        step = level - (self.reader.levels - self.reader.horizon)
        is_root = state == StateGraph.ROOT and level == 0
        place = self.reader.root if is_root else self.state_graph.state_object(state)
        return weight * self.reader.bound_value(place, step, price / weight)


def _is_far(one: float, other: float, ratio: float = FAR) -> bool:
    """Whether two prices differ by more than a ratio."""
    low, high = min(one, other), max(one, other)
    return high > ratio * low
