"""A search tree distributed over workers: the upper tree here, and subtrees as shards with them.

The coordinator holds the upper tree and orders samples as in a tree in one memory
(`vulcan.sampling.price_search`); the subtrees below are shards. It knows the root of each shard:
its visits, its values, and whether it is solved. The upper tree needs no more, so the search is the
same, sample by sample, wherever its shards are. A new shard goes to the worker with the smallest
load, and stays there; where it is split, so do the shards below it that were sampled.

All shards of a worker are in the tree of one host, whose node 0 is not used: each has a root of its
own, with the state that the coordinator sent. A host only answers calls, and shards share nothing,
so it does not matter which shards are on the same host.

A shard that is lost with its worker is searched anew, on any worker, from its next samples on. A
plan that relied on it is made again.

A plan is made over the upper tree as if it were one tree; workers evaluate and write the policies
below.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial, wraps
from heapq import heappop, heappush
from time import perf_counter
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import ModelError, OptionError
from vulcan.exact.acceptance import Extremes
from vulcan.graph.compiled import CompiledGraph
from vulcan.graph.states import ACTION
from vulcan.kernels.price_tree import ORDER, PRICES
from vulcan.model.compiled import forget_compiled
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule, Violation
from vulcan.numerics import END, NONE
from vulcan.parallel.executors import Channel, Executor, Worker, WorkerLostError, note_loss
from vulcan.problem import Problem
from vulcan.runtime.arrays import ranges, starts
from vulcan.runtime.limits import find_default_memory, is_late
from vulcan.sampling.candidate import Candidate
from vulcan.sampling.completion import (
    Completion,
    HistoryCompletion,
    Points,
    SharedCompletion,
    UpperTree,
    grow_upper_tree,
)
from vulcan.sampling.price_search import AT_ONCE, SHARE_OF_SAMPLING, PriceRun, warm_up
from vulcan.sampling.tree import PriceArrays, Subtree

LOWER: Final = (1 << 32) - 1
AMPLE: Final = 2  # factor of the upper nodes that a host shows, for equal reaches
BETWEEN_LOOKS: Final = 1.0  # seconds between two looks at how long an answer takes
MOST_TRIES: Final = 3  # the search stops after losing all workers this many times without an answer

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")

Marks = list[tuple[int, int]]
"""Nodes with their marks of a plan; see `PriceArrays.follow`."""

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
"""The data of a shard that the upper tree needs after it was sampled."""

Report = tuple[NDArray[Any], dict[str, int]]
"""The answer of a host: a `SHARD_REPORT` of each shard that was called, and its totals."""


class ShardHost(PriceArrays):
    """The shards of one worker.

    The first argument of most methods maps numbers of shards to the argument for each shard.
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

    def move(self, prices: Any, left: NDArray[np.intp], share: NDArray[np.float32]) -> Report:
        """Move all shards to other prices; see `PriceRun.move_prices`."""
        self.prices[:] = prices
        self._move_values(left, share)
        return self._report(self._shards)

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

    def show(self, reaches: Mapping[int, float], most: int, closeness: float) -> UpperTree:
        """Return the upper tree of shards, given their reaches: their roots come first."""
        roots = [self._shards[number] for number in reaches]
        return grow_upper_tree(self, AMPLE * most, closeness, roots, list(reaches.values()))

    def collect(self) -> dict[int, NDArray[Any]]:
        """Return the returns of the shards that were sampled."""
        returns = {number: self._subtrees[root].returns for number, root in self._shards.items()}
        return {number: some for number, some in returns.items() if some is not None}

    def evaluate(self, nodes: Sequence[int], returns: Any) -> list[tuple[Points, int]]:
        """Return the rewards and risks of all prices from nodes on, and the work of each."""
        completion, found = HistoryCompletion(self, returns), []
        for node in nodes:
            before = completion.work
            [points] = completion.evaluate([node], lambda: True)
            found.append((points, completion.work - before))
        return found

    def write(self, prices: Mapping[int, int], returns: Any) -> dict[int, Candidate]:
        """Return the policy of the marked plan in shards, given the prices that they follow.

        A price is NONE where it is marked in the shard; `returns` are merged over all shards.
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
        return report, {
            "histories": self.histories,  # nodes of all shards
            "memory": self.memory,
            "evaluations": self.graph.evaluations,
            "full": self._full,  # whether memory has run out
        }


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
    """One search over the workers of an executor; memory is that of all of them together."""

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        memory: int | None,
        seed: int,
        exploration: float,
        executor: Executor,
    ) -> None:
        super().__init__(problem, reader, memory, None, seed, exploration)
        self._memory, self._executor = memory, executor
        sent = Problem(forget_compiled(problem.model), problem.risk_bound)
        self._made = (ShardHost, sent, seed, exploration)
        self._workers: list[Worker] = []
        self._limits: dict[Worker, float] = {}
        self._totals: dict[Worker, dict[str, int]] = {}  # of the last reports
        self._owners: dict[int, Worker] = {}  # of shards, by their numbers
        self._loads: Counter[Worker] = Counter()  # shards created there, and samples
        self._losses_in_a_row = 0
        self._roots_by_number = np.zeros(0, np.intp)

    # Workers and their shards.

    def prepare(self) -> None:
        """Start workers, load their kernels, and set their memory limits."""
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
            own = self._memory / len(self._workers) if self._memory else usual / names[name]
            self._limits[worker] = SHARE_OF_SAMPLING * own
            worker.call("set_limit", self._limits[worker])
        super().prepare()

    def close(self) -> None:
        for worker in self._workers:
            worker.close()

    def _number(self, root: int) -> int:
        """Return the number of the shard with this root."""
        return self._subtrees[root].number

    def _find_roots(self, numbers: Iterable[int]) -> NDArray[np.intp]:
        """Return the roots of shards."""
        if len(self._roots_by_number) < len(self._subtrees):
            self._roots_by_number = np.array(list(self._subtrees), np.intp)
        return self._roots_by_number[np.fromiter(numbers, np.intp) - 1]

    def _create(self, numbers: Iterable[int], call: Callable[..., Any]) -> None:
        """Create those shards that no worker has yet, on the workers with the smallest loads."""
        assert isinstance(self.graph, CompiledGraph)
        wanted = sorted(numbers)
        while fresh := [number for number in wanted if number not in self._owners]:
            begun = {}
            for number, root in zip(fresh, self._find_roots(fresh).tolist(), strict=True):
                state, level = (int(self.nodes[name][root]) for name in ("state", "level"))
                begun[number] = self._subtrees[root], level, self.graph.pack_state(state)
                worker = min(self._workers, key=self._loads.__getitem__)
                self._owners[number] = worker
                self._loads[worker] += 1
            call("create", self._share(begun), self.prices.copy())

    def _share(self, content: Mapping[int, Any]) -> dict[Worker, tuple[dict[int, Any]]]:
        """Group call arguments of shards by the worker that owns them."""
        shares: dict[Worker, tuple[dict[int, Any]]] = {}
        for number in sorted(content):
            shares.setdefault(self._owners[number], ({},))[0][number] = content[number]
        return shares

    def _call(
        self, name: str, shares: Mapping[Worker, tuple[Any, ...]], *others: Any
    ) -> dict[Worker, Any]:
        """Call a method on some workers; return the answers of those that are alive."""
        futures = {worker: worker.call(name, *first, *others) for worker, first in shares.items()}
        answers = {}
        for worker, future in futures.items():
            try:
                answers[worker] = self._wait(future)
            except WorkerLostError as error:
                self._lose(worker, error)
        if len(answers) == len(shares):
            self._losses_in_a_row = 0
        return answers

    def _rely_on(
        self, name: str, shares: Mapping[Worker, tuple[Any, ...]], *others: Any
    ) -> dict[Worker, Any]:
        """Call a method on workers, all of which must answer; else raise `ShardsLostError`."""
        answers = self._call(name, shares, *others)
        if self._losses_in_a_row:
            raise ShardsLostError
        return answers

    @property
    def _all(self) -> dict[Worker, tuple[Any, ...]]:
        """All workers, for calls."""
        return dict.fromkeys(self._workers, ())

    def _wait(self, future: Future[Any]) -> Any:
        """Return an answer; if it is late, stop all workers and raise."""
        began = perf_counter()
        while not wait([future], BETWEEN_LOOKS).done:
            if is_late(began):
                self.close()
                seconds = perf_counter() - began
                message = f"a worker gave no answer in {seconds:.1f} s; the model may be hanging"
                raise ModelError(Violation(Rule.ANSWERS, message))
        return future.result()

    def _lose(self, worker: Worker, error: WorkerLostError) -> None:
        """Forget the shards of a lost worker, and replace it if there is room."""
        self._losses_in_a_row += 1
        if self._losses_in_a_row > MOST_TRIES * self._executor.workers:
            raise WorkerLostError(f"workers are lost again and again: {error}")
        note_loss(error)
        self._workers.remove(worker)
        self._totals.pop(worker, None)
        lost = [number for number, owner in self._owners.items() if owner is worker]
        for number in lost:
            del self._owners[number]
        roots = self._find_roots(lost)
        self.node_values[roots] = self.nodes["visits"][roots] = self.nodes["solved"][roots] = 0
        if self._executor.has_room():
            fresh = self._executor.start_worker(*self._made)
            if worker in self._limits:
                self._limits[fresh] = self._limits[worker]
                fresh.call("set_limit", self._limits[fresh])
            self._workers.append(fresh)
        if not self._workers:
            raise OptionError("all workers were lost, and there is no place for new ones")

    # Samples, prices and plans.

    def _sample_subtrees(self, work: Sequence[tuple[int, NDArray[Any]]], most: float) -> None:
        orders = {self._number(root): some for root, some in work}
        while orders:
            self._create(orders, self._call)
            shares = self._share(orders)
            reports = self._call("sample", shares)
            for worker, report in reports.items():
                self._loads[worker] += sum(map(len, shares[worker][0].values()))
                roots = self._read(worker, report)
                for root, shard in zip(roots.tolist(), report[0], strict=True):
                    self._widen_span(root, shard)
            self.full = any(totals["full"] for _, totals in reports.values())
            orders = {n: some for n, some in orders.items() if n not in self._owners}

    def recycle(self, best: Candidate | None) -> None:
        """Shards stay as they are: the search ends where memory is full."""

    def _read(self, worker: Worker, report: Report) -> NDArray[np.intp]:
        """Write a report of shards into the upper tree, and return their roots."""
        shards, self._totals[worker] = report
        roots = self._find_roots(shards["number"])
        self.node_values[roots] = shards["values"]
        for name in ("visits", "solved"):
            self.nodes[name][roots] = shards[name]
        ended = self.nodes["state"][roots[shards["ended"] != 0]]
        self.graph.states.array["action_count"][ended] = 0
        return roots

    def _move_values(self, left: NDArray[np.intp], share: NDArray[np.float32]) -> None:
        for worker, report in self._call(
            "move", self._all, self.prices.copy(), left, share
        ).items():
            self._read(worker, report)
        upper_nodes = np.array([*self.upper_nodes.tolist()[::-1], 0], np.intp)
        self._kernels.move_values(self.tree(), upper_nodes, left, share)

    def follow(self, actions: Marks, price_indices: Marks) -> None:
        # Plans number a history by its worker, times 2³², plus its node there.
        marks: list[tuple[Marks, Marks]] = [([], []) for _ in range(len(self._workers) + 1)]
        for kind, some in enumerate((actions, price_indices)):
            for history, mark in some:
                marks[history >> 32][kind].append((history & LOWER, mark))
        super().follow(*marks[0])
        self._rely_on("follow", dict(zip(self._workers, marks[1:], strict=True)))

    def grow_upper_tree(self, most: int, closeness: float) -> UpperTree:
        """Return the upper tree that the tree would have in one memory."""
        own = grow_upper_tree(self, most, closeness)
        leaves = [
            n
            for n, root in enumerate(own.histories.tolist())
            if own.nodes["edge_count"][n] == 0 and self.is_subtree(root)
        ]
        numbers = {self._number(int(own.histories[n])): n for n in leaves}
        self._create(numbers, self._rely_on)
        reaches = self._share({number: float(own.reach[n]) for number, n in numbers.items()})
        trees, begin, links = [own], len(own.nodes), dict[int, int]()
        for worker, upper in self._rely_on("show", reaches, most, closeness).items():
            upper.histories[:] += (self._workers.index(worker) + 1) << 32
            links |= {numbers[number]: begin + k for k, number in enumerate(reaches[worker][0])}
            trees.append(upper)
            begin += len(upper.nodes)
        return _merge(trees, links, np.isin(own.histories, self.upper_nodes), most)

    def _open_upper_nodes(self, nodes: Sequence[int]) -> None:
        for node in nodes:
            number, first = self._number(node), len(self._subtrees) + 1
            answers = self._call("split", self._share({number: first}))
            for worker, (returns, marks, report) in answers.items():
                self.open_actions(node)
                self.add_upper_node(node, returns)
                del self._owners[number]
                self._owners |= dict.fromkeys(report[0]["number"].tolist(), worker)
                self._read(worker, report)
                first, count = (int(self.nodes[k][node]) for k in ("first_edge", "edge_count"))
                for edge in self.edges[first : first + count]:
                    if edge["first_child"] != NONE:
                        below = self.nodes[edge["first_child"] :][: edge["children"]]
                        edge["visits"] = below["visits"].sum()
                unused = np.zeros(0, np.intp), np.zeros(0, np.float32)
                self._kernels.move_values(self.tree(), np.array([node]), *unused)
                self.nodes["plan"][node], self.nodes["price_index"][node] = marks
                self._marked = np.append(self._marked, node)

    # Policies below the upper tree of a plan, evaluated and written by workers.

    def complete(self) -> Completion:
        returns = self.merge_returns()
        walk, write = partial(self._evaluate, returns), partial(self._write, returns)
        return SharedCompletion(AT_ONCE * len(self._workers), walk, write)

    def _evaluate(self, returns: Any, nodes: Sequence[int]) -> list[tuple[Points, int]]:
        places: dict[Worker, list[int]] = {}
        for history in nodes:
            places.setdefault(self._workers[(history >> 32) - 1], []).append(history & LOWER)
        shares = {worker: (some,) for worker, some in places.items()}
        found = {
            worker: iter(some)
            for worker, some in self._rely_on("evaluate", shares, returns).items()
        }
        return [next(found[self._workers[(history >> 32) - 1]]) for history in nodes]

    def _write(self, returns: Any) -> Candidate:
        """Return the policy of the marked plan."""
        plan = list(self._list_plan())
        prices = {self._number(node): mark for node, mark, _ in plan if self.is_subtree(node)}
        self._create(prices, self._rely_on)
        below: dict[int, Candidate] = {}
        for answer in self._rely_on("write", self._share(prices), returns).values():
            below |= answer
        return self._join_policy(plan, below)

    def _list_plan(
        self, node: int = 0, price_index: int = NONE, reach: float = 1.0
    ) -> Iterator[tuple[int, int, float]]:
        """Yield the marked plan in preorder: upper nodes and roots of shards, each with its reach.

        The second entry is the row of an upper node's action, or the price that a shard follows.
        """
        if self.is_subtree(node):
            yield node, price_index, reach
            return
        marked, graph = self.nodes[node], self.graph
        first, count = int(marked["first_edge"]), int(marked["edge_count"])
        if price_index == NONE and marked["plan"] != NONE:
            position = int(marked["plan"])
        else:
            price_index = int(marked["price_index"]) if price_index == NONE else price_index
            values = self.edge_values[first : first + count, price_index].astype(np.float64)
            values[self.edges["visits"][first : first + count] == 0] = -np.inf
            position = int(np.argmax(values))
        row = int(graph.states.array["first_action"][marked["state"]]) + position
        yield node, row, reach
        action, child = graph.actions.array[row], int(self.edges["first_child"][first + position])
        outcomes = graph.outcomes.array[action["first_outcome"] :][: action["safe_count"]]
        for k, chance in enumerate(outcomes["probability"].tolist()):
            yield from self._list_plan(child + k, price_index, reach * chance)

    def _join_policy(
        self, plan: Sequence[tuple[int, int, float]], below: Mapping[int, Candidate]
    ) -> Candidate:
        """Return the whole policy, given a plan and the policies of its shards."""
        answers, entries = list[Any](), list[Any]()
        unfilled = list[list[int]]()  # one place after each outcome that was not followed yet
        start, reward, risk = 0, 0.0, 0.0
        for node, mark, reach in plan:
            policy = below[self._number(node)] if self.is_subtree(node) else None
            if unfilled:
                unfilled.pop().append(END if policy is not None and not len(policy) else start)
            if policy is not None:
                answers.append(policy.answers)
                entries.append(np.where(policy.below >= 0, policy.below + start, policy.below))
                reward, risk = reward + reach * policy.reward, risk + reach * policy.risk
                start += len(policy)
                continue
            answer = self.graph.actions.array[mark : mark + 1].astype(ACTION)
            weight = self.reader.weights[self.nodes["level"][node]]
            reward += float(weight * reach * answer["expected_reward"][0])
            risk += float(reach * answer["immediate_risk"][0])
            answer["first_outcome"] = NONE
            answers.append(answer)
            entries.append(following := list[int]())
            unfilled += [following] * int(answer["safe_count"][0])
            start += 1
        told = np.concatenate(answers)
        firsts = np.concatenate([[0], np.cumsum(told["safe_count"].astype(np.int64))])
        after = np.concatenate([np.asarray(some, np.int32) for some in entries])
        rows, allowed = np.arange(len(told), dtype=np.int32), self.allow(reward)
        return Candidate(
            rows, firsts.astype(np.int32), after, reward, risk, allowed, 0.0, answers=told
        )

    # Totals of all shards.

    def _sum_up(self, name: str) -> int:
        return sum(totals[name] for totals in self._totals.values())

    @property
    def histories(self) -> int:
        return super().histories + self._sum_up("histories")

    @property
    def memory(self) -> int:
        return super().memory + self._sum_up("memory")

    @property
    def evaluations(self) -> int:
        return self.graph.evaluations + self._sum_up("evaluations")

    def find_extremes(self) -> Extremes:
        found = self._rely_on("find_extremes", self._all)
        every = zip(super().find_extremes(), *found.values(), strict=True)
        outcomes, gains, certain = map(max, every)
        return outcomes, gains, certain

    def merge_returns(self) -> NDArray[Any]:
        collected: dict[int, NDArray[Any]] = {}
        for answer in self._rely_on("collect", self._all).values():
            collected |= answer
        return self._merge([collected[number] for number in sorted(collected)])


# The upper tree of plans.


def _merge(
    trees: Sequence[UpperTree], links: Mapping[int, int], own: NDArray[np.bool_], most: int
) -> UpperTree:
    """Merge the upper trees of the coordinator, which comes first, and of the hosts.

    The result is grown as one tree would grow: upper nodes of the search, `own`, first, then the
    most probable histories. `links` leads from leaves to the roots of shards among all nodes.
    """
    nodes, edges, targets = _join(trees)
    reach, counts = [1.0], nodes["edge_count"]
    # The targets of a history are consecutive.
    ends = edges["first_target"] + edges["target_count"]
    expands = np.flatnonzero(counts > 0)
    first_edge = nodes["first_edge"][expands]
    first, end = np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
    first[expands] = edges["first_target"][first_edge]
    end[expands] = ends[first_edge + counts[expands] - 1]
    target_nodes, chances = targets["node"].tolist(), targets["probability"].tolist()
    order, expanded, waiting = [0], list[int](), [(-1.0, 0)]
    while waiting and len(order) < most:
        n = heappop(waiting)[1]
        expanded.append(n)
        for t in range(first[order[n]], end[order[n]]):
            if target_nodes[t] < 0:
                continue
            source = links.get(target_nodes[t], target_nodes[t])
            if counts[source] > 0:
                priority = reach[n] * chances[t] + (source < len(own) and bool(own[source]))
                heappush(waiting, (-priority, len(order)))
            order.append(source)
            reach.append(reach[n] * chances[t])
    sources, some = np.array(order), np.array(order)[expanded]
    merged, edges = nodes[sources], edges[ranges(nodes["first_edge"][some], counts[some])]
    merged["first_edge"], merged["edge_count"] = NONE, 0
    merged["first_edge"][expanded] = starts(counts[some])
    merged["edge_count"][expanded] = counts[some]
    targets = targets[ranges(edges["first_target"], edges["target_count"])]
    edges["first_target"] = starts(edges["target_count"])
    targets["node"][targets["node"] >= 0] = np.arange(1, len(order))

    def gather(name: str) -> NDArray[Any]:
        return np.asarray(np.concatenate([getattr(upper, name) for upper in trees])[sources])

    known = map(gather, ("histories", "visits", "action_counts", "values"))
    return UpperTree(merged, edges, targets, np.array(reach), *known)


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
