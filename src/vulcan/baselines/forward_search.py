"""VulcanFS, the paper's exact algorithm: forward search over all histories.

A local test is tested at the end of each history. The recursion is a kernel
(`vulcan.kernels.forward_search`) that returns when it needs Python: to evaluate the model, to
refine the table of the bound, or for room.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

import numpy as np

from vulcan.graph.states import StateGraph
from vulcan.kernels import codes
from vulcan.model.reader import ModelReader
from vulcan.numerics import END, NONE
from vulcan.parameters import knows_parameters
from vulcan.policy.policy import Policy
from vulcan.problem import Problem
from vulcan.runtime.limits import Limits, Monitor, Progress
from vulcan.sampling.kernel_run import KernelRun
from vulcan.solvers.base import Option, Options, Solver, describe_origin
from vulcan.solvers.finding import Finding, Statistics, Status
from vulcan.solvers.local_tests import (
    CONSTRAINT,
    CREDIT,
    LocalConstraint,
    SurvivalConstraint,
    make_local_test,
    require_local_test,
)

CHUNK: Final = 1 << 21
"""Histories and tests between two checks of the clock; a few hundredths of a second."""

NO_LIMIT: Final = 1 << 62

FEWEST_ROWS_TO_RELEASE: Final = 1 << 16

CUT_SHORT: Final = Option(
    "cut_short",
    bool,
    "Leave an action at its first inadmissible outcome; same result, faster.",
    default="cut-short",
    negatable=True,
)


@knows_parameters
@dataclass(frozen=True)
class ForwardSearch(Solver):
    """Visit every history and return the best policy that a local test admits (VulcanFS).

    Parameters
    ----------
    local_test
        The local test: `SurvivalConstraint()` or `SequenceConstraint(...)`.
    cut_short
        Leave an action at its first inadmissible outcome. It changes the time, never the policy.

    Notes
    -----
    The search itself uses one core; workers evaluate the model for it.
    """

    finds: ClassVar[str] = "the best policy that a local test admits, proved (VulcanFS)"
    method: ClassVar[str] = "visits every history"
    limits: ClassVar[Sequence[str]] = ("time_limit", "histories")
    options: ClassVar[Sequence[Option]] = (CONSTRAINT, CREDIT, CUT_SHORT)

    local_test: LocalConstraint = field(default_factory=SurvivalConstraint)
    cut_short: bool = True

    def __post_init__(self) -> None:
        require_local_test(self.local_test)

    @classmethod
    def from_options(cls, given: Mapping[str, Any], limits: Limits) -> Self:
        tuning = dict(given)
        return cls(make_local_test(tuning), **tuning)

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        run = ForwardSearchRun(problem, reader, self, options.graph)
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
        )

    def _explain(
        self, run: ForwardSearchRun, monitor: Monitor, stopped: bool, policy: Policy | None
    ) -> tuple[Status, str]:
        name = f"constraint {self.local_test.letter}"
        if stopped:
            found = "no complete policy yet" if policy is None else "best policy so far"
            return Status.STOPPED, (
                f"stopped by {monitor.stopped_by} after {100 * run.fraction():.3g} % "
                f"of the search: {found}"
            )
        if policy is not None:
            return Status.SOLVED, f"best policy that {name} admits, proved"
        return Status.INFEASIBLE, run.explain_infeasible(self.local_test)


class ForwardSearchRun(KernelRun):
    """One forward search: the arrays of its kernel, and what the kernel needs from Python."""

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        solver: ForwardSearch,
        known: StateGraph | None = None,
    ) -> None:
        from vulcan.kernels import forward_search

        super().__init__(problem, reader, solver.local_test, known)
        self._solver = solver
        self._kernel = forward_search
        self._frames = np.zeros(reader.levels, forward_search.FRAME)
        self._plan = np.zeros(1024, np.int32)
        self._control = np.zeros(1, forward_search.CONTROL)
        self._control["cut_short"] = solver.cut_short
        self._release_at = FEWEST_ROWS_TO_RELEASE
        self.risk = 0.0
        self.forget_credits()
        self._frames[0]["state"], self._frames[0]["survival"] = StateGraph.ROOT, 1.0
        self._call_kernel()  # compile it now; it stops at the root

    def advance(self, monitor: Monitor) -> bool:
        """Search until done (True) or the monitor wants to stop (False)."""
        most = monitor.limits.histories
        self._control["budget"] = NO_LIMIT if most is None else most
        while not monitor.wants_stop(self.histories):
            self._control["pause"] = self._control["work"] + CHUNK
            wants = self._call_kernel()
            if wants == codes.DONE:
                return True
            if wants == codes.NEEDS_STATE:
                self._release_rows()
                self.state_graph.expand(int(self._frames["state"][self._depth]))
            elif wants == codes.NEEDS_ROWS:
                self._release_rows()
                self.make_rows()
            elif wants == codes.BROKEN:
                self.raise_fault()
            elif wants == codes.NEEDS_BOUND:
                self.refine_bound()
            elif wants == codes.NEEDS_PLAN:
                self._plan = np.concatenate([self._plan, np.zeros_like(self._plan)])
            monitor.report(lambda: self._describe(monitor))
        return False

    @property
    def histories(self) -> int:
        """Histories visited so far."""
        return int(self._control["histories"][0])

    @property
    def reward(self) -> float:
        """Value of the best complete policy so far; -inf without one."""
        return float(self._frames["best" if self._frames["found"][0] else "value"][0])

    def fraction(self) -> float:
        """Return the estimated fraction of the search that is done."""
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
        root = self._frames[0]
        length = int(root["kept"] if stopped else self._control["length"][0])
        if not root["found" if stopped else "admissible"]:
            return None
        rows = self._plan[:length].tolist()
        below, self.risk = self._link(rows)
        about = describe_origin(self.problem, self.reader, self._solver)
        return self.graph.policy(rows, below, about)

    @property
    def _depth(self) -> int:
        return int(self._control["depth"][0])

    def _call_kernel(self) -> int:
        state = (self._frames, self._plan, self.test, self._control)
        return int(self._kernel.search(self.arrays(), *state))

    def _describe(self, monitor: Monitor) -> Progress:
        reward = float(self._frames["best"][0]) if self._frames["found"][0] else None
        return Progress(monitor.seconds, self.fraction(), self.histories, self.evaluations, reward)

    def _link(self, rows: list[int]) -> tuple[list[int], float]:
        """Return the node after each safe outcome of a policy in preorder, and its risk."""
        actions, outcomes = self.graph.actions.array, self.graph.outcomes.array
        counts = self.graph.states.array["action_count"]
        below: list[int] = []
        risk = 0.0
        slots = [(NONE, 0, 1.0)]  # where the next nodes belong: the entry in below, level, reach
        for node, row in enumerate(rows):
            entry, level, reach = slots.pop()
            if entry != NONE:
                below[entry] = node
            action = actions[row]
            risk += reach * float(action["immediate_risk"])
            first, count = int(action["first_outcome"]), int(action["safe_count"])
            if level + 1 < self.reader.levels:  # a compiled model has no outcomes of the last step
                after = outcomes[first : first + count]
                goes_on = np.flatnonzero(counts[after["state"]] != 0)[::-1].tolist()
                chances = after["probability"].tolist()
                slots += [(len(below) + k, level + 1, reach * chances[k]) for k in goes_on]
            below += [END] * count
        return below, risk

    def _release_rows(self) -> None:
        """If states do not merge, drop the rows that are neither on the path nor in the plan."""
        graph = self.graph
        if graph.merges or graph.outcomes.count < self._release_at:
            return
        frames = self._frames[: self._depth + 1]
        plan = self._plan[: self._control["length"][0]]
        planned = plan >= 0
        states, actions, outcomes = graph.release(
            frames["state"].astype(np.intp), plan[planned].astype(np.intp)
        )
        plan[planned] = actions[plan[planned]]
        frames["state"] = states[frames["state"]]
        entered = frames[:-1]  # the deepest frame has only its state yet
        entered["action"] = actions[entered["action"]]
        entered["end"] = actions[entered["end"] - 1] + 1
        entered["outcome"] = outcomes[entered["outcome"]]
        self._release_at = max(FEWEST_ROWS_TO_RELEASE, 2 * graph.outcomes.count)
