"""A proved upper bound on the reward of any policy within the risk bound, where nothing merges.

For a price k of failure let V_k be the largest E g - k er of any policy, randomised or not. With
any U >= V_k, no policy that the risk bound accepts earns more than the largest y with

    y - k Δ(y) <= U

(`vulcan.bounds.base`). Here U comes from a best-first search over histories
(`vulcan.kernels.value_bounds`), one tree for each price that is tried. It falls with every history
that is opened, and the least y over the prices is a bound. Trees share the graph of the model.

**Cases.** The least y over all prices is what a policy earns that draws lots between two others. A
deterministic policy takes one action in a history. So it belongs to one of several *cases*, each a
choice of actions in some histories; the others are *open*. With U(h) from the tree of a price, let
p(h) be the probability of reaching an open history. No policy of a case has more than

    U_case = Σ p(h) (w R̄ - k r) over histories with a choice + Σ p(h) U(h) over open histories,

so that the largest bound of the cases holds for every deterministic policy. Work goes to the case
of the largest bound. At a price where that is exact, the best policy of the case is known, and its
risk, the slope of V_k. Two such policies, one with more risk than is allowed, one with less, say
which price to try next: where their lines E g - k er meet, the bound cannot get below what a
mixture of both earns. If it is that small already, the case is split by the action of the open
history in which the risks of the two policies differ most.

Sums are rounded. Where histories have n decisions and actions m outcomes, a value is the sum of n
means of at most m numbers, each no larger than some M; that is n (m + 3) roundings, each of them
relative to a sum of at most n M. So n² (m + 3) ε M is added to U, where ε is the distance from 1 to
the next number. The model's own bounds are assumed to be rounded no worse than that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import limit_reward
from vulcan.errors import BoundError
from vulcan.graph.compiled import CompiledGraph, find_compiled
from vulcan.graph.states import ACTION, StateGraph, find_growth
from vulcan.kernels import codes
from vulcan.model.reader import ModelReader
from vulcan.numerics import NONE
from vulcan.problem import Problem
from vulcan.runtime.arrays import lengthen
from vulcan.runtime.devices import open_arrays
from vulcan.sampling.kernel_run import KernelRun
from vulcan.solvers.local_tests import LocalConstraint

NEXT: Final = 1.1  # the ratio of the first two prices of a case; squared for each further one
CLOSEST: Final = 1.01  # prices closer than this ratio share a tree
FAR: Final = 1.3  # prices farther apart than this ratio are not the same any more
SETTLED: Final = 2e-4  # no more prices are tried for less than this share of the bound
MOST_PRICES: Final = 8  # of a case
STEP: Final = 1e-4  # by this share of a price, another one shows the risk
HISTORIES_AT_ONCE: Final = 256  # opened before `hurried` is checked again
WORK_OF_TABLE: Final = 1 << 15  # histories that are opened in the time of a table of a GPU

History = tuple[int, ...]
"""The numbers of actions and outcomes, in turn, that lead to a history."""


class Ends(NamedTuple):
    """The open histories of a case in one tree, and what the case earns and risks before them."""

    histories: list[History]
    nodes: NDArray[np.intp]
    chances: NDArray[np.float64]
    value: float
    risk: float


@dataclass(eq=False)
class Case:
    """The policies that take given actions in some histories; `upper` bounds what they earn.

    `price` is the price to work at, None if the bound can't get any lower. `lines` has the exact
    value and the risk of the best policy, and the risk of it below each open history, by price.
    """

    choices: Mapping[History, int]
    upper: float
    price: float | None
    ends: dict[float, Ends] = field(default_factory=dict)
    lines: dict[float, tuple[float, float, NDArray[np.float64]]] = field(default_factory=dict)


class OutOfMemoryError(Exception):
    """There is no room for more histories."""


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
        device: str = "cpu",
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
        self._kernels, self._hurried, self._device = value_bounds, hurried, device
        self._shows: dict[float, Callable[[NDArray[Any]], None]] = {}  # tables of a GPU, by price
        self._risks: dict[tuple[float, int], float] = {}  # of best policies, by price and history
        self._trees: dict[float, Any] = {}  # of `value_bounds.Bounds`, by price
        self.full = False
        self.rewards: list[float] = []
        self._cases: list[Case] = []
        self.upper = math.inf
        self.work: list[tuple[float, int]] = []
        self._tabulate(None)

    def improve(self, price: float, histories: int) -> None:
        """Open this many histories, given the price that decides now, and lower `upper`."""
        self.work.append((price, histories))
        end = self.opened + histories
        if not self._cases:
            self._cases.append(Case({}, math.inf, price))
        first = self._cases[0]
        if not (first.lines or first.choices or first.price is None) and _is_far(
            price, first.price
        ):
            first.price = price
        # The bound may have no value at rewards beyond all policies.
        with suppress(BoundError, OutOfMemoryError):
            while self.opened < end and not self.full and not self._hurried():
                case = max(self._cases, key=lambda case: case.upper)
                if case.price is None or case.upper == -math.inf:
                    break
                self._work_on(case, case.price, end - self.opened)
                self.upper = min(self.upper, max(case.upper for case in self._cases))

    def _work_on(self, case: Case, price: float, histories: int) -> None:
        """Lower the bound of a case: open histories, or try another price, or split the case."""
        ends = self._find_ends(case, price)
        promises = ends.chances * self._tree_of(price).nodes["promise"][ends.nodes]
        place = int(np.argmax(promises)) if len(promises) else 0
        if len(promises) and promises[place] > 0.0:
            node, level = int(ends.nodes[place]), len(ends.histories[place]) // 2
            self._tighten(price, node, level, min(histories, HISTORIES_AT_ONCE))
        self._renew(case, price)
        if not (self._tree_of(price).nodes["promise"][ends.nodes] > 0.0).any():
            case.lines[price] = self._find_line(case, price)
            case.price = self._choose_price(case)
            if case.price is None:
                self._split(case)

    def _renew(self, case: Case, price: float) -> None:
        """Lower the bound of a case to what the tree of a price says."""
        value = self._value_of(case, price)
        case.upper = min(case.upper, self._limit(value, price))

    def _value_of(self, case: Case, price: float) -> float:
        """Return the current upper bound on V_k of a case."""
        ends, tree = self._find_ends(case, price), self._tree_of(price)
        bounds = tree.nodes["upper"][ends.nodes]
        return ends.value + float(ends.chances @ bounds) + self._find_margin(price)

    def _limit(self, value: float, price: float) -> float:
        """Return the largest acceptable reward of policies up to a value."""
        if value == math.inf:
            return math.inf
        # A risk is at most 1, so no reward is above V_k + k.
        most = value + price
        limit = limit_reward(self.problem.risk_bound, (1.0, price), value, -math.inf, most)[0]
        places = [*self.rewards, most, *([limit] if limit > -math.inf else [])]
        self.rewards = [min(places), max(places)]
        return limit

    def _find_ends(self, case: Case, price: float) -> Ends:
        """Return the open histories of a case in the tree of a price."""
        if price in case.ends:
            return case.ends[price]
        found: list[tuple[History, int, float]] = []
        value = risk = 0.0
        waiting: list[tuple[History, int, float]] = [((), 0, 1.0)]
        while waiting:
            history, node, chance = waiting.pop()
            if history not in case.choices:
                found.append((history, node, chance))
                continue
            level, k = len(history) // 2, case.choices[history]
            first, row = self._reach(price, node, level, k)
            action = self.graph.actions.array[row]
            value += chance * float(self.reader.weights[level] * action["expected_reward"])
            risk += chance * float(action["immediate_risk"])
            for outcome in range(int(action["safe_count"])):
                place = int(action["first_outcome"]) + outcome
                likely = chance * float(self.graph.outcomes.array["probability"][place])
                waiting.append(((*history, k, outcome), first + outcome, likely))
        histories = [history for history, _, _ in found]
        nodes = np.array([node for _, node, _ in found], np.intp)
        chances = np.array([chance for _, _, chance in found])
        case.ends[price] = Ends(histories, nodes, chances, value - price * risk, risk)
        return case.ends[price]

    def _reach(self, price: float, node: int, level: int, k: int) -> tuple[int, int]:
        """Return the first history after an action, stored if it was not, and the action's row."""
        if self._tree_of(price).nodes["first_edge"][node] == NONE:
            self._tighten(price, node, level, 1)
        wants = codes.NEEDS_ROOM
        while wants != codes.KNOWN:
            tree = self._tree_of(price)
            self._show(price)
            wants = int(self._kernels.reach_children(self.arrays(), tree, node, level, k))
            if wants != codes.KNOWN and not self._answer(price, wants):
                raise OutOfMemoryError
        tree = self._tree_of(price)
        edge = int(tree.nodes["first_edge"][node]) + k
        state = self.graph.states.array[int(tree.nodes["state"][node])]
        return int(tree.edges["first_child"][edge]), int(state["first_action"]) + k

    def _find_line(self, case: Case, price: float) -> tuple[float, float, NDArray[np.float64]]:
        """Return the value and the risk of the best policy of a case, and the risks of its parts.

        A little more of the price lowers the value of the same policy in proportion to its risk.
        """
        ends, tree = self._find_ends(case, price), self._tree_of(price)
        visits = np.zeros(self.reader.levels * self._find_widest() + 1, self._kernels.VISIT)
        more = STEP * price or STEP * float(tree.progress["largest"][0]) or STEP
        risks = np.zeros(len(ends.nodes))
        for place, node in enumerate(ends.nodes.tolist()):
            if (price, node) not in self._risks:
                self._begin(price, node, len(ends.histories[place]) // 2)
                other = self._kernels.find_value(self.arrays(), tree, visits, price + more)
                self._risks[price, node] = (float(tree.nodes["upper"][node]) - other) / more
            risks[place] = self._risks[price, node]
        return self._value_of(case, price), ends.risk + float(ends.chances @ risks), risks

    def _choose_price(self, case: Case) -> float | None:
        """Return the next price of a case; None if no price can lower its bound by much."""
        if case.upper == -math.inf or len(case.lines) >= MOST_PRICES:
            return None
        allowed, least_gain = self.problem.risk_bound(case.upper), SETTLED * abs(case.upper)
        low, high = self._find_bracket(case, allowed)
        if high is None:
            assert low is not None
            price = low * NEXT**2 ** (len(case.lines) - 1) or STEP
        elif low is None:
            if high * (allowed - case.lines[high][1]) <= least_gain:
                return None
            price = high / NEXT**2 ** (len(case.lines) - 1)
        else:
            (value, risk, _), (other, less, _) = case.lines[low], case.lines[high]
            if low >= high or risk <= less:
                return None
            price = (value + low * risk - other - high * less) / (risk - less)
            if not low < price < high:
                return None
            if case.upper - self._limit(value - (price - low) * risk, price) <= least_gain:
                return None
        near = [k for k in self._trees if not _is_far(price, k, CLOSEST) and k not in case.lines]
        return min(near, key=lambda k: abs(k - price), default=price)

    def _find_bracket(self, case: Case, allowed: float) -> tuple[float | None, float | None]:
        """Return the largest price of too much risk, and the smallest of no more than allowed."""
        risks = {price: risk for price, (_, risk, _) in case.lines.items()}
        low = max((price for price, risk in risks.items() if risk > allowed), default=None)
        high = min((price for price, risk in risks.items() if risk <= allowed), default=None)
        return low, high

    def _split(self, case: Case) -> None:
        """Replace a case by one for each action of an open history, if there is one to split."""
        if case.upper == -math.inf:
            return
        bracket = self._find_bracket(case, self.problem.risk_bound(case.upper))
        prices = [price for price in bracket if price is not None]
        ends = case.ends[prices[0]]
        weights = np.ones(len(ends.nodes))
        if len(prices) == 2:
            risks, less = (case.lines[price][2] for price in prices)
            weights = np.abs(risks - less)
        tree = self._tree_of(prices[0])
        best, chosen = -1.0, NONE
        for place, node in enumerate(ends.nodes.tolist()):
            levels = self.reader.levels - len(ends.histories[place]) // 2 - 1
            worth = float(ends.chances[place] * weights[place])
            if (
                tree.nodes["first_edge"][node] != NONE
                and worth > best
                and levels > max(0, int(self.graph.source["last_steps"][0]))
            ):
                best, chosen = worth, place
        if chosen == NONE:
            return
        state = int(tree.nodes["state"][int(ends.nodes[chosen])])
        self._cases.remove(case)
        for k in range(int(self.graph.states.array["action_count"][state])):
            choices = {**case.choices, ends.histories[chosen]: k}
            part = Case(choices, case.upper, prices[0])
            uppers = {}
            for price in prices:
                self._renew(part, price)
                uppers[price] = self._limit(self._value_of(part, price), price)
            part.price = min(uppers, key=lambda price: uppers[price])
            self._cases.append(part)

    def advance(self, price: float, histories: int | None = None) -> float:
        """Open at most this many histories to tighten the bound on V_k, k >= 0, and return it."""
        with suppress(OutOfMemoryError):
            self._tighten(price, 0, 0, math.inf if histories is None else histories)
        return self.bound_value(price)

    def _begin(self, price: float, node: int, level: int) -> Any:
        """Let kernels begin at a history."""
        progress = self._tree_of(price).progress[0]
        self._show(price)
        progress["start"], progress["start_level"] = node, level
        return progress

    def _tighten(self, price: float, node: int, level: int, histories: float) -> None:
        """Open at most this many histories from one on."""
        progress = self._begin(price, node, level)
        end = int(progress["opened"]) + histories
        while self._tree_of(price).nodes["promise"][node] > 0.0 and progress["opened"] < end:
            if self._hurried():
                break
            progress["pause"] = min(end, int(progress["opened"]) + HISTORIES_AT_ONCE)
            wants = int(self._kernels.tighten(self.arrays(), self._tree_of(price)))
            if not self._answer(price, wants):
                self.full = True
                raise OutOfMemoryError

    def bound_value(self, price: float) -> float:
        """Return the current upper bound on V_k."""
        return float(self._tree_of(price).nodes["upper"][0]) + self._find_margin(price)

    def _find_margin(self, price: float) -> float:
        """Return what rounding may have taken from a bound."""
        levels, largest = self.reader.levels, float(self._tree_of(price).progress["largest"][0])
        least = np.finfo(float).eps * (largest + price)
        return float(levels**2 * (self._find_widest() + 3) * least)

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
        return min(self._limit(value, price) for price, value in values.items())

    @property
    def capacity(self) -> int:
        """Bytes of trees and graph."""
        trees = sum(tree.nodes.nbytes + tree.edges.nbytes for tree in self._trees.values())
        return int(trees) + self.graph.capacity

    memory = capacity

    @property
    def opened(self) -> int:
        """Histories opened so far, for all prices; a table of a GPU counts as many."""
        tables = WORK_OF_TABLE * len(self._shows)
        return tables + sum(int(tree.progress["opened"][0]) for tree in self._trees.values())

    def _show(self, price: float) -> None:
        """Let the model find the values of a GPU for a price, if there are any."""
        if price in self._shows:
            assert isinstance(self.graph, CompiledGraph)
            self._shows[price](self.graph.parameters)

    def _tabulate(self, price: float | None) -> None:
        """Have the values for a price computed on the GPU, if the model can; load it for None."""
        if self._device == "cpu" or not isinstance(self.graph, CompiledGraph):
            return
        if self.graph.compiled.tabulate is not None:
            show = self.graph.compiled.tabulate(open_arrays(), price)
            if show is not None and price is not None:
                self._shows[price] = show

    def _tree_of(self, price: float) -> Any:
        """Return the histories that were opened for a price."""
        if price not in self._trees:
            self._tabulate(price)
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
