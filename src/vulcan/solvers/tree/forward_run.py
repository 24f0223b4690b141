"""A forward search in progress: the answers to what its kernel asks for.

Whenever `vulcan.kernels.forward_search` returns, the model is asked, the table of the bound is made
finer, or rows are released, so that memory stays flat.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.problem import Problem
from vulcan.graphs.base import Graph
from vulcan.graphs.state_graph import StateGraph
from vulcan.kernels import codes
from vulcan.model.reader import ModelReader
from vulcan.policies.policy import Policy
from vulcan.runtime.monitor import Monitor
from vulcan.runtime.progress import Progress
from vulcan.runtime.reservation import lengthen
from vulcan.sentinels import END, NONE
from vulcan.solvers.base import describe_origin
from vulcan.solvers.tree.kernel_run import KernelRun

if TYPE_CHECKING:
    from vulcan.solvers.tree.forward_search import ForwardSearch

__all__ = ["ForwardSearchRun"]

CHUNK: Final = 1 << 21
"""Histories and tests between two looks at the clock; a few hundredths of a second."""

NO_LIMIT: Final = 1 << 62

FEWEST_ROWS_TO_RELEASE: Final = 1 << 16


class ForwardSearchRun(KernelRun):
    """One forward search: the arrays of its kernel, and the answers to its requests.

    Parameters
    ----------
    problem, reader, solver, known
        What is searched, and how.
    graph
        A graph to ask instead of the one that suits.
    asking
        What is held while the model and the bound are asked.
    """

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        solver: ForwardSearch,
        known: StateGraph | None = None,
        graph: Graph | None = None,
        asking: AbstractContextManager[Any] | None = None,
    ) -> None:
        from vulcan.kernels import forward_search
        from vulcan.kernels.compilation import announce_compilation

        super().__init__(problem, reader, solver.constraint, known, graph=graph)
        announce_compilation(forward_search.search)
        self._solver = solver
        self._kernel = forward_search
        self._asking = nullcontext() if asking is None else asking
        self._visits = np.zeros(0, forward_search.VISIT)
        self._frames = np.zeros(reader.levels, forward_search.FRAME)
        self._plan = np.zeros(1024, np.int32)
        self._control = np.zeros(1, forward_search.CONTROL)
        self._control["cut_short"] = solver.cut_short
        self._release_at = FEWEST_ROWS_TO_RELEASE
        self.risk = 0.0
        self.restart()
        self._call_kernel()  # asks for the root at once; what counts is that it is compiled now

    def restart(self) -> None:
        """Begin again with what is known of the model."""
        self.begin_at(0, StateGraph.ROOT, 1.0, 0.0)

    def begin_at(self, level: int, state: int, survival: float, credit: float) -> None:
        """Begin to search what comes after a history, which ends in a state at a level."""
        for name in ("phase", "length", "histories", "budget", "work", "entered"):
            self._control[name] = 0
        self._control["depth"] = self._control["top"] = level
        self._control["cut"] = NONE
        self.forget_credits()
        frame = self._frames[level]
        frame["state"], frame["survival"], frame["credit"] = state, survival, credit
        frame["found"] = 0

    def advance(self, monitor: Monitor) -> bool:
        """Search until done (True) or the monitor wants to stop (False)."""
        while not monitor.wants_stop(self.histories):
            if self.step(monitor.limits.histories) == codes.DONE:
                return True
            monitor.report(lambda: self._describe(monitor))
        return False

    def step(self, most: int | None = None) -> int:
        """Search until something is needed, see to that, and return what it was.

        Parameters
        ----------
        most
            How many histories are visited at most; None for any number.
        """
        self._control["budget"] = NO_LIMIT if most is None else most
        self._control["pause"] = self._control["work"] + CHUNK
        wants = self._call_kernel()
        if wants == codes.NEEDS_STATE:
            self._release_rows()
            self._ask(int(self._frames["state"][self._depth]))
        elif wants == codes.NEEDS_ROWS:
            self._release_rows()
            self.make_rows()
        elif wants == codes.BROKEN:
            self.raise_fault()
        elif wants == codes.NEEDS_BOUND:
            with self._asking:
                self.refine_bound()
        elif wants == codes.NEEDS_PLAN:
            self._lengthen_plan()
        return wants

    def _ask(self, state: int) -> None:
        with self._asking:
            self.state_graph.expand(state)

    def _lengthen_plan(self) -> None:
        self._plan = np.concatenate([self._plan, np.zeros_like(self._plan)])

    @property
    def histories(self) -> int:
        """Histories visited so far."""
        return int(self._control["histories"][0])

    @property
    def evaluations(self) -> int:
        """How many (state, action) the model was asked."""
        return self.graph.evaluations

    @property
    def reward(self) -> float:
        """Value of the best complete policy so far; -inf without one."""
        return float(self._frames["best" if self._frames["found"][0] else "value"][0])

    def fraction(self) -> float:
        """Return the estimated share of the search that is done."""
        done, share = 0.0, 1.0
        for frame in self._frames[: self._depth]:
            first, end = self.graph.states.array["first_action"][frame["state"]], frame["end"]
            action = self.graph.actions.array[frame["action"]]
            outcomes = max(1, action["safe_count"])
            share /= end - first
            done += share * (frame["action"] - first)
            share /= outcomes
            done += share * (frame["outcome"] - action["first_outcome"])
        return float(done)

    def build_policy(self, stopped: bool) -> Policy | None:
        """Return the best complete policy so far; None without one."""
        length, found = self.find_plan(stopped)
        if not found:
            return None
        rows = self._plan[:length].tolist()
        children = self._link(rows)
        self.risk = self._add_risks(rows, children)
        about = describe_origin(self.problem, self.reader, self._solver)
        return self.graph.policy(rows, list(chain.from_iterable(children)), about)

    def find_plan(self, stopped: bool) -> tuple[int, bool]:
        """Return how long the best complete plan is, and whether there is one."""
        root = self._frames[0]
        if stopped:
            return int(root["kept"]), bool(root["found"])
        return int(self._control["length"][0]), bool(root["admissible"])

    def follow(self, labels: Sequence[str]) -> None:
        """Visit the histories of one policy, whose actions are known in preorder."""
        self.restart()
        self._control["guided"] = True
        numbers = {label: self.graph.number_of(label) for label in dict.fromkeys(labels)}
        self._plan = np.zeros(len(labels) + 1024, np.int32)
        self._plan[: len(labels)] = [numbers[label] for label in labels]
        while self.step() != codes.DONE:
            pass

    def _add_risks(self, rows: list[int], children: list[list[int]]) -> float:
        """Return the probability of failure of a policy, by the rows that were searched."""
        actions = self.graph.actions.array
        chances = self.graph.outcomes.array["probability"]
        reach, risk = [1.0] * len(rows), 0.0
        for node, row in enumerate(rows):
            risk += reach[node] * float(actions["immediate_risk"][row])
            first = int(actions["first_outcome"][row])
            for k, child in enumerate(children[node]):
                if child >= 0:
                    reach[child] = reach[node] * float(chances[first + k])
        return risk

    @property
    def _depth(self) -> int:
        return int(self._control["depth"][0])

    def _call_kernel(self) -> int:
        self.fit_visits()
        state = (self._frames, self._plan, self.test, self._control, self._visits)
        return int(self._kernel.search(self.arrays(), *state))

    def fit_visits(self) -> None:
        """Have room to note the visits of all states, if they are noted."""
        length = self.graph.states.count
        if self._control["noted"][0] and len(self._visits) < length:
            self._visits = lengthen(self._visits, len(self._visits), length + length // 2)

    def _describe(self, monitor: Monitor) -> Progress:
        reward = float(self._frames["best"][0]) if self._frames["found"][0] else None
        return Progress(monitor.seconds, self.fraction(), self.histories, self.evaluations, reward)

    def _link(self, rows: list[int]) -> list[list[int]]:
        """Return, for each node of a preorder, the nodes after its safe outcomes."""
        actions, outcomes = self.graph.actions.array, self.graph.outcomes.array
        counts = self.graph.states.array["action_count"]
        children: list[list[int]] = []
        pending: list[tuple[int, int, list[int]]] = []  # node, level, states yet to come

        def enter(level: int) -> None:
            action = actions[rows[len(children)]]
            first, count = int(action["first_outcome"]), int(action["safe_count"])
            # A compiled model has no outcome rows at the last step, and nothing comes after it.
            last = level + 1 == self.reader.levels
            states = [0] * count if last else outcomes["state"][first : first + count].tolist()
            pending.append((len(children), level, states[::-1]))
            children.append([])

        if rows:
            enter(0)
        while pending:
            node, level, states = pending[-1]
            if not states:
                pending.pop()
            elif level + 1 == self.reader.levels or counts[states[-1]] == 0:
                states.pop()
                children[node].append(END)
            else:
                states.pop()
                children[node].append(len(children))
                enter(level + 1)
        return children

    def _release_rows(self) -> None:
        """Where nothing merges, drop what is neither on the path nor in the plan."""
        graph = self.graph
        if graph.merges or graph.outcomes.count < self._release_at:
            return
        depth = self._depth
        frames = self._frames[int(self._control["top"][0]) : depth + 1]
        plan = self._plan[: self._control["length"][0]]
        states, actions, outcomes = graph.release(
            frames["state"].astype(np.intp), plan[plan >= 0].astype(np.intp)
        )
        self._renumber(frames, plan, states, actions, outcomes)
        self._release_at = max(FEWEST_ROWS_TO_RELEASE, 2 * graph.outcomes.count)

    @staticmethod
    def _renumber(
        frames: NDArray[np.void],
        plan: NDArray[np.int32],
        states: NDArray[np.intp],
        actions: NDArray[np.intp],
        outcomes: NDArray[np.intp],
    ) -> None:
        plan[plan >= 0] = actions[plan[plan >= 0]]
        frames["state"] = states[frames["state"]]
        entered = frames[:-1]  # the deepest frame has only its state yet
        entered["action"] = actions[entered["action"]]
        entered["end"] = actions[entered["end"] - 1] + 1
        entered["outcome"] = outcomes[entered["outcome"]]
