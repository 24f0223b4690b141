"""Sampling for several prices of failure: batches, workers, prices, and checkpoints.

Samples come in batches. The upper tree orders the samples of a batch (`vulcan.kernels.price_tree`):
for each the subtree, the price, and whether it follows the current plan. Then each subtree takes
its samples. After the batch, the upper tree renews its values and judges the first actions. The
search depends on sample counts alone, so the same samples and seed give the same tree.

**Memory.** A history that was visited once, as most are, has a path of its own below it, and an
estimate from one sample. `PriceRun.recycle` drops such paths where memory is full: the histories
become leaves, keep their values, and are opened again at their next visit.

**Workers.** Subtrees share nothing (`vulcan.sampling.tree`), so values and policies are the same
with any number of workers; only the numbers of rows and nodes differ, and with them the point where
memory runs out. Several workers are threads, since kernels release the interpreter lock. Each adds
nodes, edges and rows to a stretch of its own. A worker whose stretch is full stops. When all have
stopped, they get new stretches, arrays grow if necessary, and the rest of the batch goes on.

**Prices.** The value of a failure is unknown at first: prices go from 0, the plan without regard to
risk, up to many times the rewards. Later they surround prices that decide between the best first
actions, closer and closer. While no policy within the bound is known, prices rise: the largest
possible price asks for the least risk.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import repeat
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.forms import Constant
from vulcan.graph.compiled import CompiledGraph, Evaluator
from vulcan.kernels import codes
from vulcan.model.interface import Outcome
from vulcan.model.reader import ModelReader
from vulcan.numerics import NONE
from vulcan.problem import Problem
from vulcan.runtime.arrays import keep_rows, ranges, require, set_apart, unpack_array
from vulcan.runtime.limits import Limits, Monitor
from vulcan.sampling.candidate import Candidate
from vulcan.sampling.checkpoint import Snapshot, are_price_indices, check_price_tree
from vulcan.sampling.completion import (
    Completion,
    HistoryCompletion,
    Points,
    SharedCompletion,
    UpperTree,
    grow_upper_tree,
)
from vulcan.sampling.tree import PriceArrays, Subtree, make_returns, require_size
from vulcan.solvers.base import Options

SHARE_OF_SAMPLING: Final = 0.65  # of memory
RECYCLED: Final = 0.75  # recycling that leaves more than this share of memory is not worth it
NO_ROWS: Final = np.zeros(0, np.int32)
BATCHES: Final = 32  # a batch has this many times fewer samples than were taken so far
LARGEST_BATCH: Final = 1 << 14
FIRST_SAMPLES: Final = 64  # until the size of rewards is known well enough for first prices
FIRST_GUIDE: Final = 256  # samples before the first plan that guides others
GUIDES: Final = 2.0  # the number of samples grows by this factor between plans that guide
PLACES: Final = 256  # the risk bound is evaluated at this many rewards, to judge first actions
NOWHERE: Final = (math.inf, -math.inf)  # the span of rewards before the first sample
MOST_SHARES: Final = 32  # a subtree is split if it has more than 1 / 32 of all samples
FEWEST_TO_SPLIT: Final = 1 << 16  # samples before the first split
SHORTEST_SUBTREE: Final = 3  # steps left at an upper node, at least


class PriceRun(PriceArrays):
    """One search of a tree with several prices.

    Workers are threads that sample a compiled model; the result does not depend on their number.
    `full` says whether memory has run out, and `accepted` has the rewards of plans that the bound
    accepted.
    """

    exhausted = False  # no action is ever refused

    def __init__(self, *given: Any, workers: int = 1, **how: Any) -> None:
        super().__init__(*given, **how)
        self._draws = np.zeros(1, self._kernels.DRAWS)
        self._draws["random"] = np.uint64(self._seed)
        self._draws["exploration"] = self._exploration
        self._orders = np.zeros(0, self._kernels.ORDER)  # the rest of the current batch
        self._roots = np.zeros(0, np.int32)  # the subtrees of these orders
        self.samples = 0
        self._next_guide = FIRST_GUIDE
        self._span = self._bounded = NOWHERE
        self._allowed_risks: Any = None
        self.full = False
        self.accepted: set[float] = set()
        several = workers > 1 and isinstance(self.graph, CompiledGraph)
        self._threads = SampleThreads(self, workers) if several else None

    def close(self) -> None:
        """Stop the workers."""
        if self._threads is not None:
            self._threads.pool.shutdown()

    def do_beside(self, work: Callable[[], object]) -> Callable[[], object]:
        """Begin work that does not touch the tree, and return a function that waits for it.

        With a single thread, that function does the work; else a thread begins it at once.
        """
        return work if self._threads is None else self._threads.pool.submit(work).result

    @property
    def histories(self) -> int:
        return super().histories - (0 if self._threads is None else self._threads.spare)

    def prepare(self) -> None:
        """Compile the kernels, open the first actions, and set the first prices."""
        self.prices[0] = begin_prices(self.prices.shape[1], 1.0, 1.0)
        self.open_actions(0)
        self.add_upper_node(0, None)
        state = self.graph.states.array[self.nodes["state"][0]]
        self.judged = np.zeros(max(1, int(state["action_count"])), self._kernels.JUDGED)
        self.judged["reward"] = -math.inf

    # Samples.

    def can_sample(self, target: int) -> bool:
        """Whether there is something left to sample, up to this many samples."""
        return self.samples < target and not self.solved and not self.full

    def advance(self, target: int) -> None:
        """Take the samples of a batch, up to this many in all.

        Batches depend on sample counts alone, and stops come between them; only the target may
        leave orders of a batch for later.
        """
        if not len(self._orders):
            self._order_batch()
        self._carry_out(target - self.samples, SHARE_OF_SAMPLING * self.limit)
        if not len(self._orders):
            self.judge()
            self._split()
            if self.samples == FIRST_SAMPLES:
                allowed = self.allow(self.reward_span()[1])
                self.move_prices(begin_prices(self.prices.shape[1], self.size, allowed))

    def needs_guide(self) -> bool:
        """Whether samples need a new plan that guides them; the next one is due much later."""
        due = not len(self._orders) and self.samples >= self._next_guide and not self.solved
        if due:
            self._next_guide = int(GUIDES * self.samples)
        return due

    def _order_batch(self) -> None:
        """Order samples: the subtree, the price, and whether the plan guides."""
        size = min(max(1, self.samples // BATCHES), LARGEST_BATCH)
        orders, roots = np.zeros(size, self._kernels.ORDER), np.zeros(size, np.int32)
        low, high = self._span
        scale = self._exploration * max(0.0, high - low)
        levels = self.reader.levels
        seen = np.concatenate([make_returns(0), *self._retired.values()]).reshape(-1, levels)
        arguments = (self.upper_nodes, seen, self.judged, scale, self._draws, orders, roots)
        count = int(self._kernels.write_orders(self.arrays(), self.tree(), *arguments))
        self._orders, self._roots = orders[:count], roots[:count]

    def _carry_out(self, most_samples: int, most: float) -> None:
        """Take ordered samples, grouped by subtree."""
        count = min(len(self._orders), most_samples)
        orders, roots = self._orders[:count], self._roots[:count]
        self._orders, self._roots = self._orders[count:], self._roots[count:]
        order = np.argsort(roots, kind="stable")
        starts = np.flatnonzero(np.diff(roots[order], prepend=-1))
        work = [
            (int(roots[order[begin]]), orders[order[begin:end]])
            for begin, end in zip(starts, [*starts[1:], count], strict=True)
        ]
        self._sample_subtrees(work, most)
        self.samples += count
        if self._span[0] <= self._span[1]:
            # A value is never above all rewards; values far below them are never chosen.
            require_size(self._span, np.maximum(self.node_values[roots], 0.0))

    def _sample_subtrees(self, work: Sequence[tuple[int, NDArray[Any]]], most: float) -> None:
        subtrees = [self._find_subtree(root).order(orders) for root, orders in work]
        if self._threads is None:
            self.full = not all(self.sample_subtree(subtree, most) for subtree in subtrees)
        else:
            self.full = not self._threads.sample(subtrees, most)
        if self.full:  # the rest of the orders is left for later
            left = [
                (root, some[int(s.control["done"][0]) :])
                for (root, some), s in zip(work, subtrees, strict=True)
            ]
            self._orders = np.concatenate([*(some for _, some in left), self._orders])
            numbers = np.repeat([root for root, _ in left], [len(some) for _, some in left])
            self._roots = np.concatenate([numbers.astype(np.int32), self._roots])
            self.samples -= len(numbers)
        for (root, _), subtree in zip(work, subtrees, strict=True):
            self._widen_span(root, subtree.returns[int(self.nodes["level"][root])])

    def _widen_span(self, root: int, seen: Any) -> None:
        """Include the least and the largest return of a subtree in the span of rewards."""
        if seen["samples"]:
            (low, high), earned = self._span, self._subtrees[root].earned
            least, most = earned + float(seen["least"]), earned + float(seen["most"])
            self._span = min(low, least), max(high, most)

    def _split(self) -> None:
        """Add the roots of large subtrees to the upper tree."""
        if self.samples < FEWEST_TO_SPLIT:
            return
        roots = np.array([root for root in self._subtrees if root not in self._retired])
        nodes = self.nodes[roots]
        large = (nodes["visits"] * MOST_SHARES > self.samples) & (nodes["solved"] == 0)
        deep = nodes["level"] + SHORTEST_SUBTREE > self.reader.levels
        self._open_upper_nodes(roots[large & ~deep].tolist())

    def _open_upper_nodes(self, nodes: Sequence[int]) -> None:
        for node in nodes:
            self.open_actions(node)
            self.add_upper_node(node, self._find_subtree(node).returns)

    # Memory.

    def recycle(self, best: Candidate | None) -> None:
        """Forget what was sampled below the less visited half of histories, where memory is full.

        These become leaves again, with the values that they have. Upper nodes, the marked plan and
        the best policy stay. It is no longer `full` if that frees a quarter of the memory.
        """
        before, nodes = self.memory, self.nodes[: int(self.sizes["nodes"][0])]
        edges = self.edges[: int(self.sizes["edges"][0])]
        opened = (nodes["first_edge"] != NONE) & (nodes["visits"] > 0)
        if not opened.any():
            return
        known = self.graph.states.array["action_count"][: self.graph.states.count] > 0
        # Plans that were written out may have filled most rows: then they go, and the tree stays.
        least = np.median(nodes["visits"][opened]) if 2 * opened.sum() > known.sum() else 0
        kept = nodes["visits"] > least
        kept[[0, *self.upper_nodes, *self._marked]] = True
        kept &= opened
        counts = nodes["edge_count"][kept]
        kept_edges = np.sort(ranges(nodes["first_edge"][kept], counts))
        followed = kept_edges[edges["first_child"][kept_edges] != NONE]
        children = ranges(edges["first_child"][followed], edges["children"][followed])
        kept_nodes = np.append(0, np.sort(children))
        node_map, edge_map = (np.full(len(rows), NONE, np.int32) for rows in (nodes, edges))
        node_map[kept_nodes] = np.arange(len(kept_nodes), dtype=np.int32)
        edge_map[kept_edges] = np.arange(len(kept_edges), dtype=np.int32)
        if isinstance(self.graph, CompiledGraph):
            marked = nodes["state"][self._marked]  # which may have rows without edges
            states = np.unique(np.concatenate([nodes["state"][kept], marked]))
            taken = NO_ROWS if best is None or best.graph is not None else best.rows
            nodes["state"] = self.graph.recycle(states, taken)[nodes["state"]]
        nodes["first_edge"] = np.where(kept, edge_map[nodes["first_edge"]], NONE)
        edges["first_child"][followed] = node_map[edges["first_child"][followed]]
        for kind, rows in (("nodes", kept_nodes), ("edges", kept_edges)):
            for name in self.GROWING[kind]:
                keep_rows(getattr(self, name), rows)
            self.sizes[kind] = len(rows)
        self._renumber(node_map)
        self.full = self.full and self.memory > RECYCLED * before

    def _renumber(self, numbers: NDArray[np.int32]) -> None:
        """Give nodes new numbers, everywhere but in the arrays of the tree."""
        self.upper_nodes, self._roots = numbers[self.upper_nodes], numbers[self._roots]
        self._marked = numbers[self._marked].astype(np.int64)
        self._subtrees = {int(numbers[root]): some for root, some in self._subtrees.items()}
        self._retired = {int(numbers[root]): some for root, some in self._retired.items()}
        for root, subtree in self._subtrees.items():
            if subtree.control is not None:
                subtree.control["root"] = root
        if self._threads is not None:
            self._threads.forget_stretches()

    def judge(self) -> None:
        """Renew the values of the upper tree and judge the first actions."""
        arguments = (self.upper_nodes, self._find_allowed_risks(), self.judged)
        self._kernels.judge(self.arrays(), self.tree(), *arguments)

    def _find_allowed_risks(self) -> Any:
        """Return the risk bound over the span of rewards, evaluated again if the span has moved."""
        (low, high), before = self.reward_span(), self._bounded
        if not before[0] <= low <= high <= before[1]:
            room = 0.25 * (high - low)
            self._bounded = low - room, high + room
        if self._allowed_risks is None or self._bounded != before:
            low, high = self._bounded
            step = max((high - low) / PLACES, 1e-9 * max(abs(low), abs(high))) or 1.0
            allowed = np.array([self.allow(low + k * step) for k in range(PLACES + 1)])
            self._allowed_risks = low, step, allowed
        return self._allowed_risks

    def reward_span(self) -> tuple[float, float]:
        """Return the least and the largest reward of policies, as far as they are known."""
        low, high = self._span
        if not low <= high:
            return 0.0, 1.0
        first = int(self.nodes["first_edge"][0])
        rewards = self.edges["reward"][first : first + len(self.judged)]
        return low + float(rewards.min()), high + float(rewards.max())

    @property
    def size(self) -> float:
        """The size of rewards, as far as it is known."""
        low, high = self.reward_span()
        return max(abs(low), abs(high), high - low) or 1.0

    # Plans and prices.

    def grow_upper_tree(self, most: int, closeness: float) -> UpperTree:
        """Return the layered graph for plans; see `vulcan.sampling.completion`."""
        return grow_upper_tree(self, most, closeness)

    def complete(self) -> Completion:
        """Return the object that evaluates and writes policies below the upper tree."""
        return HistoryCompletion(self) if self._threads is None else self._threads.complete()

    def credits(self) -> list[float]:
        """Return the rewards of plans that the bound accepted."""
        return sorted(self.accepted)

    def move_prices(self, prices: NDArray[np.float64]) -> None:
        """Move to other prices: interpolate at the leaves, and back up from there.

        Values are convex in the price, so a chord is never below them.
        """
        old, new = self.prices[0].astype(np.float64), np.sort(prices)
        self.prices[0] = new
        if self.samples > 0 or self.solved:
            left = np.clip(np.searchsorted(old, new, side="right") - 1, 0, len(old) - 2)
            width = np.maximum(old[left + 1] - old[left], 1e-300)
            share = np.clip((new - old[left]) / width, -0.5, 1.5).astype(np.float32)
            self._move_values(left, share)
            self.judge()

    # Checkpoints.

    def pack(self) -> dict[str, Any]:
        """Return everything that is needed to resume from here; see `Snapshot`."""
        sampled = sorted(self.list_sampled().items())
        subtrees, none = [subtree for _, subtree in sampled], make_returns(0)
        numbers = (self.samples, self._next_guide, *self._span, *self._bounded)
        arrays = {name: getattr(self, name) for name in (*FIXED, *LISTS)}
        return self._pack(
            self.credits(),
            arrays
            | {
                "subtrees": np.array([root for root, _ in sampled], np.int64),
                "returns": np.concatenate([none, *(subtree.returns for subtree in subtrees)]),
                "random": np.array([subtree.control["random"][0] for subtree in subtrees], "u8"),
                "retired": np.concatenate([none, *self._retired.values()]),
                "numbers": np.array(numbers, np.float64),
            },
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Resume from a snapshot: evaluate the model again, and take over the checked arrays."""
        packed, levels = snapshot.arrays, self.reader.levels
        root, children = int(self.nodes["first_edge"][0]), self.list_children(0)
        self._unpack(snapshot, (*FIXED, *LISTS, *SUBTREES, "numbers"))
        self.accepted = {reward for reward, _ in snapshot.credits}
        samples, guide, *spans = unpack_array(packed, "numbers", np.zeros(0), NUMBERS).tolist()
        for count in (samples, guide):
            require(0 <= count < 1 << 53 and count == int(count), "samples were not counted")
        require(not any(map(math.isnan, spans)), "an end of the range of rewards is NaN")
        self.samples, self._next_guide = int(samples), int(guide)
        self._span, self._bounded = (spans[0], spans[1]), (spans[2], spans[3])
        for name in FIXED[:2]:
            array = getattr(self, name)
            array[:] = unpack_array(packed, name, array, len(array))
        self._draws["random"] = unpack_array(packed, "_draws", self._draws, 1)["random"]
        for name in LISTS[1:]:
            setattr(self, name, unpack_array(packed, name, getattr(self, name)))
        check_price_tree(self.tree()._replace(**self._filled()), self.graph, levels)
        first = self.nodes["first_edge"][0] == root
        require(first and self.list_children(0) == children, "the tree begins with other histories")
        upper_nodes = unpack_array(packed, "upper_nodes", self.upper_nodes)
        retired = unpack_array(packed, "retired", make_returns(0), levels * len(upper_nodes))
        for node, returns in zip(upper_nodes.tolist(), retired.reshape(-1, levels), strict=True):
            self._require_subtree(node)
            self.add_upper_node(node, returns)
        self._restore_subtrees(packed)
        self._check_orders()

    def _restore_subtrees(self, packed: Mapping[str, bytes]) -> None:
        roots, levels = unpack_array(packed, "subtrees", np.zeros(0, np.int64)), self.reader.levels
        require(len(np.unique(roots)) == len(roots), "two subtrees have the same root")
        returns = unpack_array(packed, "returns", make_returns(0), levels * len(roots))
        random = unpack_array(packed, "random", np.zeros(0, np.uint64), len(roots))
        for k, root in enumerate(roots.tolist()):
            self._require_subtree(root)
            subtree = self._find_subtree(root)
            subtree.returns[:] = returns[k * levels : (k + 1) * levels]
            subtree.control["random"] = random[k]

    def _require_subtree(self, root: int) -> None:
        """Refuse a node that is not the root of a subtree."""
        require(self.is_subtree(root), "a subtree begins where none can")

    def _check_orders(self) -> None:
        """Refuse orders, marks and judgements with invalid indices."""
        orders, judged = self._orders, self.judged
        indices = (judged["price_index"], orders["price_index"])
        require(all(map(are_price_indices, indices)), "a price is not there")
        require(len(orders) == len(self._roots) <= LARGEST_BATCH, "the number of orders is wrong")
        for root in np.unique(self._roots).tolist():
            self._require_subtree(root)
        marked = (self._marked >= 0) & (self._marked < self.histories)
        require(marked.all(), "a plan leads to a missing history")
        for number in (0, *self.upper_nodes.tolist()):
            self._check_upper_node(self.nodes[number])

    def _check_upper_node(self, node: Any) -> None:
        """Refuse an upper node below which an order would find no history."""
        if node["first_edge"] == NONE:
            require(node["level"] == 0 and node["solved"], "an upper node has no actions")
            return
        edges = self.edges[node["first_edge"] : node["first_edge"] + node["edge_count"]]
        left = edges[edges["solved"] == 0]
        require(node["solved"] or len(left), "an upper node has nothing left to sample")
        require((left["first_child"] != NONE).all(), "an action of an upper node leads nowhere")
        if not len(self._orders):  # the upper tree is updated only after a batch
            children = [self.nodes[edge["first_child"] :][: edge["children"]] for edge in left]
            unsolved = all((some["solved"] == 0).any() for some in children)
            require(unsolved, "an action has nothing left to sample")


# The arrays of a search in a checkpoint.

FIXED: Final = ("prices", "judged", "_draws")  # these arrays don't grow
LISTS: Final = ("upper_nodes", "_marked", "_orders", "_roots")
SUBTREES: Final = ("subtrees", "returns", "random", "retired")  # `retired` is of split ones
NUMBERS: Final = 6


# Workers.

SHORTEST_STRETCH: Final = 1 << 12
LONGEST_STRETCH: Final = 1 << 20

AT_ONCE: Final = 16  # leaves that a worker evaluates between two looks at the clock


class SampleThreads:
    """Several threads that sample a compiled model, and evaluate policies of it."""

    def __init__(self, run: PriceRun, count: int) -> None:
        assert isinstance(run.graph, CompiledGraph)
        self._run = run
        self._evaluators = [Evaluator(run.graph) for _ in range(count)]
        self._ends = [np.zeros(1, run.sizes.dtype) for _ in range(count)]
        self._sizes = [set_apart(1, run.sizes.dtype) for _ in range(count)]
        self._left = 0  # nodes of stretches that were not filled
        self.pool = ThreadPoolExecutor(count)

    @property
    def spare(self) -> int:
        """Nodes that were set aside and are not used."""
        return self._left + sum(map(self._count_free, range(len(self._evaluators))))

    def _count_free(self, worker: int) -> int:
        return int(self._ends[worker]["nodes"][0] - self._sizes[worker]["nodes"][0])

    def forget_stretches(self) -> None:
        """Give up all stretches, whose rows are gone."""
        self._left = 0
        for evaluator in self._evaluators:
            evaluator.forget_rows()
        for some in (*self._sizes, *self._ends):
            some[:] = 0

    def complete(self) -> Completion:
        """Return the object that evaluates and writes policies below the upper tree."""
        run, returns, free = self._run, self._run.merge_returns(), SimpleQueue[HistoryCompletion]()
        for evaluator in self._evaluators:
            free.put(HistoryCompletion(run, returns, evaluator))

        def walk_one(node: int) -> tuple[Points, int]:
            completion = free.get()
            before = completion.work
            [points] = completion.evaluate([node], lambda: True)
            found = points, completion.work - before
            free.put(completion)
            return found

        def walk(nodes: Sequence[int]) -> list[tuple[Points, int]]:
            found = list(self.pool.map(walk_one, nodes))
            for evaluator in self._evaluators:
                evaluator.report()
            return found

        write = HistoryCompletion(run, returns).write
        return SharedCompletion(AT_ONCE * len(self._evaluators), walk, write)

    def sample(self, subtrees: Sequence[Subtree], most: float) -> bool:
        """Take the ordered samples of subtrees; False if they take more bytes than allowed."""
        waiting = deque(sorted(subtrees, key=lambda subtree: -len(subtree.orders)))
        workers = range(len(self._evaluators))
        while waiting:
            for worker in workers:
                if self._run.memory > most or not self._make_room(worker, most):
                    return False
            needs = list(self.pool.map(self._work, workers, repeat(waiting)))
            for evaluator, wants in zip(self._evaluators, needs, strict=True):
                evaluator.report()
                if wants == codes.BROKEN:
                    self._run.raise_fault()
        return True

    def _work(self, worker: int, waiting: deque[Subtree]) -> int:
        """Sample until no subtree waits, or a subtree needs something, which then waits again."""
        run = self._run
        problem = self._evaluators[worker].lend(run.arrays(), adds_rows=True)
        ends = {kind: int(self._ends[worker][kind][0]) for kind in run.GROWING}
        rows = {kind: getattr(run, kind)[:end] for kind, end in ends.items()}
        tree = run.tree()._replace(**rows, sizes=self._sizes[worker])
        while True:
            try:
                subtree = waiting.popleft()
            except IndexError:
                return codes.DONE
            wants = subtree.sample(problem, tree)
            if wants != codes.DONE:
                waiting.append(subtree)
                return wants

    def _make_room(self, worker: int, most: float) -> bool:
        """Give a worker new stretches where its own are nearly full; False if memory is short."""
        run, evaluator = self._run, self._evaluators[worker]
        assert isinstance(run.graph, CompiledGraph)
        share = run.histories // (2 * len(self._evaluators))
        length = min(max(SHORTEST_STRETCH, share), LONGEST_STRETCH)
        # A worker that runs out waits for the others, so it gets more before it does.
        least = max(run.graph.largest_answer, length // 4)
        rows = most - run.capacity + run.graph.capacity
        if evaluator.is_short(least) and not evaluator.reserve_rows(length, rows):
            return False
        for kind in run.GROWING:
            if self._sizes[worker][kind][0] + least <= self._ends[worker][kind][0]:
                continue
            while run.sizes[kind][0] + length > len(getattr(run, kind)):
                if not run.grow(most):
                    return False
            if kind == "nodes":
                self._left += self._count_free(worker)
            begin = run.sizes[kind][0]
            self._sizes[worker][kind] = begin
            self._ends[worker][kind] = run.sizes[kind] = begin + length
        return True


# Prices.

Prices = NDArray[np.float64]

CONTENDERS: Final = 3  # first actions that prices surround, at most
CLOSE: Final = 0.03  # of the rewards: how much worse than the best contenders may be
LOWER: Final = 0.6  # the lowest price, relative to the smallest deciding price
HIGHER: Final = 1.7  # the highest price, relative to the largest deciding price
SMALL: Final = 0.1  # of the rewards: a small price
TRIFLE: Final = 0.01  # of the rewards: a negligible price
HIGHEST: Final = 1e6  # times the rewards: the largest price
STEEPER: Final = 16.0  # the factor by which prices rise while no policy is within the bound
ALIKE: Final = 0.1  # prices move only if one changes by more than this share


def begin_prices(count: int, size: float, allowed: float) -> Prices:
    """Return the first prices, given the size of rewards and the risk allowed for the largest.

    That risk may be worth all rewards, or more.
    """
    low = size / 8
    high = size * max(8.0, 2 / max(allowed, 1 / HIGHEST))
    return np.array([0.0, *(low * (high / low) ** (np.arange(count - 1) / (count - 2)))])


def choose_prices(judged: NDArray[Any], prices: Prices, size: float) -> Prices:
    """Return prices around those that decide between the best first actions.

    `judged` has the value of each first action, and the price that decides it; `size` is the size
    of rewards.
    """
    rewards = judged["reward"]
    order = np.argsort(-rewards, kind="stable")[:CONTENDERS]
    close = [k for k in order if rewards[k] >= rewards[order[0]] - CLOSE * size]
    deciding = prices[judged["price_index"][close]]
    low, high = float(deciding.min()), float(deciding.max())
    count = len(prices)
    low *= LOWER if low > prices[0] else LOWER**3
    if low <= TRIFLE * size:
        return HIGHER * max(high, SMALL * size) * np.arange(count) / (count - 1)
    high *= HIGHER if high < prices[-1] else HIGHER**3
    return np.asarray(low * (high / low) ** (np.arange(count) / (count - 1)))


def are_at_an_end(judged: NDArray[Any], prices: Prices) -> bool:
    """Return whether the deciding price is the largest price, or the smallest and above 0."""
    price_index = int(judged["price_index"][int(np.argmax(judged["reward"]))])
    return price_index == len(prices) - 1 or (price_index == 0 and prices[0] > 0)


def raise_prices(prices: Prices, size: float) -> Prices:
    """Return higher prices; the highest asks for the least risk, or nearly so."""
    highest = min(STEEPER * float(prices[-1]), HIGHEST * size)
    low = max(float(prices[len(prices) // 2]), SMALL * size)
    shares = np.arange(len(prices)) / (len(prices) - 1)
    return np.asarray(low * (max(highest, 2 * low) / low) ** shares)


# Compilation before the clock runs.

WARM_UP_SAMPLES: Final = 260  # enough for prices to move and for a plan to guide


@cache
def warm_up() -> None:
    """Compile or load all kernels of a search, once in a process, by short searches of a toy."""
    from vulcan.sampling.vulcan import Vulcan, VulcanSearch

    for merges in (False, True):
        model, limits = _make_toy(merges), Limits(samples=WARM_UP_SAMPLES)
        problem, monitor = Problem(model, Constant(0.1)), Monitor(limits)
        VulcanSearch(Vulcan(), problem, ModelReader(model), monitor, Options(), warm=True).run()


def _make_toy(merges: bool) -> Any:
    """Return a model of eight steps, bold or not; a state is their history, or their number."""
    horizon = 8

    def answer(state: tuple[int, ...], action: str) -> list[Outcome]:
        bold = action == "bold"
        later = [(sum(state) + k,) * (len(state) + 1) if merges else (*state, k) for k in (0, 1)]
        safe = [Outcome(0.45 if bold else 0.5, float(bold + k), later[k]) for k in (0, 1)]
        return [*safe, Outcome.failure(0.1)] if bold else safe

    return SimpleNamespace(
        horizon=horizon,
        merges=merges,
        initial_state=tuple,
        actions=lambda state: ["bold", "shy"],
        outcomes=answer,
        reward_to_go_bound=lambda state, step: 2.0 * (horizon - step),
    )
