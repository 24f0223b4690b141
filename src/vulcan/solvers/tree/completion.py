"""What lies below the top of a plan: what the policy of each price is worth, and how it goes on.

Over histories, every policy is walked to the end of all that can follow. Where states merge, there
may be far more of them than pairs of a state and a step; see `vulcan.solvers.tree.merged`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.asker import Asker
from vulcan.graphs.compiled_graph import CompiledGraph
from vulcan.graphs.rows import ACTION
from vulcan.kernels import codes
from vulcan.sentinels import NONE
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.price_arrays import PriceArrays

__all__ = ["Completion", "HistoryCompletion", "Points", "SharedCompletion"]

CHUNK: Final = 1 << 16
"""Histories between two looks at the clock."""

FIRST_LENGTH: Final = 1 << 12


Points = tuple[NDArray[np.float64], NDArray[np.float64]]
"""What the policies of all prices earn, and what they risk."""


class Completion(Protocol):
    """What plans need of it.

    Attributes
    ----------
    work, questions
        Histories walked so far, and states that the model was asked.
    """

    @property
    def work(self) -> int: ...
    @property
    def questions(self) -> int: ...
    def evaluate(self, nodes: Sequence[int], may_go_on: Callable[[], bool]) -> list[Points]:
        """Return what each price earns and risks from histories on: of all there is time for."""

    def write(self) -> Draft | None:
        """Return the plan that is marked in the tree as a policy; None without room for it."""


class SharedCompletion(ABC):
    """Walks over histories by several at once, read in the order in which one would walk.

    Attributes
    ----------
    work
        Histories walked so far.
    """

    questions = 0

    def __init__(self, at_once: int) -> None:
        self._at_once, self.work = at_once, 0

    def evaluate(self, nodes: Sequence[int], may_go_on: Callable[[], bool]) -> list[Points]:
        """Return what each price earns and risks from histories on: of all there is time for."""
        found: list[Points] = []
        for begin in range(0, len(nodes), self._at_once):
            for points, work in self._walk(nodes[begin : begin + self._at_once]):
                # One who walks alone would look at the clock after each chunk.
                chunks, before = work // CHUNK, self.work
                self.work += chunks * CHUNK
                if chunks and not may_go_on():
                    return found
                self.work = before + work
                found.append(points)
        return found

    @abstractmethod
    def _walk(self, nodes: Sequence[int]) -> list[tuple[Points, int]]:
        """Return what each price earns and risks from histories on, and the work of each."""


class HistoryCompletion:
    """Walks over histories.

    Parameters
    ----------
    run
        The tree.
    returns
        What samples collected; by default those of this tree.
    asker
        Who asks a compiled model; by default the graph itself.

    Attributes
    ----------
    questions
        How many states the model was asked.
    """

    def __init__(
        self,
        run: PriceArrays,
        returns: NDArray[Any] | None = None,
        asker: Asker | None = None,
    ) -> None:
        from vulcan.kernels import plan_values

        self._run, self._kernels, self._asker = run, plan_values, asker
        levels, graph = run.reader.levels, run.graph
        outcomes = 1
        self._control = np.zeros(1, plan_values.WALK)
        if isinstance(graph, CompiledGraph):
            outcomes = graph.compiled.most_outcomes
            self._records = np.zeros(levels * outcomes, graph.compiled.initial.dtype)
            self._control["scratch"] = self._records.ctypes.data
        self._walk = plan_values.Walk(
            frames=np.zeros(levels + 1, plan_values.FRAME),
            chances=np.zeros((levels, outcomes)),
            actions=np.zeros(1, ACTION),
            controls=self._control,
        )
        self._returns = run.merge_returns() if returns is None else returns
        self.questions = 0

    @property
    def work(self) -> int:
        """Histories walked so far."""
        return int(self._control["work"][0])

    def evaluate(self, nodes: Sequence[int], may_go_on: Callable[[], bool]) -> list[Points]:
        """Return what each price earns and risks from histories on: of all there is time for."""
        found: list[Points] = []
        for node in nodes:
            points = self._evaluate(node, may_go_on)
            if points is None:
                break
            found.append(points)
        return found

    def _evaluate(self, node: int, may_go_on: Callable[[], bool]) -> Points | None:
        """Return what each price earns and risks from a history on; None if it may not go on."""
        run, control = self._run, self._control
        level = int(run.nodes["level"][node])
        control["level"] = control["depth"] = level
        frame = self._walk.frames[level : level + 1]
        frame["node"], frame["state"] = node, run.nodes["state"][node]
        frame["phase"], frame["lanes"] = self._kernels.ENTER, (1 << run.prices.shape[1]) - 1
        while True:
            if isinstance(run.graph, CompiledGraph):
                frame["record"] = run.graph.find_record(int(frame["state"][0]))
            control["pause"] = control["work"] + CHUNK
            problem = run.arrays() if self._asker is None else self._asker.lend(run.arrays())
            wants = self._kernels.evaluate(problem, run.tree(), self._returns, self._walk)
            if wants == codes.DONE:
                problem.source["evaluations"] += control["evaluations"]
                control["evaluations"] = 0
                return frame["earned"][0].copy(), frame["risked"][0].copy()
            self.questions += wants == codes.NEEDS_STATE
            if self._asker is not None and wants == codes.BROKEN:
                self._asker.report()
            if wants in (codes.PAUSED, codes.NEEDS_STATE) and not may_go_on():
                return None
            if wants != codes.PAUSED and not run.satisfy(
                wants, int(control["state"][0]), run.limit
            ):
                return None

    def write(self, lane: int = NONE) -> Draft | None:
        """Return the plan that is marked in the tree as a policy; None without room for it.

        Parameters
        ----------
        lane
            The price that it follows from the first history on; none if that is marked, too.
        """
        from vulcan.kernels import plan_writing

        run, begin = self._run, int(self._run.nodes["level"][0])
        length = FIRST_LENGTH
        levels = np.zeros(run.reader.levels + 1, plan_writing.LEVEL)
        summary = np.zeros(1, plan_writing.SUMMARY)
        writer = np.zeros(1, plan_writing.WRITER)
        writer["begin"] = writer["depth"] = begin
        first = levels[begin : begin + 1]
        first["row"] = first["entry"] = NONE
        first["lane"] = lane
        first["reach"], first["state"] = 1.0, run.nodes["state"][0]
        rows, firsts = np.zeros(length, np.int32), np.zeros(length + 1, np.int32)
        below = np.zeros(2 * length, np.int32)
        while True:
            outline = plan_writing.Outline(levels, rows, firsts, below, summary, writer)
            wants = plan_writing.write_plan(run.arrays(), run.tree(), self._returns, outline)
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
        return Draft(
            rows[:decisions].copy(),
            firsts[: decisions + 1].copy(),
            below[:entries].copy(),
            reward,
            risk,
            run.allow(reward),
            0.0,
        )
