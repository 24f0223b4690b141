"""The arrays of a tree search: how they grow, how they are kept on disk, how they are rolled back.

Memory is counted and capped. The arrays of the tree grow by doubling, never past the cap; a search
that has no room left ends with the policy that it has. A quarter of the cap is kept for completion,
and of that a twentieth of the cap for cleanup, in case that completion finds no room.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.problem import Problem
from vulcan.errors import CheckpointError
from vulcan.graphs.rows import find_growth
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.reader import ModelReader
from vulcan.runtime.reservation import lengthen
from vulcan.sentinels import NONE
from vulcan.solvers.constraints import LocalConstraint
from vulcan.solvers.tree.checkpoint import Snapshot, pack_array, unpack_array
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.kernel_run import CappedRun

__all__ = ["TreeArrays"]


FIXED: Final = ("_sizes", "_returns", "_path", "control", "test")
"""The arrays of a search that do not grow."""


SHARE_OF_CLEANUP: Final = 0.05


class TreeArrays(CappedRun):
    """What a tree search knows.

    Parameters
    ----------
    problem, reader, constraint
        What is searched.
    memory
        Bytes that tree and graph may take.
    """

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        constraint: LocalConstraint,
        memory: int | None,
        known: StateGraph | None = None,
        compiled: bool = True,
    ) -> None:
        from vulcan.kernels import completion, selection, tree, tree_search
        from vulcan.kernels.compilation import announce_compilation

        super().__init__(problem, reader, constraint, memory, known, compiled)
        announce_compilation(tree_search.sample)
        self._search, self._completion, self._tree_class = tree_search, completion, tree.Tree
        levels = reader.levels
        self._nodes: NDArray[Any] = np.zeros(64, tree.NODE)
        self._edges: NDArray[Any] = np.zeros(256, tree.EDGE)
        self._children: NDArray[Any] = np.zeros(256, np.int32)
        self._choice: NDArray[Any] = np.zeros(64, np.int32)
        self._sizes = np.zeros(1, tree.SIZE)
        self._returns = np.zeros(levels, selection.RETURNS)
        self._returns["least"], self._returns["most"] = math.inf, -math.inf
        self._path = np.zeros(levels + 1, tree_search.STEP)
        self._places = np.zeros(levels + 1, completion.PLACE)
        self.control = np.zeros(1, tree_search.CONTROL)
        self._walk = np.zeros(1, completion.WALK)
        self._sizes["nodes"] = 1
        root = self._nodes[0]
        root["state"], root["first_edge"] = StateGraph.ROOT, NONE
        root["survival"], root["value"] = 1.0, -math.inf
        self.full = False
        self.settled_value: float | None = None  # of the root, by the policy that was settled last
        self._known_bounds: dict[tuple[int, int], float] = {}

    @property
    def samples(self) -> int:
        """Samples taken so far."""
        return int(self.control["samples"][0])

    @property
    def histories(self) -> int:
        """Histories in the tree."""
        return int(self._sizes["nodes"][0])

    @property
    def solved(self) -> bool:
        """Whether the root is solved: its value is that of the best admissible policy."""
        return bool(self._nodes["solved"][0])

    @property
    def exhausted(self) -> bool:
        """Whether every action of the root was deleted: no admissible policy exists."""
        proved = self._walk["exhausted"][0] and self._walk["complete"][0]
        return bool(self.control["exhausted"][0] or proved)

    @property
    def estimate(self) -> float | None:
        """The value of the root; None before it was sampled."""
        value = float(self._nodes["value"][0])
        return value if math.isfinite(value) else None

    @property
    def memory(self) -> int:
        """Bytes of tree and graph."""
        arrays = (self._nodes, self._edges, self._children, self._choice)
        return sum(array.nbytes for array in arrays) + self.graph.capacity

    def _bytes_in_use(self) -> int:
        """Return the same without the room that is not filled yet."""
        size = self._sizes[0]
        nodes = int(size["nodes"]) * (self._nodes.itemsize + self._choice.itemsize)
        edges = int(size["edges"]) * self._edges.itemsize
        children = int(size["children"]) * self._children.itemsize
        return nodes + edges + children + self.graph.memory

    def _lengthen_rows(self, most: float) -> bool:
        """Give a compiled model room for more rows, within this many bytes."""
        return self.make_rows(self._spare_cleanup(most) - (self.memory - self.graph.capacity))

    def _spare_cleanup(self, most: float) -> float:
        """Return how many of these bytes may be taken now."""
        return min(most, (1.0 - SHARE_OF_CLEANUP * bool(self._walk["complete"][0])) * self._memory)

    def take_snapshot(self, identity: dict[str, str], target: int, best: Draft | None) -> Snapshot:
        """Return all that is needed to go on from here."""
        size = self._sizes[0]
        fills = {"_nodes": size["nodes"], "_edges": size["edges"], "_children": size["children"]}
        arrays = {name: pack_array(getattr(self, name)[:count]) for name, count in fills.items()}
        arrays |= {name: pack_array(getattr(self, name)) for name in FIXED}
        return Snapshot(
            identity=identity,
            graph=self.graph.pack(),
            credits=[
                (credit, self.problem.risk_bound(credit))
                for credit in self.table.evaluated(-math.inf, math.inf)[1:-1]
            ],
            capacities={name: len(getattr(self, name)) for name in fills},
            arrays=arrays,
            target=target,
            best=None if best is None else best.pack(),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot: ask the model again, and take over the arrays."""
        self.graph.unpack(snapshot.graph)
        for credit, allowed in snapshot.credits:
            if self.problem.risk_bound(credit) != allowed:
                raise CheckpointError("the risk bound is not the one of the checkpoint")
            self.table.cover(credit)
        self._read_table()
        for name, length in snapshot.capacities.items():
            setattr(self, name, np.zeros(length, getattr(self, name).dtype))
        self._choice = np.zeros(len(self._nodes), np.int32)
        for name, data in snapshot.arrays.items():
            unpack_array(data, getattr(self, name))
        self._read_table()

    def _roll_back(self, before: Any) -> None:
        """Forget what was added to the tree since it had these sizes."""
        nodes, edges, children = (int(before[name]) for name in ("nodes", "edges", "children"))
        added = self._children[:children] >= nodes
        self._children[:children][added] = NONE
        opened = self._nodes["first_edge"][:nodes] >= edges
        self._nodes["first_edge"][:nodes][opened] = NONE
        tried = self._edges["first_child"][:edges] >= children
        self._edges["first_child"][:edges][tried] = NONE
        for name in ("nodes", "edges", "children"):
            self._sizes[name] = before[name]

    def tree(self) -> Any:
        """Return the arrays of the tree as they are now."""
        return self._tree_class(self._nodes, self._edges, self._children, self._sizes)

    def _grow(self, most: float) -> bool:
        """Lengthen the arrays that are more than half full, to the double if memory allows it."""
        size = self._sizes[0]
        filled = {name: int(size[name[1:]]) for name in ("_nodes", "_edges", "_children")}
        short = [n for n, count in filled.items() if 2 * count >= len(getattr(self, n))]
        names = short or list(filled)
        if "_nodes" in names:
            names = [*names, "_choice"]
        share = find_growth(
            [getattr(self, name) for name in names], self._spare_cleanup(most) - self.memory
        )
        if not share:
            return False
        for name in names:
            old = getattr(self, name)
            length = len(old) + int(share * len(old))
            setattr(self, name, lengthen(old, filled.get(name, len(old)), length))
        return True
