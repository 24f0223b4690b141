"""Many searches on one model, run by several workers.

A worker (`vulcan.parallel`) holds the problem, which is sent to it once. A search is a small
`SearchJob`, and its answer a `Result` without the problem. Jobs are independent and are submitted
in a fixed order, so that results depend neither on the worker nor on timing, as long as limits of
time and memory don't end the searches.

A job that raises ends with its error, the job of a lost worker is run by another, and the first
Ctrl-C lets running jobs end with what they have, and starts no other.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Self

from vulcan.bounds.forms import Constant
from vulcan.errors import ModelError, VulcanError
from vulcan.exact.pipeline import RewardBound, bound_reward
from vulcan.graph.states import StateGraph
from vulcan.model.reader import ModelReader
from vulcan.parallel.executors import Channel, Executor, Maker
from vulcan.parallel.pool import Task, WorkerPool
from vulcan.planning.result import Result
from vulcan.planning.solve import plan_and_certify
from vulcan.problem import Problem
from vulcan.runtime.limits import (
    Interruption,
    Limits,
    OnProgress,
    Progress,
    StopReason,
    listen,
    watch_progress,
)
from vulcan.solvers.base import Options, Solver

__all__ = ["SearchJob", "Searcher", "Sweep", "describe_error"]

logger = logging.getLogger("vulcan")


@dataclass(frozen=True)
class SearchJob:
    """One search, as it is sent to a worker.

    Attributes
    ----------
    solver, limits, options
        How to search.
    bound
        Whether to add an upper bound, if the solver has none.
    level, scale
        Another bound than that of the problem: a constant, or a multiple of it.
    """

    solver: Solver
    limits: Limits
    options: Options
    bound: bool = False
    level: float | None = None
    scale: float | None = None

    def pose(self, problem: Problem) -> Problem:
        """Return the problem with the bound of this job."""
        if self.level is not None:
            return Problem(problem.model, Constant(self.level))
        if self.scale is not None:
            return Problem(problem.model, problem.risk_bound.scale(self.scale))
        return problem

    def unpack(self, result: Result, problem: Problem) -> Result:
        """Return the answer of a worker as the result of this job."""
        policy = result.policy
        attached = None if policy is None else policy.attach(ModelReader(problem.model))
        return replace(result, problem=self.pose(problem), policy=attached)


class Searcher:
    """The object that a worker holds: a problem, and a state graph if its searches share one."""

    def __init__(self, channel: Channel, problem: Problem, graph: StateGraph | None = None) -> None:
        self._channel, self._problem, self._graph = channel, problem, graph

    def search(self, job: SearchJob) -> Result:
        """Run a job, and return its result without the problem and what it holds of the model."""
        problem, options = job.pose(self._problem), replace(job.options, graph=self._graph)
        result = plan_and_certify(
            problem, job.solver, job.limits, options, progress=self._channel.report
        )
        if job.bound and result.upper_bound is None and not _was_requested(result):
            found = self.bound(job.limits, problem)
            result = replace(result, upper_bound=found.upper, price=found.price, lines=found.lines)
        policy = None if result.policy is None else result.policy.attach(None)
        return replace(result, problem=None, policy=policy)  # type: ignore[arg-type]

    def bound(self, limits: Limits, problem: Problem | None = None) -> RewardBound:
        """Return an upper bound on the reward of any policy, if one can be found."""
        asked, report = problem or self._problem, self._channel.report
        try:
            return bound_reward(asked, limits, graph=self._graph, on_progress=report)
        except ModelError:
            return RewardBound()


class Sweep:
    """Workers, their jobs, their progress as one, and Ctrl-C; used in a `with` statement.

    Ctrl-C ends the statement without an error; `stopped_by` says so.

    Parameters
    ----------
    executor
        Runs the workers.
    progress
        Whether to show the progress of all searches, or a function that is called with it.
    maker, arguments
        Make the object that a worker holds: a `Searcher`, or a kind of it.

    Attributes
    ----------
    total
        Number of searches; None while unknown.
    stopped
        Whether it was stopped early.
    """

    def __init__(
        self, executor: Executor, progress: bool | OnProgress, maker: Maker, *arguments: Any
    ) -> None:
        self._pool = WorkerPool(executor, maker, *arguments)
        self._progress: bool | OnProgress = progress
        self._report: OnProgress | None = None
        self._interruption, self._inside = Interruption(), ExitStack()
        self._began = time.perf_counter()
        self._done = 0
        self._fraction: float | None = None
        self._shares: dict[Task, float] = {}  # of searches under way
        self.total: int | None = None
        self.stopped = False

    def __enter__(self) -> Self:
        self._report = self._inside.enter_context(watch_progress(self._progress))
        interruption = self._inside.enter_context(self._interruption)
        self._inside.enter_context(listen(lambda: interruption.requested))
        self._inside.enter_context(self._pool)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> bool:
        interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        self.stopped |= interrupted
        self._inside.close()
        return interrupted

    @property
    def seconds(self) -> float:
        """Time since it began."""
        return time.perf_counter() - self._began

    @property
    def lost(self) -> int:
        """Number of workers lost."""
        return self._pool.lost

    @property
    def stopped_by(self) -> StopReason | None:
        """The reason why it was stopped; None if it was not."""
        return self._interruption.reason if self.stopped else None

    def search(self, job: SearchJob) -> Task:
        """Add a job."""
        return self._pool.submit("search", job)

    def run(self) -> Iterator[Task]:
        """Yield jobs as they end, until there are none; more may be added meanwhile."""
        while self._pool.busy:
            if self._interruption.requested and not self.stopped:
                self._stop()
            for task in self._pool.wait(self._tell):
                if isinstance(task.answer, Result) and _was_requested(task.answer):
                    self._stop()  # the request is for all jobs
                yield task
                self._finish(task)

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call another method of a worker's object; None if Ctrl-C came first."""
        if self.stopped:
            return None
        task = self._pool.submit(name, *arguments)
        for _ in self.run():
            pass
        return task.result() if task.ended else None

    def _stop(self) -> None:
        """End running tasks with what they have found, and start no other."""
        self.stopped = True
        self._pool.stop()

    def _tell(self, task: Task, progress: Progress) -> None:
        """Report the progress of a task."""
        if task.name == "search" and progress.phase == "searching":
            self._shares[task] = progress.fraction or 0.0
        self._pass_on(progress)

    def _finish(self, task: Task) -> None:
        """Count a search that ended, and report it."""
        self._shares.pop(task, None)
        if task.name != "search":
            return
        self._done += 1
        if isinstance(task.answer, Result):
            found, certificate = task.answer.statistics, task.answer.certificate
            reward = None if certificate is None else float(certificate.reward)
            counts = found.histories, found.evaluations
            self._pass_on(
                Progress(0.0, None, *counts, reward, found.samples, judgement=certificate)
            )

    def _pass_on(self, progress: Progress) -> None:
        """Report progress, with the seconds and the fraction of all searches."""
        if self._report is None:
            return
        if self.total:
            done = (self._done + sum(self._shares.values())) / self.total
            self._fraction = min(1.0, max(done, self._fraction or 0.0))
        self._report(replace(progress, seconds=self.seconds, fraction=self._fraction))


def _was_requested(result: Result) -> bool:
    """Whether Ctrl-C or SIGTERM ended a search."""
    return result.stopped_by is not None and result.stopped_by.is_request


def describe_error(name: str, error: BaseException) -> str:
    """Return an error as text; an unexpected one is logged as well."""
    if isinstance(error, VulcanError):
        return str(error)
    logger.error("%s failed", name, exc_info=error)
    return f"{type(error).__name__}: {error}"
