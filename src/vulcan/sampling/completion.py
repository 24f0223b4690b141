"""The upper tree that plans are made on, and the policies below it.

A plan (`vulcan.sampling.plan`) chooses actions there, and a price at each of its leaves.
Completions evaluate the policies of all prices from a leaf on, and write a plan out as a policy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.graph.compiled import CompiledGraph, Evaluator
from vulcan.graph.levels import EDGE, NODE, TARGET
from vulcan.graph.states import ACTION
from vulcan.kernels import codes
from vulcan.numerics import NONE, UNEVALUATED
from vulcan.runtime.limits import pause_collection
from vulcan.sampling.candidate import Candidate
from vulcan.sampling.tree import PriceArrays

FEWEST_VISITS: Final = 64  # samples of a history, below which it is a leaf unless solved
CHUNK: Final = 1 << 16  # histories between two looks at the clock
FIRST_LENGTH: Final = 1 << 12  # decisions of a policy for which there is room at first

Points = tuple[NDArray[np.float64], NDArray[np.float64]]
"""The rewards and the risks of the policies of all prices."""

# The largest numbers of histories of an upper tree, and of points of a front.
FINE: Final = (1 << 12, 1 << 10)  # for final plans
COARSE: Final = (1 << 11, 1 << 7)  # for others


@dataclass(frozen=True, eq=False)
class UpperTree:
    """The upper tree: a layered graph, without the edges of leaves, and what is known of nodes."""

    nodes: NDArray[Any]
    edges: NDArray[Any]
    targets: NDArray[Any]
    reach: NDArray[np.float64]  # the probability of each node, given its actions
    histories: NDArray[np.int64]  # the number of each node in the tree
    visits: NDArray[np.int32]
    action_counts: NDArray[np.int32]
    values: NDArray[np.float32]  # for each price


def grow_upper_tree(
    run: PriceArrays,
    most: int,
    closeness: float,
    roots: Sequence[int] = (0,),
    reaches: Sequence[float] = (1.0,),
) -> UpperTree:
    """Return the upper tree below some nodes, given their reaches; these are its first nodes.

    It has at most `most` nodes, but the last nodes are added together. Its actions are at most
    `closeness` worse than the best.
    """
    from vulcan.kernels import plan as plan_kernels

    room, count = 2 * most + FINE[0], len(roots)
    growth = np.zeros(1, plan_kernels.GROWTH)
    growth["nodes"], growth["most"] = count, most
    growth["fewest_visits"], growth["closeness"] = FEWEST_VISITS, closeness
    upper = plan_kernels.UpperArrays(
        nodes=np.zeros(room, NODE),
        edges=np.zeros(room, EDGE),
        targets=np.zeros(2 * room, TARGET),
        reach=np.ones(room),
        priority=np.ones(room),
        growth=growth,
    )
    begun, first = run.nodes[list(roots)], upper.nodes[:count]
    first["state"], first["level"], first["first_edge"] = roots, begun["level"], NONE
    known = (begun["solved"] != 0) | (begun["visits"] > FEWEST_VISITS)
    expands = (begun["level"] == 0) | ((begun["first_edge"] != NONE) & known)
    upper.reach[:count] = reaches
    upper.priority[:count] = np.where(expands, reaches, plan_kernels.UNQUEUED)
    while (
        wants := plan_kernels.grow_upper_tree(
            run.arrays(), run.tree(), run.upper_nodes, run.judged, upper
        )
    ) != codes.DONE:
        if wants == codes.NEEDS_ROOM:
            break  # the upper tree is large enough
        if not run.satisfy(wants, int(growth["state"][0]), math.inf):
            break
    nodes, edges, targets = (
        getattr(upper, name)[: int(growth[name][0])].copy()
        for name in ("nodes", "edges", "targets")
    )
    numbers = nodes["state"]
    return UpperTree(
        nodes=nodes,
        edges=edges,
        targets=targets,
        reach=upper.reach[: len(nodes)].copy(),
        histories=numbers.astype(np.int64),
        visits=run.nodes["visits"][numbers],
        action_counts=run.graph.states.array["action_count"][run.nodes["state"][numbers]],
        values=run.node_values[numbers],
    )


class SharedCompletion:
    """Walks by several workers, with the results of a single worker.

    `walk` returns the points of histories, `at_once` between two looks at the clock, and the work
    of each; `write` returns the marked plan as a policy, None without room for it.
    """

    evaluations = 0

    def __init__(
        self,
        at_once: int,
        walk: Callable[[Sequence[int]], list[tuple[Points, int]]],
        write: Callable[[], Candidate | None],
    ) -> None:
        self._at_once, self._walk, self.write = at_once, walk, write
        self.work = 0

    def evaluate(self, nodes: Sequence[int], may_go_on: Callable[[], bool]) -> list[Points]:
        """Return the points of histories, as many as there is time for."""
        found: list[Points] = []
        for begin in range(0, len(nodes), self._at_once):
            for points, work in self._walk(nodes[begin : begin + self._at_once]):
                # A single worker would look at the clock after each chunk.
                chunks, before = work // CHUNK, self.work
                self.work += chunks * CHUNK
                if chunks and not may_go_on():
                    return found
                self.work = before + work
                found.append(points)
        return found


class HistoryCompletion:
    """Walks over histories by a single worker.

    By default, returns are those of this tree, and its graph evaluates a compiled model. States of
    a model in Python are counted by `evaluations`.
    """

    def __init__(
        self,
        run: PriceArrays,
        returns: NDArray[Any] | None = None,
        evaluator: Evaluator | None = None,
    ) -> None:
        from vulcan.kernels import plan as plan_kernels

        self._run, self._kernels, self._evaluator = run, plan_kernels, evaluator
        levels, graph = run.reader.levels, run.graph
        outcomes = 1
        self._control = np.zeros(1, plan_kernels.WALK)
        if isinstance(graph, CompiledGraph):
            outcomes = graph.compiled.most_outcomes
            self._records = np.zeros(levels * outcomes, graph.compiled.initial.dtype)
            self._control["scratch"] = self._records.ctypes.data
        self._frames = np.zeros(levels + 1, plan_kernels.FRAME)
        chances = np.zeros((levels, outcomes))
        self._walk = (self._frames, chances, np.zeros(1, ACTION), self._control)
        self._returns = run.merge_returns() if returns is None else returns
        self.evaluations = 0

    @property
    def work(self) -> int:
        """Histories walked so far."""
        return int(self._control["work"][0])

    def evaluate(self, nodes: Sequence[int], may_go_on: Callable[[], bool]) -> list[Points]:
        """Return the points of histories, as many as there is time for."""
        found: list[Points] = []
        with pause_collection():
            for node in nodes:
                points = self._evaluate(node, may_go_on)
                if points is None:
                    break
                found.append(points)
        return found

    def _evaluate(self, node: int, may_go_on: Callable[[], bool]) -> Points | None:
        """Return the points of a history; None if the walk may not go on."""
        run, control = self._run, self._control
        level = int(run.nodes["level"][node])
        control["level"] = control["depth"] = level
        frame = self._frames[level : level + 1]
        frame["node"], frame["state"] = node, run.nodes["state"][node]
        frame["phase"], frame["price_mask"] = self._kernels.ENTER, (1 << run.prices.shape[1]) - 1
        while True:
            if isinstance(run.graph, CompiledGraph):
                frame["record"] = run.graph.find_record(int(frame["state"][0]))
            control["pause"] = control["work"] + CHUNK
            problem = (
                run.arrays() if self._evaluator is None else self._evaluator.lend(run.arrays())
            )
            wants = self._kernels.evaluate(problem, run.tree(), self._returns, self._walk)
            if wants == codes.DONE:
                problem.source["evaluations"] += control["evaluations"]
                control["evaluations"] = 0
                return frame["earned"][0].copy(), frame["risked"][0].copy()
            ahead: list[int] = []
            if wants == codes.NEEDS_STATE:
                ahead = self._list_siblings(level)
                self.evaluations += 1 + len(ahead)
            if self._evaluator is not None and wants == codes.BROKEN:
                self._evaluator.report()
            if wants in (codes.PAUSED, codes.NEEDS_STATE) and not may_go_on():
                return None
            if wants != codes.PAUSED and not run.satisfy(
                wants, int(control["state"][0]), run.limit, ahead
            ):
                return None

    def _list_siblings(self, level: int) -> list[int]:
        """Return other states that the walk needs next, if each history has a state of its own.

        They are evaluated together with the state that is needed now, which takes less time.
        """
        depth, graph = int(self._control["depth"][0]), self._run.state_graph
        if depth <= level or graph.merges:
            return []
        frame = self._frames[depth - 1]
        first, count = int(frame["first_outcome"]), int(frame["outcomes"])
        states = graph.outcomes.array["state"][first : first + count]
        new = states[states > int(self._control["state"][0])]
        new = new[graph.states.array["action_count"][new] == UNEVALUATED]
        return list(map(int, new))

    def write(self, price_index: int = NONE, root: int = 0) -> Candidate | None:
        """Return the plan that is marked from a root on as a policy; None without room for it.

        The plan follows this price from the root on; NONE if its prices are marked, too.
        """
        kernels, run, begin = self._kernels, self._run, int(self._run.nodes["level"][root])
        length = FIRST_LENGTH
        levels = np.zeros(run.reader.levels + 1, kernels.LEVEL)
        summary = np.zeros(1, kernels.SUMMARY)
        writer = np.zeros(1, kernels.WRITER)
        writer["begin"] = writer["depth"] = begin
        first = levels[begin : begin + 1]
        first["row"] = first["entry"] = NONE
        first["price_index"] = price_index
        first["reach"], first["node"], first["state"] = 1.0, root, run.nodes["state"][root]
        rows, firsts = np.zeros(length, np.int32), np.zeros(length + 1, np.int32)
        below = np.zeros(2 * length, np.int32)
        while True:
            outline = (levels, rows, firsts, below, summary, writer)
            wants = kernels.write_plan(run.arrays(), run.tree(), self._returns, outline)
            if wants == codes.DONE:
                break
            if wants == codes.NEEDS_PLAN:
                rows, firsts, below = (
                    np.concatenate([array, np.zeros_like(array)]) for array in (rows, firsts, below)
                )
            elif not run.satisfy(wants, int(writer["state"][0]), run.limit):
                return None
        decisions, entries = int(summary["decisions"][0]), int(summary["entries"][0])
        reward, risk = float(summary["reward"][0]), float(summary["risk"][0])
        return Candidate(
            rows[:decisions].copy(),
            firsts[: decisions + 1].copy(),
            below[:entries].copy(),
            reward,
            risk,
            run.allow(reward),
            0.0,
        )


Completion = HistoryCompletion | SharedCompletion
