"""A tree search for several prices of failure: batches of samples, and where the prices lie.

The samples of a batch are ordered at the root (`vulcan.kernels.price_root`) and carried out part by
part (`vulcan.solvers.tree.hands`). All that the search does depends on sample counts alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.problem import Problem
from vulcan.graphs.compiled_graph import CompiledGraph
from vulcan.graphs.state_graph import StateGraph
from vulcan.kernels import codes
from vulcan.model.reader import ModelReader
from vulcan.runtime.monitor import Monitor
from vulcan.runtime.progress import Progress
from vulcan.solvers.knowledge import Knowledge
from vulcan.solvers.layered.accuracy import Extremes, find_extremes
from vulcan.solvers.tree.completion import Completion
from vulcan.solvers.tree.hands import Hand, Hands
from vulcan.solvers.tree.kept_arrays import LARGEST_BATCH, KeptArrays
from vulcan.solvers.tree.parts import Job, make_returns
from vulcan.solvers.tree.precision import require_size
from vulcan.solvers.tree.prices import begin_prices
from vulcan.solvers.tree.tops import GrownTop, grow_top

__all__ = ["PriceRun"]

SHARE_OF_SAMPLING: Final = 0.65

BATCHES: Final = 32
"""A batch has this many times fewer samples than were taken so far."""

PLACES: Final = 256
"""At how many rewards the risk bound is evaluated, to judge first actions."""

FIRST_SAMPLES: Final = 64
"""After this many samples the size of rewards is known well enough for first prices."""

GUIDES: Final = 2.0
"""How many times more samples there are when the plan that guides them is made anew."""


MOST_SHARES: Final = 32
"""A part with more than one of so many shares of all samples is divided."""

FEWEST_TO_DIVIDE: Final = 1 << 16
"""With fewer samples than that, parts are small enough."""

SHORTEST_PART: Final = 3
"""Steps that are left where a history belongs to the top, at least."""


class PriceRun(KeptArrays):
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
    knowledge
        What another search of the same problem found, to go on with.
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
        knowledge: Knowledge | None = None,
    ) -> None:
        super().__init__(problem, reader, memory, known, seed, exploration, knowledge)
        self.on_guide: Callable[[], None] | None = None
        self.before_sampling: Callable[[], None] | None = None
        self._hands = self._choose_hands(workers)

    def _choose_hands(self, workers: int) -> Hand | Hands:
        compiled = isinstance(self.graph, CompiledGraph)
        return Hands(self, workers) if compiled and workers > 1 else Hand(self)

    def close(self) -> None:
        """Let those go who searched with it."""
        self._hands.close()

    def do_beside(self, work: Callable[[], object]) -> Callable[[], object]:
        """Begin something that has nothing to do with the tree, and return what waits for it.

        With one hand it is done then, and with several at once, while the others plan.
        """
        return self._hands.begin(work)

    @property
    def histories(self) -> int:
        return super().histories - self._hands.spare

    def prepare(self) -> None:
        """Compile the kernels, ask for the first actions, and set the first prices."""
        if not self.inherited:
            self.prices[0] = begin_prices(self.prices.shape[1], 1.0, 1.0)
        self._open_actions(0)
        self.add_top(0, None)
        state = self.graph.states.array[self.nodes["state"][0]]
        self.judged = np.zeros(max(1, int(state["action_count"])), self._root_kernels.JUDGED)
        self.judged["reward"] = -math.inf
        if self.inherited:
            self.judge()

    def sample(
        self,
        monitor: Monitor,
        target: int,
        reserve: float,
        describe: Callable[[], Progress],
        keep: Callable[[], None],
    ) -> None:
        """Sample until there are this many samples, or there is a reason to stop before.

        Batches depend on sample counts alone, and stops come between them; but for the target,
        which may leave orders of a batch for later.
        """
        most = SHARE_OF_SAMPLING * self._memory
        while (
            self._samples < target
            and not self.solved
            and not self.full
            and not monitor.wants_stop(self.histories, self._samples, reserve)
        ):
            if self.before_sampling is not None:
                self.before_sampling()
                self.before_sampling = None
            if not len(self._orders):
                self._order_batch()
            self._carry_out(target - self._samples, most)
            if not len(self._orders):
                self._close_batch()
            monitor.report(describe)
            keep()

    def _order_batch(self) -> None:
        """Order samples: which part of the tree, and which price."""
        size = min(max(1, self._samples // BATCHES), LARGEST_BATCH)
        orders, roots = np.zeros(size, self._search.ORDER), np.zeros(size, np.int32)
        low, high = self._span
        scale = self._exploration * max(0.0, high - low)
        levels = self.reader.levels
        seen = np.concatenate([make_returns(0), *self._retired.values()]).reshape(-1, levels)
        arguments = (self.tops, seen, self.judged, scale, self._draws, orders, roots)
        count = int(self._root_kernels.write_orders(self.arrays(), self.tree(), *arguments))
        self._orders, self._roots = orders[:count], roots[:count]

    def _carry_out(self, most_samples: int, most: float) -> None:
        """Carry out orders, part by part."""
        count = min(len(self._orders), most_samples)
        orders, roots = self._orders[:count], self._roots[:count]
        self._orders, self._roots = self._orders[count:], self._roots[count:]
        order = np.argsort(roots, kind="stable")
        starts = np.flatnonzero(np.diff(roots[order], prepend=-1))
        work = [
            (int(roots[order[begin]]), orders[order[begin:end]])
            for begin, end in zip(starts, [*starts[1:], count], strict=True)
        ]
        self._sample_parts(work, most)
        self._samples += count
        if self._span[0] <= self._span[1]:
            # A value is never above all rewards, and what is far below them is never chosen.
            require_size(self._span, np.maximum(self.node_values[roots], 0.0))

    def _sample_parts(self, work: Sequence[tuple[int, NDArray[Any]]], most: float) -> None:
        """Carry out the orders of parts."""
        jobs = [Job(self._find_part(root), orders) for root, orders in work]
        self.full = not self._hands.carry_out(jobs, most)
        for (root, _), job in zip(work, jobs, strict=True):
            self._widen_span(root, job.part.returns[int(self.nodes["level"][root])])

    def _widen_span(self, root: int, seen: Any) -> None:
        """Note the least and the most that samples of a part collected."""
        if seen["samples"]:
            (low, high), earned = self._span, self._origins[root].earned
            least, most = earned + float(seen["least"]), earned + float(seen["most"])
            self._span = min(low, least), max(high, most)

    def _open_actions(self, node: int) -> None:
        """Give a history all its actions and their outcomes."""
        open_top, state = self._root_kernels.open_top, int(self.nodes["state"][node])
        while (wants := open_top(self.arrays(), self.tree(), node)) != codes.DONE:
            if not self.satisfy(wants, state, math.inf):
                self._expand(state)  # without room, too: nothing can be said before that

    def _divide(self) -> None:
        """Let histories with much of the tree below them belong to the top."""
        if self._samples < FEWEST_TO_DIVIDE:
            return
        roots = np.array([root for root in self._origins if root not in self._retired])
        nodes = self.nodes[roots]
        large = (nodes["visits"] * MOST_SHARES > self._samples) & (nodes["solved"] == 0)
        deep = nodes["level"] + SHORTEST_PART > self.reader.levels
        self._open_tops(roots[large & ~deep].tolist())

    def _open_tops(self, nodes: Sequence[int]) -> None:
        """Let parts begin below histories."""
        for node in nodes:
            self._open_actions(node)
            self.add_top(node, self._find_part(node).returns)

    def _close_batch(self) -> None:
        """Judge the first actions anew, and look at prices and plan if it is time to."""
        self.judge()
        self._divide()
        if self._samples == FIRST_SAMPLES:
            allowed = self.allow(self.reward_span()[1])
            self.move_prices(begin_prices(self.prices.shape[1], self.size, allowed))
        if self._samples >= self._next_guide and self.on_guide is not None and not self.solved:
            self._next_guide = int(GUIDES * self._samples)
            self.on_guide()

    def judge(self) -> None:
        """Renew the values of the root and judge the first actions."""
        self._root_kernels.judge(self.arrays(), self.tree(), self.tops, self._bound(), self.judged)

    def _bound(self) -> Any:
        """Return the risk bound at rewards that may be met, anew only if these lie elsewhere."""
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

    def grow_top(self, most: int, closeness: float) -> GrownTop:
        """Return the top that plans are made on; see `vulcan.solvers.tree.tops.grow_top`."""
        return grow_top(self, most, closeness)

    def complete(self) -> Completion:
        """Return what evaluates and writes what lies below it."""
        return self._hands.complete()

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

    def find_extremes(self) -> Extremes:
        """Return what is largest among the actions that are known."""
        return find_extremes(self.graph)

    @property
    def exhausted(self) -> bool:
        """Never: nothing is refused."""
        return False

    def credits(self) -> list[float]:
        """Return the rewards of plans that the bound accepted."""
        return sorted(self.accepted)

    def move_prices(self, prices: NDArray[np.float64]) -> None:
        """Go over to other prices: values between them, consistent again from the leaves up.

        Values are convex in the price, so that a chord never lies below them.
        """
        old, new = self.prices[0].astype(np.float64), np.sort(prices)
        self.prices[0] = new
        if self._samples > 0 or self.solved:
            left = np.clip(np.searchsorted(old, new, side="right") - 1, 0, len(old) - 2)
            width = np.maximum(old[left + 1] - old[left], 1e-300)
            share = np.clip((new - old[left]) / width, -0.5, 1.5).astype(np.float32)
            self._move_values(left, share)
            self.judge()

    def _move_values(self, left: NDArray[np.intp], share: NDArray[np.float32]) -> None:
        """Put values between those of former prices; see `vulcan.kernels.price_tree`."""
        for histories in self.list_levels():
            move = partial(self._kernels.move_values, self.tree(), left=left, share=share)
            self._hands.share(histories, move)
