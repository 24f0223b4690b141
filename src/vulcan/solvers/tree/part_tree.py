"""One part of a tree with several prices, in arrays of its own.

Its first history is node 0, on a level of its own, and its graph begins with that history's state.
So it can be searched wherever the model is, and be sent from there to anywhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.compiled_graph import CompiledGraph
from vulcan.kernels import codes
from vulcan.runtime.packing import pack_array, require, unpack_array
from vulcan.sentinels import NONE
from vulcan.solvers.knowledge import cut_tree
from vulcan.solvers.tree.parts import Job, Origin
from vulcan.solvers.tree.price_arrays import PriceArrays
from vulcan.solvers.tree.soundness import check_price_tree, check_returns

__all__ = ["Division", "Packed", "Parcel", "PartTree", "Seedling"]

Packed = Mapping[str, dict[str, bytes]]
"""What was found in a part, as bytes: `arrays` of the search, and what is known of the `graph`."""


class Seedling(NamedTuple):
    """A part that was never sampled.

    Attributes
    ----------
    origin
        Where it comes from.
    level
        How many decisions come before it.
    record
        The state that it begins with, in bytes.
    """

    origin: Origin
    level: int
    record: bytes


class Division(NamedTuple):
    """What becomes of a part whose first history goes over to the top.

    Attributes
    ----------
    node, values, edges, edge_values
        Its first node, its actions, and what these are worth.
    children, child_values
        The first nodes of the parts below, and their values.
    returns
        What its samples collected.
    """

    node: Any
    values: NDArray[np.float32]
    edges: NDArray[Any]
    edge_values: NDArray[np.float32]
    children: NDArray[Any]
    child_values: NDArray[np.float32]
    returns: NDArray[Any]


class Parcel(NamedTuple):
    """A part on its way.

    Attributes
    ----------
    seedling
        What it began with.
    prices
        Of failure.
    packed
        What was found in it.
    records
        Its states, from a worker; None if it comes from a file, which is not to be trusted.
    """

    seedling: Seedling
    prices: NDArray[np.float32]
    packed: Packed
    records: bytes | None = None


class PartTree(PriceArrays):
    """One part; made by `plant`, `cut` or `unpack`."""

    _grown = False

    def satisfy(self, wants: int, state: int, most: float) -> bool:
        self._grown = True
        return super().satisfy(wants, state, most)

    def take_growth(self) -> bool:
        """Whether its arrays have grown since this was asked last."""
        grown, self._grown = self._grown, False
        return grown

    @classmethod
    def plant(cls, like: PriceArrays, seedling: Seedling) -> Self:
        """Return a part in which nothing was sampled.

        Parameters
        ----------
        like
            A tree of the same problem, with the same prices.
        seedling
            What the part is.
        """
        assert isinstance(like.graph, CompiledGraph)
        dtype = like.graph.compiled.initial.dtype
        record = np.frombuffer(seedling.record, dtype)[0]
        part = cls._open(like, like.graph.open_part(record), seedling.origin)
        part.nodes["level"][0] = seedling.level
        return part

    @classmethod
    def _open(cls, like: PriceArrays, graph: CompiledGraph, origin: Origin) -> Self:
        part = copy(like)
        part.__class__ = cls
        assert isinstance(part, cls)
        part.graph = graph
        part._begin()
        part.prices[:] = like.prices
        part._origins = {0: origin}
        return part

    def sample(self, orders: NDArray[Any], most: float) -> bool:
        """Carry out orders; False without room for them in this many bytes."""
        job = Job(self._find_part(0), orders)
        while (wants := job.run(self.arrays(), self.tree())) != codes.DONE:
            node = job.part.path["node"][job.part.control["depth"][0]]
            if not self.satisfy(wants, int(self.nodes["state"][node]), most):
                return False
        return True

    def move(self, prices: Any, left: NDArray[np.intp], share: NDArray[np.float32]) -> None:
        """Go over to other prices; see `PriceRun.move_prices`."""
        self.prices[:] = prices
        for histories in self.list_levels():
            self._kernels.move_values(self.tree(), histories, left, share)

    def divide(self) -> Division:
        """Give the first history all its actions, and return what the top must know of it."""
        open_top = self._root_kernels.open_top
        while (wants := open_top(self.arrays(), self.tree(), 0)) != codes.DONE:
            self.satisfy(wants, int(self.nodes["state"][0]), np.inf)
        node = self.nodes[0].copy()
        edges = slice(int(node["first_edge"]), int(node["first_edge"] + node["edge_count"]))
        children = self.list_children(0)
        return Division(
            node,
            self.node_values[0].copy(),
            self.edges[edges].copy(),
            self.edge_values[edges].copy(),
            self.nodes[children],
            self.node_values[children],
            self._find_part(0).returns,
        )

    def cut(self, origins: Mapping[int, Origin]) -> Iterator[PartTree]:
        """Yield what is below some nodes, which have nothing in common, as parts of their own."""
        assert isinstance(self.graph, CompiledGraph)
        tree = self.filled_tree()
        rows = [np.empty(rows.count, np.intp) for rows in self.graph.kinds()]
        numbers = [np.empty(len(array), np.intp) for array in (tree.nodes, tree.edges)]
        for node, origin in origins.items():
            graph = self.graph.open_part()
            states = self.graph.cut_into(graph, int(self.nodes["state"][node]), rows)
            part = self._open(self, graph, origin)
            part._take_tree(cut_tree(tree, node, states, numbers))
            part._find_marks()
            yield part

    def _find_marks(self) -> None:
        filled = self.nodes[: int(self.sizes["nodes"][0])]
        self._marked = np.flatnonzero((filled["plan"] != NONE) | (filled["lane"] != NONE))

    @property
    def origin(self) -> Origin:
        """Where it comes from."""
        return self._origins[0]

    @property
    def begun(self) -> bool:
        """Whether it was sampled since it is a part."""
        return bool(self._parts)

    @property
    def seen(self) -> tuple[int, float, float]:
        """How many samples there were, and the least and the most that they collected."""
        if not self.begun:
            return 0, 0.0, 0.0
        returns, level = self.returns, int(self.nodes["level"][0])
        return returns["samples"][level], returns["least"][level], returns["most"][level]

    @property
    def returns(self) -> NDArray[Any]:
        """What samples collected."""
        return self._find_part(0).returns

    def pack(self) -> Packed:
        """Return what was found in the part, as bytes."""
        arrays = self.pack_tree()
        if self.begun:
            part = self._find_part(0)
            arrays["returns"] = pack_array(part.returns)
            arrays["random"] = pack_array(part.control["random"])
        return {"arrays": arrays, "graph": self.graph.pack()}

    def send(self) -> Parcel:
        """Return all of the part, for another worker."""
        assert isinstance(self.graph, CompiledGraph)
        level, record = int(self.nodes["level"][0]), self.graph.read_record(0).tobytes()
        seedling = Seedling(self.origin, level, record)
        return Parcel(seedling, self.prices.copy(), self.pack(), self.graph.pack_records())

    @classmethod
    def unpack(cls, like: PriceArrays, parcel: Parcel) -> Self:
        """Return the part in a parcel, checked if it comes from a file."""
        part, packed = cls.plant(like, parcel.seedling), parcel.packed
        assert isinstance(part.graph, CompiledGraph)
        arrays, level = packed["arrays"], parcel.seedling.level
        part.prices[:] = parcel.prices
        part.graph.unpack(packed["graph"], level, parcel.records)
        part.unpack_tree(arrays, {})
        if parcel.records is None:
            part._check(level)
        part._find_marks()
        if "returns" in arrays:
            search = part._find_part(0)
            returns = unpack_array(arrays, "returns", search.returns, len(search.returns))
            check_returns(returns)
            search.returns[:] = returns
            search.control["random"] = unpack_array(arrays, "random", search.control["random"], 1)
        return part

    def _check(self, level: int) -> None:
        """Refuse arrays of a file that kernels can't go on with."""
        tree = self.filled_tree()
        require(len(tree.nodes) and tree.nodes["level"][0] == level, "a part is on another level")
        # Each sample solves something.
        most = len(tree.nodes) + len(tree.edges) + 1
        check_price_tree(tree, self.graph, self.reader.weights, most)
