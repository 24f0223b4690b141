"""Runs of kernels: they own the graph, the table of the risk bound, and the local test.

A kernel returns when it meets a state that was never evaluated, a credit at which the table must be
finer, or the end of an array. A `KernelRun` provides what it needs, within a number of bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import BoundError, CheckpointError, ModelError
from vulcan.graph.compiled import CompiledGraph, find_compiled
from vulcan.graph.states import LARGE_GROWTH, MOST_ROWS, Graph, StateGraph, find_growth, open_graph
from vulcan.kernels import codes
from vulcan.model.reader import ModelReader
from vulcan.problem import Problem
from vulcan.runtime.arrays import lengthen, pack_array, require, require_names, unpack_array
from vulcan.runtime.limits import find_default_memory
from vulcan.sampling.checkpoint import Snapshot
from vulcan.solvers.local_tests import LocalConstraint


class KernelRun:
    """A search in progress.

    `known` is a graph of the model that was filled before, `memory` limits the bytes of tree and
    graph, and `compiled` says whether a compiled form of the model may be used.
    """

    GROWING: ClassVar[dict[str, tuple[str, ...]]] = {}
    """The arrays of a tree that grow, by the field of `sizes` that counts their filled rows."""

    sizes: NDArray[Any]
    nodes: NDArray[Any]

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        constraint: LocalConstraint,
        known: StateGraph | None = None,
        memory: int | None = None,
        compiled: bool = True,
    ) -> None:
        from vulcan.kernels.expand import ProblemArrays
        from vulcan.kernels.local_tests import TEST

        self._problem_arrays = ProblemArrays
        self.problem, self.reader, self.constraint = problem, reader, constraint
        credit = constraint.own_credit
        form = find_compiled(reader) if compiled and credit is None else None
        # Rows contain the user's credits, and rows that don't merge are released on the way.
        fits = known is not None and credit is None and reader.merges
        if form is not None:
            self.graph: Graph = CompiledGraph(reader, form)
        else:
            self.graph = known if known and fits else open_graph(reader, credit)
        self.limit = find_default_memory() if memory is None else memory
        self._largest_answer = 0
        self.test = np.zeros(1, TEST)
        self.test["form"], self.test["by_outcome"] = constraint.form, constraint.by_outcome
        self.forget_credits()
        self.table = problem.risk_bound.table()
        self._read_table()

    def arrays(self) -> Any:
        """Return the current arrays of the problem."""
        graph, reader = self.graph, self.reader
        rows = (graph.states.array, graph.actions.array, graph.outcomes.array)
        steps = (reader.discounts, reader.weights)
        return self._problem_arrays(*rows, self.table.pieces, *steps, graph.source, graph.answers)

    @property
    def histories(self) -> int:
        """Histories in the tree."""
        return int(self.sizes["nodes"][0])

    @property
    def solved(self) -> bool:
        """Whether every continuation was sampled: no admissible policy is better."""
        return bool(self.nodes["solved"][0])

    @property
    def memory(self) -> int:
        """Bytes of the filled rows of tree and graph."""
        return sum(array.nbytes for array in self._filled().values()) + self.graph.memory

    @property
    def capacity(self) -> int:
        """Bytes of all rows of tree and graph, filled or not."""
        arrays = (getattr(self, name) for names in self.GROWING.values() for name in names)
        return int(sum(array.nbytes for array in arrays)) + self.graph.capacity

    @property
    def state_graph(self) -> StateGraph:
        """The graph of a model in Python."""
        assert isinstance(self.graph, StateGraph)
        return self.graph

    @property
    def evaluations(self) -> int:
        """Evaluations of the model so far."""
        return self.graph.evaluations

    @property
    def known_graph(self) -> StateGraph | None:
        """The graph, for other searches; None if states are not objects."""
        return self.graph if isinstance(self.graph, StateGraph) else None

    # What kernels need.

    def satisfy(self, wants: int, state: int, most: float, ahead: Sequence[int] = ()) -> bool:
        """Provide what a kernel needs; False if that takes more bytes than allowed.

        States `ahead` are evaluated together with a state that is needed.
        """
        if wants == codes.NEEDS_STATE:
            # There may be no room for one more large answer.
            if self.memory + self._largest_answer > most:
                return False
            self._expand([state, *ahead])
        elif wants == codes.NEEDS_ROWS:
            return self.make_rows(most - (self.capacity - self.graph.capacity))
        elif wants == codes.NEEDS_ROOM:
            return self.grow(most)
        elif wants == codes.NEEDS_BOUND:
            self.refine_bound()
        elif wants == codes.BROKEN:
            self.raise_fault()
        return True

    def _expand(self, states: Sequence[int]) -> None:
        before = self.graph.memory
        self.state_graph.expand_all(states)
        self._largest_answer = max(self._largest_answer, self.graph.memory - before)

    def make_rows(self, most: float = math.inf) -> bool:
        """Make room for more rows of a compiled model; False if it would take too many bytes."""
        assert isinstance(self.graph, CompiledGraph)
        return self.graph.make_room(most)

    def raise_fault(self) -> NoReturn:
        """Raise the error of a compiled model."""
        assert isinstance(self.graph, CompiledGraph)
        raise ModelError(self.graph.describe_fault())

    # The arrays of a tree.

    def _filled(self) -> dict[str, NDArray[Any]]:
        """Return the filled rows of the arrays that grow."""
        return {
            name: getattr(self, name)[: int(self.sizes[kind][0])]
            for kind, names in self.GROWING.items()
            for name in names
        }

    def grow(self, most: float) -> bool:
        """Lengthen the arrays that are more than half full, as far as memory allows it."""
        filled = {kind: int(self.sizes[kind][0]) for kind in self.GROWING}
        short = [k for k in filled if 2 * filled[k] >= len(getattr(self, k))] or list(filled)
        arrays = [getattr(self, name) for kind in short for name in self.GROWING[kind]]
        share = find_growth(arrays, most - self.capacity, LARGE_GROWTH)
        if not share:
            return False
        for kind in short:
            for name in self.GROWING[kind]:
                old = getattr(self, name)
                setattr(self, name, lengthen(old, filled[kind], int((1 + share) * len(old))))
        return True

    # Checkpoints.

    def _pack(self, places: Iterable[float], arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Return the fields of a `Snapshot` except those of the policy and the rounds.

        `places` are credits at which the values of the risk bound are saved, and `arrays` are saved
        in addition to the arrays of the tree.
        """
        return {
            "graph": self.graph.pack(),
            "credits": [(credit, self.allow(credit)) for credit in places],
            "capacities": {kind: len(getattr(self, kind)) for kind in self.GROWING},
            "arrays": {k: pack_array(array) for k, array in (self._filled() | arrays).items()},
        }

    def _unpack(self, snapshot: Snapshot, others: Iterable[str]) -> None:
        """Evaluate the model and the risk bound again, and take over the tree of a snapshot."""
        packed, lengths = snapshot.arrays, snapshot.capacities
        require_names(packed, (*self._filled(), *others))
        require_names(lengths, self.GROWING)
        self.graph.unpack(snapshot.graph)
        for credit, allowed in snapshot.credits:
            require(math.isfinite(credit), "a credit is not a number")
            if self.allow(credit) != allowed:
                raise CheckpointError("the risk bound is not the one of the checkpoint")
        for kind, names in self.GROWING.items():
            # Arrays are as long as before if memory allows it, and no shorter than those of a new
            # search: shorter arrays can't grow.
            empty = [getattr(self, name) for name in names]
            filled = len(unpack_array(packed, kind, empty[0]))
            affordable = self.limit // sum(array[:1].nbytes for array in empty)
            length = max(filled, len(empty[0]), min(lengths[kind], affordable, MOST_ROWS))
            for name, like in zip(names, empty, strict=True):
                array = unpack_array(packed, name, like, filled)
                setattr(self, name, lengthen(array, filled, length))
            self.sizes[kind] = filled

    # The risk bound.

    def forget_credits(self) -> None:
        """Reset the smallest and largest credit tested."""
        self.test["least"], self.test["largest"] = math.inf, -math.inf

    def refine_bound(self) -> None:
        """Make the table of the bound exact where the kernel needs it."""
        self.table.cover(float(self.test["refine_at"][0]))
        self._read_table()

    def _read_table(self) -> None:
        for name in ("low", "high", "top", "beyond", "ceiling"):
            self.test[name] = getattr(self.table, name)

    def allow(self, reward: float) -> float:
        """Return the allowed risk of a reward; -inf where the bound has no value."""
        try:
            return float(self.problem.risk_bound(reward))
        except BoundError:
            return -math.inf

    def credits(self) -> list[float]:
        """Return where the bound was evaluated, from the smallest to the largest credit tested."""
        low, high = float(self.test["least"][0]), float(self.test["largest"][0])
        return self.table.evaluated(low, high) if low <= high else []

    def explain_infeasible(self, constraint: LocalConstraint) -> str:
        """Return why an exhaustive search found no policy."""
        tested, range_tested = self.credits(), ""
        if tested:
            low, high = (
                f"{credit:.4g} (allowed risk {self.problem.risk_bound(credit):.4g})"
                for credit in (tested[0], tested[-1])
            )
            range_tested = f"Histories had credits from {low} to {high}. "
        return (
            f"no policy satisfies constraint {constraint.letter} on all histories, proved. "
            f"{range_tested}The constraint is stricter than the bound: "
            "a policy within the bound may exist"
        )
