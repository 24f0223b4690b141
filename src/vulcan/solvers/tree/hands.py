"""Who carries out the samples of a batch: one hand, or several at once.

The orders of a batch belong to parts of the tree, which have nothing in common
(`vulcan.solvers.tree.parts`): values and policies are the same with any number of hands. Only the
numbers of rows and nodes differ, and with them where memory ends.

Several hands are threads. Each adds nodes, edges and rows to stretches of its own. Kernels run
without the interpreter's lock. Where a hand needs more room, it stops; when all have stopped, they
get their stretches, arrays grow if need be, and the rest of the work goes on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.asker import Asker
from vulcan.graphs.compiled_graph import CompiledGraph
from vulcan.kernels import codes
from vulcan.runtime.reservation import set_apart
from vulcan.solvers.tree.completion import (
    Completion,
    HistoryCompletion,
    Points,
    SharedCompletion,
)
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.parts import Job

if TYPE_CHECKING:
    from vulcan.solvers.tree.price_run import PriceRun

__all__ = ["Hand", "Hands"]

SHORTEST_STRETCH: Final = 1 << 12
LONGEST_STRETCH: Final = 1 << 20

AT_ONCE: Final = 16
"""Stubs that a hand evaluates between two looks at the clock."""

HANDFULS: Final = 8
"""In how many pieces a hand gets its share of rows, so that nobody waits long for the last."""


class Hand:
    """One hand, which also asks models in Python."""

    spare = 0
    """Nodes that were set aside and are not used."""

    def __init__(self, run: PriceRun) -> None:
        self._run = run

    def close(self) -> None:
        """Do nothing."""

    def begin(self, work: Callable[[], object]) -> Callable[[], object]:
        """Return what does something: later."""
        return work

    def share(self, rows: NDArray[Any], work: Callable[[NDArray[Any]], object]) -> None:
        """Do something for all rows."""
        work(rows)

    def complete(self) -> Completion:
        """Return what evaluates and writes what lies below the top of a plan."""
        return HistoryCompletion(self._run)

    def carry_out(self, jobs: Sequence[Job], most: float) -> bool:
        """Carry out all jobs; False without room for all of them in this many bytes."""
        run = self._run
        for job in jobs:
            while (wants := job.run(run.arrays(), run.tree())) != codes.DONE:
                node = job.part.path["node"][job.part.control["depth"][0]]
                if not run.satisfy(wants, int(run.nodes["state"][node]), most):
                    return False
        return True


class Hands:
    """Several hands, which sample a compiled model."""

    def __init__(self, run: PriceRun, count: int) -> None:
        self._run = run
        assert isinstance(run.graph, CompiledGraph)
        self._askers = [Asker(run.graph) for _ in range(count)]
        self._ends = [np.zeros(1, run.sizes.dtype) for _ in range(count)]
        self._sizes = [set_apart(1, run.sizes.dtype) for _ in range(count)]
        self._pool = ThreadPoolExecutor(count)
        self._left = 0  # nodes of stretches that were not filled

    @property
    def spare(self) -> int:
        """Nodes that were set aside and are not used."""
        return self._left + sum(map(self._count_free, range(len(self._askers))))

    def _count_free(self, hand: int) -> int:
        return int(self._ends[hand]["nodes"][0] - self._sizes[hand]["nodes"][0])

    def close(self) -> None:
        """Let the threads go."""
        self._pool.shutdown()

    def begin(self, work: Callable[[], object]) -> Callable[[], object]:
        """Begin something at once, and return what waits for it."""
        return self._pool.submit(work).result

    def share(self, rows: NDArray[Any], work: Callable[[NDArray[Any]], object]) -> None:
        """Do something for all rows, each hand for some of them."""
        list(self._pool.map(work, np.array_split(rows, HANDFULS * len(self._askers))))

    def complete(self) -> Completion:
        """Return what evaluates and writes what lies below the top of a plan."""
        return HandsCompletion(self._run, self._askers, self._pool)

    def carry_out(self, jobs: Sequence[Job], most: float) -> bool:
        """Carry out all jobs; False without room for all of them in this many bytes."""
        waiting = deque(sorted(jobs, key=lambda job: -len(job.orders)))
        while waiting:
            for hand in range(len(self._askers)):
                if not self._make_room(hand, most):
                    return False
            hands = range(len(self._askers))
            needs = list(self._pool.map(self._work, hands, repeat(waiting)))
            for asker, wants in zip(self._askers, needs, strict=True):
                asker.report()
                if wants == codes.BROKEN:
                    self._run.raise_fault()
        return True

    def _work(self, hand: int, waiting: deque[Job]) -> int:
        """Carry out jobs until there are none, or one needs something; it goes back then."""
        run, asker, size = self._run, self._askers[hand], self._sizes[hand]
        problem = run.arrays()
        states, actions, outcomes = asker.rows()
        problem = problem._replace(
            states=states,
            actions=actions,
            outcomes=outcomes,
            source=asker.source,
            answers=asker.answers,
        )
        nodes, edges = int(self._ends[hand]["nodes"][0]), int(self._ends[hand]["edges"][0])
        tree = run.tree()._replace(nodes=run.nodes[:nodes], edges=run.edges[:edges], sizes=size)
        while True:
            try:
                job = waiting.popleft()
            except IndexError:
                return codes.DONE
            wants = job.run(problem, tree)
            if wants != codes.DONE:
                waiting.append(job)
                return wants

    def _make_room(self, hand: int, most: float) -> bool:
        """Give a hand new stretches where its own are nearly full; False if memory is short."""
        run, asker = self._run, self._askers[hand]
        assert isinstance(run.graph, CompiledGraph)
        share = run.histories // (2 * len(self._askers))
        length = min(max(SHORTEST_STRETCH, share), LONGEST_STRETCH)
        # A hand that runs out waits for the others, so that it gets more before it does.
        least = max(run.graph.largest_answer, length // 4)
        rows = most - run.capacity + run.graph.capacity
        if asker.is_short(least) and not asker.take_stretch(length, rows):
            return False
        for kind in ("nodes", "edges"):
            if self._sizes[hand][kind][0] + least <= self._ends[hand][kind][0]:
                continue
            while run.sizes[kind][0] + length > len(getattr(run, kind)):
                if not run.grow(most):
                    return False
            if kind == "nodes":
                self._left += self._count_free(hand)
            begin = run.sizes[kind][0]
            self._sizes[hand][kind] = begin
            self._ends[hand][kind] = run.sizes[kind] = begin + length
        return True


class HandsCompletion(SharedCompletion):
    """What lies below the top of a plan, evaluated by several hands."""

    def __init__(self, run: PriceRun, askers: Sequence[Asker], pool: ThreadPoolExecutor) -> None:
        super().__init__(AT_ONCE * len(askers))
        returns = run.merge_returns()
        self._alone = HistoryCompletion(run, returns)
        self._askers, self._pool = askers, pool
        self._hands = SimpleQueue[HistoryCompletion]()
        for asker in askers:
            self._hands.put(HistoryCompletion(run, returns, asker))

    def _walk(self, nodes: Sequence[int]) -> list[tuple[Points, int]]:
        found = list(self._pool.map(self._walk_one, nodes))
        for asker in self._askers:
            asker.report()
        return found

    def _walk_one(self, node: int) -> tuple[Points, int]:
        hand = self._hands.get()
        before = hand.work
        [points] = hand.evaluate([node], lambda: True)
        found = points, hand.work - before
        self._hands.put(hand)
        return found

    def write(self) -> Draft | None:
        """Return the plan that is marked in the tree as a policy; None without room for it."""
        return self._alone.write()
