"""A tree search for several prices of failure: its arrays, its samples, and its prices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.problem import Problem
from vulcan.errors import CheckpointError
from vulcan.graphs.compiled_graph import CompiledGraph
from vulcan.graphs.rows import LARGE_GROWTH, find_growth
from vulcan.graphs.state_graph import StateGraph
from vulcan.kernels import codes
from vulcan.model.reader import ModelReader
from vulcan.runtime.monitor import Monitor
from vulcan.runtime.progress import Progress
from vulcan.runtime.reservation import lengthen
from vulcan.sentinels import NONE
from vulcan.solvers.constraints import NoConstraint
from vulcan.solvers.tree.checkpoint import Snapshot, pack_array, unpack_array
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.hands import Hand, Hands, Job, Part
from vulcan.solvers.tree.kernel_run import CappedRun
from vulcan.solvers.tree.prices import begin_prices

__all__ = ["PriceRun"]

SHARE_OF_SAMPLING: Final = 0.65

LARGEST_BATCH: Final = 1 << 14
BATCHES: Final = 64
"""A batch has this many times fewer samples than were taken so far."""

PLACES: Final = 256
"""At how many rewards the risk bound is evaluated, to judge first actions."""

GROWING: Final = {"nodes": ("nodes", "node_values"), "edges": ("edges", "edge_values")}
"""The arrays of the tree that grow, by what they are filled with."""

FIXED: Final = ("prices", "sizes", "judged", "_draws", "_marked")
"""The arrays of the tree that don't."""

FIRST_SAMPLES: Final = 64
"""After this many samples the size of rewards is known well enough for first prices."""

FIRST_GUIDE: Final = 256
GUIDES: Final = 2.0
"""How many times more samples there are when the plan that guides them is made anew."""

MIX: Final = np.uint64(0x9E3779B97F4A7C15)


class PriceRun(CappedRun):
    """One search.

    Parameters
    ----------
    problem, reader
        What is searched.
    memory
        Bytes that tree and graph may take.
    known
        What is known of the model already.
    seed, exploration
        How to sample.
    workers
        How many threads sample at once, of a compiled model. The result does not depend on it.
    """

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        memory: int | None,
        known: StateGraph | None,
        *,
        seed: int,
        exploration: float,
        workers: int = 1,
    ) -> None:
        from vulcan.kernels import price_root, price_search, price_tree, selection
        from vulcan.kernels.compilation import announce_compilation

        super().__init__(problem, reader, NoConstraint(), memory, known)
        announce_compilation(price_search.sample)
        self._root_kernels, self._search, self._kernels = price_root, price_search, price_tree
        self._returns_dtype = selection.RETURNS
        self._seed, self._exploration = seed, exploration
        width = price_tree.PRICES
        self.nodes: NDArray[Any] = np.zeros(64, price_tree.NODE)
        self.edges: NDArray[Any] = np.zeros(256, price_tree.EDGE)
        self.node_values = np.zeros((64, width), np.float32)
        self.edge_values = np.zeros((256, width), np.float32)
        self.prices = np.zeros((1, width), np.float32)
        self.sizes = np.zeros(1, price_tree.SIZE)
        self._draws = np.zeros(1, price_root.DRAWS)
        self._draws["random"] = np.uint64(seed)
        self.judged = np.zeros(0, price_root.JUDGED)
        self._parts: dict[int, Part] = {}
        self._samples = 0
        self._span = self._bounded = (math.inf, -math.inf)
        self._known_bound: Any = None
        self.sizes["nodes"] = 1
        root = self.nodes[0]
        root["first_edge"] = root["plan"] = root["lane"] = NONE
        self.full = False
        self.accepted: set[float] = set()
        self.on_guide: Callable[[], None] | None = None
        self._next_guide = FIRST_GUIDE
        self._marked = np.zeros(0, np.int64)
        self._hands = self._choose_hands(workers)

    def _choose_hands(self, workers: int) -> Hand | Hands:
        compiled = isinstance(self.graph, CompiledGraph)
        return Hands(self, workers) if compiled and workers > 1 else Hand(self)

    @property
    def samples(self) -> int:
        """Samples taken so far."""
        return self._samples

    @property
    def histories(self) -> int:
        """Histories in the tree."""
        return int(self.sizes["nodes"][0])

    @property
    def solved(self) -> bool:
        """Whether all that can follow was sampled."""
        return bool(self.nodes["solved"][0])

    @property
    def memory(self) -> int:
        """Bytes of tree and graph, as far as they are filled."""
        tree = sum(
            int(self.sizes[kind][0]) * getattr(self, name)[0].nbytes
            for kind, names in GROWING.items()
            for name in names
        )
        return tree + self.graph.memory

    def tree(self) -> Any:
        """Return the arrays of the tree as they are now."""
        values = (self.node_values, self.edge_values, self.prices, self.sizes)
        return self._kernels.PriceTree(self.nodes, self.edges, *values)

    def prepare(self) -> None:
        """Compile the kernels, ask for the first actions, and set the first prices."""
        self.prices[0] = begin_prices(self.prices.shape[1], 1.0, 1.0)
        while (wants := self._root_kernels.open_root(self.arrays(), self.tree())) != codes.DONE:
            self.satisfy(wants, 0, self._memory)
        state = self.graph.states.array[self.nodes["state"][0]]
        self.judged = np.zeros(max(1, int(state["action_count"])), self._root_kernels.JUDGED)
        self.judged["reward"] = -math.inf

    def satisfy(self, wants: int, state: int, most: float) -> bool:
        """Give a kernel what it needs; False if there is no room for it."""
        if wants == codes.NEEDS_STATE:
            return self.ask(state)
        if wants == codes.NEEDS_ROWS:
            return self.make_rows(most - (self.memory - self.graph.memory))
        if wants == codes.NEEDS_ROOM:
            return self.grow(most)
        assert wants == codes.BROKEN
        return self.raise_fault()

    def sample(
        self,
        monitor: Monitor,
        target: int,
        reserve: float,
        describe: Callable[[], Progress],
        keep: Callable[[], None],
    ) -> None:
        """Sample until there are this many samples, or there is a reason to stop before.

        Batches depend on sample counts alone, and stops come between them.
        """
        most = SHARE_OF_SAMPLING * self._memory
        while (
            self._samples < target
            and not self.solved
            and not self.full
            and not monitor.wants_stop(self.histories, self._samples, reserve)
        ):
            size = min(max(1, self._samples // BATCHES), LARGEST_BATCH, target - self._samples)
            self._sample_batch(size, most)
            if self._samples == FIRST_SAMPLES:
                allowed = self.allow(self.reward_span()[1])
                self.move_prices(begin_prices(self.prices.shape[1], self.size, allowed))
            if self._samples >= self._next_guide and self.on_guide is not None and not self.solved:
                self._next_guide = int(GUIDES * self._samples)
                self.on_guide()
            monitor.report(describe)
            keep()

    def _sample_batch(self, size: int, most: float) -> None:
        """Order samples, carry them out part by part, and judge the first actions anew."""
        orders = np.zeros(size, self._search.ORDER)
        roots = np.zeros(size, np.int32)
        low, high = self._span
        scale = self._exploration * max(0.0, high - low)
        arguments = (self.judged, scale, self._draws, orders, roots)
        count = int(self._root_kernels.write_orders(self.arrays(), self.tree(), *arguments))
        order = np.argsort(roots[:count], kind="stable")
        starts = np.flatnonzero(np.diff(roots[:count][order], prepend=-1))
        jobs = [
            Job(self._find_part(int(roots[order[begin]])), orders[order[begin:end]])
            for begin, end in zip(starts, [*starts[1:], count], strict=True)
        ]
        self.full = not self._hands.carry_out(jobs, most)
        self._samples += count
        for job in jobs:
            seen = job.part.returns[1]
            if seen["samples"]:
                low, high = self._span
                self._span = min(low, float(seen["least"])), max(high, float(seen["most"]))
        self.judge()

    def _find_part(self, root: int) -> Part:
        if root not in self._parts:
            levels = self.reader.levels
            returns = np.zeros(levels, self._returns_dtype)
            returns["least"], returns["most"] = math.inf, -math.inf
            path = np.zeros(levels + 1, self._search.STEP)
            control = np.zeros(1, self._search.CONTROL)
            control["root"], control["exploration"] = root, self._exploration
            with np.errstate(over="ignore"):
                control["random"] = (np.uint64(self._seed) + np.uint64(root)) * MIX
            edges = self.edges[: int(self.sizes["edges"][0])]
            first = int(self.nodes["first_edge"][0])
            path["edge"][0] = first + int(
                np.flatnonzero(
                    (edges["first_child"][first : first + len(self.judged)] <= root)
                    & (edges["first_child"][first : first + len(self.judged)] != NONE)
                )[-1]
            )
            self._parts[root] = Part(returns, path, control)
        return self._parts[root]

    def judge(self) -> None:
        """Renew the values of the root and judge the first actions."""
        self._root_kernels.judge(self.arrays(), self.tree(), self._bound(), self.judged)

    def _bound(self) -> Any:
        """Return the risk bound at the rewards that may be met, anew only if these lie elsewhere."""
        low, high = self.reward_span()
        before = self._bounded
        if not before[0] <= low <= high <= before[1]:
            room = 0.25 * (high - low)
            self._bounded = low - room, high + room
        if self._known_bound is None or self._bounded != before:
            low, high = self._bounded
            step = max((high - low) / PLACES, 1e-9 * max(1.0, abs(high)))
            allowed = np.array([self.allow(low + k * step) for k in range(PLACES + 1)])
            self._known_bound = self._root_kernels.AllowedRisks(low, step, allowed)
        return self._known_bound

    def reward_span(self) -> tuple[float, float]:
        """Return the rewards between which policies are, as far as is known."""
        low, high = self._span
        if not low <= high:
            return 0.0, 1.0
        first = int(self.nodes["first_edge"][0])
        rewards = self.edges["reward"][first : first + len(self.judged)]
        return low + float(rewards.min()), high + float(rewards.max())

    @property
    def size(self) -> float:
        """How large rewards are, as far as is known."""
        low, high = self.reward_span()
        return max(abs(low), abs(high), high - low, 1e-9)

    @property
    def exhausted(self) -> bool:
        """Never: nothing is refused."""
        return False

    def credits(self) -> list[float]:
        """Return the rewards of plans that the bound accepted."""
        return sorted(self.accepted)

    def take_snapshot(self, identity: dict[str, str], target: int, best: Draft | None) -> Snapshot:
        """Return all that is needed to go on from here."""
        fills = {
            name: int(self.sizes[kind][0]) for kind, names in GROWING.items() for name in names
        }
        arrays = {name: pack_array(getattr(self, name)[:count]) for name, count in fills.items()}
        arrays |= {name: pack_array(getattr(self, name)) for name in FIXED}
        roots = sorted(self._parts)
        arrays["parts"] = pack_array(np.array(roots, np.int64))
        for name in ("returns", "path", "control"):
            stacked = [getattr(self._parts[root], name) for root in roots]
            arrays[name] = b"".join(pack_array(array) for array in stacked)
        numbers = (self._samples, self._next_guide, *self._span, *self._bounded)
        arrays["numbers"] = pack_array(np.array(numbers, np.float64))
        arrays["accepted"] = pack_array(np.array(sorted(self.accepted)))
        return Snapshot(
            identity=identity,
            graph=self.graph.pack(),
            credits=[(low, self.allow(low)) for low in sorted(self.accepted)],
            capacities={name: len(getattr(self, name)) for name in fills},
            arrays=arrays,
            target=target,
            best=None if best is None else best.pack(),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot: ask the model again, and take over the arrays."""
        self.graph.unpack(snapshot.graph)
        for reward, allowed in snapshot.credits:
            if self.allow(reward) != allowed:
                raise CheckpointError("the risk bound is not the one of the checkpoint")
        arrays = dict(snapshot.arrays)
        roots = np.frombuffer(arrays.pop("parts"), np.int64).tolist()
        packed = {name: arrays.pop(name) for name in ("returns", "path", "control")}
        numbers = np.frombuffer(arrays.pop("numbers"), np.float64).tolist()
        self._samples, self._next_guide = int(numbers[0]), int(numbers[1])
        self._span, self._bounded = (numbers[2], numbers[3]), (numbers[4], numbers[5])
        self.accepted = set(np.frombuffer(arrays.pop("accepted"), np.float64).tolist())
        for name, length in snapshot.capacities.items():
            old = getattr(self, name)
            setattr(self, name, np.zeros((length, *old.shape[1:]), old.dtype))
        self._marked = np.zeros(len(arrays["_marked"]) // 8, np.int64)
        for name, data in arrays.items():
            unpack_array(data, getattr(self, name))
        for k, root in enumerate(roots):
            part = self._find_part(root)
            for name, data in packed.items():
                array = getattr(part, name)
                unpack_array(data[k * array.nbytes : (k + 1) * array.nbytes], array)

    def move_prices(self, prices: NDArray[np.float64]) -> None:
        """Go over to other prices: values between them, consistent again from the leaves up.

        Values are convex in the price, so that a chord never lies below them.
        """
        old, new = self.prices[0].astype(np.float64), np.sort(prices)
        known = self._samples > 0 or self.solved
        if known:
            left = np.clip(np.searchsorted(old, new, side="right") - 1, 0, len(old) - 2)
            width = np.maximum(old[left + 1] - old[left], 1e-300)
            share = np.clip((new - old[left]) / width, -0.5, 1.5).astype(np.float32)
            nodes, edges = int(self.sizes["nodes"][0]), int(self.sizes["edges"][0])
            for values in (self.node_values[:nodes], self.edge_values[:edges]):
                for begin in range(0, len(values), 1 << 18):
                    some = values[begin : begin + (1 << 18)]
                    below = some[:, left]
                    some[:] = below + share * (some[:, left + 1] - below)
        self.prices[0] = new
        if known:
            levels = self.nodes["level"][: int(self.sizes["nodes"][0])]
            order = np.argsort(-levels, kind="stable")
            self._kernels.renew(self.arrays(), self.tree(), order)
            self.judge()

    @property
    def limit(self) -> int:
        """Bytes that tree and graph may take."""
        return self._memory

    def follow(self, actions: list[tuple[int, int]] | None, lanes: list[tuple[int, int]]) -> None:
        """Mark a plan in the tree, instead of the one before.

        Parameters
        ----------
        actions
            Nodes, and the positions of the actions that they take; None for no plan.
        lanes
            Nodes below these, and the prices that they follow.
        """
        before = self._marked
        self.nodes["plan"][before] = self.nodes["lane"][before] = NONE
        for name, marks in (("plan", actions or []), ("lane", lanes)):
            for node, mark in marks:
                self.nodes[name][node] = mark
        self._marked = np.array([node for node, _ in [*(actions or []), *lanes]], np.int64)

    def merge_returns(self) -> NDArray[Any]:
        """Return what samples of all parts collected, level by level."""
        merged = np.zeros(self.reader.levels, self._returns_dtype)
        for root in sorted(self._parts):
            returns = self._parts[root].returns
            for name in ("total", "samples"):
                merged[name] += returns[name]
            merged["endings"] |= returns["endings"]
        return merged

    def grow(self, most: float) -> bool:
        """Lengthen the arrays that are more than half full, to the double if memory allows it."""
        filled = {kind: int(self.sizes[kind][0]) for kind in GROWING}
        short = [k for k in GROWING if 2 * filled[k] >= len(getattr(self, k))] or list(GROWING)
        names = [name for kind in short for name in GROWING[kind]]
        arrays = [getattr(self, name) for name in names]
        share = find_growth(arrays, most - self.memory, LARGE_GROWTH)
        if not share:
            return False
        for kind in short:
            for name in GROWING[kind]:
                old = getattr(self, name)
                setattr(self, name, lengthen(old, filled[kind], int((1 + share) * len(old))))
        return True
