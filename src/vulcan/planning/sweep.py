"""Many searches on one model, run by several workers: the mechanism of comparisons and frontiers.

A worker (`vulcan.parallel`) holds a `Searcher` with the problem, which is sent to it once. Searches
are independent and submitted in a fixed order, so that results depend neither on the worker nor on
timing, as long as limits of time and memory don't end them.

If searches share a state graph, a worker evaluates each (state, action) once; only certificates
evaluate it again. The result of a search that samples depends on how much of the graph is known, so
a worker unrolls the graph before its first search, if that pays: then results depend neither on the
worker nor on the order.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final, TypeVar

from vulcan.baselines.paper import UCT
from vulcan.bounds.base import RiskBound
from vulcan.certificate.certify import Certificate
from vulcan.constraints import list_events
from vulcan.errors import ModelError, OptionError, VulcanError
from vulcan.exact.pipeline import RewardBound, bound_reward
from vulcan.exact.search import ExactSearch
from vulcan.graph.states import open_graph
from vulcan.model.reader import ModelReader
from vulcan.parallel.executors import Channel, Executor
from vulcan.parallel.pool import Task, WorkerPool, choose_executor
from vulcan.planning.result import Result
from vulcan.planning.solve import plan_and_certify
from vulcan.problem import Problem
from vulcan.runtime.limits import (
    Interruption,
    Limits,
    Monitor,
    OnProgress,
    Progress,
    StopReason,
    listen,
    watch_progress,
)
from vulcan.solvers.base import EXACT, Options, Solver
from vulcan.solvers.finding import Worth

logger = logging.getLogger("vulcan")

SAMPLES: Final = 100_000  # samples of a policy without a bound, by default

Search = tuple[RiskBound, Solver, Limits, Options]  # what to search for, and how

Name = TypeVar("Name", str, float)


class Searcher:
    """The object that a worker holds: a problem, and a state graph if its searches share one."""

    def __init__(self, channel: Channel, problem: Problem, shares_graph: bool) -> None:
        self._channel, self._problem = channel, problem
        self._graph = None
        if shares_graph:
            reader = ModelReader(problem.model, list_events(problem.constraints))
            self._graph = open_graph(reader, constraints=problem.constraints)
        self._unrolled = not shares_graph

    def search(self, bound: RiskBound, solver: Solver, limits: Limits, options: Options) -> Result:
        """Return the result for a bound, without the problem and what it holds of the model.

        Searches that share a graph add an upper bound where the solver has none.
        """
        if not self._unrolled:
            with suppress(ModelError, KeyboardInterrupt):  # the search itself will raise them
                self._unroll(limits)
        constraints = self._problem.constraints
        problem = Problem(self._problem.model, bound, constraints=constraints)
        result = self._solve(problem, solver, limits, options)
        if self._graph is not None and result.upper_bound is None and not _was_requested(result):
            found = self.bound(limits, problem)
            result = replace(result, upper_bound=found.upper, price=found.price, lines=found.lines)
        policy = None if result.policy is None else result.policy.attach(None)
        return replace(result, problem=None, policy=policy)  # type: ignore[arg-type]

    def bound(self, limits: Limits, problem: Problem | None = None) -> RewardBound:
        """Return an upper bound on the reward of any policy, if one can be found."""
        report = self._channel.report
        try:
            return bound_reward(
                problem or self._problem, limits, graph=self._graph, on_progress=report
            )
        except ModelError:
            return RewardBound()

    def find_extremes(
        self, solver: Solver, limits: Limits, options: Options
    ) -> tuple[Worth, Worth] | None:
        """Return the worth of the policies of least risk and of most reward; None after Ctrl-C."""
        try:
            if extremes := self._unroll(limits):
                return extremes
        except KeyboardInterrupt:
            return None
        limits = replace(limits, gap=None)
        if limits.time_limit is limits.samples is limits.histories is None:
            limits = replace(limits, samples=SAMPLES)
        result = self._solve(self._problem, UCT(), limits, options)
        if _was_requested(result):
            return None
        if result.certificate is None:
            raise OptionError(
                "the range of risk can't be found within the limits; give levels or scales"
            )
        best = Worth(float(result.certificate.reward), float(result.certificate.risk))
        return Worth(0.0, 0.0), best

    def _solve(self, problem: Problem, solver: Solver, limits: Limits, options: Options) -> Result:
        options = replace(options, graph=self._graph)
        return plan_and_certify(problem, solver, limits, options, progress=self._channel.report)

    def _unroll(self, limits: Limits) -> tuple[Worth, Worth] | None:
        """Unroll the shared graph if it is small enough, and return both of its extremes."""
        assert self._graph is not None
        self._unrolled = True
        with Monitor(limits.keep(EXACT), self._channel.report) as monitor:
            run = ExactSearch(self._problem, self._graph.reader, monitor, None, self._graph)
            monitor.start_clock()
            if run.unroll(while_it_pays=True):
                safest, best = run.sweeps.find_best(0.0, 1.0), run.sweeps.find_best(1.0, 0.0)
                return Worth(safest.reward, safest.risk), Worth(best.reward, best.risk)
            if monitor.requested:
                raise KeyboardInterrupt
        return None


@contextmanager
def open_sweep(
    problem: Problem,
    parallel: int | str | Executor | None,
    progress: bool | OnProgress | None,
    shares_graph: bool = False,
) -> Iterator[Sweep]:
    """Yield workers for searches on a problem, which may share a state graph within a worker.

    Ctrl-C ends the `with` statement without an error; `Sweep.stopped_by` says so.
    """
    with (
        watch_progress(progress) as report,
        Interruption() as interruption,
        listen(lambda: interruption.requested),
        WorkerPool(choose_executor(parallel), Searcher, problem, shares_graph) as pool,
    ):
        sweep = Sweep(problem, pool, interruption, report)
        try:
            yield sweep
        except KeyboardInterrupt:
            sweep.stopped = True


class Sweep:
    """Searches on workers, their progress as one, and Ctrl-C.

    `total` is the number of searches, None while unknown; `stopped` says whether they were stopped
    early.
    """

    def __init__(
        self,
        problem: Problem,
        pool: WorkerPool,
        interruption: Interruption,
        report: OnProgress | None,
    ) -> None:
        self._problem, self._pool = problem, pool
        self._interruption, self._report = interruption, report
        self._began = time.perf_counter()
        self._done = 0
        self._fraction: float | None = None
        self._shares: dict[Task, float] = {}  # of searches under way
        self.total: int | None = None
        self.stopped = False

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

    def solve(
        self, searches: Mapping[Name, Search]
    ) -> Iterator[tuple[Name, Result | None, BaseException | None]]:
        """Yield searches as they end: their names, and their results or errors."""
        names = {self._pool.submit("search", *how): name for name, how in searches.items()}
        for task in self._run():
            result: Result | None = task.answer
            if result is not None:
                model, others = self._problem.model, self._problem.constraints
                problem = Problem(model, task.arguments[0], constraints=others)
                policy = result.policy
                policy = None if policy is None else policy.attach(ModelReader(problem.model))
                result = replace(result, problem=problem, policy=policy)
            yield names[task], result, task.error

    def call(self, method: str, *arguments: Any) -> Any:
        """Call another method of a `Searcher`; None if Ctrl-C came first."""
        if self.stopped:
            return None
        task = self._pool.submit(method, *arguments)
        for _ in self._run():
            pass
        return task.result() if task.ended else None

    def _run(self) -> Iterator[Task]:
        """Yield tasks as they end, until there are none."""
        while self._pool.busy:
            if self._interruption.requested and not self.stopped:
                self._stop()
            for task in self._pool.wait(self._tell):
                if isinstance(task.answer, Result) and _was_requested(task.answer):
                    self._stop()  # the request is for all searches
                yield task
                self._finish(task)

    def _stop(self) -> None:
        """End running tasks with what they have found, and start no other."""
        self.stopped = True
        self._pool.stop()

    def _tell(self, task: Task, progress: Progress) -> None:
        if task.name == "search" and progress.phase == "searching":
            self._shares[task] = progress.fraction or 0.0
        self._pass_on(progress)

    def _finish(self, task: Task) -> None:
        """Count a search that ended, and report it."""
        self._shares.pop(task, None)
        self._done += task.name == "search"
        if task.name == "search" and task.answer is not None:
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


class ResultRow:
    """A result beside others, in a comparison or a frontier: its numbers; None for missing ones."""

    result: Result | None

    @property
    def _source(self) -> Result | None:
        """The result whose numbers these are."""
        return self.result

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of the policy."""
        return None if self._source is None else self._source.certificate

    @property
    def safe(self) -> bool:
        """Whether there is a complete policy whose certificate passes."""
        return self._source is not None and self._source.safe

    @property
    def reward(self) -> float | None:
        """Certified reward, also of a policy that is not safe."""
        return None if self.certificate is None else float(self.certificate.reward)

    @property
    def risk(self) -> float | None:
        """Certified risk."""
        return None if self.certificate is None else float(self.certificate.risk)

    @property
    def allowed(self) -> float | None:
        """The risk that the bound allows for the reward."""
        return None if self.certificate is None else float(self.certificate.allowed)

    @property
    def upper_bound(self) -> float | None:
        """No policy within the bound earns more; as in `Result`."""
        return None if self._source is None else self._source.upper_bound

    @property
    def gap(self) -> float | None:
        """Largest relative distance of the reward from the optimum; of safe policies only."""
        return None if self._source is None else self._source.gap

    @property
    def absolute_gap(self) -> float | None:
        """The same in units of reward."""
        return None if self._source is None else self._source.absolute_gap


def describe_error(name: str, error: BaseException) -> str:
    """Return an error as text; an unexpected one is logged as well."""
    if isinstance(error, VulcanError):
        return str(error)
    logger.error("%s failed", name, exc_info=error)
    return f"{type(error).__name__}: {error}"
