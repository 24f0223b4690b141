"""The search tree for several prices of failure: its arrays, its upper nodes, and its subtrees.

Each history has a value for each price (`vulcan.kernels.price_tree`). Histories near the root with
many samples below them are *upper nodes*: they form the upper tree, which distributes samples. The
history after an outcome that leaves the upper tree is the root of a *subtree*. Subtrees share
nothing: no values, no random numbers, no record of returns. So they can be sampled in any order, at
the same time, and anywhere, and values and policies are the same. Subtrees are numbered in the
order in which the upper tree reached them.

Values are stored in single precision, which ends at 3e38. A price is at most a million times the
size of rewards (`vulcan.sampling.price_search`), and a stored value is at most a reward and a price
together. So rewards, and their sums, may be up to `LARGEST`; larger ones are refused. Other solvers
compute in double precision and accept every reward that a model may pay.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import OptionError
from vulcan.exact.acceptance import Extremes, find_extremes
from vulcan.graph.states import StateGraph
from vulcan.kernels import codes
from vulcan.model.reader import ModelReader
from vulcan.numerics import NONE
from vulcan.problem import Problem
from vulcan.runtime.arrays import set_apart
from vulcan.sampling.kernel_run import KernelRun
from vulcan.solvers.local_tests import LocalConstraint

MIX: Final = np.uint64(0x9E3779B97F4A7C15)

SPACE: Final = 2  # times the memory limit: rows that may be reserved, filled or not
LARGEST: Final = 1e22  # the largest size of rewards, and of their sums


class PrecisionError(OptionError):
    """Rewards are too large for single precision."""


def require_size(*rewards: Any) -> None:
    """Raise `PrecisionError` unless all rewards, numbers or arrays, are small enough."""
    for reward in rewards:
        most = float(np.max(np.abs(reward), initial=0.0))
        if not most <= LARGEST:
            met = f"{most:g}" if math.isfinite(most) else "more than that"
            raise PrecisionError(
                f"Vulcan searches in single precision, with rewards and sums of them of at most "
                f"{LARGEST:g}; this model has {met}. Write rewards in a larger unit, or choose "
                "another solver, such as Pareto"
            )


def make_returns(levels: int) -> NDArray[Any]:
    """Return an empty record of returns, one row per level."""
    from vulcan.kernels.paper_tree import RETURNS

    returns = set_apart(levels, RETURNS)
    returns["least"], returns["most"] = math.inf, -math.inf
    return returns


@dataclass(eq=False)
class Subtree:
    """A subtree, and the state of sampling in it."""

    number: int  # from 1 on
    action: int  # the number of the action that leads to its root
    earned: float = 0.0  # between the first outcome and its root
    inherited: NDArray[Any] | None = None  # the returns of the subtree that it was split from
    # None before the first sample:
    returns: Any = None  # what samples collected, level by level
    path: Any = None  # the history of the current sample
    control: Any = None  # one record; see `vulcan.kernels.price_tree`
    orders: Any = None  # the samples to take

    def begin(self, root: int, level: int, levels: int, seed: int, exploration: float) -> None:
        """Make the arrays, given the root and its level."""
        from vulcan.kernels.paper_tree import STEP
        from vulcan.kernels.price_tree import CONTROL

        self.returns, self.path = make_returns(levels), set_apart(levels + 1, STEP)
        if self.inherited is not None:
            self.returns[:] = self.inherited
            known = self.returns["samples"] > 0  # the average counts as one sample
            self.returns["total"][known] /= self.returns["samples"][known]
            self.returns["samples"] = known
        self.control = control = set_apart(1, CONTROL)
        control["root"], control["begin"], control["number"] = root, level, self.action
        control["exploration"] = exploration
        with np.errstate(over="ignore"):
            control["random"] = (np.uint64(seed) + np.uint64(self.number)) * MIX

    def order(self, orders: NDArray[Any]) -> Subtree:
        """Set the samples to take next, and return the subtree."""
        self.orders = orders
        self.control["done"] = self.control["depth"] = 0
        return self

    def sample(self, problem: Any, tree: Any) -> int:
        """Take samples until all are taken, or the kernel needs something; return its code."""
        from vulcan.kernels.price_tree import sample

        return int(sample(problem, tree, self.returns, self.path, self.orders, self.control))


class PriceArrays(KernelRun):
    """The arrays of a tree with several prices; see `vulcan.kernels.price_tree`.

    `upper_nodes` are the upper nodes but for the root, in the order in which they were added, and
    `judged` is the constrained value of each first action.
    """

    GROWING: ClassVar = {"nodes": ("nodes", "node_values"), "edges": ("edges", "edge_values")}

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        memory: int | None,
        known: StateGraph | None,
        seed: int,
        exploration: float,
    ) -> None:
        from vulcan.kernels import price_tree as kernels

        super().__init__(problem, reader, LocalConstraint(), known, memory)
        self._kernels = kernels
        self._seed, self._exploration = seed, exploration
        self.nodes = np.zeros(64, kernels.NODE)
        self.edges: NDArray[Any] = np.zeros(256, kernels.EDGE)
        self.node_values = np.zeros((64, kernels.PRICES), np.float32)
        self.edge_values = np.zeros((256, kernels.PRICES), np.float32)
        self.prices = np.zeros((1, kernels.PRICES), np.float32)
        self.sizes = np.zeros(1, kernels.SIZE)
        self.sizes["nodes"] = 1
        root = self.nodes[0]
        root["first_edge"] = root["plan"] = root["price_index"] = NONE
        self.judged = np.zeros(0, kernels.JUDGED)
        self.upper_nodes = np.zeros(0, np.int32)
        self._subtrees: dict[int, Subtree] = {}  # by their roots
        self._retired: dict[int, NDArray[Any]] = {}  # returns of subtrees that were split
        self._marked = np.zeros(0, np.int64)  # nodes with the marks of a plan

    def tree(self) -> Any:
        """Return the current arrays of the tree."""
        values = (self.node_values, self.edge_values, self.prices, self.sizes)
        return self._kernels.PriceTree(self.nodes, self.edges, *values)

    def find_extremes(self) -> Extremes:
        """Return the maxima over the actions evaluated so far."""
        return find_extremes(self.graph)

    def _move_values(self, left: NDArray[np.intp], share: NDArray[np.float32]) -> None:
        """Interpolate values at the leaves for other prices, and back up, the deepest first."""
        levels = self.nodes["level"][: int(self.sizes["nodes"][0])]
        small = np.min_scalar_type(self.reader.levels)  # small integers have a radix sort
        order = np.argsort((self.reader.levels - levels).astype(small), kind="stable")
        for nodes in np.split(order, np.cumsum(np.bincount(levels)[::-1])[:-1]):
            self._kernels.move_values(self.tree(), nodes, left, share)

    def list_children(self, node: int) -> list[int]:
        """Return the nodes after a node, by action and outcome."""
        first, count = (int(self.nodes[name][node]) for name in ("first_edge", "edge_count"))
        return [
            child
            for edge in self.edges[first : first + count]
            if edge["first_child"] != NONE
            for child in range(edge["first_child"], edge["first_child"] + edge["children"])
        ]

    def sample_subtree(self, subtree: Subtree, most: float) -> bool:
        """Take the samples that a subtree was ordered; False if memory is short."""
        if self.memory > most:
            return False
        while (wants := subtree.sample(self.arrays(), self.tree())) != codes.DONE:
            node = subtree.path["node"][subtree.control["depth"][0]]
            # Rows count when they are filled, so that a resumed search runs out at the same sample.
            room = most if wants == codes.NEEDS_STATE else SPACE * self.limit
            if not self.satisfy(wants, int(self.nodes["state"][node]), room):
                return False
        return True

    def open_actions(self, node: int) -> None:
        """Add all actions of a history, and their outcomes."""
        state = int(self.nodes["state"][node])
        while (
            wants := self._kernels.open_upper_node(self.arrays(), self.tree(), node)
        ) != codes.DONE:
            if not self.satisfy(wants, state, math.inf):
                self._expand([state])  # even beyond the limit: no sample works without it

    def follow(self, actions: list[tuple[int, int]], price_indices: list[tuple[int, int]]) -> None:
        """Mark a plan in the tree, instead of the plan before.

        Nodes come with the positions of the actions that they take, and nodes below these with the
        prices that they follow.
        """
        before = self._marked
        self.nodes["plan"][before] = self.nodes["price_index"][before] = NONE
        for name, marks in (("plan", actions), ("price_index", price_indices)):
            for node, mark in marks:
                self.nodes[name][node] = mark
        self._marked = np.array([node for node, _ in [*actions, *price_indices]], np.int64)

    def merge_returns(self) -> NDArray[Any]:
        """Return what samples of all subtrees collected, level by level."""
        sampled = sorted(self.list_sampled().values(), key=lambda subtree: subtree.number)
        return self._merge([subtree.returns for subtree in sampled])

    def list_sampled(self) -> dict[int, Subtree]:
        """Return the subtrees that were sampled here and not split, by their roots."""
        return {
            root: subtree
            for root, subtree in self._subtrees.items()
            if subtree.returns is not None and root not in self._retired
        }

    def _merge(self, records: Iterable[NDArray[Any]]) -> NDArray[Any]:
        """Return the sum of some returns, and of those of subtrees that were split."""
        merged = make_returns(self.reader.levels)
        for returns in (*self._retired.values(), *records):
            merged["least"] = np.minimum(merged["least"], returns["least"])
            merged["most"] = np.maximum(merged["most"], returns["most"])
            for name in ("total", "samples"):
                merged[name] += returns[name]
            merged["endings"] |= returns["endings"]
        return merged

    def add_upper_node(
        self, node: int, inherited: NDArray[Any] | None, first: int | None = None
    ) -> None:
        """Add a history, all of whose actions are open, to the upper tree: subtrees begin below it.

        The subtree with this root ends, and those below begin with the average of its returns,
        `inherited`; it is None for the root of the tree. Their numbers begin with `first`, by
        default the next one.
        """
        earned = 0.0
        if inherited is not None:
            earned = self._subtrees[node].earned
            self.upper_nodes = np.append(self.upper_nodes, np.int32(node))
            self._retired[node] = inherited
        state = self.graph.states.array[self.nodes["state"][node]]
        begin, count = int(self.nodes["first_edge"][node]), int(state["action_count"])
        actions = self.graph.actions.array[state["first_action"] :][:count]
        require_size(actions["expected_reward"])
        number = len(self._subtrees) + 1 if first is None else first
        for action, edge in zip(actions["number"].tolist(), self.edges[begin:], strict=False):
            if edge["first_child"] == NONE:
                continue
            for child in range(edge["first_child"], edge["first_child"] + edge["children"]):
                more = 0.0 if inherited is None else float(self.nodes["reward"][child])
                self._subtrees[child] = Subtree(number, action, earned + more, inherited)
                number += 1

    def _find_subtree(self, root: int) -> Subtree:
        """Return a subtree that can be sampled."""
        subtree = self._subtrees[root]
        if subtree.returns is None:
            level, levels = int(self.nodes["level"][root]), self.reader.levels
            subtree.begin(root, level, levels, self._seed, self._exploration)
        return subtree

    def is_subtree(self, node: int) -> bool:
        """Whether a node is the root of a subtree."""
        return node in self._subtrees and node not in self._retired
