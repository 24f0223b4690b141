"""VulcanFS: forward search over all histories, with a local constraint at their ends.

The search itself, and the algorithm, are in `vulcan.kernels.forward_search`. Here the model is
asked, the bound's table is made finer, and memory is kept flat: what the kernel needs when it
returns. Several workers share the search as `vulcan.solvers.tree.split_search` says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import chain
from time import perf_counter
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.problem import Problem
from vulcan.executors.base import Executor
from vulcan.executors.here import Here
from vulcan.graphs.base import Graph
from vulcan.graphs.compiled_graph import find_compiled
from vulcan.graphs.state_graph import StateGraph
from vulcan.kernels import codes
from vulcan.model.reader import ModelReader
from vulcan.policies.policy import Policy
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.runtime.progress import Progress
from vulcan.runtime.reservation import lengthen
from vulcan.sentinels import END, NONE
from vulcan.solvers.base import Option, Options, Solver, describe_origin
from vulcan.solvers.constraints import (
    CONSTRAINT,
    CREDIT,
    LocalConstraint,
    SurvivalConstraint,
    make_constraint,
    require_constraint,
)
from vulcan.solvers.finding import Finding, Statistics, Status
from vulcan.solvers.tree.kernel_run import KernelRun

__all__ = ["ForwardSearch"]

CHUNK: Final = 1 << 21
"""Histories and tests between two looks at the clock; a few hundredths of a second."""

NO_LIMIT: Final = 1 << 62

QUICK_ANSWER: Final = 2e-4
"""Seconds of an answer up to which it is the search that takes the time, and not the model."""

FEWEST_ROWS_TO_RELEASE: Final = 1 << 16


CUT_SHORT: Final = Option(
    "cut_short",
    bool,
    "Leave an action at its first inadmissible outcome; the same plan, sooner.",
    default="cut-short",
    negatable=True,
)


@dataclass(frozen=True)
class ForwardSearch(Solver):
    """Visit every history and return the best policy that a local constraint admits (VulcanFS).

    Parameters
    ----------
    constraint
        The local constraint: `SurvivalConstraint()` or `SequenceConstraint(...)`.
    cut_short
        Leave an action at its first inadmissible outcome. It changes the time, never the policy.

    Notes
    -----
    Several workers search parts of it, and find and count the same as one, bit for bit. They are
    threads or, where states don't merge, processes or the machines of a Ray cluster. Where states
    merge, these answer for the model instead: each would ask for nearly all of it, so that threads
    are faster unless the model is slow.
    """

    finds: ClassVar[str] = "the best policy that a local constraint admits, proved (VulcanFS)"
    method: ClassVar[str] = "visits every history"
    limits: ClassVar[Sequence[str]] = ("time_limit", "histories")
    options: ClassVar[Sequence[Option]] = (CONSTRAINT, CREDIT, CUT_SHORT)

    constraint: LocalConstraint = field(default_factory=SurvivalConstraint)
    cut_short: bool = True

    def __post_init__(self) -> None:
        require_constraint(self.constraint)

    @classmethod
    def from_options(cls, given: Mapping[str, Any], limits: Limits) -> Self:
        tuning = dict(given)
        return cls(make_constraint(tuning), **tuning)

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        with self._open_run(problem, reader, options) as run:
            monitor.start_clock()
            stopped = not run.advance(monitor)
        policy = run.build_policy(stopped)
        statistics = Statistics(monitor.seconds, run.histories, run.evaluations)
        status, explanation = self._explain(run, monitor, stopped, policy)
        return Finding(
            status=status,
            explanation=explanation,
            policy=policy,
            reward=run.reward if policy is not None else -math.inf,
            risk=run.risk,
            credits=run.credits(),
            statistics=statistics,
            graph=run.known_graph if reader.merges else None,
        )

    def spreads(self, reader: ModelReader) -> bool:
        # Where states merge, workers who can't share one graph would each ask for all of it.
        return self._is_compiled(reader) or not reader.merges

    def suits_threads(self, reader: ModelReader) -> bool:
        if self._is_compiled(reader):
            return True
        return reader.merges and _time_answer(reader) < QUICK_ANSWER

    def _is_compiled(self, reader: ModelReader) -> bool:
        return self.constraint.own_credit is None and find_compiled(reader) is not None

    @contextmanager
    def _open_run(
        self, problem: Problem, reader: ModelReader, options: Options
    ) -> Iterator[ForwardSearchRun]:
        """Yield a search by one worker or by several."""
        executor = options.executor
        if (
            not isinstance(executor, Executor)
            or isinstance(executor, Here)
            or reader.levels < 2
            or not (executor.near or self.spreads(reader))
        ):
            yield ForwardSearchRun(problem, reader, self, options.graph)
        else:
            from vulcan.solvers.tree.split_search import SplitRun

            with SplitRun(problem, reader, self, options.graph, executor) as run:
                yield run

    def _explain(
        self, run: ForwardSearchRun, monitor: Monitor, stopped: bool, policy: Policy | None
    ) -> tuple[Status, str]:
        name = f"constraint {self.constraint.letter}"
        if stopped:
            found = "no complete policy yet" if policy is None else "best policy so far"
            return Status.STOPPED, (
                f"stopped by {monitor.stopped_by} after {100 * run.fraction():.3g} % "
                f"of the search: {found}"
            )
        if policy is not None:
            return Status.SOLVED, f"best policy that {name} admits, proved"
        return Status.INFEASIBLE, run.explain_infeasible(self.constraint)


def _time_answer(reader: ModelReader) -> float:
    """Return the seconds that an answer about the root takes, the first of which may take longer.

    A model is asked once about its root, however often that is needed.
    """
    fastest = math.inf
    for action in reader.actions(reader.root).values():
        began = perf_counter()
        reader.outcomes(reader.root, action)
        fastest = min(fastest, perf_counter() - began)
    return fastest


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
