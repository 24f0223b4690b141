"""The arrays of a tree with several prices, and how they grow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.problem import Problem
from vulcan.graphs.rows import LARGE_GROWTH, find_growth
from vulcan.graphs.state_graph import StateGraph
from vulcan.kernels import codes
from vulcan.model.reader import ModelReader
from vulcan.runtime.packing import pack_array, unpack_array
from vulcan.runtime.reservation import lengthen
from vulcan.sentinels import NONE
from vulcan.solvers.constraints import NoConstraint
from vulcan.solvers.knowledge import Knowledge
from vulcan.solvers.tree.kernel_run import CappedRun
from vulcan.solvers.tree.parts import Origin, Part, make_part, make_returns
from vulcan.solvers.tree.precision import require_size

__all__ = ["PriceArrays"]

GROWING: Final = {"nodes": ("nodes", "node_values"), "edges": ("edges", "edge_values")}
"""The arrays of the tree that grow, by what they are filled with."""

NOWHERE: Final = (math.inf, -math.inf)
"""Between which rewards lie as long as there are none."""

FIRST_GUIDE: Final = 256
"""Samples before the first plan that guides others."""


class PriceArrays(CappedRun):
    """What a search with several prices knows.

    Parameters
    ----------
    problem, reader
        What is searched.
    memory
        Bytes that tree and graph may take.
    known
        What is known of the model already.
    seed, exploration
        How to sample.
    knowledge
        What another search of the same problem found, to go on with.

    Attributes
    ----------
    inherited
        How many samples that was.
    nodes, edges, node_values, edge_values, prices, sizes
        The tree; see `vulcan.kernels.price_tree`.
    tops
        The nodes of the top but for the root, in the order in which they came there.
    judged
        What can be hoped for from each first action; see `vulcan.kernels.price_root`.
    full
        Whether memory has run out.
    accepted
        The rewards of plans that the bound accepted.
    """

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        memory: int | None,
        known: StateGraph | None,
        seed: int,
        exploration: float,
        knowledge: Knowledge | None = None,
    ) -> None:
        from vulcan.kernels import price_root, price_search, price_tree
        from vulcan.kernels.compilation import announce_compilation

        super().__init__(problem, reader, NoConstraint(), memory, known)
        announce_compilation(price_search.sample)
        self._root_kernels, self._search, self._kernels = price_root, price_search, price_tree
        self._seed, self._exploration = seed, exploration
        self._begin()
        if knowledge is not None:
            self._take_over(knowledge)

    def _begin(self) -> None:
        """Make the arrays of a tree that has a root, and no more."""
        price_root, price_search, price_tree = self._root_kernels, self._search, self._kernels
        width = price_tree.PRICES
        self.nodes: NDArray[Any] = np.zeros(64, price_tree.NODE)
        self.edges: NDArray[Any] = np.zeros(256, price_tree.EDGE)
        self.node_values = np.zeros((64, width), np.float32)
        self.edge_values = np.zeros((256, width), np.float32)
        self.prices = np.zeros((1, width), np.float32)
        self.sizes: NDArray[Any] = np.zeros(1, price_tree.SIZE)
        self._draws = np.zeros(1, price_root.DRAWS)
        self._draws["random"] = np.uint64(self._seed)
        self._draws["exploration"] = self._exploration
        self.judged = np.zeros(0, price_root.JUDGED)
        self._orders = np.zeros(0, price_search.ORDER)  # of the present batch, to be carried out
        self._roots = np.zeros(0, np.int32)
        self.tops = np.zeros(0, np.int32)
        self._retired: dict[int, NDArray[Any]] = {}
        self._origins: dict[int, Origin] = {}
        self._parts: dict[int, Part] = {}
        self._samples = 0
        self._next_guide = FIRST_GUIDE
        self._span = self._bounded = NOWHERE
        self._known_bound: Any = None
        self.sizes["nodes"] = 1
        root = self.nodes[0]
        root["first_edge"] = root["plan"] = root["lane"] = NONE
        self.full = False
        self.accepted: set[float] = set()
        self._marked = np.zeros(0, np.int64)
        self.inherited = 0

    def _take_over(self, knowledge: Knowledge) -> None:
        """Begin with what another search knew of the same problem."""
        self.graph, tree = knowledge.graph, knowledge.tree
        if tree is None:
            return
        self._take_tree(tree)
        self.inherited = self._samples = self._next_guide = int(self.nodes["visits"][0])
        later = self.node_values[(self.nodes["level"] == 1) & (self.nodes["visits"] > 0), 0]
        if len(later):
            # What samples collected is not known any more: values of the least price come close.
            self._span = float(later.min()), float(later.max())

    def _take_tree(self, tree: Any) -> None:
        """Take over the arrays of another tree."""
        for name in ("prices", "sizes"):
            setattr(self, name, getattr(tree, name))
        for kind, names in GROWING.items():
            filled = int(tree.sizes[kind][0])
            for name in names:  # no shorter than at first: what is empty does not grow
                length = max(filled, len(getattr(self, name)))
                setattr(self, name, lengthen(getattr(tree, name), filled, length))

    @property
    def samples(self) -> int:
        """Samples taken so far."""
        return self._samples

    @property
    def histories(self) -> int:
        """Histories in the tree."""
        return int(self.sizes["nodes"][0])

    @property
    def solved(self) -> bool:
        """Whether all that can follow was sampled."""
        return bool(self.nodes["solved"][0])

    @property
    def memory(self) -> int:
        """Bytes of tree and graph, as far as they are filled."""
        tree = sum(
            int(self.sizes[kind][0]) * getattr(self, name)[0].nbytes
            for kind, names in GROWING.items()
            for name in names
        )
        return int(tree) + self.graph.memory

    @property
    def capacity(self) -> int:
        """The same with the room that is not filled yet: never more than the limit."""
        tree = sum(getattr(self, name).nbytes for names in GROWING.values() for name in names)
        return int(tree) + self.graph.capacity

    @property
    def limit(self) -> int:
        """Bytes that tree and graph may take."""
        return self._memory

    def tree(self) -> Any:
        """Return the arrays of the tree as they are now."""
        values = (self.node_values, self.edge_values, self.prices, self.sizes)
        return self._kernels.PriceTree(self.nodes, self.edges, *values)

    def filled_tree(self) -> Any:
        """Return the tree as far as it is filled, in arrays of this very search."""
        tree, filled = self.tree(), self.sizes[0]
        nodes, edges = int(filled["nodes"]), int(filled["edges"])
        return tree._replace(
            nodes=tree.nodes[:nodes],
            edges=tree.edges[:edges],
            node_values=tree.node_values[:nodes],
            edge_values=tree.edge_values[:edges],
        )

    def list_levels(self) -> list[NDArray[np.intp]]:
        """Return the nodes of each level, the deepest first."""
        levels = self.nodes["level"][: int(self.sizes["nodes"][0])]
        small = np.min_scalar_type(self.reader.levels)  # which is sorted by its digits
        order = np.argsort((self.reader.levels - levels).astype(small), kind="stable")
        return np.split(order, np.cumsum(np.bincount(levels)[::-1])[:-1])

    def list_children(self, node: int) -> list[int]:
        """Return the nodes after a node, by action and outcome."""
        first, count = (int(self.nodes[name][node]) for name in ("first_edge", "edge_count"))
        return [
            child
            for edge in self.edges[first : first + count]
            if edge["first_child"] != NONE
            for child in range(edge["first_child"], edge["first_child"] + edge["children"])
        ]

    def satisfy(self, wants: int, state: int, most: float) -> bool:
        """Give a kernel what it needs; False if there is no room for it."""
        if wants == codes.NEEDS_STATE:
            return self.ask(state)
        if wants == codes.NEEDS_ROWS:
            return self.make_rows(most - (self.capacity - self.graph.capacity))
        if wants == codes.NEEDS_ROOM:
            return self.grow(most)
        assert wants == codes.BROKEN
        return self.raise_fault()

    def follow(self, actions: list[tuple[int, int]] | None, lanes: list[tuple[int, int]]) -> None:
        """Mark a plan in the tree, instead of the one before.

        Parameters
        ----------
        actions
            Nodes, and the positions of the actions that they take; None for no plan.
        lanes
            Nodes below these, and the prices that they follow.
        """
        before = self._marked
        self.nodes["plan"][before] = self.nodes["lane"][before] = NONE
        for name, marks in (("plan", actions or []), ("lane", lanes)):
            for node, mark in marks:
                self.nodes[name][node] = mark
        self._marked = np.array([node for node, _ in [*(actions or []), *lanes]], np.int64)

    def merge_returns(self) -> NDArray[Any]:
        """Return what samples of all parts collected, level by level."""
        parts = sorted(self._parts, key=lambda root: self._origins[root].number)
        return self._merge([self._parts[root].returns for root in parts])

    def _merge(self, records: Iterable[NDArray[Any]]) -> NDArray[Any]:
        """Return what samples of some parts, and of those that ended, collected."""
        merged = make_returns(self.reader.levels)
        for returns in (*self._retired.values(), *records):
            merged["least"] = np.minimum(merged["least"], returns["least"])
            merged["most"] = np.maximum(merged["most"], returns["most"])
            for name in ("total", "samples"):
                merged[name] += returns[name]
            merged["endings"] |= returns["endings"]
        return merged

    def add_top(self, node: int, inherited: NDArray[Any] | None) -> None:
        """Let a history, all of whose actions are known, belong to the top: parts begin below it.

        The part that began with it ends. Those below begin with what its samples collected, though
        it counts little there.
        """
        earned = 0.0
        if inherited is not None:
            earned = self._origins[node].earned
            self.tops = np.append(self.tops, np.int32(node))
            self._retired[node] = inherited
            self._parts.pop(node, None)
        state = self.graph.states.array[self.nodes["state"][node]]
        first, count = int(self.nodes["first_edge"][node]), int(state["action_count"])
        require_size(self.graph.actions.array["expected_reward"][state["first_action"] :][:count])
        for k in range(count):
            edge = self.edges[first + k]
            if edge["first_child"] == NONE:
                continue
            action = int(self.graph.actions.array["number"][state["first_action"] + k])
            for child in range(edge["first_child"], edge["first_child"] + edge["children"]):
                number, more = len(self._origins) + 1, 0.0
                if inherited is not None:
                    more = float(self.nodes["reward"][child])
                self._origins[child] = Origin(number, action, earned + more, inherited)

    def _find_part(self, root: int) -> Part:
        if root not in self._parts:
            origin, level = self._origins[root], int(self.nodes["level"][root])
            how = (self.reader.levels, self._seed, self._exploration)
            self._parts[root] = make_part(origin, root, level, *how)
        return self._parts[root]

    def grow(self, most: float) -> bool:
        """Lengthen the arrays that are more than half full, to the double if memory allows it."""
        filled = {kind: int(self.sizes[kind][0]) for kind in GROWING}
        short = [k for k in GROWING if 2 * filled[k] >= len(getattr(self, k))] or list(GROWING)
        names = [name for kind in short for name in GROWING[kind]]
        arrays = [getattr(self, name) for name in names]
        share = find_growth(arrays, most - self.capacity, LARGE_GROWTH)
        if not share:
            return False
        for kind in short:
            for name in GROWING[kind]:
                old = getattr(self, name)
                setattr(self, name, lengthen(old, filled[kind], int((1 + share) * len(old))))
        return True

    def pack_tree(self) -> dict[str, bytes]:
        """Return the arrays of the tree that grow, as bytes."""
        tree = self.filled_tree()
        names = [name for names in GROWING.values() for name in names]
        return {name: pack_array(getattr(tree, name)) for name in names}

    def unpack_tree(self, packed: Mapping[str, bytes], wanted: Mapping[str, int]) -> None:
        """Take over the tree of a checkpoint.

        Parameters
        ----------
        packed
            What was packed.
        wanted
            How long arrays were; as long as they are filled if that is not known.
        """
        for kind, names in GROWING.items():
            empty = [getattr(self, name) for name in names]
            filled = len(unpack_array(packed, kind, empty[0]))
            length = self.choose_length(wanted.get(kind, filled), filled, *empty)
            for name, like in zip(names, empty, strict=True):
                array = unpack_array(packed, name, like, filled)
                setattr(self, name, lengthen(array, filled, length))
            self.sizes[kind] = filled
