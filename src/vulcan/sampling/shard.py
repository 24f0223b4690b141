"""Shards: subtrees of a distributed tree, and the host that holds those of one worker.

All shards of a host are in one tree, whose node 0 is not used: each has a root of its own, with the
state that the coordinator sent. Nodes are numbered as the host adds them. A host does only what it
is called to do, and shards share nothing, so that it does not matter which of them are together.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.exact.acceptance import Extremes, find_extremes
from vulcan.graph.compiled import CompiledGraph
from vulcan.graph.states import ACTION
from vulcan.kernels.price_tree import ORDER, PRICES
from vulcan.model.reader import ModelReader
from vulcan.numerics import NONE
from vulcan.parallel.executors import Channel
from vulcan.problem import Problem
from vulcan.runtime.memory import find_default_memory
from vulcan.sampling.candidate import Candidate
from vulcan.sampling.completion import HistoryCompletion, Points, UpperTree, grow_upper_tree
from vulcan.sampling.price_search import warm_up
from vulcan.sampling.tree import PriceArrays, Subtree

Marks = tuple[list[tuple[int, int]], list[tuple[int, int]]]
"""The marks of a plan in a shard; see `PriceArrays.follow`."""

AMPLE: Final = 2
"""A shard grows this many times as many upper nodes as are needed in all, for equal reaches."""

SHARD_REPORT: Final = np.dtype(
    [
        ("number", "i8"),
        ("visits", "i4"),
        ("solved", "i2"),
        ("ended", "i2"),  # its first state has no actions
        ("values", "f4", (PRICES,)),
        ("samples", "i8"),
        ("least", "f8"),  # of the returns of samples from its root on
        ("most", "f8"),
    ],
    align=True,
)
"""What the upper tree must know of a shard after it was sampled."""


TOTALS: Final = np.dtype(
    [
        ("histories", "i8"),  # nodes of all shards
        ("memory", "i8"),  # bytes
        ("evaluations", "i8"),  # of the model
        ("full", "i8"),  # whether memory has run out
    ],
    align=True,
)

Report = tuple[NDArray[Any], Any]
"""What a host answers: a `SHARD_REPORT` of each shard that was called, and its `TOTALS`."""


class ShardHost(PriceArrays):
    """The shards of one worker.

    The first argument of most methods has something for each shard that is called, by its number. A
    node of a shard is its number in the tree of the host, or 0 for the root.
    """

    def __init__(self, channel: Channel, problem: Problem, seed: int, exploration: float) -> None:
        super().__init__(problem, ModelReader(problem.model), None, None, seed, exploration)
        assert isinstance(self.graph, CompiledGraph)
        self._shards: dict[int, int] = {}  # their roots, by their numbers
        self._most = float(find_default_memory())
        self._full = False

    def prepare(self) -> tuple[str, int]:
        """Load the kernels; return the machine and the bytes that searches may take on it."""
        warm_up()
        return socket.gethostname(), find_default_memory()

    def set_limit(self, most: float) -> None:
        """Set how many bytes all shards may take."""
        self._most = most

    def create(self, begun: Mapping[int, tuple[Subtree, int, Any]], prices: Any) -> None:
        """Create shards without samples, given the levels of their roots and the states there."""
        assert isinstance(self.graph, CompiledGraph)
        self.prices[:] = prices
        for number, (subtree, level, state) in begun.items():
            root = int(self.sizes["nodes"][0])
            if root == len(self.nodes):
                self.grow(float("inf"))
            self.nodes[root] = np.zeros((), self.nodes.dtype)
            node = self.nodes[root]
            node["first_edge"] = node["plan"] = node["price_index"] = NONE
            node["state"], node["level"] = self.graph.add_state(state), level
            self.node_values[root] = 0.0
            self.sizes["nodes"] += 1
            self._shards[number], self._subtrees[root] = root, replace(subtree)

    def sample(self, orders: Mapping[int, NDArray[Any]]) -> Report:
        """Take the ordered samples, one shard after the other."""
        for number, some in orders.items():
            subtree = self._find_subtree(self._shards[number]).order(some.astype(ORDER))
            if not self.sample_subtree(subtree, self._most):
                self._full = True
                break
        return self._report(orders)

    def move(
        self,
        numbers: Iterable[int],
        prices: Any,
        left: NDArray[np.intp],
        share: NDArray[np.float32],
    ) -> Report:
        """Move all shards to other prices; see `PriceRun.move_prices`."""
        self.prices[:] = prices
        for histories in self.list_levels():
            self._kernels.move_values(self.tree(), histories, left, share)
        return self._report(numbers)

    def mark(self, marks: Mapping[int, Marks]) -> None:
        """Mark a plan in all shards, instead of the one before."""
        located: Marks = ([], [])
        for number, some in marks.items():
            for kind, pairs in enumerate(some):
                located[kind].extend((self._locate(number, node), mark) for node, mark in pairs)
        self.follow(*located)

    def split(self, firsts: Mapping[int, int]) -> tuple[NDArray[Any], tuple[int, int], Report]:
        """Split a shard: its root becomes an upper node, and new shards begin below.

        Given the number of the first shard below, it returns the returns of the samples, the marks
        of the root, and a report of the shards below that have samples.
        """
        [(number, first)] = firsts.items()
        root = self._shards.pop(number)
        self.open_actions(root)
        returns = self._find_subtree(root).returns
        self.add_upper_node(root, returns, first)
        children = dict(enumerate(self.list_children(root), first))
        sampled = {below: child for below, child in children.items() if self.nodes["visits"][child]}
        self._shards |= sampled
        marks = int(self.nodes["plan"][root]), int(self.nodes["price_index"][root])
        return returns, marks, self._report(sampled)

    def show(
        self, reaches: Mapping[int, float], most: int, closeness: float
    ) -> dict[int, UpperTree]:
        """Return the upper trees of shards, given their reach.

        Of all of them, only the most probable nodes are expanded, which add so many nodes.
        """
        grown = {
            number: grow_upper_tree(self, AMPLE * most, closeness, self._shards[number], reach)
            for number, reach in reaches.items()
        }
        reach, added = map(np.concatenate, zip(*map(_list_expansions, grown.values()), strict=True))
        order = np.argsort(-reach, kind="stable")
        enough = np.flatnonzero(np.cumsum(added[order]) >= most)
        least = float(reach[order[enough[0]]]) if len(enough) else 0.0
        return {number: _shorten(upper, least) for number, upper in grown.items()}

    def find_extremes(self, numbers: Iterable[int]) -> Extremes:
        """Return the largest numbers of the actions in shards."""
        return find_extremes(self.graph)

    def collect(self, numbers: Iterable[int]) -> dict[int, NDArray[Any]]:
        """Return the returns of the shards that were sampled."""
        returns = {number: self._subtrees[self._shards[number]].returns for number in numbers}
        return {number: some for number, some in returns.items() if some is not None}

    def evaluate(
        self, nodes: Mapping[int, Sequence[int]], returns: Any
    ) -> list[tuple[tuple[int, int], Points, int]]:
        """Return the rewards and risks of all prices from nodes on, and the work of each."""
        completion, found = HistoryCompletion(self, returns), []
        for number, some in nodes.items():
            for node in some:
                before = completion.work
                [points] = completion.evaluate([self._locate(number, node)], lambda: True)
                found.append(((number, node), points, completion.work - before))
        return found

    def write(self, prices: Mapping[int, int], returns: Any) -> dict[int, Candidate]:
        """Return the policy of the marked plan in shards, given the prices that they follow.

        A price is NONE where it is marked in the shard; the returns are those of all shards.
        """
        written = {}
        for number, price_index in prices.items():
            completion = HistoryCompletion(self, returns)
            candidate = completion.write(price_index, self._shards[number])
            assert candidate is not None
            answers = self.graph.actions.array[candidate.rows].astype(ACTION)
            answers["first_outcome"] = NONE  # rows of outcomes stay here
            written[number] = replace(candidate, answers=answers)
        return written

    def _locate(self, number: int, node: int) -> int:
        return node or self._shards[number]

    def _report(self, numbers: Iterable[int]) -> Report:
        named = list(numbers)
        roots = np.array([self._shards[number] for number in named], np.intp)
        nodes, report = self.nodes[roots], np.zeros(len(roots), SHARD_REPORT)
        report["number"], report["values"] = named, self.node_values[roots]
        report["visits"], report["solved"] = nodes["visits"], nodes["solved"]
        report["ended"] = self.graph.states.array["action_count"][nodes["state"]] == 0
        for k, root in enumerate(roots.tolist()):
            returns = self._subtrees[root].returns
            if returns is not None:
                for name in ("samples", "least", "most"):
                    report[name][k] = returns[name][nodes["level"][k]]
        totals = np.zeros((), TOTALS)
        totals["histories"], totals["memory"] = self.histories, self.capacity
        totals["evaluations"], totals["full"] = self.graph.evaluations, self._full
        return report, totals


def _list_expansions(upper: UpperTree) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the reach of expanded nodes, and how many nodes each adds."""
    expanded = np.flatnonzero(upper.nodes["edge_count"] > 0)
    arrivals = (upper.targets["node"] >= 0).astype(np.int64)
    before = np.concatenate([[0], np.cumsum(arrivals)])
    ends = upper.edges["first_target"] + upper.edges["target_count"]
    per_edge = before[ends] - before[upper.edges["first_target"]]
    before = np.concatenate([[0], np.cumsum(per_edge)])
    first = upper.nodes["first_edge"][expanded]
    added = before[first + upper.nodes["edge_count"][expanded]] - before[first]
    return upper.reach[expanded], added


def _shorten(upper: UpperTree, least: float) -> UpperTree:
    """Return an upper tree in which only nodes of at least this reach are expanded."""
    # Nodes are in the order in which they were added, and edges in that of expansions, which is
    # from the most probable node to the least.
    nodes = upper.nodes.copy()
    nodes["edge_count"][upper.reach < least] = 0
    expanded = nodes["edge_count"] > 0
    edges = int((nodes["first_edge"] + nodes["edge_count"])[expanded].max(initial=0))
    ends = upper.edges["first_target"][:edges] + upper.edges["target_count"][:edges]
    targets = int(ends.max(initial=0))
    count = 1 + int(upper.targets["node"][:targets].max(initial=0))
    return UpperTree(
        nodes[:count],
        upper.edges[:edges],
        upper.targets[:targets],
        upper.reach[:count],
        upper.histories[:count],
        upper.visits[:count],
        upper.action_counts[:count],
        upper.values[:count],
    )
