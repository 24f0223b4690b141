"""A tree search for several prices over many workers: the top is here, its parts are with them.

The coordinator orders samples as in a tree of one memory (`vulcan.solvers.tree.price_run`), and the
parts are searched where they are (`vulcan.solvers.tree.grove`). It knows the first node of each
part: its visits, its values, and whether it is solved. That is all that the top needs, so that the
search is the same, sample by sample, wherever its parts are, and whatever becomes of the workers.
Where a part is divided, the parts below it may go to other workers (`vulcan.solvers.tree.groves`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.problem import Problem
from vulcan.errors import CheckpointError
from vulcan.executors.base import Executor, Worker
from vulcan.graphs.compiled_graph import CompiledGraph
from vulcan.model.reader import ModelReader
from vulcan.runtime.packing import require, require_names
from vulcan.sentinels import NONE
from vulcan.solvers.layered.accuracy import Extremes, join_extremes
from vulcan.solvers.tree.checkpoint import Snapshot
from vulcan.solvers.tree.completion import Completion
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.events import join_orders
from vulcan.solvers.tree.forest_plans import LOWER, ForestCompletion, grow_forest_top
from vulcan.solvers.tree.grove import Standing
from vulcan.solvers.tree.groves import Groves
from vulcan.solvers.tree.part_tree import Division, Packed, Parcel, Seedling
from vulcan.solvers.tree.price_arrays import GROWING
from vulcan.solvers.tree.price_run import SHARE_OF_SAMPLING, PriceRun
from vulcan.solvers.tree.tops import GrownTop

__all__ = ["Forest"]

PART: Final = "part "
"""Before the number of a part, what a checkpoint calls it."""

TREE: Final = tuple(name for names in GROWING.values() for name in names)
SEARCHED: Final = ("returns", "random")
"""The arrays of a part, and those that it has once it was sampled."""


class Forest(PriceRun):
    """One search.

    Parameters
    ----------
    problem, reader, memory, seed, exploration
        As in `PriceRun`; memory is that of all workers together.
    executor
        Where the workers are.
    """

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        memory: int | None,
        *,
        seed: int,
        exploration: float,
        executor: Executor,
    ) -> None:
        super().__init__(problem, reader, memory, None, seed=seed, exploration=exploration)
        assert isinstance(self.graph, CompiledGraph)
        self._shared_memory = memory
        self._groves = Groves(executor, problem, seed, exploration)
        self._first_nodes = np.zeros(0, np.intp)

    def close(self) -> None:
        self._groves.close()

    def prepare(self) -> None:
        self._groves.prepare(self._shared_memory, SHARE_OF_SAMPLING)
        super().prepare()

    # What is where.

    @property
    def size_of_crew(self) -> int:
        """How many workers there are."""
        return len(self._groves)

    def number_of(self, root: int) -> int:
        """Return the number of the part that begins with a node."""
        return self._origins[root].number

    def is_part(self, node: int) -> bool:
        """Whether a part begins with a node."""
        return node in self._origins and node not in self._retired

    def is_planted(self, number: int) -> bool:
        """Whether some worker has a part."""
        return number in self._groves

    def ask_workers(
        self, numbers: Iterable[int], call: Callable[[Worker, list[int]], Any]
    ) -> list[Any]:
        """Return the answers of the workers that have some parts; see `Groves.ask`."""
        return self._groves.ask(numbers, call)

    def plant(self, numbers: Iterable[int]) -> None:
        """Let parts begin that were never sampled."""
        fresh = sorted(number for number in numbers if number not in self._groves)
        if fresh:
            seedlings = {number: self._describe_part(number) for number in fresh}
            self._groves.plant(self.prices.copy(), seedlings)

    def _describe_part(self, number: int) -> Seedling:
        root = int(self._find_first_nodes(np.array([number]))[0])
        assert isinstance(self.graph, CompiledGraph)
        record = self.graph.read_record(int(self.nodes["state"][root]))
        return Seedling(self._origins[root], int(self.nodes["level"][root]), record.tobytes())

    def _find_first_nodes(self, numbers: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the first nodes of parts."""
        if len(self._first_nodes) < len(self._origins):
            self._first_nodes = np.array(list(self._origins), np.intp)
        return self._first_nodes[numbers - 1]

    def prefer(self, node: int, lane: int) -> int:
        """Return the position of the sampled action of a node of the top that a price prefers."""
        first, count = (int(self.nodes[name][node]) for name in ("first_edge", "edge_count"))
        values = self.edge_values[first : first + count, lane].astype(np.float64)
        values[self.edges["visits"][first : first + count] == 0] = -np.inf
        return int(np.argmax(values))

    def list_after(self, node: int, position: int) -> tuple[int, list[int], list[float]]:
        """Return the row of an action of the top, the nodes after it, and their probabilities."""
        state = self.graph.states.array[self.nodes["state"][node]]
        row = int(state["first_action"]) + position
        action = self.graph.actions.array[row]
        edge = self.edges[int(self.nodes["first_edge"][node]) + position]
        count, first = int(action["safe_count"]), int(action["first_outcome"])
        chances = self.graph.outcomes.array["probability"][first : first + count].tolist()
        begin = int(edge["first_child"])
        return row, list(range(begin, begin + count)), chances

    # Samples, prices and plans.

    def _sample_parts(self, work: Sequence[tuple[int, NDArray[Any]]], most: float) -> None:
        jobs = {self.number_of(root): orders for root, orders in work}
        self.plant(jobs)

        def call(worker: Worker, some: list[int]) -> Any:
            orders = join_orders({number: jobs[number] for number in some})
            return worker.call("sample", *orders)

        standings = self.ask_workers(jobs, call)
        self._groves.events.add("sample", jobs)
        self._groves.loads.update({number: len(orders) for number, orders in jobs.items()})
        self._read(standings, widen=True)
        self.full = any(standing.full for standing in standings)

    def _read(self, standings: Sequence[Standing], widen: bool = False) -> None:
        """Write what is known of parts into the top."""
        for standing in standings:
            parts = standing.parts
            roots = self._find_first_nodes(parts["number"])
            self.node_values[roots] = parts["values"]
            for name in ("visits", "solved"):
                self.nodes[name][roots] = parts[name]
            ended = self.nodes["state"][roots[parts["ended"] != 0]]
            self.graph.states.array["action_count"][ended] = 0
            if widen:
                for root, part in zip(roots.tolist(), parts, strict=True):
                    self._widen_span(root, part)

    def _move_values(self, left: NDArray[np.intp], share: NDArray[np.float32]) -> None:
        given = (self.prices.copy(), left, share)
        parts = self._groves.parts

        def call(worker: Worker, some: list[int]) -> Any:
            return worker.call("move", some, *given)

        self._read(self.ask_workers(parts, call))
        self._groves.events.move(parts, given)
        tops = np.array([*self.tops.tolist()[::-1], 0], np.intp)
        self._kernels.move_values(self.tree(), tops, left, share)

    def follow(self, actions: list[tuple[int, int]] | None, lanes: list[tuple[int, int]]) -> None:
        marks: dict[int, tuple[list[Any], list[Any]]] = {0: ([], [])}
        for kind, some in enumerate((actions or [], lanes)):
            for history, mark in some:
                there = marks.setdefault(history >> 32, ([], []))
                there[kind].append((history & LOWER, mark))
        super().follow(*marks.pop(0))
        everywhere = {number: marks.get(number, ([], [])) for number in self._groves.parts}

        def call(worker: Worker, some: list[int]) -> Any:
            return worker.call("follow", {number: everywhere[number] for number in some})

        self.ask_workers(everywhere, call)
        self._groves.events.add("follow", everywhere)

    def grow_top(self, most: int, closeness: float) -> GrownTop:
        return grow_forest_top(self, most, closeness)

    def complete(self) -> Completion:
        return ForestCompletion(self)

    # Parts that are divided.

    def _open_tops(self, nodes: Sequence[int]) -> None:
        firsts, first = dict[int, int](), len(self._origins) + 1
        for node in nodes:
            self._open_actions(node)
            firsts[self.number_of(node)] = first
            first += len(self.list_children(node))
        divisions: dict[int, Division] = {}

        def call(worker: Worker, some: list[int]) -> Any:
            return worker.call("divide", {number: firsts[number] for number in some})

        for answer in self.ask_workers(firsts, call):
            divisions |= answer
        for node, (number, first) in zip(nodes, firsts.items(), strict=True):
            division = divisions[number]
            self._take_division(node, division)
            self.add_top(node, division.returns)
            visits = enumerate(division.children["visits"].tolist(), first)
            self._groves.divide(number, first, {part: count for part, count in visits if count})
        if nodes:
            self._groves.balance()

    def _take_division(self, node: int, division: Division) -> None:
        """Write what a worker knew of a history and what follows it into the top."""
        for name in ("visits", "solved", "plan", "lane"):
            self.nodes[name][node] = division.node[name]
        self.node_values[node] = division.values
        if division.node["plan"] != NONE or division.node["lane"] != NONE:
            self._marked = np.append(self._marked, node)
        first, count = int(self.nodes["first_edge"][node]), len(division.edges)
        children = self.list_children(node)
        for name in ("visits", "solved"):
            self.edges[name][first : first + count] = division.edges[name]
            self.nodes[name][children] = division.children[name]
        self.edge_values[first : first + count] = division.edge_values
        self.node_values[children] = division.child_values

    # What it knows as a whole.

    @property
    def histories(self) -> int:
        return super().histories + self._groves.histories

    @property
    def memory(self) -> int:
        return super().memory + self._groves.memory

    @property
    def evaluations(self) -> int:
        return self.graph.evaluations + self._groves.evaluations

    def find_extremes(self) -> Extremes:
        def call(worker: Worker, some: list[int]) -> Any:
            return worker.call("find_extremes", some)

        parts = self.ask_workers(self._groves.parts, call)
        return join_extremes([super().find_extremes(), *parts])

    def merge_returns(self) -> NDArray[Any]:
        collected: dict[int, NDArray[Any]] = {}
        for answer in self.ask_workers(
            self._groves.parts, lambda worker, _: worker.call("collect")
        ):
            collected |= answer
        return self._merge([collected[number] for number in sorted(collected)])

    def take_snapshot(self, identity: dict[str, str], target: int, best: Draft | None) -> Snapshot:
        snapshot, packed = super().take_snapshot(identity, target, best), dict[int, Packed]()
        for answer in self.ask_workers(
            self._groves.parts, lambda worker, some: worker.call("pack", some)
        ):
            packed |= answer
        parts = {PART + str(number): msgspec.msgpack.encode(packed[number]) for number in packed}
        return msgspec.structs.replace(snapshot, arrays=snapshot.arrays | parts)

    def restore(self, snapshot: Snapshot, elsewhere: int = 0) -> None:
        arrays = dict(snapshot.arrays)
        names = [name for name in arrays if name.startswith(PART)]
        packed = {name: _read_packed(arrays.pop(name)) for name in names}
        for part in packed.values():
            tree = part["arrays"]
            elsewhere += len(tree["nodes"]) // self.nodes.itemsize
            elsewhere += len(tree["edges"]) // self.edges.itemsize
        super().restore(msgspec.structs.replace(snapshot, arrays=arrays), elsewhere)
        known = {PART + str(self.number_of(root)): root for root in self._origins}
        parcels: dict[int, Parcel] = {}
        for name, part in packed.items():
            require(self.is_part(known.get(name, NONE)), f"there is no {name}")
            number = self.number_of(known[name])
            parcels[number] = Parcel(self._describe_part(number), self.prices.copy(), part)
        self._groves.take(parcels)


def _read_packed(data: bytes) -> Packed:
    """Return what a file says was found in a part."""
    try:
        packed = msgspec.msgpack.decode(data, type=dict[str, dict[str, bytes]])
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"a part can't be read: {error}") from error
    require_names(packed, ("arrays", "graph"))
    searched = SEARCHED if SEARCHED[0] in packed["arrays"] else ()
    require_names(packed["arrays"], (*TREE, *searched))
    return packed
