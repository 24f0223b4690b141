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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial, wraps
from time import perf_counter
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import ModelError, OptionError
from vulcan.exact.acceptance import Extremes, join_extremes
from vulcan.graph.compiled import CompiledGraph
from vulcan.graph.levels import Layers
from vulcan.graph.states import ACTION
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
from vulcan.sampling.price_search import AT_ONCE, SHARE_OF_SAMPLING, PriceRun
from vulcan.sampling.shard import Marks, Report, ShardHost

LOWER: Final = (1 << 32) - 1
"""The number of a history for plans is that of its shard, times 2³², plus that of its node."""

BETWEEN_LOOKS: Final = 1.0
"""Seconds between two looks at how long an answer takes."""

MOST_TRIES: Final = 3
"""The search stops after losing all workers this many times without an answer."""

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
    """One search over the workers of an executor; memory is that of all of them together."""

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
        self._memory, self._executor = memory, executor
        sent = Problem(forget_compiled(problem.model), problem.risk_bound)
        self._made = (ShardHost, sent, seed, exploration)
        self._workers: list[Worker] = []
        self._limits: dict[Worker, float] = {}
        self._totals: dict[Worker, Any] = {}  # by the last reports
        self._owners: dict[int, Worker] = {}  # of shards, by their numbers
        self._loads: Counter[Worker] = Counter()  # shards that were given, and samples
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
            call("create", begun, self.prices.copy())

    def _call(self, name: str, content: Mapping[int, Any], *others: Any) -> list[Any]:
        """Call a method of `ShardHost` on the hosts of some shards, and return their answers.

        The first argument is what the content has for the shards of a host.
        """
        shares: dict[Worker, dict[int, Any]] = {}
        for number in sorted(content):
            shares.setdefault(self._owners[number], {})[number] = content[number]
        futures = [(worker, worker.call(name, some, *others)) for worker, some in shares.items()]
        answers = []
        for worker, future in futures:
            try:
                answers.append(self._wait(future))
            except WorkerLostError as error:
                self._lose(worker, error)
                continue
            if name in ("sample", "move"):
                self._totals[worker] = answers[-1][1]
            if name == "sample":
                self._loads[worker] += sum(map(len, shares[worker].values()))
        if len(answers) == len(shares):
            self._losses_in_a_row = 0
        return answers

    def _rely_on(self, name: str, content: Mapping[int, Any], *others: Any) -> list[Any]:
        """Call a method of the hosts of some shards, all of which must answer.

        Raises
        ------
        ShardsLostError
            If a worker is lost, and its shards with it.
        """
        answers = self._call(name, content, *others)
        if self._losses_in_a_row:
            raise ShardsLostError
        return answers

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
            reports = self._call("sample", orders)
            for report in reports:
                roots = self._read(report)
                for root, shard in zip(roots.tolist(), report[0], strict=True):
                    self._widen_span(root, shard)
            self.full = any(totals["full"] for _, totals in reports)
            orders = {n: some for n, some in orders.items() if n not in self._owners}

    def _read(self, report: Report) -> NDArray[np.intp]:
        """Write a report of shards into the upper tree, and return their roots."""
        shards, _ = report
        roots = self._find_roots(shards["number"])
        self.node_values[roots] = shards["values"]
        for name in ("visits", "solved"):
            self.nodes[name][roots] = shards[name]
        ended = self.nodes["state"][roots[shards["ended"] != 0]]
        self.graph.states.array["action_count"][ended] = 0
        return roots

    def _move_values(self, left: NDArray[np.intp], share: NDArray[np.float32]) -> None:
        for report in self._call("move", self._shards, self.prices.copy(), left, share):
            self._read(report)
        upper_nodes = np.array([*self.upper_nodes.tolist()[::-1], 0], np.intp)
        self._kernels.move_values(self.tree(), upper_nodes, left, share)

    @property
    def _shards(self) -> dict[int, None]:
        """The numbers of all shards."""
        return dict.fromkeys(sorted(self._owners))

    def follow(self, actions: list[tuple[int, int]], price_indices: list[tuple[int, int]]) -> None:
        marks: dict[int, Marks] = {number: ([], []) for number in (0, *self._shards)}
        for kind, some in enumerate((actions, price_indices)):
            for history, mark in some:
                marks[history >> 32][kind].append((history & LOWER, mark))
        super().follow(*marks.pop(0))
        self._rely_on("mark", marks)

    def grow_upper_tree(self, most: int, closeness: float) -> UpperTree:
        """Return the upper tree that the tree would have in one memory."""
        own = grow_upper_tree(self, most, closeness)
        numbers = {
            n: self._number(int(root))
            for n, root in enumerate(own.histories.tolist())
            if own.nodes["edge_count"][n] == 0 and self.is_subtree(int(root))
        }
        reaches = {
            number: float(own.reach[n]) for n, number in numbers.items() if number in self._owners
        }
        shown: dict[int, UpperTree] = {}
        for answer in self._rely_on("show", reaches, most, closeness):
            shown |= answer
        return _merge(self, own, numbers, {number: shown[number] for number in reaches}, most)

    def _open_upper_nodes(self, nodes: Sequence[int]) -> None:
        for node in nodes:
            number, first = self._number(node), len(self._subtrees) + 1
            for returns, marks, report in self._call("split", {number: first}):
                self.open_actions(node)
                self.add_upper_node(node, returns)
                worker = self._owners.pop(number)
                self._owners |= dict.fromkeys(report[0]["number"].tolist(), worker)
                self._read(report)
                self._back_up(node)
                self.nodes["plan"][node], self.nodes["price_index"][node] = marks
                self._marked = np.append(self._marked, node)

    def _back_up(self, node: int) -> None:
        """Renew an upper node from the shards below it."""
        first, count = (int(self.nodes[name][node]) for name in ("first_edge", "edge_count"))
        for edge in self.edges[first : first + count]:
            if edge["first_child"] != NONE:
                below = self.nodes[edge["first_child"] :][: edge["children"]]
                edge["visits"] = below["visits"].sum()
        unused = np.zeros(0, np.intp), np.zeros(0, np.float32)
        self._kernels.move_values(self.tree(), np.array([node]), *unused)

    # Policies below the upper tree of a plan, evaluated and written by workers.

    def complete(self) -> Completion:
        returns = self.merge_returns()
        walk, write = partial(self._evaluate, returns), partial(self._write, returns)
        return SharedCompletion(AT_ONCE * len(self._workers), walk, write)

    def _evaluate(self, returns: Any, nodes: Sequence[int]) -> list[tuple[Points, int]]:
        places: dict[int, list[int]] = {}
        for history in nodes:
            places.setdefault(history >> 32, []).append(history & LOWER)
        self._create(places, self._rely_on)
        points: dict[int, tuple[Points, int]] = {}
        for answer in self._rely_on("evaluate", places, returns):
            for (number, node), found, work in answer:
                points[(number << 32) + node] = found, work
        return [points[history] for history in nodes]

    def _write(self, returns: Any) -> Candidate:
        """Return the policy of the marked plan."""
        plan = list(self._list_plan())
        prices = {self._number(node): mark for node, mark, _ in plan if self.is_subtree(node)}
        self._create(prices, self._rely_on)
        below: dict[int, Candidate] = {}
        for answer in self._rely_on("write", prices, returns):
            below |= answer
        return self._join_policy(plan, below)

    def _list_plan(
        self, node: int = 0, price_index: int = NONE, reach: float = 1.0
    ) -> Iterator[tuple[int, int, float]]:
        """Yield the marked plan in preorder: upper nodes and roots of shards, each with its reach.

        Between them is the row of an upper node's action, or the price that a shard follows.
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
        return sum(int(totals[name]) for totals in self._totals.values())

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
        return join_extremes(
            [super().find_extremes(), *self._rely_on("find_extremes", self._shards)]
        )

    def merge_returns(self) -> NDArray[Any]:
        collected: dict[int, NDArray[Any]] = {}
        for answer in self._rely_on("collect", self._shards):
            collected |= answer
        return self._merge([collected[number] for number in sorted(collected)])


# The upper tree of plans.


def _merge(
    tree: DistributedTree,
    own: UpperTree,
    numbers: Mapping[int, int],
    shown: Mapping[int, UpperTree],
    most: int,
) -> UpperTree:
    """Return one upper tree of that of the coordinator, `own`, and those of shards.

    `numbers` has the shards that begin with its nodes; those of them in `shown` have upper trees.
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
    merge_upper_trees(Layers(*_join(trees)), mine, links, merged)
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
