"""VulcanFS: forward search over all histories, with a local constraint at their ends.

The search itself, and the algorithm, are in `vulcan.kernels.forward_search`, what it needs in
`vulcan.solvers.tree.forward_run`. Several workers share it as `vulcan.solvers.tree.split_search`
says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, ClassVar, Final, Self

from vulcan.certificates.problem import Problem
from vulcan.executors.base import Executor
from vulcan.executors.here import Here
from vulcan.graphs.compiled_graph import find_compiled
from vulcan.model.reader import ModelReader
from vulcan.policies.policy import Policy
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import Option, Options, Solver
from vulcan.solvers.constraints import (
    CONSTRAINT,
    CREDIT,
    LocalConstraint,
    SurvivalConstraint,
    make_constraint,
    require_constraint,
)
from vulcan.solvers.finding import Finding, Statistics, Status
from vulcan.solvers.tree.forward_run import ForwardSearchRun

__all__ = ["ForwardSearch"]

QUICK_ANSWER: Final = 2e-4
"""Seconds of an answer up to which it is the search that takes the time, and not the model."""

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
