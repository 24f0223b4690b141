"""A search tree distributed over workers: the upper tree here, and subtrees as shards with them.

The coordinator holds the upper tree and orders samples as in a tree of one memory
(`vulcan.sampling.price_search`); the subtrees below are shards (`vulcan.sampling.shard`). It knows
the root of each shard: its visits, its values, and whether it is solved. The upper tree needs no
more, so the search is the same, sample by sample, wherever its shards are. A new shard goes to the
worker with the smallest load, and stays there; where it is split, so do the shards below it that
were sampled.

A shard that is lost with its worker is searched anew, on any worker, from its next samples on. A
plan that relied on it is made again.

A plan is made over the upper tree as if it were one tree: each worker grows the upper tree into its
shards, and the coordinator merges what they show, and computes fronts there. Workers evaluate and
write the policies below.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import wraps
from time import perf_counter
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import ModelError, OptionError
from vulcan.exact.acceptance import Extremes, join_extremes
from vulcan.graph.compiled import CompiledGraph
from vulcan.graph.states import ACTION
from vulcan.kernels.plan import SubtreeLayers
from vulcan.model.compiled import forget_compiled
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule, Violation
from vulcan.numerics import END, NONE
from vulcan.parallel.executors import Executor, Worker, WorkerLostError, note_loss
from vulcan.problem import Problem
from vulcan.runtime.limits import is_late
from vulcan.sampling.candidate import Candidate
from vulcan.sampling.completion import (
    Completion,
    Points,
    SharedCompletion,
    UpperTree,
    cut_off,
    grow_upper_tree,
    make_upper_arrays,
)
from vulcan.sampling.price_search import SHARE_OF_SAMPLING, PriceRun
from vulcan.sampling.shard import HostReport, Marks, ShardHost, ShardSpec, Split

__all__ = ["DistributedCompletion", "DistributedTree", "ShardPool", "again_if_lost"]

LOWER: Final = (1 << 32) - 1
"""The number of a history for plans is that of its shard, times 2³², plus that of its node."""

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


class ShardsLostError(Exception):
    """Shards that a plan relies on were lost with their workers."""


def again_if_lost(function: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """Let a function that plans begin again if shards are lost meanwhile."""

    @wraps(function)
    def try_again(*arguments: Parameters.args, **options: Parameters.kwargs) -> Answer:
        while True:
            try:
                return function(*arguments, **options)
            except ShardsLostError:
                continue

    return try_again


class DistributedTree(PriceRun):
    """One search over several workers.

    Parameters
    ----------
    problem, reader, memory, seed, exploration
        As in `PriceRun`; memory is that of all workers together.
    executor
        Where the workers are.

    Attributes
    ----------
    pool
        The shards, and the workers that hold them.
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
        self.pool = ShardPool(executor, problem, seed, exploration)
        self._first_nodes = np.zeros(0, np.intp)

    def close(self) -> None:
        self.pool.close()

    def prepare(self) -> None:
        self.pool.prepare(self._shared_memory, SHARE_OF_SAMPLING)
        super().prepare()

    def number_of(self, root: int) -> int:
        """Return the number of the shard with this root."""
        return self._origins[root].number

    def is_shard(self, node: int) -> bool:
        """Whether a node is the root of a shard."""
        return node in self._origins and node not in self._retired

    def _find_first_nodes(self, numbers: Iterable[int]) -> NDArray[np.intp]:
        """Return the roots of shards."""
        if len(self._first_nodes) < len(self._origins):
            self._first_nodes = np.array(list(self._origins), np.intp)
        return self._first_nodes[np.fromiter(numbers, np.intp) - 1]

    def create(self, numbers: Iterable[int]) -> None:
        """Create those shards that no worker has yet."""
        assert isinstance(self.graph, CompiledGraph)
        wanted = sorted(numbers)
        while fresh := [number for number in wanted if number not in self.pool]:
            specs = {}
            for number, root in zip(fresh, self._find_first_nodes(fresh).tolist(), strict=True):
                node = self.nodes[root]
                state = self.graph.pack_state(int(node["state"]))
                specs[number] = ShardSpec(self._origins[root], int(node["level"]), state)
            self._forget(self.pool.create(specs, self.prices.copy()))

    def call(self, name: str, content: Mapping[int, Any], *others: Any) -> list[Any]:
        """Return the answers of the hosts of shards; see `ShardPool.call`.

        Raises
        ------
        ShardsLostError
            If a worker is lost: the shards that it had are not known any more.
        """
        answers, lost = self.pool.call(name, content, *others)
        if lost:
            self._forget(lost)
            raise ShardsLostError
        return answers

    def _forget(self, lost: Iterable[int]) -> None:
        """Forget what was sampled in shards."""
        roots = self._find_first_nodes(lost)
        self.node_values[roots] = self.nodes["visits"][roots] = self.nodes["solved"][roots] = 0

    # Samples, prices and plans.

    def _sample_subtrees(self, work: Sequence[tuple[int, NDArray[Any]]], most: float) -> None:
        orders = {self.number_of(root): some for root, some in work}
        while orders:
            self.create(orders)
            reports, lost = self.pool.call("sample", orders)
            self._forget(lost)
            self._read(reports, widen=True)
            self.full = any(report.full for report in reports)
            orders = {number: orders[number] for number in orders if number in lost}

    def _read(self, reports: Sequence[HostReport], widen: bool = False) -> None:
        """Write the reports of shards into the upper tree."""
        for report in reports:
            shards = report.shards
            roots = self._find_first_nodes(shards["number"])
            self.node_values[roots] = shards["values"]
            for name in ("visits", "solved"):
                self.nodes[name][roots] = shards[name]
            ended = self.nodes["state"][roots[shards["ended"] != 0]]
            self.graph.states.array["action_count"][ended] = 0
            if widen:
                for root, shard in zip(roots.tolist(), shards, strict=True):
                    self._widen_span(root, shard)

    def _move_values(self, left: NDArray[np.intp], share: NDArray[np.float32]) -> None:
        shards = dict.fromkeys(self.pool.shards)
        reports, lost = self.pool.call("move", shards, self.prices.copy(), left, share)
        self._forget(lost)
        self._read(reports)
        upper_nodes = np.array([*self.upper_nodes.tolist()[::-1], 0], np.intp)
        self._kernels.move_values(self.tree(), upper_nodes, left, share)

    def follow(
        self, actions: list[tuple[int, int]] | None, price_indices: list[tuple[int, int]]
    ) -> None:
        marks: dict[int, Marks] = {number: ([], []) for number in (0, *self.pool.shards)}
        for kind, some in enumerate((actions or [], price_indices)):
            for history, mark in some:
                marks[history >> 32][kind].append((history & LOWER, mark))
        super().follow(*marks.pop(0))
        self.call("mark", marks)

    def grow_upper_tree(self, most: int, closeness: float) -> UpperTree:
        """Return the upper tree that the tree would have in one memory."""
        own = grow_upper_tree(self, most, closeness)
        numbers = {
            n: self.number_of(int(root))
            for n, root in enumerate(own.histories.tolist())
            if own.nodes["edge_count"][n] == 0 and self.is_shard(int(root))
        }
        reaches = {
            number: float(own.reach[n]) for n, number in numbers.items() if number in self.pool
        }
        shown: dict[int, UpperTree] = {}
        for answer in self.call("show", reaches, most, closeness):
            shown |= answer
        return _merge(self, own, numbers, {number: shown[number] for number in reaches}, most)

    def complete(self) -> Completion:
        return DistributedCompletion(self)

    def _open_upper_nodes(self, nodes: Sequence[int]) -> None:
        for node in nodes:
            number, first = self.number_of(node), len(self._origins) + 1
            answers, lost = self.pool.call("split", {number: first})
            self._forget(lost)
            if lost:
                continue
            split = answers[0][number]
            self.open_actions(node)
            self._apply_split(node, split)
            self.add_upper_node(node, split.returns)
            sampled = np.flatnonzero(split.children["visits"]) + first
            self.pool.replace(number, sampled.tolist())

    def _apply_split(self, node: int, split: Split) -> None:
        """Write what a worker knew of a history and what follows it into the upper tree."""
        for name in ("visits", "solved", "plan", "price_index"):
            self.nodes[name][node] = split.node[name]
        self.node_values[node] = split.values
        if split.node["plan"] != NONE or split.node["price_index"] != NONE:
            self._marked = np.append(self._marked, node)
        first, count = int(self.nodes["first_edge"][node]), len(split.edges)
        children = self.list_children(node)
        for name in ("visits", "solved"):
            self.edges[name][first : first + count] = split.edges[name]
            self.nodes[name][children] = split.children[name]
        self.edge_values[first : first + count] = split.edge_values
        self.node_values[children] = split.child_values

    # Totals of all shards.

    @property
    def histories(self) -> int:
        return super().histories + self.pool.sum_up("histories")

    @property
    def memory(self) -> int:
        return super().memory + self.pool.sum_up("memory")

    @property
    def evaluations(self) -> int:
        return self.graph.evaluations + self.pool.sum_up("evaluations")

    def find_extremes(self) -> Extremes:
        shards = self.call("find_extremes", dict.fromkeys(self.pool.shards))
        return join_extremes([super().find_extremes(), *shards])

    def merge_returns(self) -> NDArray[Any]:
        collected: dict[int, NDArray[Any]] = {}
        for answer in self.call("collect", dict.fromkeys(self.pool.shards)):
            collected |= answer
        return self._merge([collected[number] for number in sorted(collected)])


# Shards and their workers.

BETWEEN_LOOKS: Final = 1.0
"""Seconds between two looks at how long an answer takes."""

MOST_TRIES: Final = 3
"""The search stops after losing all workers this many times without an answer."""


class ShardPool:
    """The workers of a search, and which shards each of them has.

    Parameters
    ----------
    executor
        Where the workers are.
    problem, seed, exploration
        As in `PriceRun`.
    """

    def __init__(self, executor: Executor, problem: Problem, seed: int, exploration: float) -> None:
        self._executor = executor
        sent = Problem(forget_compiled(problem.model), problem.risk_bound)
        self._made = (ShardHost, sent, seed, exploration)
        self._workers: list[Worker] = []
        self._limits: dict[Worker, float] = {}
        self._reports: dict[Worker, HostReport] = {}
        self._owners: dict[int, Worker] = {}  # of shards, by their numbers
        self._loads: Counter[Worker] = Counter()  # shards that were given, and samples
        self._losses_in_a_row = 0

    def __len__(self) -> int:
        """Return the number of workers."""
        return len(self._workers)

    def __contains__(self, number: int) -> bool:
        """Whether some worker has a shard."""
        return number in self._owners

    @property
    def shards(self) -> list[int]:
        """The numbers of all shards."""
        return sorted(self._owners)

    def sum_up(self, name: str) -> int:
        """Return the sum of a number over the last reports of all workers."""
        return sum(getattr(report, name) for report in self._reports.values())

    def close(self) -> None:
        """Stop all workers."""
        for worker in self._workers:
            worker.close()

    def prepare(self, memory: int | None, share: float) -> None:
        """Start workers, load their kernels, and set their memory limits.

        Parameters
        ----------
        memory
            Bytes for all workers together; by default the default limit of their machines.
        share
            The share of it that is for samples.
        """
        for _ in range(self._executor.workers):
            self._workers.append(self._executor.start_worker(*self._made))
        machines: dict[Worker, tuple[str, int]] = {}
        while fresh := [worker for worker in self._workers if worker not in machines]:
            for worker, future in [(worker, worker.call("prepare")) for worker in fresh]:
                try:
                    machines[worker] = self._wait(future)
                except WorkerLostError as error:
                    self._lose(worker, error)
        names = Counter(machines[worker][0] for worker in self._workers)
        for worker in self._workers:
            name, usual = machines[worker]
            own = usual / names[name] if memory is None else memory / len(self._workers)
            self._limits[worker] = share * own
            worker.call("set_limit", share * own)

    def call(
        self, name: str, content: Mapping[int, Any], *others: Any
    ) -> tuple[list[Any], set[int]]:
        """Call a method of the hosts of some shards; return their answers, and the shards lost.

        Parameters
        ----------
        name
            The method of `ShardHost`.
        content
            The first argument, by shards: each worker gets that of its own.
        others
            The other arguments.
        """
        shares: dict[Worker, dict[int, Any]] = {}
        for number in sorted(content):
            shares.setdefault(self._owners[number], {})[number] = content[number]
        futures = [(worker, worker.call(name, some, *others)) for worker, some in shares.items()]
        answers, lost = [], set[int]()
        for worker, future in futures:
            try:
                answer = self._wait(future)
            except WorkerLostError as error:
                lost |= self._lose(worker, error)
                continue
            answers.append(answer)
            if isinstance(answer, HostReport):
                self._reports[worker] = answer
            if name == "sample":
                self._loads[worker] += sum(map(len, shares[worker].values()))
        if not lost:
            self._losses_in_a_row = 0
        return answers, lost

    def create(self, specs: Mapping[int, ShardSpec], prices: Any) -> set[int]:
        """Create shards without samples, and return those that were lost.

        Each goes to the worker with the smallest load.
        """
        for number in specs:
            worker = min(self._workers, key=self._loads.__getitem__)
            self._owners[number] = worker
            self._loads[worker] += 1
        return self.call("create", specs, prices)[1]

    def replace(self, number: int, below: Iterable[int]) -> None:
        """Replace a shard, which its owner has split, by those below."""
        self._owners |= dict.fromkeys(below, self._owners.pop(number))

    def _wait(self, future: Future[Any]) -> Any:
        """Return an answer; if it is late, stop all workers and raise."""
        began = perf_counter()
        while not wait([future], BETWEEN_LOOKS).done:
            if is_late(began):
                self.close()
                seconds = perf_counter() - began
                message = f"a worker gave no answer in {seconds:.1f} s: is it in the model?"
                raise ModelError(Violation(Rule.ANSWERS, message))
        return future.result()

    def _lose(self, worker: Worker, error: WorkerLostError) -> set[int]:
        """Replace a worker if there is room, and return the shards that are lost with it."""
        self._losses_in_a_row += 1
        if self._losses_in_a_row > MOST_TRIES * self._executor.workers:
            raise WorkerLostError(f"workers are lost again and again: {error}")
        note_loss(error)
        self._workers.remove(worker)
        self._reports.pop(worker, None)
        lost = {number for number, owner in self._owners.items() if owner is worker}
        for number in lost:
            del self._owners[number]
        if self._executor.has_room():
            fresh = self._executor.start_worker(*self._made)
            if worker in self._limits:
                self._limits[fresh] = self._limits[worker]
                fresh.call("set_limit", self._limits[fresh])
            self._workers.append(fresh)
        if not self._workers:
            raise OptionError("all workers were lost, and there is no place for new ones")
        return lost


# The upper tree of plans.


def _merge(
    tree: DistributedTree,
    own: UpperTree,
    numbers: Mapping[int, int],
    shown: Mapping[int, UpperTree],
    most: int,
) -> UpperTree:
    """Return one upper tree of that of the coordinator and those of shards.

    Parameters
    ----------
    tree
        The search.
    own
        The coordinator's upper tree.
    numbers
        The shards that begin with its nodes.
    shown
        Upper trees of shards.
    most
        How many nodes it may have.
    """
    from vulcan.kernels.plan import merge_upper_trees

    trees = [own, *shown.values()]
    starts = np.cumsum([0, *(len(upper.nodes) for upper in trees)])
    places = dict(zip(shown, starts[1:].tolist(), strict=False))
    links = np.arange(starts[-1])
    for n, number in numbers.items():
        links[n] = places.get(number, n)
    histories = [own.histories.copy()]
    for n, number in numbers.items():
        histories[0][n] = number << 32
    histories += [(number << 32) + upper.histories for number, upper in shown.items()]
    mine = np.zeros(starts[-1], bool)
    mine[: len(own.nodes)] = np.isin(own.histories, tree.upper_nodes)
    merged = make_upper_arrays(most)
    merged.nodes["level"][0] = 0
    merge_upper_trees(SubtreeLayers(*_join(trees), mine), links, merged)
    nodes, edges, targets, reach = cut_off(merged)
    sources = nodes["state"]

    def gather(name: str) -> NDArray[Any]:
        return np.asarray(np.concatenate([getattr(upper, name) for upper in trees])[sources])

    return UpperTree(
        nodes,
        edges,
        targets,
        reach,
        np.concatenate(histories)[sources],
        gather("visits"),
        gather("action_counts"),
        gather("values"),
    )


def _join(trees: Sequence[UpperTree]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the layered graphs of several upper trees as one."""
    counts = np.zeros(3, np.int64)
    joined: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for upper in trees:
        nodes, edges, targets = upper.nodes.copy(), upper.edges.copy(), upper.targets.copy()
        nodes["first_edge"] += counts[1]
        edges["first_target"] += counts[2]
        targets["node"][targets["node"] >= 0] += counts[0]
        for rows, more in zip(joined, (nodes, edges, targets), strict=True):
            rows.append(more)
        counts += (len(nodes), len(edges), len(targets))
    nodes, edges, targets = map(np.concatenate, joined)
    return nodes, edges, targets


# Policies below it.

AT_ONCE: Final = 16
"""Leaves that a worker evaluates between two looks at the clock."""


class DistributedCompletion(SharedCompletion):
    """Policies below the upper tree of a plan, evaluated and written by workers."""

    def __init__(self, tree: DistributedTree) -> None:
        super().__init__(AT_ONCE * len(tree.pool))
        self._tree, self._returns = tree, tree.merge_returns()

    def _walk(self, nodes: Sequence[int]) -> list[tuple[Points, int]]:
        places: dict[int, list[int]] = {}
        for history in nodes:
            places.setdefault(history >> 32, []).append(history & LOWER)
        self._tree.create(places)
        points: dict[int, tuple[Points, int]] = {}
        for answer in self._tree.call("evaluate", places, self._returns):
            for (number, node), found, work in answer:
                points[(number << 32) + node] = found, work
        return [points[history] for history in nodes]

    def write(self) -> Candidate | None:
        tree, pieces = self._tree, list[_Piece]()
        _list_pieces(tree, pieces, 0, NONE)
        prices = {piece.shard: piece.mark for piece in pieces if piece.shard}
        tree.create(prices)
        below: dict[int, Candidate] = {}
        for answer in tree.call("write", prices, self._returns):
            below |= answer
        return _join_policy(tree, pieces, below)


class _Piece(NamedTuple):
    """A decision of a plan in the upper tree, or the policy of a shard.

    Attributes
    ----------
    shard
        The number of the shard; 0 for a decision.
    mark
        The price that a shard follows, or NONE; the action row of a decision.
    level, reach
        Of the history.
    above
        The decision before it, or NONE.
    """

    shard: int
    mark: int
    level: int
    reach: float
    above: int


def _list_pieces(
    tree: DistributedTree,
    pieces: list[_Piece],
    node: int,
    price_index: int,
    reach: float = 1.0,
    above: int = NONE,
) -> None:
    """Add the decisions of the marked plan from an upper node on, in preorder."""
    level = int(tree.nodes["level"][node])
    if tree.is_shard(node):
        pieces.append(_Piece(tree.number_of(node), price_index, level, reach, above))
        return
    marked, graph = tree.nodes[node], tree.graph
    first, count = int(marked["first_edge"]), int(marked["edge_count"])
    if price_index == NONE and marked["plan"] != NONE:
        position = int(marked["plan"])
    else:
        price_index = int(marked["price_index"]) if price_index == NONE else price_index
        values = tree.edge_values[first : first + count, price_index].astype(np.float64)
        values[tree.edges["visits"][first : first + count] == 0] = -np.inf
        position = int(np.argmax(values))
    row = int(graph.states.array["first_action"][marked["state"]]) + position
    action, number = graph.actions.array[row], len(pieces)
    pieces.append(_Piece(0, row, level, reach, above))
    outcomes = graph.outcomes.array[action["first_outcome"] :][: action["safe_count"]]
    child = int(tree.edges["first_child"][first + position])
    for k, chance in enumerate(outcomes["probability"].tolist()):
        _list_pieces(tree, pieces, child + k, price_index, reach * chance, number)


def _join_policy(
    tree: DistributedTree, pieces: Sequence[_Piece], below: Mapping[int, Candidate]
) -> Candidate:
    """Return the whole policy, given the policies of shards."""
    sizes = [len(below[piece.shard]) if piece.shard else 1 for piece in pieces]
    starts = [0, *np.cumsum(sizes).tolist()]
    following: list[list[int]] = [[] for _ in pieces]
    for piece, start, size in zip(pieces, starts, sizes, strict=False):
        if piece.above != NONE:
            following[piece.above].append(start if size else END)
    answers, entries = list[Any](), list[NDArray[np.int32]]()
    reward = risk = 0.0
    for k, (shard, mark, level, reach, _) in enumerate(pieces):
        if shard:
            policy = below[shard]
            moved = policy.below.copy()
            moved[moved >= 0] += starts[k]
            answers.append(policy.answers)
            entries.append(moved)
            reward, risk = reward + reach * policy.reward, risk + reach * policy.risk
            continue
        answer = tree.graph.actions.array[mark : mark + 1].astype(ACTION)
        reward += float(tree.reader.weights[level] * reach * answer["expected_reward"][0])
        risk += float(reach * answer["immediate_risk"][0])
        answer["first_outcome"] = NONE
        answers.append(answer)
        entries.append(np.array(following[k], np.int32))
    told = np.concatenate(answers)
    counts = told["safe_count"].astype(np.int64)
    firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    rows = np.arange(len(told), dtype=np.int32)
    after = np.concatenate(entries).astype(np.int32)
    return Candidate(rows, firsts, after, reward, risk, tree.allow(reward), 0.0, answers=told)
