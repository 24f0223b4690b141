"""The arrays of a tree search: how they grow, how they are kept on disk, how they are rolled back.

Memory is counted and capped. The arrays of the tree grow by doubling, never past the cap; a search
that has no room left ends with the policy that it has. A quarter of the cap is kept for completion,
and of that a twentieth of the cap for cleanup, in case that completion finds no room.
"""

from __future__ import annotations

import math
import operator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.table import ExactTable
from vulcan.certificates.problem import Problem
from vulcan.errors import CheckpointError
from vulcan.graphs.rows import find_growth
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.reader import ModelReader
from vulcan.runtime.packing import pack_array, require, require_names, unpack_array
from vulcan.runtime.reservation import lengthen
from vulcan.sentinels import NONE
from vulcan.solvers.constraints import LocalConstraint
from vulcan.solvers.tree.checkpoint import Snapshot
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.kernel_run import CappedRun
from vulcan.solvers.tree.soundness import check_returns, check_tree, check_walk

__all__ = ["TreeArrays"]


GROWING: Final = ("_nodes", "_edges", "_children")
FIXED: Final = ("_returns", "_path", "control", "test")
"""The arrays of a search that are kept, by whether they grow."""

SAMPLED: Final = ("depth", "phase", "samples", "exhausted", "choice", "random")
TESTED: Final = ("least", "largest")
"""What of control and test is not known before a search begins."""


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

    def release(self) -> None:
        """Give back the memory of a tree that is not sampled any more, but for its root."""
        self._nodes = self._nodes[:1].copy()
        self._edges, self._children = self._edges[:0].copy(), self._children[:0].copy()
        self._choice = self._choice[:1].copy()

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
        arrays = {name: pack_array(getattr(self.filled_tree(), name[1:])) for name in GROWING}
        arrays |= {name: pack_array(getattr(self, name)) for name in FIXED}
        return Snapshot(
            identity=identity,
            graph=self.graph.pack(),
            credits=[
                (credit, self.problem.risk_bound(credit))
                for credit in self.table.evaluated(-math.inf, math.inf)[1:-1]
            ],
            capacities={name: len(getattr(self, name)) for name in GROWING},
            arrays=arrays,
            target=target,
            best=None if best is None else best.pack(),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot: ask the model again, and take over the arrays, once checked."""
        packed = snapshot.arrays
        require_names(packed, (*GROWING, *FIXED))
        require_names(snapshot.capacities, GROWING)
        self.graph.unpack(snapshot.graph)
        self._restore_credits(snapshot.credits)
        for name in GROWING:
            empty = getattr(self, name)
            array = unpack_array(packed, name, empty)
            length = self.choose_length(snapshot.capacities[name], len(array), empty)
            setattr(self, name, lengthen(array, len(array), length))
            self._sizes[name[1:]] = len(array)
        self._choice = np.zeros(len(self._nodes), np.int32)
        for name in ("_returns", "_path"):
            array = getattr(self, name)
            array[:] = unpack_array(packed, name, array, len(array))
        for name, kept in (("control", SAMPLED), ("test", TESTED)):
            array = getattr(self, name)
            found = unpack_array(packed, name, array, 1)
            for part in kept:
                array[part] = found[part]
        self._check()

    def _restore_credits(self, evaluated: list[tuple[float, float]]) -> None:
        """Evaluate the risk bound again where it was before."""
        places = [credit for credit, _ in evaluated]
        apart = all(map(operator.lt, places, places[1:]))
        require(apart and all(map(math.isfinite, places)), "credits are not in order")
        exact = isinstance(self.table, ExactTable)
        require(not (exact and places), "this risk bound is its own table")
        for credit, allowed in evaluated:
            if self.problem.risk_bound(credit) != allowed:
                raise CheckpointError("the risk bound is not the one of the checkpoint")
            self.table.cover(credit)
        self._read_table()

    def _check(self) -> None:
        """Refuse arrays that kernels can't go on with."""
        tree, counted = self.filled_tree(), bool(self._sizes["counted"][0])
        check_tree(tree, self.graph, self.reader.weights, self.test[0], counted)
        check_walk(tree, self.graph, self._path, self.control[0], counted)
        check_returns(self._returns)
        require(self.samples >= 0, "there were fewer than no samples")
        tested = [float(self.test[name][0]) for name in TESTED]
        require(not any(map(math.isnan, tested)), "a credit is not a number")

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

    def filled_tree(self) -> Any:
        """Return the same as far as they are filled."""
        arrays = {name[1:]: getattr(self, name) for name in GROWING}
        filled = {name: array[: int(self._sizes[name][0])] for name, array in arrays.items()}
        return self.tree()._replace(**filled)

    def _grow(self, most: float) -> bool:
        """Lengthen the arrays that are more than half full, to the double if memory allows it."""
        size = self._sizes[0]
        filled = {name: int(size[name[1:]]) for name in GROWING}
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
