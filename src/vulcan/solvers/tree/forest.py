"""A tree search for several prices over many workers: the top is here, its parts are with them.

The coordinator orders samples as in a tree of one memory (`vulcan.solvers.tree.price_run`), and the
parts are searched where they are (`vulcan.solvers.tree.grove`). It knows the first node of each
part: its visits, its values, and whether it is solved. That is all that the top needs, so that the
search is the same, sample by sample, wherever its parts are, and whatever becomes of the workers.
Where a part is divided, the parts below it may go to other workers.

A worker that is lost takes its parts with it. They are had again by doing again what was done with
them (`Events`), by a worker that takes its place or by those that are left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.problem import Problem
from vulcan.errors import OptionError
from vulcan.executors.base import Executor, Worker, WorkerLostError
from vulcan.executors.losses import current_losses
from vulcan.graphs.compiled_graph import CompiledGraph
from vulcan.model.compiled import forget_compiled
from vulcan.model.reader import ModelReader
from vulcan.sentinels import NONE
from vulcan.solvers.tree.completion import Completion
from vulcan.solvers.tree.events import Events, join_orders
from vulcan.solvers.tree.forest_plans import ForestCompletion, grow_forest_top
from vulcan.solvers.tree.grove import Grove, Standing
from vulcan.solvers.tree.part_tree import Division, Seedling
from vulcan.solvers.tree.price_run import SHARE_OF_SAMPLING, PriceRun
from vulcan.solvers.tree.tops import GrownTop

__all__ = ["Forest"]

SHARE_OF_TOP: Final = 0.1
"""Of the memory of this machine, for the top and what plans need."""

UNEVEN: Final = 1.2
"""A worker gives parts away that has more than this many times an even share of samples."""


class Forest(PriceRun):
    """One search.

    Parameters
    ----------
    problem, reader, memory, seed, exploration
        As in `PriceRun`.
    executor
        Where the workers are.

    Attributes
    ----------
    lost
        How many workers were lost.
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
        self._executor, self._given = executor, memory
        sent = Problem(forget_compiled(problem.model), problem.risk_bound)
        self._made = (Grove, sent, seed, exploration)
        self._workers: list[Worker] = [executor.hire(*self._made) for _ in range(executor.workers)]
        self._standings: dict[Worker, Standing] = {}
        self._gone_evaluations = 0
        self._owners: dict[int, Worker] = {}  # of parts, by their numbers
        self._loads: Counter[int] = Counter()  # samples of parts since they were balanced
        self._first_nodes = np.zeros(0, np.intp)
        self._events = Events()
        self.lost = 0

    def close(self) -> None:
        """Let all workers go."""
        for worker in self._workers:
            worker.close()

    def prepare(self) -> None:
        machines = self._reach(list(self._workers), lambda worker: worker.call("prepare"))
        names = Counter(name for name, _ in machines.values())
        for worker, (name, memory) in machines.items():
            share = (1 - SHARE_OF_TOP) * memory / names[name]
            if self._given is not None:
                share = self._given / len(machines)
            worker.call("limit", SHARE_OF_SAMPLING * share)
        super().prepare()

    # What is where.

    def number_of(self, root: int) -> int:
        """Return the number of the part that begins with a node."""
        return self._origins[root].number

    def _find_first_nodes(self, numbers: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the first nodes of parts."""
        if len(self._first_nodes) < len(self._origins):
            self._first_nodes = np.array(list(self._origins), np.intp)
        return self._first_nodes[numbers - 1]

    def is_part(self, node: int) -> bool:
        """Whether a part begins with a node."""
        return node in self._origins and node not in self._retired

    def is_planted(self, number: int) -> bool:
        """Whether some worker has a part."""
        return number in self._owners

    @property
    def size_of_crew(self) -> int:
        """How many workers there are."""
        return len(self._workers)

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

    def plant(self, numbers: Iterable[int]) -> None:
        """Let parts that were never sampled begin, each with the worker that has least to do."""
        fresh = sorted(number for number in numbers if number not in self._owners)
        if not fresh:
            return
        loads = self._add_loads()
        seedlings = {number: self._describe_part(number) for number in fresh}
        for number in fresh:
            worker = min(self._workers, key=lambda worker: loads[worker])
            self._owners[number] = worker
            loads[worker] += 1
        prices = self.prices.copy()

        def call(worker: Worker, some: list[int]) -> Any:
            return worker.call("plant", prices, [seedlings[number] for number in some])

        self.ask_workers(fresh, call)
        self._events.plant(prices, seedlings)

    def _describe_part(self, number: int) -> Seedling:
        root = int(self._find_first_nodes(np.array([number]))[0])
        assert isinstance(self.graph, CompiledGraph)
        record = self.graph.read_record(int(self.nodes["state"][root]))
        return Seedling(self._origins[root], int(self.nodes["level"][root]), record.tobytes())

    # Workers that may be lost.

    def _reach(self, workers: Sequence[Worker], call: Callable[[Worker], Any]) -> dict[Worker, Any]:
        """Return the answers of workers; those that are lost before they have parts are let go."""
        futures = {worker: call(worker) for worker in workers}
        answers = {}
        for worker, future in futures.items():
            try:
                answers[worker] = future.result()
            except WorkerLostError:
                self._lose(worker)
        return answers

    def ask_workers(
        self, numbers: Iterable[int], call: Callable[[Worker, list[int]], Any]
    ) -> list[Any]:
        """Return the answers of the workers that have some parts.

        Where one is lost, its parts are had again, and whoever has them now is asked.

        Parameters
        ----------
        numbers
            The parts.
        call
            Calls a worker about those that it has.
        """
        waiting, answers = set(numbers), []
        while waiting:
            shares: dict[Worker, list[int]] = {}
            for number in sorted(waiting):
                shares.setdefault(self._owners[number], []).append(number)
            futures = [(worker, some, call(worker, some)) for worker, some in shares.items()]
            lost = []
            for worker, some, future in futures:
                try:
                    answers.append((worker, future.result()))
                    waiting.difference_update(some)
                except WorkerLostError:
                    lost.append(worker)
            for worker in lost:
                self._lose(worker)
        for worker, answer in answers:
            if isinstance(answer, Standing):
                self._standings[worker] = answer
        return [answer for _, answer in answers]

    def _lose(self, worker: Worker) -> None:
        """Let others have the parts of a worker that is gone."""
        if worker not in self._workers:
            return
        self.lost += 1
        self._workers.remove(worker)
        standing = self._standings.pop(worker, None)
        self._gone_evaluations += standing.evaluations if standing else 0
        orphans = sorted(number for number, owner in self._owners.items() if owner is worker)
        current_losses().count += 1
        other = self._executor.hire(*self._made) if self._executor.has_room() else None
        if other is not None:
            self._workers.append(other)
        if not self._workers:
            raise OptionError("all workers were lost, and there is no place for new ones")
        heirs = [other] if other is not None else list(self._workers)
        futures = []
        for k, heir in enumerate(heirs):
            some = orphans[k :: len(heirs)]
            self._owners |= dict.fromkeys(some, heir)
            futures.append((heir, heir.call("adopt", some, self._events.repeat(some))))
        for heir, future in futures:
            try:
                future.result()
            except WorkerLostError:
                self._lose(heir)

    # Samples, prices and plans.

    def _sample_parts(self, work: Sequence[tuple[int, NDArray[Any]]], most: float) -> None:
        jobs = {self.number_of(root): orders for root, orders in work}
        self.plant(jobs)

        def call(worker: Worker, some: list[int]) -> Any:
            orders = join_orders({number: jobs[number] for number in some})
            return worker.call("sample", *orders)

        standings = self.ask_workers(jobs, call)
        self._events.add("sample", jobs)
        self._loads.update({number: len(orders) for number, orders in jobs.items()})
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
        prices = self.prices.copy()
        arguments = (prices, left, share)
        self._read(
            self.ask_workers(self._owners, lambda worker, _: worker.call("move", *arguments))
        )
        self._events.add("move", arguments)
        tops = np.array([*self.tops.tolist()[::-1], 0], np.intp)
        self._kernels.move_values(self.tree(), tops, left, share)

    def follow(self, actions: list[tuple[int, int]] | None, lanes: list[tuple[int, int]]) -> None:
        marks: dict[int, tuple[list[Any], list[Any]]] = {}
        own: tuple[list[Any], list[Any]] = ([], [])
        for kind, some in enumerate((actions or [], lanes)):
            for history, mark in some:
                number, node = history >> 32, history & 0xFFFFFFFF
                place = own if number == 0 else marks.setdefault(number, ([], []))
                place[kind].append((node, mark))
        super().follow(*own)

        def call(worker: Worker, some: list[int]) -> Any:
            there = {number: marks[number] for number in some if number in marks}
            return worker.call("follow", there)

        self.ask_workers(self._owners, call)
        self._events.add("follow", marks)

    def _open_tops(self, nodes: Sequence[int]) -> None:
        if not nodes:
            return
        firsts, first = {}, len(self._origins) + 1
        for node in nodes:
            while not self._open_here(node):
                pass
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
            grown = [first + k for k, child in enumerate(division.children) if child["visits"]]
            self._owners |= dict.fromkeys(grown, self._owners.pop(number))
            self._loads.pop(number, None)
            self._events.divide(number, first, grown)
        self._balance()

    def _open_here(self, node: int) -> bool:
        """Give a node of the top all its actions and their outcomes."""
        from vulcan.kernels import codes

        wants = self._root_kernels.open_top(self.arrays(), self.tree(), node)
        if wants == codes.DONE:
            return True
        self.satisfy(wants, int(self.nodes["state"][node]), np.inf)
        return False

    def _take_division(self, node: int, division: Division) -> None:
        """Write what a worker knew of a history and what follows it into the top."""
        for name in ("visits", "solved", "plan", "lane"):
            self.nodes[name][node] = division.node[name]
        self.node_values[node] = division.values
        if division.node["plan"] != NONE or division.node["lane"] != NONE:
            self._marked = np.append(self._marked, node)
        first = int(self.nodes["first_edge"][node])
        count = len(division.edges)
        edges = self.edges[first : first + count]
        for name in ("visits", "solved"):
            edges[name] = division.edges[name]
        self.edge_values[first : first + count] = division.edge_values
        children = self.list_children(node)
        for name in ("visits", "solved"):
            self.nodes[name][children] = division.children[name]
        self.node_values[children] = division.child_values

    def _balance(self) -> None:
        """Let workers with much to do give parts to those with little, by their samples of late."""
        loads = self._add_loads()
        even = sum(loads.values()) / max(1, len(self._workers))
        known = [pair for pair in self._loads.items() if pair[0] in self._owners]
        for number, load in sorted(known, key=lambda pair: (-pair[1], pair[0])):
            owner = self._owners.get(number)
            least = min(self._workers, key=lambda worker: loads[worker])
            if (
                owner is None
                or loads[owner] <= UNEVEN * even
                or loads[least] + load >= loads[owner]
            ):
                continue
            self._send(number, least)
            loads[owner] -= load
            loads[least] += load

    def _add_loads(self) -> Counter[Worker]:
        loads: Counter[Worker] = Counter(dict.fromkeys(self._workers, 0))
        for number, owner in self._owners.items():
            loads[owner] += self._loads[number]
        return loads

    def _send(self, number: int, worker: Worker) -> None:
        """Let another worker have a part."""
        [packed] = self.ask_workers([number], lambda owner, _: owner.call("give", [number]))
        self._owners[number] = worker
        try:
            worker.call("take", packed).result()
        except WorkerLostError:
            self._lose(worker)

    def grow_top(self, most: int, closeness: float) -> GrownTop:
        return grow_forest_top(self, most, closeness)

    def complete(self) -> Completion:
        return ForestCompletion(self)

    # What it knows as a whole.

    @property
    def histories(self) -> int:
        return super().histories + sum(s.histories for s in self._standings.values())

    @property
    def memory(self) -> int:
        return super().memory + sum(s.memory for s in self._standings.values())

    @property
    def evaluations(self) -> int:
        own = self.graph.evaluations + self._gone_evaluations
        return own + sum(s.evaluations for s in self._standings.values())

    def merge_returns(self) -> NDArray[Any]:
        collected: dict[int, NDArray[Any]] = {}
        for answer in self.ask_workers(self._owners, lambda worker, _: worker.call("collect")):
            collected |= answer
        return self._merge([collected[number] for number in sorted(collected)])
